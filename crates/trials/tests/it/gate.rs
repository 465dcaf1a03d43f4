//! What stands between an operator and the world: it sees every request, and can stop the operator between any two.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bmc::{Fingerprint, Transport, TransportError};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
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
    veiled: watch::Sender<Option<&'static str>>,
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
        Self(Arc::new(Inner {
            state: Mutex::default(),
            shut: watch::Sender::new(false),
            veiled: watch::Sender::new(None),
        }))
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

    /// From now on watches of this resource show nothing new, until another or none is veiled.
    pub(crate) fn veil(&self, resource: Option<&'static str>) {
        self.0.veiled.send_replace(resource);
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

type Shown = UnsyncBoxBody<Bytes, kube::Error>;

/// What a watch shows, as long as its resource is not veiled.
fn unveiled(watched: Body, resource: String, veiled: watch::Receiver<Option<&'static str>>) -> Shown {
    let frames = watched.into_data_stream().then(move |frame| {
        let (mut veiled, resource) = (veiled.clone(), resource.clone());
        async move {
            // Who veils is gone only when the test is over.
            veiled.wait_for(|veiled| veiled.is_none_or(|veiled| veiled != resource)).await.ok();
            frame
        }
    });
    StreamBody::new(frames.map_ok(Frame::data)).boxed_unsync()
}

#[derive(Clone)]
struct GatedClient {
    client: Client,
    gate: Gate,
}

impl Service<Request<Body>> for GatedClient {
    type Response = Response<Shown>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Shown>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, gate } = self.clone();
        let path = request.uri().path();
        let matters = !path.contains("/events") && !path.contains("/leases");
        let what = format!("{} {path}", request.method());
        let is_effect = !reads(request.method()) && matters;
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let watched = path.rsplit('/').next().filter(|_| is_watch).map(str::to_owned);
        async move {
            let answer = gate.pass(Side::Api, what, is_effect, client.send(request)).await?;
            Ok(answer.map(|body| match watched {
                Some(resource) => unveiled(body, resource, gate.0.veiled.subscribe()),
                None => body.boxed_unsync(),
            }))
        }
        .boxed()
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
