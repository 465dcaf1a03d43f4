//! The way of an operator to the API server, on which everything happens that happens to such ways.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body as Answered;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::simulation::fate::Life;

const PATCH: &str = "application/merge-patch+json";

/// What lies between all operators and the API server.
#[derive(Clone)]
pub(in crate::simulation) struct Wire {
    router: Router,
    state: Arc<Mutex<State>>,
    /// Writes that have not arrived yet. They outlive whoever sent them.
    under_way: TaskTracker,
    /// See every change of a host by an operator, in the moment that it arrives.
    watchmen: Vec<Watchman>,
}

/// Is told what is about to be changed.
pub(in crate::simulation) type Watchman = Arc<dyn Fn(&Write<'_>) + Send + Sync>;

/// A change of a host.
#[derive(Debug)]
pub(in crate::simulation) struct Write<'a> {
    /// Its kind, as it is written in paths.
    pub(in crate::simulation) plural: &'a str,
    pub(in crate::simulation) name: &'a str,
    pub(in crate::simulation) patch: &'a Value,
}

/// The kinds of hosts, as they are written in paths.
const HOSTS: [&str; 2] = ["physicalhosts", "baremetalhosts"];

#[derive(Default)]
struct State {
    outage: Option<(Instant, Outage)>,
    /// How many of the next writes to hosts and machines find that somebody was faster.
    rivals: u32,
    /// How long the next write to a host, but for its status, is under way.
    late: Option<Duration>,
    /// Writes that operators tried, without Events and Leases.
    writes: u64,
    last_write: String,
    /// The same by what was written, such as `PATCH servers/status`.
    kinds: BTreeMap<String, u64>,
    /// Ends the watches of today.
    cut: CancellationToken,
}

/// How an outage shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulation) enum Outage {
    /// Nobody answers.
    Refused,
    /// Somebody answers, but cannot help.
    Unavailable,
    /// What is asked for happens; the answer is lost.
    AnswerLost,
    /// Nobody is told what changes; whoever asks is answered.
    Blind,
}

#[derive(Debug, thiserror::Error)]
#[error("the connection was lost")]
pub(in crate::simulation) struct ConnectionLost;

impl Wire {
    pub(in crate::simulation) fn new(router: Router) -> Self {
        Self { router, state: Arc::default(), under_way: TaskTracker::new(), watchmen: Vec::new() }
    }

    pub(in crate::simulation) fn watched_by(self, watchmen: impl Into<Vec<Watchman>>) -> Self {
        Self { watchmen: watchmen.into(), ..self }
    }

    /// The way of one process.
    pub(in crate::simulation) fn client(&self, life: &Life) -> Client {
        Client::new(Line { wire: self.clone(), life: life.clone() }, "lab")
    }

    pub(in crate::simulation) fn fail_until(&self, until: Instant, outage: Outage) {
        self.state().outage = Some((until, outage));
    }

    /// Before each of the next so many writes to hosts and machines, somebody else changes the object.
    pub(in crate::simulation) fn interfere(&self, count: u32) {
        self.state().rivals = count;
    }

    /// The next claim, release or anchor that is written arrives only after so long, whatever becomes of its sender.
    pub(in crate::simulation) fn hold_up(&self, span: Duration) {
        self.state().late = Some(span);
    }

    pub(in crate::simulation) fn cut_watches(&self) {
        std::mem::take(&mut self.state().cut).cancel();
    }

    pub(in crate::simulation) fn calm_down(&self) {
        let mut state = self.state();
        (state.outage, state.rivals, state.late) = (None, 0, None);
    }

    pub(in crate::simulation) fn writes(&self) -> u64 {
        self.state().writes
    }

    pub(in crate::simulation) fn last_write(&self) -> String {
        self.state().last_write.clone()
    }

    /// What operators tried to write since this was asked last, without Events and Leases.
    pub(in crate::simulation) fn take_writes(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.state().kinds)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn carry(&self, request: Request<Body>) -> Result<Response<Answered>, ConnectionLost> {
        let path = request.uri().path().to_owned();
        let outage = self.state().outage.filter(|(until, _)| Instant::now() < *until).map(|(_, outage)| outage);
        match outage {
            Some(Outage::Refused) => return Err(ConnectionLost),
            Some(Outage::Unavailable) => {
                let mut response = Response::new(Answered::empty());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok(response);
            }
            Some(Outage::Blind) if is_watch(&request) => return Err(ConnectionLost),
            Some(Outage::AnswerLost | Outage::Blind) | None => {}
        }
        let mut late = None;
        if request.method() != Method::GET && !["/events", "/leases"].iter().any(|apart| path.contains(apart)) {
            let rival = {
                let mut state = self.state();
                state.writes += 1;
                *state.kinds.entry(kind_of_write(request.method(), &path)).or_default() += 1;
                let host = host_in(&path);
                if host.is_some() && !path.ends_with("/status") {
                    late = state.late.take();
                }
                state.last_write = format!("{} {path}", request.method());
                let contested = host.is_some() || path.contains("/beskar7machines/");
                let rival = contested && state.rivals > 0;
                state.rivals -= u32::from(rival);
                rival.then_some(state.writes)
            };
            if let Some(number) = rival {
                self.touch(path.trim_end_matches("/status"), number).await;
            }
        }
        let cut = self.state().cut.clone();
        let answer = match late {
            Some(span) => self.ask_late(request, span).await,
            None => self.ask(request).await,
        };
        if outage == Some(Outage::AnswerLost) {
            return Err(ConnectionLost);
        }
        let ended = async move { cut.cancelled().await };
        Ok(answer.map(|body| Answered::from_stream(body.into_data_stream().take_until(ended.boxed()))))
    }

    /// Changes an object as anybody may.
    async fn touch(&self, path: &str, number: u64) {
        let patch = json!({"metadata": {"labels": {"touched": number.to_string()}}}).to_string();
        let request =
            Request::patch(path).header(http::header::CONTENT_TYPE, PATCH).body(Body::from(patch.into_bytes()));
        self.answer(request.unwrap()).await;
    }

    /// Shows a change of a host to the watchmen.
    async fn show(&self, request: Request<Body>) -> Request<Body> {
        if self.watchmen.is_empty() || request.method() != Method::PATCH || host_in(request.uri().path()).is_none() {
            return request;
        }
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let patch = serde_json::from_slice(&body).unwrap_or_default();
        if let Some((plural, name)) = host_in(head.uri.path()) {
            self.watchmen.iter().for_each(|watchman| watchman(&Write { plural, name, patch: &patch }));
        }
        Request::from_parts(head, Body::from(body.to_vec()))
    }

    async fn ask_late(&self, request: Request<Body>, span: Duration) -> Response<Answered> {
        let wire = self.clone();
        let arrives = async move {
            tokio::time::sleep(span).await;
            wire.ask(request).await
        };
        self.under_way.spawn(arrives).await.unwrap()
    }

    async fn ask(&self, request: Request<Body>) -> Response<Answered> {
        let request = self.show(request).await;
        self.answer(request).await
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answered> {
        let Ok(answer) = tower_service::Service::call(&mut self.router.clone(), request).await;
        answer
    }
}

/// The kind and the name of the host that a request is about, also if it is about its status.
fn host_in(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.split('/').skip_while(|part| !HOSTS.contains(part));
    parts.next().zip(parts.next())
}

/// A write without the name of its object.
fn kind_of_write(method: &Method, path: &str) -> String {
    let mut parts = path.trim_start_matches("/apis/").split('/').skip(2).peekable();
    if parts.next_if_eq(&"namespaces").is_some() {
        parts.next();
    }
    let (plural, _name, subresource) = (parts.next(), parts.next(), parts.next());
    let slash = subresource.map(|subresource| format!("/{subresource}")).unwrap_or_default();
    format!("{method} {}{slash}", plural.unwrap_or(path))
}

fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

struct Line {
    wire: Wire,
    life: Life,
}

impl tower_service::Service<Request<Body>> for Line {
    type Response = Response<Answered>;
    type Error = ConnectionLost;
    type Future = BoxFuture<'static, Result<Response<Answered>, ConnectionLost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (wire, life) = (self.wire.clone(), self.life.clone());
        async move { life.effect(wire.carry(request)).await }.boxed()
    }
}
