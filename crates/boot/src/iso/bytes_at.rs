//! Numbers out of bytes that may be too short.

/// A number at an offset, in the byte order of the name; zero beyond the end.
///
/// Callers check the length of a structure first, so the zero is never seen. It only spares each of a hundred fields an error
/// that cannot happen.
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, u16::from_le_bytes)
}

pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    array(bytes, at).map_or(0, u32::from_le_bytes)
}

pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    array(bytes, at).map_or(0, u64::from_le_bytes)
}

pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}

/// Both byte orders after one another, as ISO 9660 likes it.
pub(crate) fn both32(number: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&number.to_le_bytes());
    both[4..].copy_from_slice(&number.to_be_bytes());
    both
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}
