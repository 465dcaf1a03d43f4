//! What is served right now: the built-ins and the established custom resources.

use std::sync::Arc;

use crate::resource::{Resource, Version};

/// Everything that is served at one moment. Taken once per request.
#[derive(Debug, Default)]
pub struct Catalogue {
    resources: Vec<Arc<Resource>>,
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
}

impl Catalogue {
    /// A catalogue of these resources.
    pub fn new(resources: Vec<Arc<Resource>>) -> Self {
        Self { resources }
    }

    /// The resource behind `/apis/<group>/<version>/<plural>`.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        self.resources.iter().filter(|resource| resource.plural == plural).find_map(|resource| {
            let index = resource.versions.iter().position(|known| {
                known.served && known.name == version && known.group.as_deref().unwrap_or(&resource.group) == group
            })?;
            Some(Served { resource: Arc::clone(resource), index })
        })
    }

    /// All resources.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }
}
