//! Figures about requests and the store, as Prometheus reads them.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use store::Store;

/// What a request is counted as.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Label {
    pub(super) verb: &'static str,
    pub(super) group: String,
    pub(super) resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Counted {
    verb: &'static str,
    group: String,
    resource: String,
    code: u16,
}

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Counted, Counter>,
    durations: Family<Label, Histogram, fn() -> Histogram>,
    watchers: Family<Label, Gauge>,
    revision: Gauge<u64, AtomicU64>,
    store: Store,
}

/// Somebody watches as long as this is there.
#[derive(Debug)]
pub(super) struct Watcher(Gauge);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(super) fn new(store: &Store) -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        registry.register("apiserver_request", "Requests that were answered", requests.clone());
        let durations = Family::new_with_constructor(histogram as fn() -> Histogram);
        let about = "Seconds until the answer to a request began";
        registry.register("apiserver_request_duration_seconds", about, durations.clone());
        let watchers = Family::default();
        registry.register("apiserver_registered_watchers", "Watches that are open", watchers.clone());
        let revision = Gauge::default();
        registry.register("apiserver_store_revision", "The newest revision of the store", revision.clone());
        Self { registry, requests, durations, watchers, revision, store: store.clone() }
    }

    pub(super) fn count(&self, label: &Label, code: StatusCode, took: Duration) {
        let Label { verb, group, resource } = label.clone();
        self.requests.get_or_create(&Counted { verb, group, resource, code: code.as_u16() }).inc();
        // A watch lasts as long as its client likes.
        if verb != "WATCH" {
            self.durations.get_or_create(label).observe(took.as_secs_f64());
        }
    }

    pub(super) fn watcher(&self, label: &Label) -> Watcher {
        let gauge = Gauge::clone(&self.watchers.get_or_create(label));
        gauge.inc();
        Watcher(gauge)
    }

    pub(super) fn show(&self) -> Response<Body> {
        self.revision.set(self.store.revision());
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            text.clear();
        }
        let mut response = Response::new(Body::from(text));
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }
}

fn histogram() -> Histogram {
    Histogram::new([0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0])
}
