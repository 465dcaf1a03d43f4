//! `x-kubernetes-validations`: rules in the Common Expression Language.
//!
//! A rule is read ([`parser`]) and checked against the schema ([`checker`]) when the CustomResourceDefinition is
//! written. When an object is written, rules run ([`eval`]) on the object as it is, without copying it, and are stopped
//! when they have cost too much ([`cost`]). What an expression could cost at most is not estimated.

use serde_json::Value;

use schema::FieldError;
use schema::Schema;

mod ast;
mod check;
mod checker;
mod compile;
mod convert;
mod cost;
mod decl;
mod eval;
mod field_path;
mod format;
mod formats;
mod functions;
mod lexer;
mod library;
mod macros;
mod net;
mod parser;
mod quantity;
mod strings;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod url;
mod value;

/// The rules of a schema, compiled.
#[derive(Debug, Default)]
pub struct Rules {
    root: Option<compile::Site>,
    loops: bool,
}

impl Rules {
    /// Compiles all rules of a schema. `path` is where it stands in the CustomResourceDefinition, for the errors.
    ///
    /// The schema must be structural: rules of one that is not are not worth a second complaint.
    pub fn compile(schema: &Schema, path: &str) -> Result<Self, Vec<FieldError>> {
        compile::compile(schema.root(), path).map(|(root, loops)| Self { root, loops })
    }

    /// Whether any rule iterates: then even a small object may take long to check.
    pub fn may_take_long(&self) -> bool {
        self.loops
    }

    /// What the rules say against the object. With `old`, rules about changes are asked too, and what was wrong before
    /// and is untouched is let pass.
    ///
    /// The object must have the form that the schema says (see [`schema::rules_not_checked`]).
    pub fn check(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.root.as_ref().map(|root| check::check(root, new, old)).unwrap_or_default()
    }
}
