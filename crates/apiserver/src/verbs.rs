//! What can be done with objects.
//!
//! [`Api`] is the one road that every request takes, whether it came over HTTP or from a controller in this process. It
//! speaks JSON values in the version that the caller chose ([`Served`]), and fails with what a client is told.

mod create;
mod decode;
mod delete;
mod draft;
mod lens;
mod list;
mod patch;
mod scale;
mod update;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;
use store::{Entry, Revision, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, Served, Shelf};
use crate::clock::Clock;
use crate::request::query::FieldValidation;
use crate::resource::{Part, Scope};
use crate::status::{Failure, Qualified};

pub use self::decode::Incoming;
pub(crate) use self::decode::not_another_built_in;
pub use self::delete::{DeleteOptions, Deleted, Propagation};
pub(crate) use self::lens::Lens;
pub(crate) use self::list::{Found, prefix as list_prefix};
pub use self::list::{Page, Paging};
pub use self::patch::Patch;

/// The objects of this server. Clones are the same.
#[derive(Debug, Clone)]
pub struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    shelf: Shelf,
    clock: Clock,
    dice: Mutex<fastrand::Rng>,
    stop: CancellationToken,
}

/// How an object is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Who owns the fields that are written.
    pub manager: String,
    /// Do everything but the writing.
    pub dry_run: bool,
    /// What to do about fields that nobody knows.
    pub field_validation: FieldValidation,
    /// Whether an apply takes fields from their owners.
    pub force: bool,
}

impl WriteOptions {
    /// An ordinary write by `manager`.
    pub fn by(manager: &str) -> Self {
        Self { manager: manager.to_owned(), dry_run: false, field_validation: FieldValidation::Ignore, force: false }
    }
}

/// What a write has led to.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object as it is now, in the caller's version.
    pub object: Value,
    /// Whether it is new.
    pub created: bool,
    /// Remarks for the writer.
    pub warnings: Vec<String>,
}

impl Api {
    /// The objects in a store. Names and uids are drawn from `seed`.
    pub fn new(store: Store, shelf: Shelf, clock: Clock, seed: u64) -> Self {
        let dice = Mutex::new(fastrand::Rng::with_seed(seed));
        Self(Arc::new(Inner { store, shelf, clock, dice, stop: CancellationToken::new() }))
    }

    /// Ends all watches, now and later.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Cancelled when the server stops.
    pub fn stopped(&self) -> CancellationToken {
        self.0.stop.clone()
    }

    /// Where the objects are.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// What is served now, and how that is changed.
    pub fn shelf(&self) -> &Shelf {
        &self.0.shelf
    }

    /// What is served now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.0.shelf.now()
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// A resource in a version, if that is served.
    pub fn served(&self, group: &str, version: &str, plural: &str) -> Result<Served, Failure> {
        self.catalogue().find(group, version, plural).ok_or_else(Failure::no_such_path)
    }

    /// Draws from the dice.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One object. `namespace` is ignored where there is none.
    pub fn get(&self, served: &Served, namespace: &str, name: &str) -> Result<Value, Failure> {
        let entry = self.entry(served, namespace, name)?.ok_or_else(|| not_found(served, name))?;
        Lens::new(served).value(entry.revision, &entry.value)
    }

    /// One object as JSON text.
    pub(crate) fn get_text(&self, served: &Served, namespace: &str, name: &str) -> Result<Bytes, Failure> {
        let entry = self.entry(served, namespace, name)?.ok_or_else(|| not_found(served, name))?;
        Lens::new(served).bytes(entry.revision, &entry.value)
    }

    /// Changes an object again and again until the change goes through. `change` gets the object as it is and may say
    /// that nothing needs to be done. For controllers, which look before they write.
    pub async fn modify(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        part: Part,
        options: &WriteOptions,
        mut change: impl FnMut(&mut Value) + Send,
    ) -> Result<Value, Failure> {
        loop {
            let mut object = self.get(served, namespace, name)?;
            change(&mut object);
            match self.update(served, namespace, name, part, object, options).await {
                Err(failure) if failure.code == StatusCode::CONFLICT => {}
                other => return other.map(|written| written.object),
            }
        }
    }

    fn entry(&self, served: &Served, namespace: &str, name: &str) -> Result<Option<Entry>, Failure> {
        if name.is_empty() || name.contains('/') {
            return Ok(None);
        }
        self.store().get(&served.resource.key(namespace, name)).map_err(store_failure)
    }

    /// Namespaces that are not there, or are going, take no new objects.
    fn check_namespace(&self, served: &Served, namespace: &str, name: &str) -> Result<(), Failure> {
        if served.resource.scope == Scope::Cluster {
            return Ok(());
        }
        let Some(namespaces) = self.catalogue().find("", "v1", "namespaces") else {
            return Ok(());
        };
        let found = self.get(&namespaces, "", namespace)?;
        let going = schema::object::is_deleting(&found) || found["status"]["phase"] == "Terminating";
        if !going {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut failure = Failure::forbidden(qualified(served), name, why);
        if let Some(details) = &mut failure.details {
            details.causes.push(crate::status::Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        Err(failure)
    }
}

/// For messages about objects; Events have a name in each of their groups.
pub(crate) fn qualified(served: &Served) -> Qualified<'_> {
    Qualified { group: served.group(), name: &served.resource.plural }
}

/// For messages about the content of objects; here Events are of the core group whoever asks.
pub(crate) fn qualified_kind(served: &Served) -> Qualified<'_> {
    served.resource.qualified_kind()
}

pub(crate) fn not_found(served: &Served, name: &str) -> Failure {
    Failure::not_found(qualified(served), name)
}

fn modified(served: &Served, name: &str) -> Failure {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Failure::conflict(qualified(served), name, why)
}

/// What a client is told when the store says no for reasons that are not the client's.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Future { asked, current } => too_large_version(asked, current),
        StoreError::Full => {
            let mut failure = Failure::internal("the disk is full: nothing can be written until there is room");
            failure.code = StatusCode::INSUFFICIENT_STORAGE;
            failure
        }
        other => Failure::internal(other),
    }
}

/// The client knows more than we do: it may have talked to another server.
pub(crate) fn too_large_version(asked: Revision, current: Revision) -> Failure {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let mut failure = Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    failure.details = Some(Box::new(crate::status::Details {
        causes: vec![crate::status::Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after_seconds: 1,
        ..crate::status::Details::default()
    }));
    failure
}

/// An error that Kubernetes answers with 500 and nothing but its text.
pub(crate) fn plain_failure(message: impl Into<String>) -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}
