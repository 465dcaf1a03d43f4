//! Directory records of ISO 9660, with the names that Rock Ridge and Joliet give.

use super::SECTOR;
use super::bytes_at::{both32, byte, le32};
use super::volume::{Extent, Names, Tree};

const FIXED: usize = 33;

/// One record of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Where the record lies in its directory.
    pub(crate) at: usize,
    pub(crate) extent: Extent,
    pub(crate) is_directory: bool,
    /// Whether the file is one plain run of bytes: not interleaved, not in several parts.
    pub(crate) is_plain: bool,
    pub(crate) name: String,
    /// Whether the name, or its beginning, is Rock Ridge's.
    pub(crate) is_rock_ridge: bool,
    /// Where Rock Ridge goes on: the name may be there.
    pub(crate) continued: Option<Extent>,
}

/// All records of a directory but `.` and `..`. What makes no sense ends its sector, as it does for kernels.
pub(crate) fn records(directory: &[u8], tree: &Tree) -> Vec<Record> {
    let mut records = Vec::new();
    for (number, sector) in directory.chunks(2048).enumerate() {
        let mut at = 0;
        while let Some(record) = record(sector, at) {
            if !matches!(identifier(record), [0 | 1]) {
                records.push(parse(record, number * 2048 + at, tree));
            }
            at += record.len();
        }
    }
    records
}

/// The bytes of a record that say where and how long the file is, in a volume that begins there.
pub(crate) fn place(extent: Extent, base: u64) -> Option<[u8; 16]> {
    let sector = u32::try_from(extent.offset.checked_sub(base)? / SECTOR).ok()?;
    let mut place = [0; 16];
    place[..8].copy_from_slice(&both32(sector));
    place[8..].copy_from_slice(&both32(extent.len));
    Some(place)
}

/// Where [`place`] goes in a record.
pub(crate) const PLACE: u64 = 2;

fn record(sector: &[u8], at: usize) -> Option<&[u8]> {
    let len = usize::from(*sector.get(at)?);
    let record = sector.get(at..at + len).filter(|record| record.len() > FIXED)?;
    record.get(..FIXED + usize::from(record[32])).map(|_| record)
}

fn identifier(record: &[u8]) -> &[u8] {
    record.get(FIXED..FIXED + usize::from(byte(record, 32))).unwrap_or_default()
}

fn parse(record: &[u8], at: usize, tree: &Tree) -> Record {
    let identifier = identifier(record);
    let (flags, unit, gap) = (byte(record, 25), byte(record, 26), byte(record, 27));
    let attributes = u64::from(byte(record, 1));
    let sector = u64::from(le32(record, 2)) + attributes;
    let extent = Extent { offset: tree.base + sector * SECTOR, len: le32(record, 10) };
    let padded = FIXED + identifier.len() + (identifier.len() + 1) % 2;
    let system_use = record.get(padded..).unwrap_or_default();
    let (rock_ridge, continued) = match tree.names {
        Names::Iso => rock_ridge(system_use, tree.base),
        Names::Joliet => (None, None),
    };
    Record {
        at,
        extent,
        is_directory: flags & 0x02 != 0,
        is_plain: flags & 0x80 == 0 && unit == 0 && gap == 0 && attributes == 0,
        is_rock_ridge: rock_ridge.is_some(),
        name: rock_ridge.unwrap_or_else(|| plain_name(identifier, tree.names)),
        continued,
    }
}

/// Without the version and the dot that only ISO 9660 wants.
fn plain_name(identifier: &[u8], names: Names) -> String {
    let name = match names {
        Names::Iso => String::from_utf8_lossy(identifier).into_owned(),
        Names::Joliet => {
            let letters: Vec<u16> =
                identifier.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&letters)
        }
    };
    name.split(';').next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// The name in `NM` entries, and where more entries are.
pub(crate) fn rock_ridge(mut entries: &[u8], base: u64) -> (Option<String>, Option<Extent>) {
    let mut name: Option<Vec<u8>> = None;
    let mut continued = None;
    while let Some(entry) =
        entries.get(2).and_then(|len| entries.get(..usize::from(*len))).filter(|entry| entry.len() >= 4)
    {
        match &entry[..2] {
            b"NM" => name.get_or_insert_default().extend(entry.get(5..).unwrap_or_default()),
            b"CE" if entry.len() >= 28 => {
                let offset = base + u64::from(le32(entry, 4)) * SECTOR + u64::from(le32(entry, 12));
                continued = Some(Extent { offset, len: le32(entry, 20) });
            }
            _ => {}
        }
        entries = &entries[entry.len()..];
    }
    (name.map(|name| String::from_utf8_lossy(&name).into_owned()), continued)
}
