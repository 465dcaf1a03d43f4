//! Directories of FAT, with long names.

use std::collections::{HashSet, VecDeque};

use super::{Directory, Fat};
use crate::iso::bytes_at::{byte, le16, le32};
use crate::iso::canvas::Canvas;
use crate::iso::source::Source;
use crate::iso::{IsoError, limits, places};

/// Where an entry keeps the length of its file.
pub(super) const LEN: u64 = 28;

/// A file of the EFI boot image that may matter.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) len: u32,
    pub(super) first: u32,
    /// Where its directory entry lies in the image.
    pub(super) entry: u64,
}

impl File {
    pub(crate) fn is_configuration(&self) -> bool {
        places::is_configuration(&self.path) && self.len <= limits::CONFIGURATION
    }
}

/// One entry, and where it lies among the bytes of its directory.
#[derive(Debug)]
struct Entry {
    at: usize,
    name: String,
    is_directory: bool,
    first: u32,
    len: u32,
}

/// Configurations and EFI programs, in the order in which they are found.
pub(crate) async fn boot_files<S: Source>(canvas: &mut Canvas<'_, S>, fat: &Fat) -> Result<Vec<File>, IsoError> {
    let mut files = Vec::new();
    let (mut seen, mut total) = (HashSet::new(), 0);
    let mut waiting = VecDeque::from([(String::new(), fat.root, 0)]);
    while let Some((path, directory, depth)) = waiting.pop_front() {
        if !seen.insert(directory) {
            return Err(IsoError::malformed(format!("the directory {path:?} of its EFI boot image is there twice")));
        }
        if seen.len() > limits::DIRECTORIES || depth > limits::DEPTH {
            return Err(IsoError::TooMuch { what: "its EFI boot image has too many directories" });
        }
        let parts = fat.parts(canvas, directory).await?;
        let mut bytes = Vec::new();
        for (place, len) in &parts {
            bytes.extend(canvas.read(*place, *len).await?);
        }
        total += bytes.len();
        if total > limits::ALL_DIRECTORIES {
            return Err(IsoError::TooMuch { what: "its EFI boot image has too many files" });
        }
        for entry in entries(&bytes) {
            let path = format!("{path}/{}", entry.name);
            if entry.is_directory && places::is_boot_directory(&path) {
                waiting.push_back((path, Directory::Cluster(entry.first), depth + 1));
            } else if !entry.is_directory && entry.len > 0 && places::is_of_interest(&path) {
                files.push(File { path, len: entry.len, first: entry.first, entry: place_of(&parts, entry.at) });
            }
        }
    }
    if files.len() > limits::CONFIGURATIONS {
        return Err(IsoError::TooMuch { what: "its EFI boot image has too many configuration files" });
    }
    Ok(files)
}

impl Fat {
    /// The ranges of the image that make up a directory.
    async fn parts<S: Source>(
        &self,
        canvas: &mut Canvas<'_, S>,
        directory: Directory,
    ) -> Result<Vec<(u64, usize)>, IsoError> {
        match directory {
            Directory::Fixed { offset, len } => Ok(vec![(self.offset + offset, len as usize)]),
            Directory::Cluster(first) => {
                let most = u64::from(limits::DIRECTORY) / self.cluster;
                let chain = self.chain(canvas, first, most + 1).await?;
                if chain.len() as u64 > most {
                    return Err(IsoError::malformed("a directory of its EFI boot image does not end"));
                }
                let len = usize::try_from(self.cluster).unwrap_or_default();
                chain.into_iter().map(|cluster| Ok((self.place(cluster)?, len))).collect()
            }
        }
    }
}

/// Where a byte of a directory lies in the image. Entries never cross from one part to the next.
fn place_of(parts: &[(u64, usize)], at: usize) -> u64 {
    let mut left = at;
    for (place, len) in parts {
        if left < *len {
            return place + left as u64;
        }
        left -= len;
    }
    // There is no such byte, so nothing can be written to it.
    u64::MAX
}

fn entries(directory: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut long = LongName::default();
    for (number, slot) in directory.chunks_exact(32).enumerate() {
        let attributes = byte(slot, 11);
        match byte(slot, 0) {
            0 => break,
            0xe5 => long = LongName::default(),
            _ if attributes & 0x3f == 0x0f => long.add(slot),
            // A volume label, or the directory itself or its parent.
            first if attributes & 0x08 != 0 || first == b'.' => long = LongName::default(),
            _ => entries.push(Entry {
                at: number * 32,
                name: std::mem::take(&mut long).of(slot).unwrap_or_else(|| short_name(slot)),
                is_directory: attributes & 0x10 != 0,
                first: u32::from(le16(slot, 20)) << 16 | u32::from(le16(slot, 26)),
                len: le32(slot, 28),
            }),
        }
    }
    entries
}

/// The slots before an entry that spell its long name, last letters first.
#[derive(Debug, Default)]
struct LongName {
    checksum: u8,
    letters: Vec<u16>,
}

impl LongName {
    fn add(&mut self, slot: &[u8]) {
        if byte(slot, 0) & 0x40 != 0 {
            *self = Self { checksum: byte(slot, 13), letters: Vec::new() };
        }
        let mut letters: Vec<u16> =
            [1..11, 14..26, 28..32].into_iter().flat_map(|range| range.step_by(2)).map(|at| le16(slot, at)).collect();
        // The name ends with a zero, and the rest is filled up.
        letters.truncate(letters.iter().position(|letter| *letter == 0).unwrap_or(letters.len()));
        // No name has more than 20 slots.
        if self.letters.len() < 20 * 13 {
            self.letters.splice(0..0, letters);
        }
    }

    /// The long name, if it belongs to this entry.
    fn of(self, slot: &[u8]) -> Option<String> {
        let sum = slot.iter().take(11).fold(0_u8, |sum, letter| sum.rotate_right(1).wrapping_add(*letter));
        (!self.letters.is_empty() && sum == self.checksum).then(|| String::from_utf16_lossy(&self.letters))
    }
}

/// Two bits say that a part is meant in small letters.
fn short_name(slot: &[u8]) -> String {
    let part = |range: std::ops::Range<usize>, small: u8| {
        let part = String::from_utf8_lossy(slot.get(range).unwrap_or_default()).trim_end().to_owned();
        if byte(slot, 12) & small == 0 { part } else { part.to_ascii_lowercase() }
    };
    match (part(0..8, 0x08), part(8..11, 0x10)) {
        (name, extension) if extension.is_empty() => name,
        (name, extension) => format!("{name}.{extension}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(short: &[u8; 11], attributes: u8) -> Vec<u8> {
        let mut slot = vec![0; 32];
        slot[..11].copy_from_slice(short);
        slot[11] = attributes;
        slot
    }

    /// A slot with the letters `a.conf`, for an entry of that checksum.
    fn long(checksum: u8) -> Vec<u8> {
        let mut slot = vec![0xff; 32];
        (slot[0], slot[11], slot[13]) = (0x41, 0x0f, checksum);
        for (at, letter) in [1, 3, 5, 7, 9, 14].into_iter().zip(b"a.conf") {
            (slot[at], slot[at + 1]) = (*letter, 0);
        }
        (slot[16], slot[17]) = (0, 0);
        slot
    }

    fn names(slots: &[Vec<u8>]) -> Vec<String> {
        entries(&slots.concat()).into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_long_name_counts_only_for_the_entry_it_was_written_for() {
        let short = b"A~1     CON";
        let sum = short.iter().fold(0_u8, |sum, letter| sum.rotate_right(1).wrapping_add(*letter));
        assert_eq!(names(&[long(sum), slot(short, 0x20)]), ["a.conf"]);
        assert_eq!(names(&[long(sum ^ 1), slot(short, 0x20)]), ["A~1.CON"]);
        assert_eq!(names(&[long(sum), slot(b"LABEL      ", 0x08), slot(short, 0x20)]), ["A~1.CON"]);
    }

    #[test]
    fn deleted_entries_labels_and_dots_are_left_out() {
        let deleted = slot(b"\xe5LD     CFG", 0x20);
        let slots = [slot(b".          ", 0x10), slot(b"LABEL      ", 0x08), deleted, slot(b"GRUB    CFG", 0x20)];
        assert_eq!(names(&slots), ["GRUB.CFG"]);
        assert_eq!(names(&[vec![0; 32], slot(b"GRUB    CFG", 0x20)]), Vec::<String>::new(), "zero ends a directory");
    }
}
