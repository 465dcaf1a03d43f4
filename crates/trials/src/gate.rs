//! What stands between an operator and the world: it sees every request, and can stop the operator between any two.

use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bmc::{Fingerprint, Transport, TransportError};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// One operator's way to the API server and to BMCs. By default everything passes.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

/// Called before a BMC is asked for a change: with the name of the BMC, and the request as in [`Passage::what`].
pub type Witness = Arc<dyn Fn(&str, &str) -> BoxFuture<'static, ()> + Send + Sync>;

struct Inner {
    witness: Option<Witness>,
    state: Mutex<State>,
    shut: watch::Sender<bool>,
    veiled: watch::Sender<Option<&'static str>>,
    /// The operator is dead: what is under way is given up, too.
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    seen: Vec<Passage>,
    effects: usize,
    last: Option<usize>,
    last_has_passed: bool,
    api_is_cut: bool,
    api_refuses: bool,
    /// Ends the watches of today.
    watches: CancellationToken,
}

/// A request that passed.
#[derive(Debug, Clone)]
pub struct Passage {
    /// When it was sent.
    pub at: Instant,
    /// To whom.
    pub to: Side,
    /// Its method and path, and the body of a change that a BMC is asked for.
    pub what: String,
    /// Whether it asked for a change. Events, leases and sessions change nothing that matters.
    pub is_effect: bool,
    /// What the API server answered.
    pub answer: Option<StatusCode>,
}

impl Passage {
    /// Whether it asked the API server for a change.
    pub fn is_write(&self) -> bool {
        self.to == Side::Api && self.is_effect
    }

    /// Whether the API server has agreed.
    pub fn is_accepted(&self) -> bool {
        self.answer.is_some_and(|answer| answer.is_success())
    }
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The API server.
    Api,
    /// A BMC.
    Bmc,
}

impl Default for Gate {
    fn default() -> Self {
        Self::of(None)
    }
}

impl Gate {
    /// A gate at which somebody is told of every change before a BMC is.
    pub fn with_witness(witness: Witness) -> Self {
        Self::of(Some(witness))
    }

    fn of(witness: Option<Witness>) -> Self {
        Self(Arc::new(Inner {
            witness,
            state: Mutex::default(),
            shut: watch::Sender::new(false),
            veiled: watch::Sender::new(None),
            closed: CancellationToken::new(),
        }))
    }

    /// Lets so many changes happen, API server and BMCs counted together. The last is carried out, but its answer never
    /// comes, and nothing passes any more.
    pub fn shutting_after(effects: usize) -> Self {
        let gate = Self::default();
        gate.0.state.lock().unwrap().last = Some(effects);
        gate
    }

    /// The same, counted from now.
    pub fn shut_after(&self, effects: usize) {
        let mut state = self.0.state.lock().unwrap();
        state.last = Some(state.effects + effects);
    }

    /// Waits until the last change has happened.
    pub async fn is_shut(&self) {
        self.0.shut.subscribe().wait_for(|shut| *shut).await.unwrap();
    }

    /// From now on the API server does not answer.
    pub fn cut_api(&self) {
        self.0.state.lock().unwrap().api_is_cut = true;
    }

    /// From now on the API server refuses connections, and watches have ended.
    pub fn refuse_api(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.api_refuses = true;
        std::mem::take(&mut state.watches).cancel();
    }

    /// From now on the API server answers again.
    pub fn accept_api(&self) {
        self.0.state.lock().unwrap().api_refuses = false;
    }

    /// Nothing passes any more, nor is anything answered that was under way.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }

    /// From now on watches of this resource show nothing new, until another or none is veiled.
    pub fn veil(&self, resource: Option<&'static str>) {
        self.0.veiled.send_replace(resource);
    }

    /// Everything that passed.
    pub fn seen(&self) -> Vec<Passage> {
        self.0.state.lock().unwrap().seen.clone()
    }

    /// A client that goes through this gate.
    pub fn client(&self, client: Client) -> Client {
        Client::new(GatedClient { client, gate: self.clone() }, "default")
    }

    /// A way to the BMC of that name that goes through this gate.
    pub fn transport(&self, bmc: &str, inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(GatedTransport { bmc: bmc.to_owned(), inner, gate: self.clone() })
    }

    async fn pass<T>(&self, to: Side, what: String, is_effect: bool, send: impl Future<Output = T>) -> (usize, T) {
        let admitted = {
            let mut state = self.0.state.lock().unwrap();
            let is_cut = to == Side::Api && state.api_is_cut;
            if is_cut || state.last_has_passed {
                None
            } else {
                state.seen.push(Passage { at: Instant::now(), to, what, is_effect, answer: None });
                state.effects += usize::from(is_effect);
                // Noted before it is sent, so that nothing overtakes the last one.
                state.last_has_passed = is_effect && state.last == Some(state.effects);
                Some((state.seen.len() - 1, state.last_has_passed))
            }
        };
        match admitted {
            None => {}
            Some((_, true)) => {
                send.await;
                self.0.shut.send_replace(true);
            }
            Some((number, false)) => {
                if let Some(answer) = self.0.closed.run_until_cancelled(send).await {
                    return (number, answer);
                }
            }
        }
        std::future::pending().await
    }
}

type Shown = UnsyncBoxBody<Bytes, kube::Error>;

/// What a watch shows, as long as its resource is not veiled.
fn unveiled(
    watched: Body,
    resource: String,
    veiled: watch::Receiver<Option<&'static str>>,
    end: CancellationToken,
) -> Shown {
    let frames = watched.into_data_stream().then(move |frame| {
        let (mut veiled, resource) = (veiled.clone(), resource.clone());
        async move {
            // Who veils is gone only when the test is over.
            veiled.wait_for(|veiled| veiled.is_none_or(|veiled| veiled != resource)).await.ok();
            frame
        }
    });
    StreamBody::new(frames.map_ok(Frame::data).take_until(end.cancelled_owned())).boxed_unsync()
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
            if gate.0.state.lock().unwrap().api_refuses {
                return Err(kube::Error::Service(Box::new(io::Error::from(io::ErrorKind::ConnectionRefused))));
            }
            let end = gate.0.state.lock().unwrap().watches.clone();
            let (number, answer) = gate.pass(Side::Api, what, is_effect, client.send(request)).await;
            let answer = answer?;
            gate.0.state.lock().unwrap().seen[number].answer = Some(answer.status());
            Ok(answer.map(|body| match watched {
                Some(resource) => unveiled(body, resource, gate.0.veiled.subscribe(), end),
                None => body.boxed_unsync(),
            }))
        }
        .boxed()
    }
}

struct GatedTransport {
    bmc: String,
    inner: Arc<dyn Transport>,
    gate: Gate,
}

impl Transport for GatedTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let path = request.uri().path();
        let is_effect = !reads(request.method()) && !path.contains("/Sessions");
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let what = format!("{} {path} {}", request.method(), if is_effect { body } else { String::new() });
        async move {
            if let Some(witness) = self.gate.0.witness.as_ref().filter(|_| is_effect) {
                witness(&self.bmc, &what).await;
            }
            self.gate.pass(Side::Bmc, what, is_effect, self.inner.send(request)).await.1
        }
        .boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        self.inner.certificate()
    }
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
