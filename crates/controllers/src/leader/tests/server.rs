//! A small API server that knows one Lease, and links to it that can be bad.

use std::sync::Mutex;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::json;
use tokio_util::task::TaskTracker;

use super::super::*;

#[derive(Clone, Default)]
pub(super) struct Server {
    store: Arc<Mutex<Store>>,
    requests: TaskTracker,
}

#[derive(Default)]
struct Store {
    lease: Option<Lease>,
    version: u64,
    writes: u64,
}

impl Server {
    /// Somebody deletes the Lease.
    pub(super) fn forget(&self) {
        self.store.lock().unwrap().lease = None;
    }

    pub(super) fn client(&self, link: &Link) -> Client {
        let (server, link) = (self.clone(), link.clone());
        let router = Router::new().fallback(move |request: Request| {
            let (server, link) = (server.clone(), link.clone());
            async move { server.serve(link, request).await }
        });
        Client::new(router, "default")
    }

    pub(super) async fn serve(self, link: Link, request: Request) -> Response {
        let method = request.method().clone();
        let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let Fate { before, fault, after } = link.next();
        let requests = self.requests.clone();
        // A task of its own: a request that is on its way is not undone by a client that hangs up.
        requests
            .spawn(async move {
                tokio::time::sleep(before).await;
                match fault {
                    Some(Fault::Unavailable) => answer(503, &failure(503, "down for the day")),
                    Some(Fault::Swallowed) => std::future::pending().await,
                    Some(Fault::AnswerLost) => {
                        self.apply(&method, &body);
                        std::future::pending().await
                    }
                    None => {
                        let response = self.apply(&method, &body);
                        tokio::time::sleep(after).await;
                        response
                    }
                }
            })
            .await
            .unwrap()
    }

    fn apply(&self, method: &Method, body: &[u8]) -> Response {
        let mut store = self.store.lock().unwrap();
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        match (method, store.lease.clone()) {
            (&Method::GET | &Method::PUT, None) => answer(404, &failure(404, "not found")),
            (&Method::GET, Some(lease)) => answer(200, &lease),
            (&Method::POST, Some(_)) => answer(409, &failure(409, "already exists")),
            (&Method::POST, None) => answer(201, &store.put(serde_json::from_slice(body).unwrap())),
            (&Method::PUT, Some(stored)) => {
                let wanted: Lease = serde_json::from_slice(body).unwrap();
                assert!(version(&wanted).is_some(), "every replace must carry a resourceVersion");
                if version(&wanted) == version(&stored) {
                    answer(200, &store.put(wanted))
                } else {
                    answer(409, &failure(409, "the object has been modified"))
                }
            }
            other => panic!("nobody should ask for {other:?}"),
        }
    }

    pub(super) fn spec(&self) -> LeaseSpec {
        self.store.lock().unwrap().lease.clone().unwrap().spec.unwrap()
    }

    pub(super) fn edit(&self, change: impl FnOnce(&mut Lease)) {
        let mut store = self.store.lock().unwrap();
        let mut lease = store.lease.clone().unwrap();
        change(&mut lease);
        store.put(lease);
    }

    pub(super) fn writes(&self) -> u64 {
        self.store.lock().unwrap().writes
    }
}

impl Store {
    fn put(&mut self, mut lease: Lease) -> Lease {
        // As the real one does: what changes nothing gets no new version.
        if self.lease.as_ref() == Some(&lease) {
            return lease;
        }
        self.version += 1;
        self.writes += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }
}

fn answer(code: u16, body: &impl serde::Serialize) -> Response {
    let body = Body::from(serde_json::to_vec(body).unwrap());
    Response::builder().status(StatusCode::from_u16(code).unwrap()).body(body).unwrap()
}

fn failure(code: u16, message: &str) -> serde_json::Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "ServiceUnavailable",
    };
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": reason})
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Unavailable,
    Swallowed,
    AnswerLost,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    pub(super) before: Duration,
    pub(super) fault: Option<Fault>,
    pub(super) after: Duration,
}

/// The way from one replica to the server: decides what happens to each request.
#[derive(Clone)]
pub(super) struct Link(Arc<Mutex<Box<dyn FnMut() -> Fate + Send>>>);

impl Link {
    pub(super) fn fair() -> Self {
        let link = Self(Arc::new(Mutex::new(Box::new(Fate::default))));
        link.becomes(Fate::default());
        link
    }

    pub(super) fn becomes(&self, fate: Fate) {
        *self.0.lock().unwrap() = Box::new(move || fate);
    }

    pub(super) fn breaks(&self, fault: Fault) {
        self.becomes(Fate { fault: Some(fault), ..Fate::default() });
    }

    /// Good and bad spells of up to 40 s, with delays up to beyond the request time-out.
    pub(super) fn stormy(&self, seed: u64) {
        let mut dice = fastrand::Rng::with_seed(seed);
        let (mut until, mut badness) = (Instant::now(), 0);
        *self.0.lock().unwrap() = Box::new(move || {
            if Instant::now() >= until {
                until = Instant::now() + Duration::from_secs(dice.u64(1..40));
                badness = [0, 0, 3, 8, 10][dice.usize(..5)];
            }
            let mut delay = |most: u64| Duration::from_millis(dice.u64(..=most));
            let (before, after) = (delay(150 * badness), delay(150 * badness));
            let (before, after) = if delay(9).as_millis() == 0 { (before * 10, after * 10) } else { (before, after) };
            let fault = (dice.u64(..10) < badness)
                .then(|| [Fault::Unavailable, Fault::Swallowed, Fault::AnswerLost][dice.usize(..3)]);
            Fate { before, fault, after }
        });
    }

    fn next(&self) -> Fate {
        (self.0.lock().unwrap())()
    }
}
