//! `beskar7 standalone --repair-store`: what was kept of a damaged store, and what was not.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use apiserver::store::{Repair, Store};

use crate::human::counted;

/// Repairs the store in a folder and tells about it.
pub(super) fn repair(folder: &Path) -> anyhow::Result<String> {
    let store = folder.join("store");
    let repaired = Store::repair(&store).context("cannot repair the store")?;
    Ok(match repaired {
        None => format!("The store in {} is not damaged. Nothing was changed.\n", folder.display()),
        Some((repair, aside)) => report(&repair, folder, &aside),
    })
}

fn report(repair: &Repair, folder: &Path, aside: &Path) -> String {
    let mut text = format!(
        "Repaired the store in {}: {} kept. The damaged files are in {}.\n",
        folder.display(),
        counted(repair.kept, "object"),
        aside.display()
    );
    section(&mut text, "Lost: these objects cannot be read and are not in the store any more", &repair.lost);
    let writes = repair.lost_writes.iter().map(|range| match (range.start(), range.end()) {
        (first, last) if first == last => format!("resourceVersion {first}"),
        (first, last) => format!("resourceVersion {first} to {last}"),
    });
    section(&mut text, "Lost writes: what they changed is as it was before them, or missing", writes);
    let places = repair.places.iter().map(|place| {
        let key = place.key.as_ref().map_or_else(|| "unknown object".to_owned(), |key| format!("probably {key}"));
        format!("{} at byte {}, {}: {key}", place.file, place.offset, counted(place.bytes, "byte"))
    });
    section(&mut text, "Where the log cannot be read, and which object was written there first", places);
    let heading = "Uncertain: the index was damaged too, so these objects may be outdated, or were deleted long ago";
    section(&mut text, heading, &repair.uncertain);
    let _ = write!(
        text,
        "
Servers are not safe yet: to the operator, a lost machine looks deleted and an outdated host looks free.
  1. Start with --freeze, which holds back every power-off, reset and deployment:
     beskar7 standalone --data {} --freeze
  2. Compare with a backup or your manifests, and apply again what is missing or outdated.
  3. Restart without --freeze. Check the disk.
",
        folder.display()
    );
    text
}

fn section(text: &mut String, heading: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_some() {
        let _ = writeln!(text, "\n{heading}:");
        for line in lines {
            let _ = writeln!(text, "  {}", line.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use apiserver::store::Damaged;

    use super::*;

    #[test]
    fn a_report_names_everything_that_is_lost_and_says_what_to_do() {
        let repair = Repair {
            kept: 12,
            lost: vec!["/hosts/default/server-07".into()],
            lost_writes: vec![5..=5, 8..=9],
            places: vec![Damaged { file: "log-0000000003".into(), offset: 415, bytes: 129, key: Some("/a/b".into()) }],
            uncertain: Vec::new(),
        };
        let text = report(&repair, Path::new("/data"), Path::new("/data/store-damaged-1"));
        assert_eq!(
            text,
            "\
Repaired the store in /data: 12 objects kept. The damaged files are in /data/store-damaged-1.

Lost: these objects cannot be read and are not in the store any more:
  /hosts/default/server-07

Lost writes: what they changed is as it was before them, or missing:
  resourceVersion 5
  resourceVersion 8 to 9

Where the log cannot be read, and which object was written there first:
  log-0000000003 at byte 415, 129 bytes: probably /a/b

Servers are not safe yet: to the operator, a lost machine looks deleted and an outdated host looks free.
  1. Start with --freeze, which holds back every power-off, reset and deployment:
     beskar7 standalone --data /data --freeze
  2. Compare with a backup or your manifests, and apply again what is missing or outdated.
  3. Restart without --freeze. Check the disk.
"
        );
    }
}
