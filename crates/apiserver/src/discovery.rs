//! What is served, told to clients: legacy lists and the aggregated document.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_NONE_MATCH, VARY};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};

use crate::auth::REVIEWS;
use crate::catalogue::{Catalogue, Served, prefer};
use crate::resource::Scope;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Groups that are compiled in, in the order of their priority. Those of custom resources follow.
const BUILT_IN_GROUPS: [&str; 5] =
    ["events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io"];

const READ_AND_WRITE: [&str; 3] = ["get", "patch", "update"];

/// All documents about one catalogue.
#[derive(Debug)]
pub(crate) struct Documents {
    /// By path without the final slash: `/apis/events.k8s.io/v1`.
    legacy: BTreeMap<String, Value>,
    core: Aggregated,
    groups: Aggregated,
}

/// A document that replaces all the others.
#[derive(Debug)]
struct Aggregated {
    body: Bytes,
    etag: String,
}

/// The legacy document behind a path: `/apis`, `/api/v1`, … `address` is where this server is reached.
pub fn document(catalogue: &Catalogue, path: &str, address: &str) -> Option<Value> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path == "/api" {
        return Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
        }));
    }
    catalogue.discovery().legacy.get(path).cloned()
}

/// The aggregated document, for the paths that have one and clients that accept it. It can be cached by its tag.
pub fn aggregated(catalogue: &Catalogue, path: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
    let document = match path.strip_suffix('/').unwrap_or(path) {
        "/api" => &catalogue.discovery().core,
        "/apis" => &catalogue.discovery().groups,
        _ => return None,
    };
    if !headers.get_all(ACCEPT).iter().any(|accept| accept.to_str().is_ok_and(accepts_aggregated)) {
        return None;
    }
    let known = headers.get_all(IF_NONE_MATCH).iter().any(|tag| tag.to_str().is_ok_and(|tag| tag == document.etag));
    let mut response = Response::new(if known { Bytes::new() } else { document.body.clone() });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let mut say = |name: HeaderName, value: &str| {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    };
    say(CACHE_CONTROL, "public");
    say(ETAG, &document.etag);
    say(VARY, "Accept");
    if !known {
        say(CONTENT_TYPE, AGGREGATED);
    }
    Some(response)
}

fn accepts_aggregated(accept: &str) -> bool {
    accept.split(',').any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let json = parts.next() == Some("application/json");
        let parts: Vec<&str> = parts.collect();
        json && ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"].iter().all(|part| parts.contains(part))
    })
}

/// A group with its versions in the order of preference, and what is served in each.
struct Group {
    name: String,
    versions: Vec<(String, Vec<Entry>)>,
}

/// A resource or a subresource in one version.
struct Entry {
    name: String,
    subresource: &'static str,
    singular: String,
    namespaced: bool,
    kind: String,
    /// The group and version of the kind, where they are not those of the resource.
    foreign: Option<(&'static str, &'static str)>,
    custom: bool,
    verbs: Vec<&'static str>,
    short_names: Vec<String>,
    categories: Vec<String>,
    hash: String,
}

impl Documents {
    /// Writes all documents about a catalogue.
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let mut groups = groups(catalogue);
        let core = groups.iter().position(|group| group.name.is_empty()).map(|index| groups.remove(index));
        let mut legacy = BTreeMap::new();
        for group in core.iter().chain(&groups) {
            for (version, entries) in &group.versions {
                let path = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
                legacy.insert(format!("{path}/{version}"), resource_list(&group.name, version, entries));
            }
        }
        let aggregated = Aggregated::new(groups.iter());
        // The aggregator that answers here sorts custom groups by version first.
        groups.sort_by_key(|group| {
            let built_in = BUILT_IN_GROUPS.iter().position(|&name| name == group.name);
            let first = group.versions.first().map_or("", |(version, _)| version);
            (built_in.unwrap_or(usize::MAX), format!("{first}.{}", group.name))
        });
        for group in &groups {
            let mut document = group.document();
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            legacy.insert(format!("/apis/{}", group.name), document);
        }
        let documents: Vec<Value> = groups.iter().map(Group::document).collect();
        legacy.insert("/apis".to_owned(), json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": documents }));
        Self { legacy, core: Aggregated::new(core.iter()), groups: aggregated }
    }
}

impl Aggregated {
    fn new<'a>(groups: impl Iterator<Item = &'a Group>) -> Self {
        let items: Vec<Value> = groups.map(Group::aggregated).collect();
        let body = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
        })
        .to_string();
        Self { etag: format!("\"{}\"", fingerprint(body.as_bytes())), body: body.into() }
    }
}

/// A hash by which clients recognise a document.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02X}"))
}

/// All groups, in the order of the aggregated document.
fn groups(catalogue: &Catalogue) -> Vec<Group> {
    let mut found: BTreeMap<String, BTreeMap<String, Vec<Entry>>> = BTreeMap::new();
    for served in catalogue.served() {
        let version = found.entry(served.group().to_owned()).or_default().entry(served.version().name.clone());
        version.or_default().extend(entries(&served));
    }
    for review in REVIEWS {
        let version = found.entry(review.group.to_owned()).or_default().entry("v1".to_owned());
        version.or_default().push(Entry {
            name: review.plural.to_owned(),
            subresource: "",
            singular: review.kind.to_lowercase(),
            namespaced: review.namespaced,
            kind: review.kind.to_owned(),
            foreign: None,
            custom: false,
            verbs: vec!["create"],
            short_names: Vec::new(),
            categories: Vec::new(),
            hash: String::new(),
        });
    }
    let mut groups: Vec<Group> = found
        .into_iter()
        .map(|(name, versions)| {
            let mut versions: Vec<_> = versions.into_iter().collect();
            versions.sort_by(|(left, _), (right, _)| prefer(left, right));
            for (_, entries) in &mut versions {
                entries.sort_by(|left, right| left.name.cmp(&right.name));
            }
            Group { name, versions }
        })
        .collect();
    groups.sort_by_key(|group| {
        BUILT_IN_GROUPS.iter().position(|&name| name == group.name).unwrap_or(BUILT_IN_GROUPS.len())
    });
    groups
}

/// A resource and its subresources.
fn entries(served: &Served) -> Vec<Entry> {
    let (resource, version) = (&served.resource, served.version());
    let verbs = match (resource.custom, resource.accepts_creates, resource.plural.as_str()) {
        (true, true, _) => vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        (true, false, _) => vec!["delete", "deletecollection", "get", "list", "watch"],
        (false, _, "namespaces") => vec!["create", "delete", "get", "list", "patch", "update", "watch"],
        (false, ..) => vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    };
    let subresource = |name: &'static str, kind: &str, foreign, verbs: &[&'static str]| Entry {
        name: resource.plural.clone(),
        subresource: name,
        singular: String::new(),
        namespaced: resource.scope == Scope::Namespaced,
        kind: kind.to_owned(),
        foreign,
        custom: resource.custom,
        verbs: verbs.to_vec(),
        short_names: Vec::new(),
        categories: Vec::new(),
        hash: String::new(),
    };
    let mut all = vec![Entry {
        singular: resource.singular.clone(),
        verbs,
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        hash: storage_hash(served),
        ..subresource("", &resource.kind, None, &[])
    }];
    if !resource.custom && resource.plural == "namespaces" {
        all.push(subresource("finalize", &resource.kind, None, &["update"]));
    }
    if version.status {
        all.push(subresource("status", &resource.kind, None, &READ_AND_WRITE));
    }
    if version.scale.is_some() {
        all.push(subresource("scale", "Scale", Some(("autoscaling", "v1")), &READ_AND_WRITE));
    }
    if !resource.custom && resource.plural == "serviceaccounts" {
        all.push(subresource("token", "TokenRequest", Some(("authentication.k8s.io", "v1")), &["create"]));
    }
    all
}

/// Changes when objects are stored in another version.
fn storage_hash(served: &Served) -> String {
    let resource = &served.resource;
    let version = match resource.kind.as_str() {
        // Kubernetes never moved these to the version in which everybody sees them.
        "CustomResourceDefinition" if !resource.custom => "v1beta1",
        _ => resource.stored().name.as_str(),
    };
    let stored = format!("{}/{version}/{}", resource.group, resource.kind);
    STANDARD.encode(&Sha256::digest(stored)[..8])
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn resource_list(group: &str, version: &str, entries: &[Entry]) -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version(group, version),
        "resources": entries.iter().map(Entry::document).collect::<Vec<_>>(),
    })
}

impl Group {
    fn document(&self) -> Value {
        let version =
            |version: &String| json!({ "groupVersion": group_version(&self.name, version), "version": version });
        let versions: Vec<Value> = self.versions.iter().map(|(name, _)| version(name)).collect();
        json!({ "name": self.name, "preferredVersion": versions.first(), "versions": versions })
    }

    fn aggregated(&self) -> Value {
        let mut metadata = json!({ "creationTimestamp": null });
        if !self.name.is_empty() {
            metadata["name"] = self.name.as_str().into();
        }
        let version = |(name, entries): &(String, Vec<Entry>)| {
            let (resources, subresources): (Vec<&Entry>, Vec<&Entry>) =
                entries.iter().partition(|entry| entry.subresource.is_empty());
            let resources = resources.into_iter().map(|entry| {
                let own = subresources.iter().filter(|subresource| subresource.name == entry.name);
                entry.aggregated(
                    &self.name,
                    name,
                    own.map(|subresource| subresource.nested(&self.name, name)).collect(),
                )
            });
            json!({ "version": name, "resources": resources.collect::<Vec<_>>(), "freshness": "Current" })
        };
        json!({ "metadata": metadata, "versions": self.versions.iter().map(version).collect::<Vec<_>>() })
    }
}

impl Entry {
    fn document(&self) -> Value {
        let name =
            if self.subresource.is_empty() { self.name.clone() } else { format!("{}/{}", self.name, self.subresource) };
        let mut document = json!({
            "name": name, "singularName": self.singular, "namespaced": self.namespaced, "kind": self.kind,
            "verbs": self.verbs,
        });
        if let Some((group, version)) = self.foreign {
            document["group"] = group.into();
            document["version"] = version.into();
        }
        self.add_names(&mut document);
        if !self.hash.is_empty() {
            document["storageVersionHash"] = self.hash.as_str().into();
        }
        document
    }

    fn aggregated(&self, group: &str, version: &str, subresources: Vec<Value>) -> Value {
        let mut document = json!({
            "resource": self.name, "responseKind": self.response_kind(group, version),
            "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": self.singular, "verbs": self.verbs,
        });
        self.add_names(&mut document);
        if !subresources.is_empty() {
            document["subresources"] = subresources.into();
        }
        document
    }

    fn nested(&self, group: &str, version: &str) -> Value {
        json!({
            "subresource": self.subresource, "responseKind": self.response_kind(group, version), "verbs": self.verbs,
        })
    }

    /// Kubernetes leaves group and version of its own kinds empty here.
    fn response_kind(&self, group: &str, version: &str) -> Value {
        let (group, version) = match self.foreign {
            Some(foreign) => foreign,
            None if self.custom => (group, version),
            None => ("", ""),
        };
        json!({ "group": group, "version": version, "kind": self.kind })
    }

    fn add_names(&self, document: &mut Value) {
        if !self.short_names.is_empty() {
            document["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            document["categories"] = json!(self.categories);
        }
    }
}

#[cfg(test)]
mod tests;
