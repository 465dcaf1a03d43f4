//! What is served right now: the built-ins and the established custom resources.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::resource::{Resource, Version};

/// Everything that is served at one moment. Taken once per request.
#[derive(Debug, Default)]
pub struct Catalogue {
    resources: Vec<Arc<Resource>>,
    by_plural: HashMap<String, Vec<Served>>,
    by_kind: HashMap<String, Vec<Served>>,
}

/// A resource in one of its versions.
#[derive(Debug, Clone)]
pub struct Served {
    /// The resource.
    pub resource: Arc<Resource>,
    /// Index of the version.
    pub index: usize,
}

impl Served {
    /// The version.
    pub fn version(&self) -> &Version {
        &self.resource.versions[self.index]
    }

    /// The group under which it is served.
    pub fn group(&self) -> &str {
        self.version().group.as_deref().unwrap_or(&self.resource.group)
    }

    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        self.resource.api_version(self.version())
    }

    fn is(&self, group: &str, version: &str) -> bool {
        self.version().name == version && self.group() == group
    }
}

impl Catalogue {
    /// A catalogue of these resources, in this order.
    pub fn new(resources: Vec<Arc<Resource>>) -> Self {
        let mut by_plural: HashMap<String, Vec<Served>> = HashMap::new();
        let mut by_kind: HashMap<String, Vec<Served>> = HashMap::new();
        for resource in &resources {
            for (index, _) in resource.versions.iter().enumerate().filter(|(_, version)| version.served) {
                let served = Served { resource: Arc::clone(resource), index };
                by_plural.entry(resource.plural.clone()).or_default().push(served.clone());
                by_kind.entry(resource.kind.clone()).or_default().push(served);
            }
        }
        Self { resources, by_plural, by_kind }
    }

    /// The resource behind `/apis/<group>/<version>/<plural>`.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        self.by_plural.get(plural)?.iter().find(|served| served.is(group, version)).cloned()
    }

    /// The resource that an object or a reference with this `apiVersion` and `kind` is about.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<Served> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.by_kind.get(kind)?.iter().find(|served| served.is(group, version)).cloned()
    }

    /// All resources.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// Everything that clients can ask for: each resource in each version that is served, in the order of the
    /// resources.
    pub fn served(&self) -> impl Iterator<Item = Served> {
        self.resources.iter().flat_map(|resource| {
            let served = resource.versions.iter().enumerate().filter(|(_, version)| version.served);
            served.map(|(index, _)| Served { resource: Arc::clone(resource), index })
        })
    }
}

/// The catalogue that counts now. Whoever answers a request takes one snapshot and sticks to it.
#[derive(Debug, Clone)]
pub struct Shelf(watch::Sender<Arc<Catalogue>>);

impl Shelf {
    /// A shelf with this catalogue on it.
    pub fn new(catalogue: Catalogue) -> Self {
        Self(watch::Sender::new(Arc::new(catalogue)))
    }

    /// The catalogue as it is now.
    pub fn now(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts another catalogue in its place.
    pub fn replace(&self, catalogue: Catalogue) {
        self.0.send_replace(Arc::new(catalogue));
    }

    /// Tells when the catalogue is replaced.
    pub fn changes(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.0.subscribe()
    }
}
