//! Where the bytes of an ISO come from.

use std::future::Future;

use bytes::Bytes;

/// An image that can be read at any place. It must not change while a plan for it is in use.
pub trait Source: Send + Sync {
    /// How many bytes the image has.
    fn size(&self) -> u64;

    /// Exactly `len` bytes from `offset` on. Callers never read beyond [`Source::size`].
    fn read_at(&self, offset: u64, len: usize) -> impl Future<Output = Result<Bytes, SourceError>> + Send;
}

/// The image could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SourceError {
    /// What happened, and to which image.
    pub why: String,
    /// Whether it may work later, without anybody's help.
    pub transient: bool,
}

/// An image in memory.
impl Source for Bytes {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, SourceError> {
        let start = usize::try_from(offset).ok().filter(|start| *start <= self.len());
        let end = start.and_then(|start| start.checked_add(len)).filter(|end| *end <= self.len());
        match (start, end) {
            (Some(start), Some(end)) => Ok(self.slice(start..end)),
            _ => Err(SourceError {
                why: format!("{len} bytes from {offset} on are beyond the end at {}", self.len()),
                transient: false,
            }),
        }
    }
}
