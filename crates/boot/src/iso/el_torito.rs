//! The El Torito boot catalogue: what firmware boots from a CD.

use super::bytes_at::{byte, le16, le32};
use super::canvas::Canvas;
use super::source::Source;
use super::{IsoError, SECTOR, limits};

/// An image that firmware may boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BootEntry {
    pub(crate) platform: Platform,
    /// Where the image begins, in bytes. Its length is not believed: catalogues often say 0 or 1.
    pub(crate) offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Bios,
    Uefi,
    /// PowerPC, Mac.
    Other,
}

impl Platform {
    fn of(id: u8) -> Self {
        match id {
            0x00 => Self::Bios,
            0xef => Self::Uefi,
            _ => Self::Other,
        }
    }
}

/// What can be booted. Empty if the catalogue is invalid: then firmware finds nothing either.
pub(crate) async fn boot_entries<S: Source>(
    canvas: &mut Canvas<'_, S>,
    catalogue: u64,
) -> Result<Vec<BootEntry>, IsoError> {
    let len =
        (limits::BOOT_ENTRIES * 32).min(usize::try_from(canvas.size().saturating_sub(catalogue)).unwrap_or(usize::MAX));
    Ok(entries(&canvas.read(catalogue, len).await?))
}

fn entries(catalogue: &[u8]) -> Vec<BootEntry> {
    let mut rows = catalogue.chunks_exact(32);
    let Some(validation) = rows.next().filter(|row| is_valid(row)) else { return Vec::new() };
    let mut platform = Platform::of(byte(validation, 1));
    let mut entries: Vec<BootEntry> = rows.next().and_then(|row| entry(row, platform)).into_iter().collect();
    let mut left = 0;
    for row in rows {
        match byte(row, 0) {
            // A section and how many entries it has.
            0x90 | 0x91 if left == 0 => {
                platform = Platform::of(byte(row, 1));
                left = le16(row, 2);
            }
            // More about the entry before.
            0x44 => {}
            _ if left > 0 => {
                left -= 1;
                entries.extend(entry(row, platform));
            }
            _ => break,
        }
    }
    entries
}

fn is_valid(row: &[u8]) -> bool {
    let sum = (0..16).fold(0_u16, |sum, word| sum.wrapping_add(le16(row, word * 2)));
    byte(row, 0) == 1 && row.get(30..32) == Some(&[0x55, 0xaa]) && sum == 0
}

fn entry(row: &[u8], platform: Platform) -> Option<BootEntry> {
    let offset = u64::from(le32(row, 8)) * SECTOR;
    (byte(row, 0) == 0x88 && offset > 0).then_some(BootEntry { platform, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue(platform: u8) -> Vec<u8> {
        let mut validation = vec![0; 32];
        validation[0] = 1;
        validation[1] = platform;
        validation[30..].copy_from_slice(&[0x55, 0xaa]);
        let sum = (0..16).fold(0_u16, |sum, word| sum.wrapping_add(le16(&validation, word * 2)));
        validation[28..30].copy_from_slice(&0_u16.wrapping_sub(sum).to_le_bytes());
        validation
    }

    fn row(first: u8, second: u8, number: u8) -> Vec<u8> {
        let mut row = vec![0; 32];
        (row[0], row[1], row[8]) = (first, second, number);
        if first == 0x90 || first == 0x91 {
            row[2] = number;
        }
        row
    }

    #[test]
    fn default_entry_and_sections_are_read() {
        let rows =
            [catalogue(0), row(0x88, 0, 40), row(0x91, 0xef, 2), row(0x88, 0, 50), row(0x44, 0, 0), row(0x88, 0, 60)];
        let bytes = [rows.concat(), vec![0; 64]].concat();
        let at = |platform, sector: u64| BootEntry { platform, offset: sector * SECTOR };
        let expected = [at(Platform::Bios, 40), at(Platform::Uefi, 50), at(Platform::Uefi, 60)];
        assert_eq!(entries(&bytes), expected);
    }

    #[test]
    fn an_image_for_uefi_alone_has_it_as_default_entry() {
        let bytes = [catalogue(0xef), row(0x88, 0, 40)].concat();
        assert_eq!(entries(&bytes), [BootEntry { platform: Platform::Uefi, offset: 40 * SECTOR }]);
    }

    #[test]
    fn what_is_not_bootable_is_left_out() {
        assert_eq!(entries(&[catalogue(0), row(0x00, 0, 40)].concat()), []);
        assert_eq!(entries(&[row(0x88, 0, 40), row(0x88, 0, 40)].concat()), []);
        assert_eq!(entries(&[]), []);
    }
}
