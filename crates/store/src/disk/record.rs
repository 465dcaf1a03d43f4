//! One write, as bytes in the log.
//!
//! `length: u32, check: u32, chain: u32, body`, and the body is `kind: u8, revision: u64, length of key: u32, key,
//! value`; all little-endian. `check` is the body's CRC: who reads a value knows that it is what was written. `chain` is
//! the CRC of all lengths and checks so far: what was left behind by a write that failed does not continue the log.
//! A length of 0 is space that was prepared but not used yet. The highest bit of `kind` is set in the first record of a
//! batch: a batch is written when the one before it is durable, so that bit proves that everything before was
//! acknowledged. Logs of format 1 do not have it.

use crate::Revision;

pub(super) const HEAD: usize = 12;
const BODY_HEAD: usize = 13;
/// The smallest record.
pub(super) const LEAST: usize = HEAD + BODY_HEAD;
const BEGINS_BATCH: u8 = 0x80;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The key has this value now.
    Put,
    /// The key is gone.
    Delete,
    /// The same value as before, in a new place.
    Moved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) kind: Kind,
    pub(super) revision: Revision,
    pub(super) key: &'a str,
    pub(super) value: &'a [u8],
}

/// The state of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain(pub(super) u32);

impl Chain {
    fn next(self, length: u32, check: u32) -> Self {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(&length.to_le_bytes());
        hasher.update(&check.to_le_bytes());
        Self(hasher.finalize())
    }
}

impl Record<'_> {
    /// How many bytes it takes in the log. Keys and values are far smaller than 4 GB: who sends objects is limited to
    /// some megabytes.
    pub(super) fn size(&self) -> usize {
        HEAD + BODY_HEAD + self.key.len() + self.value.len()
    }

    /// Puts it behind what is in the buffer.
    pub(super) fn append(&self, buffer: &mut Vec<u8>, chain: &mut Chain, begins_batch: bool) {
        let start = buffer.len();
        buffer.reserve(self.size());
        buffer.extend([0; HEAD]);
        let kind = match self.kind {
            Kind::Put => 1,
            Kind::Delete => 2,
            Kind::Moved => 3,
        };
        buffer.push(if begins_batch { kind | BEGINS_BATCH } else { kind });
        buffer.extend(self.revision.to_le_bytes());
        buffer.extend(as_u32(self.key.len()).to_le_bytes());
        buffer.extend(self.key.as_bytes());
        buffer.extend(self.value);
        let (head, body) = buffer[start..].split_at_mut(HEAD);
        head.copy_from_slice(&head_of(as_u32(body.len()), crc32fast::hash(body), chain));
    }
}

/// What stands before a body, and where the chain is then.
fn head_of(length: u32, check: u32, chain: &mut Chain) -> [u8; HEAD] {
    *chain = chain.next(length, check);
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..8].copy_from_slice(&check.to_le_bytes());
    head[8..].copy_from_slice(&chain.0.to_le_bytes());
    head
}

/// How long the record is that begins like this, head included; `None` if nothing begins here.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    match u32_at(bytes, 0)? as usize {
        length if length < BODY_HEAD => None,
        length => Some(HEAD + length),
    }
}

/// Reads one whole record, wherever it came from.
pub(super) fn read(bytes: &[u8]) -> Option<Record<'_>> {
    let body = bytes.get(HEAD..)?;
    if u32_at(bytes, 0)? != as_u32(body.len()) || u32_at(bytes, 4)? != crc32fast::hash(body) {
        return None;
    }
    parse(body)
}

fn parse(body: &[u8]) -> Option<Record<'_>> {
    let kind = match body.first()? & !BEGINS_BATCH {
        1 => Kind::Put,
        2 => Kind::Delete,
        3 => Kind::Moved,
        _ => return None,
    };
    let revision = u64_at(body, 1)?;
    let (key, value) = body.get(BODY_HEAD..)?.split_at_checked(u32_at(body, 9)? as usize)?;
    Some(Record { kind, revision, key: std::str::from_utf8(key).ok()?, value })
}

/// Reads one whole record that continues the log.
pub(super) fn read_next<'a>(bytes: &'a [u8], chain: &mut Chain) -> Option<Record<'a>> {
    let record = read(bytes)?;
    let next = chain.next(u32_at(bytes, 0)?, u32_at(bytes, 4)?);
    if u32_at(bytes, 8)? != next.0 {
        return None;
    }
    *chain = next;
    Some(record)
}

/// Whether a whole record is the first of its batch.
pub(super) fn begins_batch(bytes: &[u8]) -> bool {
    bytes.get(HEAD).is_some_and(|kind| kind & BEGINS_BATCH != 0)
}

/// The first whole record in these bytes, if one begins right at their start; other bytes may follow it.
pub(super) fn read_first(bytes: &[u8]) -> Option<(Record<'_>, usize)> {
    let size = length(bytes)?;
    let bytes = bytes.get(..size)?;
    // Nearly everything that is no record is told from one here, before its bytes are counted.
    parse(&bytes[HEAD..])?;
    Some((read(bytes)?, size))
}

/// Which key a damaged record probably had.
pub(super) fn probable_key(bytes: &[u8]) -> Option<&str> {
    let key = bytes.get(LEAST..)?.get(..u32_at(bytes, HEAD + 9)? as usize)?;
    let key = std::str::from_utf8(key).ok()?;
    (key.starts_with('/') && !key.contains(char::is_control)).then_some(key)
}

/// The right head of a record that continues the log and of which only one field of the head is damaged. `length`,
/// `check` and `chain` hang together: two of them prove the third and the body.
pub(super) fn mended_head(bytes: &[u8], chain: Chain) -> Option<[u8; HEAD]> {
    let (check, link) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
    let mended = |length: usize, check: u32| {
        let mut chain = chain;
        let head = head_of(as_u32(length), check, &mut chain);
        parse(bytes.get(HEAD..HEAD + length)?)?;
        Some((head, chain))
    };
    if let Some(body) = length(bytes).and_then(|size| bytes.get(HEAD..size)) {
        let found = crc32fast::hash(body);
        if let Some((head, next)) = mended(body.len(), found)
            && (found == check || next.0 == link)
        {
            return Some(head);
        }
    }
    let mut hasher = crc32fast::Hasher::new();
    for (at, byte) in bytes.get(HEAD..)?.iter().take(LARGEST).enumerate() {
        hasher.update(&[*byte]);
        if hasher.clone().finalize() == check
            && let Some((head, next)) = mended(at + 1, check)
            && next.0 == link
        {
            return Some(head);
        }
    }
    None
}

/// Objects are far smaller.
const LARGEST: usize = 8 << 20;

/// Where in a record the value begins.
pub(super) fn value_at(key: &str) -> usize {
    HEAD + BODY_HEAD + key.len()
}

pub(super) fn as_u32(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(records: &[Record<'_>]) -> Vec<u8> {
        let (mut bytes, mut chain) = (Vec::new(), Chain(7));
        for record in records {
            record.append(&mut bytes, &mut chain, true);
        }
        bytes
    }

    const ONE: Record<'_> = Record { kind: Kind::Put, revision: 2, key: "/ä", value: b"{}" };
    const TWO: Record<'_> = Record { kind: Kind::Delete, revision: 3, key: "/ä", value: b"" };

    #[test]
    fn what_was_written_is_read() {
        let bytes = written(&[ONE, TWO]);
        let mut chain = Chain(7);
        let (first, second) = bytes.split_at(length(&bytes).unwrap());
        assert_eq!(first.len(), ONE.size());
        assert_eq!(read_next(first, &mut chain), Some(ONE));
        assert_eq!(read_next(second, &mut chain), Some(TWO));
        assert_eq!(&first[value_at(ONE.key)..], b"{}");
    }

    #[test]
    fn a_changed_bit_is_noticed_wherever_it_is() {
        let bytes = written(&[ONE]);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_next(&changed, &mut Chain(7)), None, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(read_next(&bytes[..cut], &mut Chain(7)), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_changed_head_is_proven_by_the_rest_and_a_changed_body_is_not() {
        let bytes = written(&[ONE, TWO]);
        for bit in 0..ONE.size() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mended = mended_head(&changed, Chain(7));
            assert_eq!(mended.is_some(), bit / 8 < HEAD, "bit {bit}");
            assert!(mended.is_none_or(|head| head == bytes[..HEAD]), "bit {bit}");
        }
        assert_eq!(mended_head(&[0; 512], Chain(7)), None);
    }

    #[test]
    fn a_record_of_another_past_does_not_continue_the_log() {
        let bytes = written(&[ONE, TWO]);
        let mut chain = Chain(7);
        let other = Record { value: b"[]", ..ONE };
        let mut instead = Vec::new();
        other.append(&mut instead, &mut chain, true);
        assert_eq!(read_next(&bytes[ONE.size()..], &mut chain), None);
    }

    #[test]
    fn prepared_space_is_not_a_record() {
        assert_eq!(length(&[0; 64]), None);
        assert_eq!(length(&[1]), None);
    }
}
