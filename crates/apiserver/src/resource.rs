//! What the server serves: resources, their versions, and the few points where a built-in differs from a custom one.
//!
//! Every resource takes the same road (`verbs`). Built-ins are resources whose definition is compiled in; custom
//! resources get theirs from a CustomResourceDefinition. What only a built-in does is a plain function in its [`Hooks`].

use std::sync::Arc;

use cel::Rules;
use jiff::Timestamp;
use schema::Schema;
pub use schema::names::Scope;
use serde_json::Value;

use crate::status::{FieldError, Qualified};

/// A resource in all its versions: one kind of object, one place in the store.
#[derive(Debug)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// `physicalhosts`.
    pub plural: String,
    /// `physicalhost`.
    pub singular: String,
    /// `PhysicalHost`.
    pub kind: String,
    /// `PhysicalHostList`.
    pub list_kind: String,
    /// `ph`.
    pub short_names: Vec<String>,
    /// `cluster-api`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// All versions, served or not, in the order that clients should prefer.
    pub versions: Vec<Version>,
    /// Index of the version in which objects are stored.
    pub storage: usize,
    /// Where its objects are in the store: `/registry/<group or core>/<plural>/`, then `<namespace>/<name>` or `<name>`.
    pub prefix: String,
    /// Objects stored before this revision were written under another schema: prune and default them when they are
    /// read. 0 for built-ins.
    pub schema_since: u64,
    /// What only this resource does.
    pub hooks: Hooks,
    /// A custom resource (from a CustomResourceDefinition).
    pub custom: bool,
    /// Whether it may be created and changed now: false while its CustomResourceDefinition is terminating.
    pub accepts_creates: bool,
}

/// One version of a resource.
#[derive(Debug)]
pub struct Version {
    /// `v1beta1`.
    pub name: String,
    /// The group under which this version is served, if that is not the resource's own: Events live in two groups.
    pub group: Option<String>,
    /// Whether clients may use it.
    pub served: bool,
    /// Shown as a `Warning:` header on each use.
    pub deprecation: Option<String>,
    /// Its fields.
    pub schema: Arc<Schema>,
    /// Its CEL rules, compiled.
    pub rules: Arc<Rules>,
    /// Its columns in tables.
    pub columns: Vec<Column>,
    /// Whether `/status` is apart.
    pub status: bool,
    /// `/scale`, where it is declared.
    pub scale: Option<Scale>,
    /// What field selectors may use, beside `metadata.name` and `metadata.namespace`: JSON paths as in CRDs
    /// (`.spec.color` is the label `spec.color`), or `label=.json.path` where the two differ.
    pub selectable: Vec<String>,
    /// How an object of this version becomes the stored one and back; `None` only exchanges `apiVersion`.
    pub convert: Option<Convert>,
}

/// Translation of one version from and to the stored one, in place.
#[derive(Debug, Clone, Copy)]
pub struct Convert {
    /// This version → stored version.
    pub store: fn(&mut Value),
    /// Stored version → this version.
    pub load: fn(&mut Value),
}

/// `additionalPrinterColumns`.
#[derive(Debug, Clone)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `date`, `boolean`, `number`.
    pub kind: String,
    /// `name`, `date-time`, …
    pub format: String,
    /// For `kubectl explain` and such.
    pub description: String,
    /// 0 is always shown; more only with `-o wide`.
    pub priority: i32,
    /// Where the value is.
    pub value: Cell,
}

/// Where a cell gets its value from.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A JSON path as in CRDs: `.status.state`, `.status.conditions[?(@.type=="Ready")].status`.
    Path(String),
    /// A function of the object and the time of day, for built-ins.
    Compute(fn(&Value, Timestamp) -> Value),
}

/// The scale subresource of a custom resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// `specReplicasPath`.
    pub spec_replicas: String,
    /// `statusReplicasPath`.
    pub status_replicas: String,
    /// `labelSelectorPath`.
    pub label_selector: Option<String>,
}

/// What only this resource does. Each is called on objects in the stored version.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// When an object is read from the wire: the form that Kubernetes' own decoder gives it. Field owners see the result.
    pub default: fn(new: &mut Value),
    /// Before validation, on each write: fill in and drop what clients may not set, unseen by field owners. `old` is
    /// `None` on create.
    pub prepare: fn(new: &mut Value, old: Option<&Value>, part: Part),
    /// Rules beyond schema and metadata. `version` is the one that the client speaks.
    pub validate: fn(new: &Value, old: Option<&Value>, part: Part, version: &Version) -> Vec<FieldError>,
    /// How `metadata.name` must look; `Err` is the sentence.
    pub valid_name: fn(name: &str) -> Result<(), String>,
    /// Remarks for the writer, sent as `Warning:` headers.
    pub warnings: fn(new: &Value) -> Vec<String>,
    /// When deletion has been asked for and the object stays for now: a namespace becomes `Terminating`.
    pub deleting: fn(object: &mut Value),
    /// Why an object of this name can never be deleted.
    pub stays: fn(name: &str) -> Option<&'static str>,
    /// What keeps an object that is being deleted, beside `metadata.finalizers`: a namespace's `spec.finalizers`.
    pub held: fn(object: &Value) -> bool,
    /// Whether putting an object where there is none makes it.
    pub made_by_replacing: bool,
}

impl Hooks {
    /// A resource that does nothing special: what custom resources have, and what built-ins start from
    /// (`Hooks { prepare, ..Hooks::NONE }`).
    pub const NONE: Self = Self {
        default: |_| {},
        prepare: |_, _, _| {},
        validate: |_, _, _, _| Vec::new(),
        valid_name: schema::names::subdomain,
        warnings: |_| Vec::new(),
        deleting: |_| {},
        stays: |_| None,
        held: |_| false,
        made_by_replacing: false,
    };
}

/// Which part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The object without its status, if that is apart.
    Main,
    /// Only the status.
    Status,
    /// A namespace's `spec.finalizers`.
    Finalize,
}

impl Resource {
    /// For messages about objects: `physicalhosts.infrastructure.cluster.x-k8s.io`.
    pub fn qualified(&self) -> Qualified<'_> {
        Qualified { group: &self.group, name: &self.plural }
    }

    /// For messages about the content of objects: `PhysicalHost.infrastructure.cluster.x-k8s.io`.
    pub fn qualified_kind(&self) -> Qualified<'_> {
        Qualified { group: &self.group, name: &self.kind }
    }

    /// The version in which objects are stored.
    pub fn stored(&self) -> &Version {
        &self.versions[self.storage]
    }

    /// `apiVersion` of objects of that version.
    pub fn api_version(&self, version: &Version) -> String {
        let group = version.group.as_deref().unwrap_or(&self.group);
        if group.is_empty() { version.name.clone() } else { format!("{group}/{}", version.name) }
    }

    /// The key of an object in the store.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        match self.scope {
            Scope::Namespaced => format!("{}{namespace}/{name}", self.prefix),
            Scope::Cluster => format!("{}{name}", self.prefix),
        }
    }
}
