//! The note beside boot files that says where they are from.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::{read, version};

/// The name of the note.
pub(super) const NAME: &str = "SOURCE";

/// Where boot files are from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// The version of the package.
    pub(super) version: Option<String>,
    /// SHA-256 of each file, in hex.
    pub(super) sums: BTreeMap<String, String>,
}

impl Source {
    /// The note that lies in a folder; an empty one if there is none that can be read.
    pub(super) fn of(folder: &Path) -> Self {
        let text = read(&folder.join(NAME)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let version = text.lines().find_map(|line| line.strip_prefix("version: ")).map(str::trim);
        let is_sum = |sum: &str| sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit());
        let sums = text.lines().filter_map(|line| line.split_once("  ")).filter(|(sum, _)| is_sum(sum));
        Self {
            version: version.filter(|version| version::is_valid(version)).map(str::to_owned),
            sums: sums.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect(),
        }
    }

    /// The note as text. Its sums are in the way of sha256sum.
    pub(super) fn write(package: &str, version: &str, files: &BTreeMap<&str, Vec<u8>>) -> String {
        let mut text = format!(
            "package: {package}\nversion: {version}\nlicence: in the package, /usr/share/doc/{package}/copyright\nsha256:\n"
        );
        for (name, bytes) in files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}  {name}", sum(bytes));
        }
        text
    }
}

/// SHA-256 in hex.
pub(super) fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_is_read_as_it_was_written() {
        let files = BTreeMap::from([("a", b"one".to_vec()), ("b", b"two".to_vec())]);
        let source = Source::parse(&Source::write("ipxe", "1.0-1", &files));
        assert_eq!(source.version.as_deref(), Some("1.0-1"));
        assert_eq!(source.sums.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(source.sums["a"], "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
    }

    #[test]
    fn other_text_is_no_note() {
        assert_eq!(Source::parse("version: \x1b[2J\nabc  undionly.kpxe\n"), Source::default());
    }
}
