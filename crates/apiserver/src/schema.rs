//! Structural schemas: what a CustomResourceDefinition says about fields, and what follows from it for objects.
//!
//! An object that comes in is pruned, then filled with defaults, then validated, in this order. Walkers of other modules
//! start at [`Schema::root`] and go down by [`Node::child`] and [`Node::items`].

use serde_json::Value;

use crate::status::{FieldError, FieldFault};

mod default;
mod format;
mod lists;
mod meta;
mod node;
mod path;
pub(crate) mod pattern;
mod prune;
mod ratchet;
mod read;
mod validate;

pub use format::Format;
pub use node::{Additional, Kind, Limits, ListType, MapType, Node, Pattern, Rule};
pub(crate) use path::{NIL, Path};

/// A structural schema.
#[derive(Debug)]
pub struct Schema {
    raw: Value,
    root: Node,
}

impl Schema {
    /// Reads an `openAPIV3Schema`. `path` is where it stands in the CustomResourceDefinition, for the errors.
    pub fn parse(openapi: &Value, _path: &str) -> Result<Self, Vec<FieldError>> {
        let mut root = read::node(openapi);
        root.resource = true;
        Ok(Self { raw: openapi.clone(), root })
    }

    /// The schema as it was written, for OpenAPI documents.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// The schema of the object itself. It knows `apiVersion`, `kind` and `metadata` without their being declared.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Drops fields that the schema does not know; returns their paths, as `spec.a[0].b`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Fills in defaults, and drops nulls where null is no value.
    pub fn default(&self, object: &mut Value) {
        default::default(&self.root, object);
    }

    /// What the schema says against the object. With `old`, what was wrong before and is untouched is let pass.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = validate::validate(&self.root, new, ratchet::Old::of(old), "");
        self.validate_lists(new, old, &mut errors);
        errors
    }

    /// What the schema says against the status of an object, for writes that change nothing else.
    pub fn validate_status(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = match (new.get("status"), self.root.properties.get("status")) {
            (Some(status), Some(node)) => {
                let old = ratchet::Old::of(old.and_then(|old| old.get("status")));
                validate::validate(node, status, old, "status")
            }
            _ => Vec::new(),
        };
        self.validate_lists(new, old, &mut errors);
        errors
    }

    /// Lists that had duplicates before may have them again.
    fn validate_lists(&self, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        let mut found = Vec::new();
        lists::validate(&self.root, new, &Path::ROOT, &mut found);
        if found.is_empty() {
            return;
        }
        if let Some(old) = old {
            let mut before = Vec::new();
            lists::validate(&self.root, old, &Path::ROOT, &mut before);
            if !before.is_empty() {
                return;
            }
        }
        errors.append(&mut found);
    }
}

/// Rules are evaluated only on objects that have the form that the schema says. This is what is added to `errors`
/// instead.
pub fn rules_not_checked(errors: &[FieldError]) -> Option<FieldError> {
    let blocks = |error: &FieldError| {
        matches!(
            error.fault,
            FieldFault::Unsupported(..)
                | FieldFault::Required
                | FieldFault::TooLong(_)
                | FieldFault::TooMany { .. }
                | FieldFault::TypeInvalid(_)
        )
    };
    let sentence = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    errors.iter().any(blocks).then(|| FieldError::invalid(NIL, Value::Null, sentence))
}

#[cfg(test)]
mod tests;
