//! Objects as we last wrote them, until the watch has caught up: nobody decides on what is known to be old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;

use crate::dialect::HostKey;

/// What we wrote and the watch has not shown yet.
#[derive(Debug)]
pub(crate) struct Latest<K>(Mutex<HashMap<HostKey, Arc<K>>>);

impl<K> Default for Latest<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: ResourceExt + Clone> Latest<K> {
    /// The object as the watch shows it, or as we wrote it if the watch has not caught up.
    pub(crate) fn newest(&self, seen: Arc<K>) -> Arc<K> {
        let key = HostKey::of(seen.as_ref());
        let mut written = self.written();
        let Some(ours) = written.get(&key) else { return seen };
        if version(ours.as_ref()) > version(seen.as_ref()) {
            return ours.clone();
        }
        written.remove(&key);
        seen
    }

    /// We have written it.
    pub(crate) fn put(&self, object: &K) {
        let mut object = object.clone();
        object.meta_mut().managed_fields = None;
        self.written().insert(HostKey::of(&object), Arc::new(object));
    }

    /// It is gone.
    pub(crate) fn forget(&self, key: &HostKey) {
        self.written().remove(key);
    }

    fn written(&self) -> MutexGuard<'_, HashMap<HostKey, Arc<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers in practice. Where they are not, the watch is believed and a conflict sorts it out.
fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}
