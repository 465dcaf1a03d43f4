//! CustomResourceDefinitions: what they must look like, and what becomes of them.
//!
//! A definition whose names are accepted is established: its resource joins the catalogue. A definition that is deleted
//! takes its objects along before it goes.

use std::ops::ControlFlow;

use schema::object;
use serde_json::Value;
use store::{Revision, Scan, Store};

use crate::status::Failure;
use crate::verbs::store_failure;

pub(crate) mod conditions;
mod controller;
mod names;
mod reading;
pub(crate) mod validate;

pub use controller::Definitions;
#[cfg(test)]
pub(crate) use reading::resource;

/// Where definitions are in the store.
pub(crate) const PREFIX: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// Keeps a definition until all its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition as it is stored.
#[derive(Debug)]
struct Definition {
    name: String,
    revision: Revision,
    object: Value,
}

impl Definition {
    fn is_deleting(&self) -> bool {
        object::is_deleting(&self.object)
    }
}

/// All definitions that can be read, oldest first, so that names belong to whoever claimed them first.
fn stored(store: &Store) -> Result<Vec<Definition>, Failure> {
    let mut found = Vec::new();
    store
        .scan(Scan { prefix: PREFIX, after: None, at: None }, &mut |key, revision, bytes| {
            match serde_json::from_slice::<Value>(bytes) {
                Ok(object) => found.push(Definition { name: object::name(&object).to_owned(), revision, object }),
                Err(error) => tracing::error!(key, %error, "a stored CustomResourceDefinition cannot be read"),
            }
            ControlFlow::Continue(())
        })
        .map_err(store_failure)?;
    found.sort_by(|left, right| {
        let age = |definition: &Definition| object::meta_text(&definition.object, "creationTimestamp").to_owned();
        (age(left), &left.name).cmp(&(age(right), &right.name))
    });
    Ok(found)
}

#[cfg(test)]
mod tests;
