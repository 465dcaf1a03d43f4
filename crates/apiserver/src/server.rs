//! The server: from HTTP requests to [`Api`] and back.

mod answer;
mod audit;
mod dispatch;
mod health;
mod metrics;
mod read;
mod stream;

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use futures::FutureExt;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use self::answer::failed;
use self::audit::Write;
use self::dispatch::Asked;
use self::metrics::Metrics;
use crate::auth::{Auth, Gate, StaticTokens};
use crate::builtins::bootstrap::{furnish_namespaces, make_namespaces};
use crate::catalogue::{Catalogue, Shelf};
use crate::clock::Clock;
use crate::crd::Definitions;
use crate::request::accept::Form;
use crate::status::Failure;
use crate::tls::{self, ConnectionLimits, Pki, TlsError};
use crate::verbs::Api;
use crate::{discovery, gc, namespaces, openapi};

/// How long a request may take that is not a watch.
const PATIENCE: Duration = Duration::from_mins(1);
/// How many writes that may take long are worked on at once.
const HEAVY_AT_ONCE: usize = 4;

/// What a server is made of.
#[derive(Debug)]
pub struct Config {
    /// Where objects are.
    pub store: Store,
    /// What time it is.
    pub clock: Clock,
    /// What names, uids and waiting times are drawn from.
    pub seed: u64,
    /// Our own authority, which vouches for callers from outside; without it only calls within the process are possible.
    pub pki: Option<Pki>,
    /// Tokens that are good from the beginning.
    pub tokens: StaticTokens,
    /// What `/version` adds to the version of Kubernetes that we are like: `beskar7.1`.
    pub build: String,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    front: Arc<Front>,
    tasks: TaskTracker,
}

/// What answers requests.
#[derive(Debug)]
struct Front {
    api: Api,
    auth: Option<Auth>,
    pki: Option<Pki>,
    metrics: Metrics,
    build: String,
    /// The right to do work that takes long.
    heavy: Semaphore,
}

impl Server {
    /// Starts a server with its controllers. It answers through [`Server::router`] and [`Server::serve`].
    pub async fn start(config: Config) -> Result<Self, Failure> {
        let definitions = Definitions::load(&config.store)?;
        let server = Self::bare(config, definitions.catalogue())?;
        let api = server.api();
        make_namespaces(api).await?;
        server.run(definitions.run(api.clone()));
        let authority = server.front.pki.as_ref().map(Pki::authority_pem);
        server.run(furnish_namespaces(api.clone(), authority));
        server.run(namespaces::run(api.clone(), api.stopped()));
        server.run(gc::run(api.clone(), api.stopped()));
        server.run(gc::expire_events(api.clone(), api.stopped()));
        Ok(server)
    }

    /// A server without controllers.
    fn bare(config: Config, catalogue: Catalogue) -> Result<Self, Failure> {
        let Config { store, clock, seed, pki, tokens, build } = config;
        let auth = pki.as_ref().map(|pki| Auth::new(pki, &clock, &store, tokens)).transpose()?;
        let api = Api::new(store, Shelf::new(catalogue), clock, seed);
        let metrics = Metrics::new(api.store());
        let heavy = Semaphore::new(HEAVY_AT_ONCE);
        Ok(Self { front: Arc::new(Front { api, auth, pki, metrics, build, heavy }), tasks: TaskTracker::new() })
    }

    /// The objects, for controllers in this process.
    pub fn api(&self) -> &Api {
        &self.front.api
    }

    /// Answers requests in this process. Whoever holds it is the admin.
    pub fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(Arc::clone(&self.front))
    }

    /// Runs a controller until it ends or the server stops.
    pub fn run(&self, controller: impl Future<Output = ()> + Send + 'static) {
        let stop = self.api().stopped();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(controller).await;
        });
    }

    /// Answers requests that come through a listener, until the server stops. Without an authority nobody is let in.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), TlsError> {
        let stop = self.api().stopped();
        let (Some(auth), Some(pki)) = (&self.front.auth, &self.front.pki) else {
            stop.cancelled().await;
            return Ok(());
        };
        let gate = Gate::new(auth.clone(), self.router());
        tls::serve(listener, pki.clone(), gate, stop, ConnectionLimits::default()).await
    }

    /// Ends watches and controllers, and waits for the controllers.
    pub async fn stop(&self) {
        self.api().stop();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Answers one request, whatever happens.
async fn answer(State(front): State<Arc<Front>>, request: Request<Body>) -> Response<Body> {
    let begun = Instant::now();
    let (head, body) = request.into_parts();
    let asked = Asked::new(&front.api.catalogue(), &head);
    let label = asked.label();
    let write = Write::of(&asked, &head);
    let answering = AssertUnwindSafe(front.dispatch(asked, &head, body)).catch_unwind();
    let response = match tokio::time::timeout(PATIENCE, answering).await {
        Ok(Ok(response)) => response,
        Ok(Err(_panic)) => {
            tracing::error!(method = %head.method, path = head.uri.path(), "answering a request panicked");
            let failure = Failure::internal("this request caused the server to panic: look in its log for details");
            failed(&failure, Form::default())
        }
        Err(_elapsed) => failed(&timed_out(), Form::default()),
    };
    front.metrics.count(&label, response.status(), begun.elapsed());
    if let Some(write) = write {
        write.log(response.status());
    }
    response
}

fn timed_out() -> Failure {
    let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
    let mut failure = Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    failure.details = Some(Box::default());
    failure
}

/// Documents about what is served.
fn documents(api: &Api, path: &str, head: &Parts, form: Form) -> Option<Response<Body>> {
    let catalogue = &api.catalogue();
    let query = head.uri.query().unwrap_or_default();
    if let Some(response) = openapi::answer(catalogue, path, query, &head.headers, api.now()) {
        return Some(response.map(Body::from));
    }
    if let Some(response) = discovery::aggregated(catalogue, path, &head.headers) {
        return Some(response.map(Body::from));
    }
    let address = head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let document = discovery::document(catalogue, path, address)?;
    Some(answer::value(StatusCode::OK, form, &document))
}
