//! Streams of changes.
//!
//! A watcher holds a place in the store's history and a page of what was there in the beginning: a reader that is slow keeps
//! no events in memory, and one that is so slow that the history was cut off under it is told to begin anew.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use schema::object;
use serde_json::{Value, json};
use store::{self, Event, Revision, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, Served};
use crate::request::query::{ListParameters, parse_uint};
use crate::resource::Scope;
use crate::selector::Selector;
use crate::status::Failure;
use crate::verbs::{Api, Found, Lens, Page, Paging, list_prefix, plain_failure, store_failure, too_large_version};

/// How often a bookmark is sent.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// How long before the end of a watch the last bookmark is sent.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// The shortest time after which a watch ends that has no time of its own; at most twice that.
const PATIENCE: Duration = Duration::from_mins(30);

/// How much of what was there in the beginning is looked up at once.
const INITIAL: u64 = 500;

/// Where and how to watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Where to begin.
    pub start: Start,
    /// Whether bookmarks are wanted.
    pub bookmarks: bool,
    /// When to end; `None` is after half an hour or more.
    pub timeout: Option<Duration>,
    /// Which objects.
    pub selector: Selector,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// With what is there, then what happens.
    #[default]
    Present,
    /// With what is there, a bookmark that says so, then what happens.
    PresentWithBookmark,
    /// With what happens after this.
    After(Revision),
    /// With what happens from now on.
    Now,
}

/// Something that a watcher is told.
#[derive(Debug, Clone)]
pub enum Happening {
    /// An object came, changed, or went: its JSON text in the version that was asked for.
    Object(Turn, Bytes),
    /// Everything up to here has been told.
    Bookmark {
        /// Up to where.
        revision: Revision,
        /// Whether everything that was there in the beginning has been told.
        initial: bool,
    },
    /// The watch cannot go on.
    Failed(Failure),
}

/// What happened to an object, seen through a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is there now.
    Added,
    /// It is another now.
    Modified,
    /// It is gone now.
    Deleted,
}

impl Happening {
    /// The object that it is about.
    pub fn object(&self) -> Option<Value> {
        match self {
            Self::Object(_, text) => serde_json::from_slice(text).ok(),
            _ => None,
        }
    }
}

/// A watch.
#[derive(Debug)]
pub struct Watching {
    lens: Lens,
    selector: Selector,
    initial: VecDeque<Found>,
    rest: Option<Rest>,
    /// The bookmark after what was there in the beginning.
    announce: Option<Revision>,
    events: Option<store::Watch>,
    /// What has been told before the watch began.
    after: Revision,
    failure: Option<Failure>,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    /// The first bookmark says that what was there in the beginning has been told.
    first_bookmark_is_initial: bool,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    stop: CancellationToken,
}

/// What was there in the beginning and has not been looked up yet.
#[derive(Debug)]
struct Rest {
    api: Api,
    namespace: Option<String>,
    continuation: String,
}

impl WatchOptions {
    /// Reads the parameters of a request.
    pub fn read(parameters: &ListParameters, selector: Selector) -> Result<Self, Failure> {
        let revision = match parameters.resource_version.as_str() {
            "" => 0,
            text => parse_uint(text).map_err(|why| plain_failure(format!("resourceVersion: {why}")))?,
        };
        let start = match (parameters.send_initial_events, revision) {
            (Some(true), _) => Start::PresentWithBookmark,
            (Some(false), 0) => Start::Now,
            (None, 0) => Start::Present,
            (_, revision) => Start::After(revision),
        };
        let timeout = parameters.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        Ok(Self { start, bookmarks: parameters.allow_bookmarks, timeout, selector })
    }
}

impl Api {
    /// Watches the objects of a resource, in one namespace or all.
    pub async fn watch(
        &self,
        served: &Served,
        namespace: Option<&str>,
        options: WatchOptions,
    ) -> Result<Watching, Failure> {
        let catalogue = self.shelf().changes();
        let WatchOptions { start, bookmarks, timeout, selector } = options;
        let (mut initial, mut rest, mut announce, mut failure) = (VecDeque::new(), None, None, None);
        let after = match start {
            Start::Present | Start::PresentWithBookmark => {
                let paging = Paging { limit: INITIAL, ..Paging::default() };
                let page = self.list(served, namespace, &selector, &paging).await?;
                initial = page.found.into();
                rest = Rest::of(self, namespace, page.continuation);
                announce = (start == Start::PresentWithBookmark && bookmarks).then_some(page.revision);
                page.revision
            }
            Start::After(revision) => revision,
            Start::Now => self.store().revision(),
        };
        let mut prefix = list_prefix(served, namespace);
        if let Some(name) = selector.name().filter(|_| served.resource.scope == Scope::Cluster || namespace.is_some()) {
            prefix.push_str(name);
        }
        // Kubernetes waits for a future that it is told of, whatever that may be.
        let from = after.min(self.store().revision());
        let events = match self.store().watch(&prefix, from) {
            Ok(events) => Some(events),
            Err(error) => {
                failure = Some(too_old(error));
                None
            }
        };
        let patience = PATIENCE.mul_f64(1.0 + self.draw(fastrand::Rng::f64));
        let deadline = Instant::now() + timeout.unwrap_or(patience);
        let next_bookmark = if bookmarks { next_bookmark(Instant::now(), deadline) } else { None };
        Ok(Watching {
            lens: Lens::new(served),
            selector,
            initial,
            rest,
            announce,
            events,
            after,
            failure,
            deadline,
            next_bookmark,
            first_bookmark_is_initial: start == Start::Present,
            catalogue,
            stop: self.stopped(),
        })
    }

    /// Refuses to promise what is not there: a list of initial events that is newer than everything.
    pub(crate) fn check_watch_version(&self, parameters: &ListParameters) -> Result<(), Failure> {
        let asked = parse_uint(&parameters.resource_version).unwrap_or_default();
        if parameters.send_initial_events == Some(true) && asked > self.store().revision() {
            return Err(too_large_version(asked, self.store().revision()));
        }
        Ok(())
    }
}

impl Rest {
    fn of(api: &Api, namespace: Option<&str>, continuation: String) -> Option<Self> {
        let more = !continuation.is_empty();
        more.then(|| Self { api: api.clone(), namespace: namespace.map(str::to_owned), continuation })
    }

    async fn page(&self, served: &Served, selector: &Selector) -> Result<Page, Failure> {
        let paging = Paging { limit: INITIAL, continuation: self.continuation.clone(), ..Paging::default() };
        self.api.list(served, self.namespace.as_deref(), selector, &paging).await
    }
}

impl Watching {
    /// What happens next; `None` when the watch is over. Cancel safe.
    pub async fn next(&mut self) -> Option<Happening> {
        loop {
            if let Some(failure) = self.failure.take() {
                self.events = None;
                return Some(Happening::Failed(failure));
            }
            if Instant::now() >= self.deadline || self.stop.is_cancelled() {
                return None;
            }
            if let Some(found) = self.initial.pop_front() {
                match found.read().and_then(|stored| self.lens.bytes(found.revision, &stored)) {
                    Ok(text) => return Some(Happening::Object(Turn::Added, text)),
                    Err(failure) => {
                        self.failure = Some(failure);
                        continue;
                    }
                }
            }
            if let Some(rest) = &self.rest {
                match rest.page(self.lens.served(), &self.selector).await {
                    Ok(page) => {
                        self.rest = Rest::of(&rest.api, rest.namespace.as_deref(), page.continuation);
                        self.initial = page.found.into();
                    }
                    Err(failure) => {
                        self.rest = None;
                        self.failure = Some(match failure.code {
                            StatusCode::GONE => Failure::expired(format!("too old resource version: {}", self.after)),
                            _ => failure,
                        });
                    }
                }
                continue;
            }
            if let Some(revision) = self.announce.take() {
                return Some(Happening::Bookmark { revision, initial: true });
            }
            let events = self.events.as_mut()?;
            let bookmark = self.next_bookmark.unwrap_or(self.deadline);
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Ok(event) => if let Some(happening) = self.tell(&event) {
                        return Some(happening);
                    },
                    Err(error) => self.failure = Some(too_old(error)),
                },
                () = self.stop.cancelled() => return None,
                changed = self.catalogue.changed() => if changed.is_err() || !self.is_still_served() {
                    return None;
                },
                () = tokio::time::sleep_until(bookmark.min(self.deadline)) => {
                    let now = Instant::now();
                    if self.next_bookmark.is_some_and(|due| due <= now) {
                        self.next_bookmark = next_bookmark(now, self.deadline);
                        let revision = self.events.as_ref().map_or(self.after, store::Watch::revision).max(self.after);
                        let initial = std::mem::take(&mut self.first_bookmark_is_initial);
                        return Some(Happening::Bookmark { revision, initial });
                    }
                }
            }
        }
    }

    /// Whether what is watched is still what it was. Clients begin anew when their resource got another schema.
    fn is_still_served(&mut self) -> bool {
        let catalogue = self.catalogue.borrow_and_update();
        let watched = self.lens.served();
        let now = catalogue.find(watched.group(), &watched.version().name, &watched.resource.plural);
        now.is_some_and(|now| {
            Arc::ptr_eq(&now.resource, &watched.resource) || now.resource.schema_since == watched.resource.schema_since
        })
    }

    /// What an event is for somebody who sees only what the selector selects.
    fn tell(&mut self, event: &Event) -> Option<Happening> {
        if event.revision <= self.after {
            return None;
        }
        match self.turn(event) {
            Ok(told) => told.map(|(turn, text)| Happening::Object(turn, text)),
            Err(failure) => Some(Happening::Failed(failure)),
        }
    }

    fn turn(&self, event: &Event) -> Result<Option<(Turn, Bytes)>, Failure> {
        let resource = &self.lens.served().resource;
        let path = event.key.strip_prefix(resource.prefix.as_str()).unwrap_or(&event.key);
        let (namespace, name) = match resource.scope {
            Scope::Namespaced => path.split_once('/').unwrap_or(("", path)),
            Scope::Cluster => ("", path),
        };
        if !self.selector.matches_names(namespace, name) {
            return Ok(None);
        }
        // The last words of an object are as old as the object.
        let age = if event.deleted { event.before_revision } else { event.revision };
        let (was, is) = if self.selector.needs_only_names() {
            (event.before.is_some(), !event.deleted)
        } else {
            let was = match &event.before {
                Some(before) => self.selector.matches(&self.lens.value(event.before_revision, before)?),
                None => false,
            };
            (was, !event.deleted && self.selector.matches(&self.lens.value(age, &event.value)?))
        };
        let turn = match (was, is) {
            (false, true) => Turn::Added,
            (true, true) => Turn::Modified,
            (true, false) => Turn::Deleted,
            (false, false) => return Ok(None),
        };
        let text = match &event.before {
            // It is still there but no longer meant: it is shown as it was when it was.
            Some(before) if turn == Turn::Deleted && !event.deleted => {
                let mut object = self.lens.value(event.before_revision, before)?;
                object::meta_mut(&mut object).insert("resourceVersion".to_owned(), event.revision.to_string().into());
                object.to_string().into()
            }
            _ => self.lens.bytes(age, &event.value)?,
        };
        Ok(Some((turn, text)))
    }

    /// The object that a bookmark carries.
    pub(crate) fn bookmark(&self, revision: Revision, initial: bool, metadata_only: bool) -> Value {
        let served = self.lens.served();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if !served.resource.custom || metadata_only {
            metadata["creationTimestamp"] = Value::Null;
        }
        if initial {
            let blueprint = STANDARD.encode(blueprint(served, metadata_only));
            metadata["annotations"] = json!({
                "k8s.io/initial-events-end": "true", "kubernetes.io/initial-events-list-blueprint": blueprint,
            });
        }
        json!({"kind": served.resource.kind, "apiVersion": served.api_version(), "metadata": metadata})
    }
}

/// The empty list that a client fills with what it was told, byte for byte as Go writes it.
fn blueprint(served: &Served, metadata_only: bool) -> String {
    let (kind, version) = (&served.resource.list_kind, served.api_version());
    let typed = |kind: &str, version: &str| {
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{{}},\"items\":null}}\n")
    };
    match (metadata_only, served.resource.custom) {
        (true, _) => typed("PartialObjectMetadataList", "meta.k8s.io/v1"),
        (false, true) => format!("{{\"apiVersion\":\"{version}\",\"items\":[],\"kind\":\"{kind}\"}}\n"),
        (false, false) => typed(kind, &version),
    }
}

/// The next minute, or shortly before the end.
fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline.checked_sub(LAST_BOOKMARK)?;
    (now < last).then(|| (now + BOOKMARKS).min(last))
}

fn too_old(error: StoreError) -> Failure {
    match error {
        StoreError::Compacted { asked, oldest } => {
            Failure::expired(format!("too old resource version: {asked} ({oldest})"))
        }
        other => store_failure(other),
    }
}
