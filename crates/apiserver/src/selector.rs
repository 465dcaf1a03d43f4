//! Label and field selectors, in Kubernetes' grammar and with its complaints.

mod fields;
mod labels;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::fields::FieldSelector;
pub use self::labels::LabelSelector;
use crate::catalogue::Served;
use crate::status::Failure;

/// Which objects are meant.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selector {
    /// All objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Reads `labelSelector` and `fieldSelector` as given for a resource.
    pub fn parse(served: &Served, labels: &str, fields: &str) -> Result<Self, Failure> {
        let labels = LabelSelector::parse(labels).map_err(Failure::bad_request)?;
        let fields = FieldSelector::parse(served, fields).map_err(Failure::bad_request)?;
        Ok(Self { labels, fields })
    }

    /// Whether all objects are meant.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether namespace and name are enough to decide.
    pub fn needs_only_names(&self) -> bool {
        self.labels.is_empty() && self.fields.needs_only_names()
    }

    /// The one name that can match, if the selector asks for one.
    pub fn name(&self) -> Option<&str> {
        self.fields.name()
    }

    /// Whether an object of this namespace and name is meant, as far as that can be told from them.
    pub fn matches_names(&self, namespace: &str, name: &str) -> bool {
        self.fields.matches_names(namespace, name)
    }

    /// Whether this object is meant. It must be in the version that the selector was parsed for.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}
