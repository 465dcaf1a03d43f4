//! The OpenAPI v3 documents: an index, and one document for each group and version.
//!
//! `kubectl` reads them to check and explain objects; client generators read them too.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap, HeaderName, IF_NONE_MATCH, LOCATION, VARY,
};
use http::{Response, StatusCode};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::catalogue::{Catalogue, Served};
use crate::discovery::fingerprint;

mod operations;
mod schemas;

const ROOT: &str = "/openapi/v3";

/// All documents about one catalogue.
#[derive(Debug)]
pub(crate) struct Documents {
    /// By path: `apis/events.k8s.io/v1`.
    by_path: BTreeMap<String, Document>,
    index: OnceLock<Bytes>,
}

/// The document about one group and version.
#[derive(Debug)]
struct Document {
    served: Vec<Served>,
    /// Written when the first client asks: most never do.
    text: OnceLock<Text>,
}

#[derive(Debug)]
struct Text {
    body: Bytes,
    hash: String,
}

/// The answer to a request for a path below `/openapi`, if there is something. `query` is what follows the question mark.
pub fn answer(
    catalogue: &Catalogue,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<Response<Bytes>> {
    let documents = catalogue.openapi();
    if path == "/openapi/v2" {
        return Some(second(headers));
    }
    if path == ROOT {
        return Some(respond(StatusCode::OK, documents.index(), &[(CONTENT_TYPE, "text/plain; charset=utf-8")]));
    }
    let name = path.strip_prefix(ROOT)?.strip_prefix('/')?;
    let Text { body, hash } = documents.by_path.get(name)?.text();
    let tag = format!("\"{hash}\"");
    let about = [(ETAG, tag.as_str()), (VARY, "Accept"), (CONTENT_TYPE, "application/json")];
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("hash=")).filter(|asked| !asked.is_empty());
    if asked.is_some_and(|asked| asked != hash) {
        let there = url(name, hash);
        return Some(respond(
            StatusCode::MOVED_PERMANENTLY,
            Bytes::new(),
            &[&about[..], &[(LOCATION, &there)]].concat(),
        ));
    }
    if headers.get_all(IF_NONE_MATCH).iter().any(|known| known.to_str().is_ok_and(|known| known == tag)) {
        return Some(respond(StatusCode::NOT_MODIFIED, Bytes::new(), &about[..2]));
    }
    if asked.is_none() {
        return Some(respond(StatusCode::OK, body.clone(), &about));
    }
    // What has this hash never changes.
    let in_a_year = now.to_zoned(TimeZone::UTC).saturating_add(1.year());
    let in_a_year = in_a_year.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
    let forever = [(CACHE_CONTROL, "public, immutable"), (EXPIRES, &in_a_year)];
    Some(respond(StatusCode::OK, body.clone(), &[&about[..], &forever].concat()))
}

/// The document of OpenAPI v2, which says nothing: kubectl asks for it when v3 does not know a kind.
fn second(headers: &HeaderMap) -> Response<Bytes> {
    const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let accepts =
        |kind: &str| headers.get_all(ACCEPT).iter().any(|all| all.to_str().is_ok_and(|all| all.contains(kind)));
    if accepts(ASKED) || accepts(PROTOBUF) {
        // `swagger`, and `info` with `title` and `version`.
        let body = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.33.0";
        return respond(StatusCode::OK, Bytes::from_static(body), &[(CONTENT_TYPE, PROTOBUF), (VARY, "Accept")]);
    }
    let document = json!({
        "swagger": "2.0", "info": { "title": "Kubernetes", "version": "v1.33.0" }, "paths": {}, "definitions": {},
    });
    let about = [(CONTENT_TYPE, "application/json"), (VARY, "Accept")];
    respond(StatusCode::OK, document.to_string().into(), &about)
}

fn respond(status: StatusCode, body: Bytes, headers: &[(HeaderName, &str)]) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn url(name: &str, hash: &str) -> String {
    format!("{ROOT}/{name}?hash={hash}")
}

impl Documents {
    /// Sorts what is served into documents.
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let mut by_path: BTreeMap<String, Document> = BTreeMap::new();
        for served in catalogue.served() {
            let root = operations::root(&served);
            let document = by_path.entry(root.trim_start_matches('/').to_owned());
            let document = document.or_insert_with(|| Document { served: Vec::new(), text: OnceLock::new() });
            document.served.push(served);
        }
        Self { by_path, index: OnceLock::new() }
    }

    fn index(&self) -> Bytes {
        let index = self.index.get_or_init(|| {
            let entry = |(name, document): (&String, &Document)| {
                (name.clone(), json!({ "serverRelativeURL": url(name, &document.text().hash) }))
            };
            json!({ "paths": Value::Object(self.by_path.iter().map(entry).collect()) }).to_string().into()
        });
        index.clone()
    }
}

impl Document {
    fn text(&self) -> &Text {
        self.text.get_or_init(|| {
            let body = write(&self.served).to_string();
            Text { hash: fingerprint(body.as_bytes()), body: body.into() }
        })
    }
}

fn write(all: &[Served]) -> Value {
    let mut paths = serde_json::Map::new();
    let mut components = schemas::Components::default();
    for served in all {
        let name = components.add(served);
        paths.extend(operations::paths(served, &name));
        if served.version().scale.is_some() {
            components.add_named(operations::SCALE);
        }
    }
    for name in operations::ALWAYS {
        components.add_named(name);
    }
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.33.0" },
        "paths": paths,
        "components": { "schemas": components.into_value() },
    })
}

/// Shares a catalogue's documents with the next one, where nothing has changed.
pub(crate) fn carry_over(old: &Documents, new: &mut Documents) {
    for (path, document) in &mut new.by_path {
        let same = old.by_path.get(path).filter(|old| {
            let pairs = old.served.iter().zip(&document.served);
            old.served.len() == document.served.len()
                && pairs.into_iter().all(|(old, new)| Arc::ptr_eq(&old.resource, &new.resource))
        });
        if let Some(text) = same.and_then(|old| old.text.get()) {
            let text = Text { body: text.body.clone(), hash: text.hash.clone() };
            document.text = OnceLock::from(text);
        }
    }
}

#[cfg(test)]
mod tests;
