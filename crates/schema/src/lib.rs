//! Structural schemas: what a CustomResourceDefinition says about fields, and what follows from it for objects.
//!
//! An object that comes in is pruned, then filled with defaults, then validated, in this order. Walkers of other modules
//! start at [`Schema::root`] and go down by [`Node::child`] and [`Node::items`].

use serde_json::Value;

mod default;
mod defaults;
mod embedded;
mod field_error;
mod format;
mod lists;
mod meta;
pub mod names;
mod node;
pub mod object;
mod path;
pub mod pattern;
mod prune;
mod ratchet;
mod read;
mod shown;
mod spec;
mod structural;
mod validate;

pub use default::MOST_DEFAULTS;
pub use field_error::{FieldError, FieldFault};
pub use format::{Format, is_request_uri};
pub use meta::known;
pub use node::{Additional, Kind, Limits, ListType, MapType, Node, Pattern, Rule};
pub use path::{NIL, Path};
pub use read::Props;
pub use shown::{quoted, wrong_type};
pub use spec::find;
pub use structural::unsupported as path_faults;

/// A structural schema.
#[derive(Debug)]
pub struct Schema {
    raw: Value,
    root: Node,
}

impl Schema {
    /// Reads an `openAPIV3Schema`. `path` is where it stands in the CustomResourceDefinition, for the errors: they are
    /// all that Kubernetes has against it, but for the rules in it.
    pub fn parse(openapi: &Value, path: &str) -> Result<Self, Vec<FieldError>> {
        let at = Path::Base(path);
        let Some(props) = Props::of(openapi) else {
            return Err(vec![FieldError::required(at.field("type").to_string(), "must not be empty at the root")]);
        };
        let schema = Self::read(openapi);
        let mut errors = Vec::new();
        if props.flag("nullable") {
            let at = at.field("nullable").to_string();
            errors.push(FieldError::forbidden(at, "nullable cannot be true at the root"));
        }
        let unsupported = structural::unsupported(props);
        if unsupported.is_none() {
            let mut faults = structural::check(props, &at);
            if faults.is_empty() {
                faults = defaults::check(&schema.root, &at);
            }
            errors.append(&mut faults);
        }
        errors.append(&mut spec::check(props, &at));
        match unsupported {
            Some(why) if errors.is_empty() => Err(vec![FieldError::invalid(path, "", why)]),
            _ if errors.is_empty() => Ok(schema),
            _ => Err(errors),
        }
    }

    /// Reads the schema of a built-in, which need not be structural: it may say what `metadata` is.
    pub fn of_built_in(openapi: &Value) -> Result<Self, Vec<FieldError>> {
        match openapi {
            Value::Object(_) => Ok(Self::read(openapi)),
            other => Err(vec![FieldError::invalid(NIL, other.clone(), "must be an object")]),
        }
    }

    fn read(openapi: &Value) -> Self {
        let mut root = read::node(openapi);
        root.resource = true;
        Self { raw: openapi.clone(), root }
    }

    /// The schema as it was written, for OpenAPI documents.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// The schema of the object itself. It knows `apiVersion`, `kind` and `metadata` without their being declared.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Gives an object that comes in the form that the schema says: fields that it does not know go, and `metadata`,
    /// also that of embedded resources, gets its usual form. Returns the paths of the unknown fields, as
    /// `spec.a[0].b`, in the order in which strict decoding reports them. `Err` is what the decoder says about metadata
    /// that cannot be read.
    pub fn coerce(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        if let Some(metadata) = object.get_mut("metadata") {
            meta::decode(metadata, &Path::Base("metadata"), &mut unknown)?;
        }
        unknown.append(&mut prune::prune(&self.root, object));
        let mut embedded = Vec::new();
        embedded::coerce(&self.root, object, &Path::ROOT, &mut embedded).map_err(|error| error.to_string())?;
        embedded.sort_unstable();
        unknown.append(&mut embedded);
        Ok(unknown)
    }

    /// As [`Schema::coerce`] for objects that are known to be readable: what cannot be read stays.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        if let Some(metadata) = object.get_mut("metadata") {
            // What cannot be read is for `coerce` to refuse.
            let _ = meta::decode(metadata, &Path::Base("metadata"), &mut unknown);
        }
        unknown.append(&mut prune::prune(&self.root, object));
        let _ = embedded::coerce(&self.root, object, &Path::ROOT, &mut unknown);
        unknown
    }

    /// Fills in defaults, and drops nulls where null is no value. False if there were more than [`MOST_DEFAULTS`]; then some
    /// are missing.
    pub fn default(&self, object: &mut Value) -> bool {
        default::default(&self.root, object)
    }

    /// Fills in defaults, and leaves nulls for validation to find: what is applied is not decoded. False as above.
    pub fn default_only(&self, object: &mut Value) -> bool {
        default::default_only(&self.root, object)
    }

    /// What the schema says against the object. With `old`, what was wrong before and is untouched is let pass.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = validate::validate(&self.root, new, ratchet::Old::of(old), "");
        embedded::validate(&self.root, new, &Path::ROOT, &mut errors);
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

/// What keeps a text from being a DNS-1035 label.
pub fn dns_1035_faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > 63 {
        faults.push("must be no more than 63 characters".to_owned());
    }
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits =
        text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.ends_with('-') && text.bytes().all(inner);
    if !fits {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    faults
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
