//! Stored bytes as a client of a version sees them.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use store::Revision;

use crate::catalogue::Served;
use crate::status::Failure;

/// How the stored objects of a resource look in one of its versions.
#[derive(Debug, Clone)]
pub(crate) struct Lens {
    served: Served,
    /// `{"apiVersion":"…","kind":"…",` as stored.
    stored_head: String,
    /// The same in this version.
    head: String,
    /// Whether more than the head differs.
    translates: bool,
}

impl Lens {
    pub(crate) fn new(served: &Served) -> Self {
        let resource = &served.resource;
        let (stored, version) = (resource.stored(), served.version());
        let same_fields = Arc::ptr_eq(&stored.schema, &version.schema) || stored.schema.raw() == version.schema.raw();
        let head = |api_version: &str| {
            format!("{{\"apiVersion\":{},\"kind\":{},", Value::from(api_version), Value::from(resource.kind.as_str()))
        };
        Self {
            stored_head: head(&resource.api_version(stored)),
            head: head(&resource.api_version(version)),
            translates: version.convert.is_some() || !same_fields,
            served: served.clone(),
        }
    }

    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

    /// Whether these bytes must be parsed to be shown.
    fn must_parse(&self, revision: Revision, stored: &Bytes) -> bool {
        self.translates || self.is_old(revision) || !stored.starts_with(self.stored_head.as_bytes())
    }

    /// Whether the object was written under a schema that is no more.
    fn is_old(&self, revision: Revision) -> bool {
        revision < self.served.resource.schema_since
    }

    /// The object as JSON text.
    pub(crate) fn bytes(&self, revision: Revision, stored: &Bytes) -> Result<Bytes, Failure> {
        if self.must_parse(revision, stored) {
            return Ok(self.value(revision, stored)?.to_string().into());
        }
        if self.head == self.stored_head {
            return Ok(stored.clone());
        }
        Ok([self.head.as_bytes(), &stored[self.stored_head.len()..]].concat().into())
    }

    /// The object as JSON text as it stands in a list: built-ins do not repeat there what they are.
    pub(crate) fn item(&self, revision: Revision, stored: &Bytes) -> Result<Bytes, Failure> {
        if self.served.resource.custom {
            return self.bytes(revision, stored);
        }
        if self.must_parse(revision, stored) {
            let mut value = self.value(revision, stored)?;
            if let Some(fields) = value.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            return Ok(value.to_string().into());
        }
        Ok([b"{", &stored[self.stored_head.len()..]].concat().into())
    }

    /// The object.
    pub(crate) fn value(&self, revision: Revision, stored: &Bytes) -> Result<Value, Failure> {
        let mut value = self.stored_value(revision, stored)?;
        self.load(&mut value);
        Ok(value)
    }

    /// The object in the stored version, as the schema that counts now wants it.
    pub(crate) fn stored_value(&self, revision: Revision, stored: &Bytes) -> Result<Value, Failure> {
        let mut value: Value =
            serde_json::from_slice(stored).map_err(|error| Failure::internal(format!("a stored object: {error}")))?;
        let version = self.served.resource.stored();
        if self.is_old(revision) {
            version.schema.prune(&mut value);
            version.schema.default(&mut value);
        }
        // What was stored before the storage version changed.
        value["apiVersion"] = self.served.resource.api_version(version).into();
        Ok(value)
    }

    /// From the stored version to this one.
    pub(crate) fn load(&self, value: &mut Value) {
        let version = self.served.version();
        if let Some(convert) = version.convert {
            (convert.load)(value);
        } else if self.translates {
            version.schema.prune(value);
        }
        value["apiVersion"] = self.served.api_version().into();
    }

    /// From this version to the stored one.
    pub(crate) fn store(&self, value: &mut Value) {
        let stored = self.served.resource.stored();
        if let Some(convert) = self.served.version().convert {
            (convert.store)(value);
        }
        value["apiVersion"] = self.served.resource.api_version(stored).into();
    }

    /// Drops what the stored version has no room for: what only the caller's version knows is checked and then lost.
    pub(crate) fn settle(&self, value: &mut Value) {
        if self.translates && self.served.version().convert.is_none() {
            self.served.resource.stored().schema.prune(value);
        }
    }
}
