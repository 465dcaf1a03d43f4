//! What is wrong with a field, in the words that Kubernetes uses.

use std::fmt;

use serde_json::Value;

use crate::shown::{quoted, shown};

/// What is wrong with one field: `field.Error`.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub fault: FieldFault,
    /// Where: `spec.ports[0].name`, `metadata.annotations[a/b]`; empty means the object itself.
    pub path: String,
    /// The sentence after the value; may be empty.
    pub detail: String,
}

/// The kinds of mistakes that Kubernetes tells apart.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldFault {
    /// `Required value`.
    Required,
    /// `Duplicate value: …`.
    Duplicate(Value),
    /// `Invalid value: …`.
    Invalid(Value),
    /// `Invalid value: …`, with the cause `FieldValueTypeInvalid`.
    TypeInvalid(Value),
    /// `Unsupported value: …: supported values: …`, in this order.
    Unsupported(Value, Vec<String>),
    /// `Forbidden`.
    Forbidden,
    /// `Too long: may not be more than … bytes`.
    TooLong(usize),
    /// `Too many: …: must have at most … items`.
    TooMany {
        /// How many there are; `None` is not said.
        actual: Option<usize>,
        /// How many there may be.
        most: usize,
    },
    /// `Not found: …`.
    NotFound(Value),
    /// `Internal error`.
    Internal,
}

impl FieldError {
    /// A mistake with a sentence.
    pub fn new(fault: FieldFault, path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { fault, path: path.into(), detail: detail.into() }
    }

    /// `Invalid value`.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldFault::Invalid(value.into()), path, detail)
    }

    /// `Required value`.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldFault::Required, path, detail)
    }

    /// `Forbidden`.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldFault::Forbidden, path, detail)
    }

    /// The kind of the mistake, as `metav1.CauseType` names it.
    pub fn reason(&self) -> &'static str {
        match self.fault {
            FieldFault::Required => "FieldValueRequired",
            FieldFault::Duplicate(_) => "FieldValueDuplicate",
            FieldFault::Invalid(_) => "FieldValueInvalid",
            FieldFault::TypeInvalid(_) => "FieldValueTypeInvalid",
            FieldFault::Unsupported(..) => "FieldValueNotSupported",
            FieldFault::Forbidden => "FieldValueForbidden",
            FieldFault::TooLong(_) => "FieldValueTooLong",
            FieldFault::TooMany { .. } => "FieldValueTooMany",
            FieldFault::NotFound(_) => "FieldValueNotFound",
            FieldFault::Internal => "InternalError",
        }
    }

    /// The sentence without the path.
    pub fn body(&self) -> String {
        let mut body = match &self.fault {
            FieldFault::Required => "Required value".to_owned(),
            FieldFault::Duplicate(value) => format!("Duplicate value: {}", shown(value)),
            FieldFault::Invalid(value) | FieldFault::TypeInvalid(value) => {
                format!("Invalid value: {}", shown(value))
            }
            FieldFault::Unsupported(value, supported) => unsupported(&shown(value), supported),
            FieldFault::Forbidden => "Forbidden".to_owned(),
            FieldFault::TooLong(most) => format!("Too long: may not be more than {most} bytes"),
            FieldFault::TooMany { actual, most } => {
                let actual = actual.map(|actual| format!("{actual}: ")).unwrap_or_default();
                format!("Too many: {actual}must have at most {most} items")
            }
            FieldFault::NotFound(value) => format!("Not found: {}", shown(value)),
            FieldFault::Internal => "Internal error".to_owned(),
        };
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.body())
    }
}

fn unsupported(shown: &str, supported: &[String]) -> String {
    if supported.is_empty() {
        return format!("Unsupported value: {shown}");
    }
    let quoted: Vec<String> = supported.iter().map(|one| quoted(one)).collect();
    format!("Unsupported value: {shown}: supported values: {}", quoted.join(", "))
}
