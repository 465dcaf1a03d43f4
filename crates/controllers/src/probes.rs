//! Serves `/metrics` on one address; `/healthz`, `/livez` and `/readyz` on another.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::metrics::Metrics;

/// The flag that chooses where metrics are served.
pub const METRICS_FLAG: &str = "--metrics-bind-address";
/// The flag that chooses where health and readiness are served.
pub const PROBES_FLAG: &str = "--health-probe-bind-address";

/// How long a client that does not finish its request can delay a shutdown.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Why a probe cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Nothing can listen there.
    #[error("Cannot listen on {address} ({flag}): {why}.{}", advice(why))]
    Bind {
        /// Where.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// The error of the operating system.
        why: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " Another process listens there; choose another port.",
        io::ErrorKind::AddrNotAvailable => " This machine has no such address.",
        io::ErrorKind::PermissionDenied => " Ports below 1024 need a privilege; choose a higher one.",
        _ => "",
    }
}

/// Whether the process can work, or take over the work: shown by `/readyz`. Clones share it.
#[derive(Debug, Clone)]
pub struct Readiness(watch::Sender<bool>);

impl Default for Readiness {
    /// Not ready yet.
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Readiness {
    /// Sets whether it is ready.
    pub fn set(&self, ready: bool) {
        self.0.send_replace(ready);
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        *self.0.borrow()
    }
}

/// A server that is listening, and answers while it is polled. It ends shortly after its token is cancelled.
#[must_use = "nothing answers until it is polled"]
pub struct Server {
    address: SocketAddr,
    serving: BoxFuture<'static, ()>,
}

impl Server {
    /// Its address, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Future for Server {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.serving.poll_unpin(context)
    }
}

/// Serves `/metrics`.
pub async fn serve_metrics(
    address: SocketAddr,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<Server, ProbeError> {
    let answer = move || {
        let text = metrics.text();
        async move { ([(CONTENT_TYPE, Metrics::MEDIA_TYPE)], text) }
    };
    serve(address, METRICS_FLAG, Router::new().route("/metrics", get(answer)), stop).await
}

/// Serves `/healthz`, `/livez` and `/readyz`. Any answer means alive; `readiness` decides about ready.
pub async fn serve_probes(
    address: SocketAddr,
    readiness: Readiness,
    stop: CancellationToken,
) -> Result<Server, ProbeError> {
    let alive = || async { "ok\n" };
    let ready = move || {
        let ready = readiness.is_ready();
        async move {
            if ready {
                (StatusCode::OK, "ok\n")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "not ready: the caches are not filled yet\n")
            }
        }
    };
    let router = Router::new().route("/healthz", get(alive)).route("/livez", get(alive)).route("/readyz", get(ready));
    serve(address, PROBES_FLAG, router, stop).await
}

async fn serve(
    address: SocketAddr,
    flag: &'static str,
    router: Router,
    stop: CancellationToken,
) -> Result<Server, ProbeError> {
    let bind = |why| ProbeError::Bind { address, flag, why };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    info!(%address, "listening ({flag})");
    let serving = async move {
        let server = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        let too_long = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        tokio::select! {
            ended = async { server.await } => {
                if let Err(error) = ended {
                    warn!(%address, %error, "stopped listening ({flag})");
                }
            }
            () = too_long => {}
        }
    };
    Ok(Server { address, serving: serving.boxed() })
}

#[cfg(test)]
mod tests;
