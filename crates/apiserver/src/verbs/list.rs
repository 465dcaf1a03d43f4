//! Many objects at one moment, in pages.

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};
use store::{Revision, Scan, StoreError, Stored};

use super::{Api, Lens, plain_failure, store_failure, too_large_version};
use crate::catalogue::Served;
use crate::request::query::{ListParameters, parse_uint};
use crate::resource::Scope;
use crate::selector::Selector;
use crate::status::Failure;

/// How many entries are looked at before others get a turn.
const CHUNK: usize = 500;

/// Which part of a list, and as of when.
#[derive(Debug, Clone, Default)]
pub struct Paging {
    /// The most objects; 0 is all.
    pub limit: u64,
    /// Where the page before ended.
    pub continuation: String,
    /// `resourceVersion`.
    pub resource_version: String,
    /// `resourceVersionMatch`: empty, `Exact` or `NotOlderThan`.
    pub matching: String,
}

impl From<&ListParameters> for Paging {
    fn from(parameters: &ListParameters) -> Self {
        Self {
            limit: parameters.limit,
            continuation: parameters.continuation.clone(),
            resource_version: parameters.resource_version.clone(),
            matching: parameters.resource_version_match.clone(),
        }
    }
}

/// Part of a list.
#[derive(Debug)]
pub struct Page {
    pub(crate) lens: Lens,
    pub(crate) found: Vec<Found>,
    /// The moment that the list shows.
    pub revision: Revision,
    /// Where the next page begins; empty if this was the last.
    pub continuation: String,
    /// How many objects follow, where that is known.
    pub remaining: Option<u64>,
}

/// An object in the store, as it was when it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) revision: Revision,
    pub(crate) stored: Stored,
}

impl Found {
    pub(crate) fn read(&self) -> Result<Bytes, Failure> {
        self.stored.read().map_err(store_failure)
    }
}

impl Page {
    /// The objects, in the version that was asked for.
    pub fn objects(&self) -> Result<Vec<Value>, Failure> {
        self.found.iter().map(|found| self.lens.value(found.revision, &found.read()?)).collect()
    }
}

/// Where a list reads.
struct Place {
    prefix: String,
    /// Read on after this key.
    after: Option<String>,
    /// At this revision; `None` is now.
    at: Option<Revision>,
    limit: u64,
}

impl Api {
    /// All objects of a resource, of one namespace or all, as they are now. For controllers.
    pub async fn list_all(&self, served: &Served, namespace: Option<&str>) -> Result<(Vec<Value>, Revision), Failure> {
        let page = self.list(served, namespace, &Selector::all(), &Paging::default()).await?;
        Ok((page.objects()?, page.revision))
    }

    /// A page of a list.
    pub async fn list(
        &self,
        served: &Served,
        namespace: Option<&str>,
        selector: &Selector,
        paging: &Paging,
    ) -> Result<Page, Failure> {
        let lens = Lens::new(served);
        let prefix = prefix(served, namespace);
        let mut place = self.place(&prefix, paging)?;
        let mut page = Page { lens, found: Vec::new(), revision: 0, continuation: String::new(), remaining: None };
        if let Some(name) = selector.name().filter(|_| served.resource.scope == Scope::Cluster || namespace.is_some()) {
            // The only object that can match; others that begin like it are passed over below.
            place.prefix.push_str(name);
        }
        while self.read_chunk(&mut place, selector, &mut page).map_err(|error| gone(error, &prefix, paging))? {
            tokio::task::yield_now().await;
        }
        if place.limit > 0 && page.found.len() as u64 == place.limit {
            self.note_the_rest(&prefix, &place, selector, &mut page)?;
        }
        Ok(page)
    }

    /// Reads on; tells whether there may be more.
    fn read_chunk(&self, place: &mut Place, selector: &Selector, page: &mut Page) -> Result<bool, StoreError> {
        let (mut seen, mut last, mut broken) = (0, None, None);
        let scan = Scan { prefix: &place.prefix, after: place.after.as_deref(), at: place.at };
        let names_suffice = selector.needs_only_names();
        let skip = page.lens.served().resource.prefix.len();
        let namespaced = page.lens.served().resource.scope == Scope::Namespaced;
        let mut full = false;
        let revision = self.store().find(scan, &mut |key, revision, stored| {
            seen += 1;
            last = Some(key.to_owned());
            let path = &key[skip..];
            let (namespace, name) = if namespaced { path.split_once('/').unwrap_or(("", path)) } else { ("", path) };
            if selector.matches_names(namespace, name) {
                let matches = names_suffice
                    || match stored.read().map_err(store_failure).and_then(|bytes| page.lens.value(revision, &bytes)) {
                        Ok(object) => selector.matches(&object),
                        Err(failure) => {
                            broken = Some(failure);
                            return ControlFlow::Break(());
                        }
                    };
                if matches {
                    page.found.push(Found { revision, stored: stored.clone() });
                }
            }
            full = place.limit > 0 && page.found.len() as u64 >= place.limit;
            if full || seen >= CHUNK { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(failure) = broken {
            return Err(StoreError::Io(failure.message));
        }
        page.revision = revision;
        place.at = Some(revision);
        let more = last.is_some() && seen >= CHUNK && !full;
        if last.is_some() {
            place.after = last;
        }
        Ok(more)
    }

    /// The page is full: what follows it?
    fn note_the_rest(&self, prefix: &str, place: &Place, selector: &Selector, page: &mut Page) -> Result<(), Failure> {
        let scan = Scan { prefix, after: place.after.as_deref(), at: place.at };
        let rest = self.store().count(scan).map_err(store_failure)?;
        if let Some(last) = place.after.as_deref().filter(|_| rest > 0) {
            page.continuation = token(i64::try_from(page.revision).unwrap_or(i64::MAX), prefix, last);
            page.remaining = selector.is_everything().then_some(rest);
        }
        Ok(())
    }

    fn place(&self, prefix: &str, paging: &Paging) -> Result<Place, Failure> {
        let mut place = Place { prefix: prefix.to_owned(), after: None, at: None, limit: paging.limit };
        let asked = match paging.resource_version.as_str() {
            "" => None,
            text => Some(
                parse_uint(text)
                    .map_err(|why| Failure::bad_request(format!("invalid resource version: resourceVersion: {why}")))?,
            ),
        };
        if !paging.continuation.is_empty() {
            if asked.is_some_and(|asked| asked > 0) {
                return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
            }
            let (revision, after) = read_token(&paging.continuation, prefix)
                .map_err(|why| Failure::bad_request(format!("invalid continue token: {why}")))?;
            place.at = revision;
            place.after = Some(after);
            return Ok(place);
        }
        let exact = paging.matching == "Exact" || (paging.matching.is_empty() && paging.limit > 0);
        match asked {
            // Anything will do, and Kubernetes answers with everything.
            Some(0) => place.limit = 0,
            Some(asked) if exact => place.at = Some(asked),
            Some(asked) if asked > self.store().revision() => {
                return Err(too_large_version(asked, self.store().revision()));
            }
            None | Some(_) => {}
        }
        Ok(place)
    }
}

/// Where the objects of a list are in the store.
pub(crate) fn prefix(served: &Served, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) if served.resource.scope == Scope::Namespaced => {
            format!("{}{namespace}/", served.resource.prefix)
        }
        _ => served.resource.prefix.clone(),
    }
}

/// The revision that a list asked for cannot be read.
fn gone(error: StoreError, prefix: &str, paging: &Paging) -> Failure {
    match error {
        StoreError::Compacted { .. } if paging.continuation.is_empty() => {
            Failure::expired("The resourceVersion for the provided list is too old.")
        }
        StoreError::Compacted { .. } => {
            let mut failure = Failure::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results. Continuing with the provided token results in an inconsistent list - \
                 objects that were created, modified, or deleted between the time the first chunk was returned and now \
                 may show up in the list.",
            );
            if let Ok((_, after)) = read_token(&paging.continuation, prefix) {
                failure.continuation = token(-1, prefix, &after);
            }
            failure
        }
        StoreError::Future { .. } => plain_failure("etcdserver: mvcc: required revision is a future revision"),
        other => store_failure(other),
    }
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Kubernetes' own form: clients must not look, but some do. `-1` is "whatever there is now".
fn token(revision: i64, prefix: &str, last: &str) -> String {
    let start = format!("/{}\0", last.strip_prefix(prefix).unwrap_or(last));
    URL_SAFE_NO_PAD.encode(json!({"v": TOKEN_VERSION, "rv": revision, "start": start}).to_string())
}

fn read_token(text: &str, prefix: &str) -> Result<(Option<Revision>, String), String> {
    read_token_fields(text, prefix)
        .ok_or_else(|| "continue key is not valid: take it from the last page, as it is, or list anew".to_owned())
}

fn read_token_fields(text: &str, prefix: &str) -> Option<(Option<Revision>, String)> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let token: Value = serde_json::from_slice(&bytes).ok()?;
    if token.get("v")? != TOKEN_VERSION {
        return None;
    }
    let revision = token.get("rv")?.as_i64().filter(|revision| *revision != 0)?;
    let start = token.get("start")?.as_str()?;
    let start = start.strip_prefix('/').unwrap_or(start);
    if start.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    let after = start.strip_suffix('\0').unwrap_or(start);
    Some((u64::try_from(revision).ok(), format!("{prefix}{after}")))
}
