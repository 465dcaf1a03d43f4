//! Disks that come one by one: as many at a look as a registration may cost, the others at later looks.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::resource::Resource;

/// What was read is not used for longer: disks may have been replaced meanwhile.
const KEPT_FOR: Duration = Duration::from_hours(6);

/// What is kept of a disk or of what it hangs on: a whole resource may be large.
const KEPT: [&str; 14] = [
    "@odata.id",
    "Id",
    "Name",
    "Manufacturer",
    "Model",
    "SerialNumber",
    "CapacityBytes",
    "MediaType",
    "Protocol",
    "Revision",
    "Status",
    "PhysicalLocation",
    "Location",
    "Drives",
];

/// Disks that were read for an inventory that takes several looks.
#[derive(Debug, Default)]
pub(crate) struct Pile(Mutex<HashMap<String, (Instant, Resource)>>);

impl Pile {
    pub(super) fn get(&self, uri: &str) -> Option<Resource> {
        let pile = self.pile();
        pile.get(uri).filter(|(at, _)| at.elapsed() < KEPT_FOR).map(|(_, resource)| resource.clone())
    }

    pub(super) fn put(&self, uri: &str, resource: &Resource) {
        let Value::Object(fields) = &resource.body else { return };
        let kept = fields.iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
        let body = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        let kept = Resource { uri: resource.uri.clone(), etag: None, body: Value::Object(body) };
        self.pile().insert(uri.to_owned(), (Instant::now(), kept));
    }

    /// The inventory is complete.
    pub(super) fn clear(&self) {
        *self.pile() = HashMap::new();
    }

    fn pile(&self) -> MutexGuard<'_, HashMap<String, (Instant, Resource)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
