//! A cursor into the history.

use std::sync::Arc;

use super::visible::{Reader, Visible};
use super::{Event, Revision, StoreError};

/// Events under a prefix, in order, none left out.
///
/// It holds no events of its own, so a slow one costs nothing; and events under other prefixes do not wake it.
#[derive(Debug)]
pub struct Watch {
    visible: Arc<Visible>,
    reader: Arc<Reader>,
}

impl Watch {
    pub(super) fn begin(visible: Arc<Visible>, prefix: &str, after: Revision) -> Result<Self, StoreError> {
        let reader = visible.join(prefix, after)?;
        Ok(Self { visible, reader })
    }

    /// The next event. A reader that is so slow that the history was compacted under it gets `Compacted`. Cancel safe.
    pub async fn next(&mut self) -> Result<Arc<Event>, StoreError> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.reader.news().await;
        }
    }

    /// The next event, if it has happened already.
    pub fn try_next(&mut self) -> Option<Result<Arc<Event>, StoreError>> {
        self.visible.take(&self.reader)
    }

    /// Everything up to this revision has been handed out: what a bookmark may say.
    pub fn revision(&self) -> Revision {
        self.visible.handed_out(&self.reader)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.visible.leave(&self.reader);
    }
}
