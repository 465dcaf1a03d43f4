//! Bytes in the store that were found but not read yet: a list of everything need not be in memory.

use std::sync::Arc;

use bytes::Bytes;

use super::StoreError;
use super::disk::{Place, Segments, refusal};

/// What a key held when it was found, wherever that is. Later writes do not change it.
#[derive(Debug, Clone)]
pub struct Stored(Home);

#[derive(Debug, Clone)]
enum Home {
    Memory(Bytes),
    Disk { key: Arc<str>, place: Place, segments: Arc<Segments> },
}

impl Stored {
    pub(super) fn on_disk(key: Arc<str>, place: Place, segments: &Arc<Segments>) -> Self {
        Self(Home::Disk { key, place, segments: segments.clone() })
    }

    /// The bytes.
    pub fn read(&self) -> Result<Bytes, StoreError> {
        match &self.0 {
            Home::Memory(bytes) => Ok(bytes.clone()),
            Home::Disk { key, place, segments } => place.read(segments, key).map_err(|error| refusal(&error)),
        }
    }

    /// About how many bytes there are.
    pub fn size(&self) -> usize {
        match &self.0 {
            Home::Memory(bytes) => bytes.len(),
            Home::Disk { place, .. } => place.size(),
        }
    }
}

impl From<Bytes> for Stored {
    fn from(bytes: Bytes) -> Self {
        Self(Home::Memory(bytes))
    }
}
