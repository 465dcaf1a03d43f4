//! Writes to a store that is only in memory: done on the spot, without a thread or a wait, so that tests with paused
//! time stay exact.

use std::sync::{Arc, Mutex, PoisonError};

use super::visible::{State, Visible};
use super::{Change, Expect, Revision, StoreError};

#[derive(Debug)]
pub(super) struct Memory {
    visible: Arc<Visible>,
    /// Held by who writes; readers are not kept out while bytes are rendered.
    turn: Mutex<()>,
}

impl Memory {
    pub(super) fn new(visible: Arc<Visible>) -> Self {
        Self { visible, turn: Mutex::new(()) }
    }

    pub(super) fn write(&self, key: &str, expect: Expect, change: Change) -> Result<Revision, StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.visible.get(key)?;
        let event = Arc::new(change.happen(expect, key, found, self.visible.newest() + 1)?);
        let revision = event.revision;
        self.visible.publish(vec![event.clone()], |state| {
            let State::Memory(entries) = state else { return };
            let entries = Arc::make_mut(entries);
            if event.deleted {
                entries.remove(&event.key);
            } else {
                entries.insert(event.key.clone(), (revision, event.value.clone()));
            }
        });
        Ok(revision)
    }
}
