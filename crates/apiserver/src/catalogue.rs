//! What is served right now: the built-ins and the established custom resources.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use crate::resource::{Resource, Version};
use crate::{discovery, openapi};

/// Everything that is served at one moment. Taken once per request.
#[derive(Debug, Default)]
pub struct Catalogue {
    resources: Vec<Arc<Resource>>,
    by_plural: HashMap<String, Vec<Served>>,
    by_kind: HashMap<String, Vec<Served>>,
    discovery: OnceLock<discovery::Documents>,
    openapi: OnceLock<openapi::Documents>,
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
        Self { resources, by_plural, by_kind, ..Self::default() }
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

    /// What clients are told about it, made when the first one asks.
    pub(crate) fn discovery(&self) -> &discovery::Documents {
        self.discovery.get_or_init(|| discovery::Documents::new(self))
    }

    /// How it is described, made when the first client asks.
    pub(crate) fn openapi(&self) -> &openapi::Documents {
        self.openapi.get_or_init(|| openapi::Documents::new(self))
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

/// The order in which clients should prefer versions: `v2`, `v1`, `v1beta2`, `v1alpha1`, then others by name.
pub fn prefer(left: &str, right: &str) -> Ordering {
    let rank = |name: &str| stability(name).map(Reverse);
    match (rank(left), rank(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// Stage, major and minor version of a name such as `v1beta2`; stable ones have the highest stage.
fn stability(name: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| (!text.starts_with('0')).then(|| text.parse::<u64>().ok()).flatten();
    let rest = name.strip_prefix('v')?;
    for (stage, word) in [(1, "alpha"), (2, "beta")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stage, number(major)?, number(minor)?));
        }
    }
    Some((3, number(rest)?, 0))
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
        if let Some(written) = self.now().openapi.get() {
            let mut openapi = openapi::Documents::new(&catalogue);
            openapi::carry_over(written, &mut openapi);
            catalogue.openapi.set(openapi).ok();
        }
        self.0.send_replace(Arc::new(catalogue));
    }

    /// Tells when the catalogue is replaced.
    pub fn changes(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_by_stability_and_then_by_number() {
        let mut versions =
            ["v10beta3", "v11alpha2", "foo1", "v1", "v12alpha1", "foo10", "v3beta1", "v10", "v2", "v11beta2", "v01"];
        versions.sort_by(|left, right| prefer(left, right));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v01"]
        );
    }

    #[test]
    fn resources_are_found_by_path_and_by_kind() {
        let catalogue = Catalogue::new(crate::builtins::resources().unwrap());
        let found = |served: Option<Served>| served.map(|served| served.api_version() + " " + &served.resource.plural);
        assert_eq!(found(catalogue.find("", "v1", "secrets")).as_deref(), Some("v1 secrets"));
        assert_eq!(found(catalogue.find("events.k8s.io", "v1", "events")).as_deref(), Some("events.k8s.io/v1 events"));
        assert_eq!(
            found(catalogue.find_kind("coordination.k8s.io/v1", "Lease")).as_deref(),
            Some("coordination.k8s.io/v1 leases")
        );
        assert_eq!(found(catalogue.find_kind("v1", "Event")).as_deref(), Some("v1 events"));
        assert_eq!(found(catalogue.find("", "v2", "secrets")), None);
        assert_eq!(found(catalogue.find_kind("v1", "Lease")), None);
    }
}
