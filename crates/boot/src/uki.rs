//! The command line inside a unified kernel image.
//!
//! iPXE always hands an EFI program its own name as first argument, and systemd's stub takes arguments in place of the command line that
//! is built in. So what is built in has to be handed over as well.

use crate::iso::{Source, SourceError};

/// As much of an image as its section table is in.
const HEAD: usize = 4096;
const PE_OFFSET: usize = 0x3c;
const SECTION: usize = 40;
const SECTIONS: usize = 96;
/// The longest command line of a kernel.
const LINE: usize = 2048;

/// The command line that is built into an EFI program, if there is one.
pub(crate) async fn command_line(image: &impl Source) -> Result<Option<String>, SourceError> {
    let length = usize::try_from(image.size()).unwrap_or(usize::MAX);
    let head = image.read_at(0, HEAD.min(length)).await?;
    let Some((offset, size)) = find(&head, b".cmdline") else { return Ok(None) };
    if offset.saturating_add(size) > length {
        return Ok(None);
    }
    let bytes = image.read_at(offset as u64, size.min(LINE)).await?;
    let line = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Some(line).filter(|line| !line.is_empty()))
}

/// Where the bytes of a section are, and how many.
fn find(head: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let pe = number(head, PE_OFFSET)?;
    let coff = head.get(pe..)?.strip_prefix(b"PE\0\0")?;
    let sections = usize::from(u16::from_le_bytes(coff.get(2..4)?.try_into().ok()?)).min(SECTIONS);
    let optional = usize::from(u16::from_le_bytes(coff.get(16..18)?.try_into().ok()?));
    let table = coff.get(20 + optional..)?;
    table.chunks_exact(SECTION).take(sections).find_map(|section| {
        let is_it = section.get(..8)?.strip_prefix(name).is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
        // The size in memory is that of the text; that in the file is rounded up.
        is_it.then_some((number(section, 20)?, number(section, 8)?.min(number(section, 16)?)))
    })
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// An image with one section.
    fn image(name: &[u8], text: &[u8], offset: u32) -> Vec<u8> {
        let mut image = vec![0; 8192];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(PE_OFFSET, &0x80_u32.to_le_bytes());
        put(0x80, b"PE\0\0");
        put(0x84 + 2, &1_u16.to_le_bytes());
        put(0x84 + 16, &240_u16.to_le_bytes());
        let section = 0x84 + 20 + 240;
        put(section, name);
        put(section + 8, &u32::try_from(text.len()).unwrap().to_le_bytes());
        put(section + 16, &512_u32.to_le_bytes());
        put(section + 20, &offset.to_le_bytes());
        if let Some(place) = image.get_mut(offset as usize..offset as usize + text.len()) {
            place.copy_from_slice(text);
        }
        image
    }

    #[tokio::test]
    async fn what_is_built_in_is_found_and_anything_else_is_none() {
        let table = [
            (image(b".cmdline", b"root=/dev/sda1  quiet\n\0rest", 4096), Some("root=/dev/sda1 quiet")),
            (image(b".linux\0\0", b"root=/dev/sda1", 4096), None),
            (image(b".cmdlinX", b"root=/dev/sda1", 4096), None),
            (image(b".cmdline", b"quiet", 9_000_000), None),
            (b"MZ".to_vec(), None),
            (Vec::new(), None),
            (vec![0xff; 8192], None),
        ];
        for (image, expected) in table {
            let found = command_line(&Bytes::from(image)).await.unwrap();
            assert_eq!(found.as_deref(), expected);
        }
    }
}
