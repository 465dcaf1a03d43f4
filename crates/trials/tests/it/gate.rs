//! What stands between an operator and the world: it sees every request, and can stop the operator between any two.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bmc::{Fingerprint, Transport, TransportError};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;
use tower_service::Service;

/// One operator's way to the API server and to BMCs. By default everything passes.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    shut: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    seen: Vec<Passage>,
    effects: usize,
    last: Option<usize>,
    api_is_cut: bool,
}

/// A request that passed.
#[derive(Debug, Clone)]
pub(crate) struct Passage {
    pub(crate) at: Instant,
    pub(crate) to: Side,
    pub(crate) what: String,
    /// Whether it asked for a change. Events, leases and sessions change nothing that matters.
    pub(crate) is_effect: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Api,
    Bmc,
}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), shut: watch::Sender::new(false) }))
    }
}

impl Gate {
    /// Lets so many changes happen, API server and BMCs counted together. The last is carried out, but its answer never
    /// comes, and nothing passes any more.
    pub(crate) fn shutting_after(effects: usize) -> Self {
        let gate = Self::default();
        gate.0.state.lock().unwrap().last = Some(effects);
        gate
    }

    /// Waits until nothing passes any more.
    pub(crate) async fn is_shut(&self) {
        self.0.shut.subscribe().wait_for(|shut| *shut).await.unwrap();
    }

    /// From now on the API server does not answer.
    pub(crate) fn cut_api(&self) {
        self.0.state.lock().unwrap().api_is_cut = true;
    }

    /// Everything that passed.
    pub(crate) fn seen(&self) -> Vec<Passage> {
        self.0.state.lock().unwrap().seen.clone()
    }

    /// A client that goes through this gate.
    pub(crate) fn client(&self, client: Client) -> Client {
        Client::new(GatedClient { client, gate: self.clone() }, "default")
    }

    /// A way to a BMC that goes through this gate.
    pub(crate) fn transport(&self, inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(GatedTransport { inner, gate: self.clone() })
    }

    async fn pass<T>(&self, to: Side, what: String, is_effect: bool, send: impl Future<Output = T>) -> T {
        let last = {
            let mut state = self.0.state.lock().unwrap();
            let is_cut = to == Side::Api && state.api_is_cut;
            if !is_cut && !*self.0.shut.borrow() {
                state.seen.push(Passage { at: Instant::now(), to, what, is_effect });
                state.effects += usize::from(is_effect);
                let last = is_effect && state.last == Some(state.effects);
                // Shut before it is sent, so that nothing overtakes the last one.
                self.0.shut.send_if_modified(|shut| last && !std::mem::replace(shut, last));
                Some(last)
            } else {
                None
            }
        };
        match last {
            None => std::future::pending().await,
            Some(false) => send.await,
            Some(true) => {
                send.await;
                std::future::pending().await
            }
        }
    }
}

#[derive(Clone)]
struct GatedClient {
    client: Client,
    gate: Gate,
}

impl Service<Request<Body>> for GatedClient {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, gate } = self.clone();
        let path = request.uri().path();
        let matters = !path.contains("/events") && !path.contains("/leases");
        let what = format!("{} {path}", request.method());
        let is_effect = !reads(request.method()) && matters;
        async move { gate.pass(Side::Api, what, is_effect, client.send(request)).await }.boxed()
    }
}

struct GatedTransport {
    inner: Arc<dyn Transport>,
    gate: Gate,
}

impl Transport for GatedTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let path = request.uri().path();
        let is_effect = !reads(request.method()) && !path.contains("/Sessions");
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let what = format!("{} {path} {}", request.method(), if is_effect { body } else { String::new() });
        self.gate.pass(Side::Bmc, what, is_effect, self.inner.send(request)).boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        self.inner.certificate()
    }
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
