//! Objects as the operator last wrote them, until the watch has caught up: no decision uses a version that is known to be old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use tokio::time::Instant;

use crate::object::{Object, ObjectId};

/// A watch that lags longer has other problems, and the API server checks the version of every write.
const KEPT_FOR: Duration = Duration::from_mins(10);

/// What was written and the watch has not shown yet.
#[derive(Debug)]
pub(crate) struct Latest<K>(Mutex<Shelf<K>>);

#[derive(Debug)]
struct Shelf<K> {
    written: HashMap<ObjectId, Written<K>>,
    /// With this many entries, old ones are removed: the watch may show the deletion of an object before the answer to the last
    /// write arrives.
    full_at: usize,
}

#[derive(Debug)]
struct Written<K> {
    object: Arc<K>,
    at: Instant,
}

impl<K> Default for Latest<K> {
    fn default() -> Self {
        Self(Mutex::new(Shelf { written: HashMap::new(), full_at: 64 }))
    }
}

impl<K: Object> Latest<K> {
    /// The object as the watch shows it, or as last written if the watch has not caught up.
    pub(crate) fn newest(&self, seen: Arc<K>) -> Arc<K> {
        let key = ObjectId::of(seen.as_ref());
        let mut kept = self.shelf();
        let Some(ours) = kept.written.get(&key) else { return seen };
        if version(ours.object.as_ref()) > version(seen.as_ref()) {
            return ours.object.clone();
        }
        kept.written.remove(&key);
        seen
    }

    /// The object was written.
    pub(crate) fn put(&self, object: &K) {
        let mut object = object.clone();
        object.meta_mut().managed_fields = None;
        let mut kept = self.shelf();
        if kept.written.len() >= kept.full_at {
            kept.written.retain(|_, written| written.at.elapsed() < KEPT_FOR);
            kept.full_at = 64 + 2 * kept.written.len();
        }
        kept.written.insert(ObjectId::of(&object), Written { object: Arc::new(object), at: Instant::now() });
    }

    /// The object is gone, or the watch shows something newer.
    pub(crate) fn forget(&self, key: &ObjectId) {
        self.shelf().written.remove(key);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Versions are numbers in practice. If they are not, the watch is trusted, and a conflict corrects it.
fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use api::beskar7::PhysicalHost;
    use serde_json::json;

    use super::*;

    fn host(name: &str, version: u64) -> PhysicalHost {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "lab", "uid": name, "resourceVersion": version.to_string() },
            "spec": { "redfishConnection": { "address": "https://a", "credentialsSecretRef": "bmc" } },
        }))
        .unwrap()
    }

    #[test]
    fn what_we_wrote_counts_until_the_watch_has_caught_up() {
        let latest = Latest::default();
        latest.put(&host("a", 5));
        let newest = |seen: u64| version(latest.newest(Arc::new(host("a", seen))).as_ref());
        assert_eq!((newest(4), newest(4), newest(6), newest(4)), (5, 5, 6, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_again_is_not_kept_for_ever() {
        let latest = Latest::default();
        for number in 0..10_000 {
            latest.put(&host(&number.to_string(), 1));
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(latest.shelf().written.len() <= 2 * 600 + 64);
        }
    }
}
