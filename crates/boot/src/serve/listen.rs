//! The sockets of the service.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Service;
use super::room::{Place, Room, Sending};
use super::stall::Unstalled;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// Head of a request, and what waits to be sent.
const BUFFER: usize = 64 * 1024;
const HEADERS: usize = 64;
/// What answers in flight get when everything stops. An image takes longer; BMCs ask another replica for the rest.
const GRACE: Duration = Duration::from_secs(5);

/// What clients may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there may be. For one more, the one that was idle for longest is closed.
    pub connections: usize,
    /// How many of them from one address.
    pub per_address: usize,
    /// How long a connection may be idle, or take to send the head of a request.
    pub idle: Duration,
    /// How long a client may leave unread what it asked for. BMCs pause when the server's installer does.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1024, per_address: 128, idle: Duration::from_mins(1), stalled: Duration::from_mins(5) }
    }
}

/// A certificate or key that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the boot service's certificate or key cannot be used: {0}")]
pub struct TlsInvalid(String);

/// TLS with this certificate chain and key (PEM).
pub fn tls(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsInvalid> {
    let invalid = |error: &dyn std::error::Error| TlsInvalid(error.to_string());
    let chain =
        CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>().map_err(|error| invalid(&error))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| invalid(&error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| invalid(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl Service {
    /// Answers requests that come through a listener until `stop` is cancelled; then answers in flight get a few seconds.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        limits: Limits,
        stop: CancellationToken,
    ) {
        let acceptor = tls.map(TlsAcceptor::from);
        let room = Room::new(limits.connections, limits.per_address);
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    let from = from.ip().to_canonical();
                    let Some(place) = room.admit(from) else { continue };
                    let (service, acceptor, stop) = (self.clone(), acceptor.clone(), stop.clone());
                    connections.spawn(async move {
                        let needed = place.is_needed();
                        let welcome = service.welcome(stream, from, place, acceptor, limits, stop);
                        needed.run_until_cancelled(welcome).await;
                    });
                }
                // Out of descriptors, mostly: wait until some connections are closed.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        connections.close();
        connections.wait().await;
    }

    async fn welcome(
        self: Arc<Self>,
        stream: TcpStream,
        from: IpAddr,
        place: Place,
        acceptor: Option<TlsAcceptor>,
        limits: Limits,
        stop: CancellationToken,
    ) {
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = acceptor else { return self.converse(stream, from, place, limits, stop).await };
        let handshake = tokio::select! {
            () = stop.cancelled() => return,
            handshake = timeout(HANDSHAKE, acceptor.accept(stream)) => handshake,
        };
        match handshake {
            Ok(Ok(stream)) => self.converse(stream, from, place, limits, stop).await,
            Ok(Err(error)) => tracing::debug!(%from, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%from, "TLS handshake took too long"),
        }
    }

    async fn converse<S>(
        self: Arc<Self>,
        stream: S,
        from: IpAddr,
        place: Place,
        limits: Limits,
        stop: CancellationToken,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let place = Arc::new(place);
        let service = service_fn(move |request: Request<Incoming>| {
            let (service, place) = (self.clone(), place.clone());
            let served = place.serve();
            // A client that sends a body that is not read loses the connection after the answer.
            async move {
                let (head, body) = request.into_parts();
                let answer = service.answer(from, &head, body).await;
                if answer.status().is_success() {
                    place.is_known();
                }
                Ok::<_, Infallible>(answer.map(|body| Sending::new(body, served)))
            }
        });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.idle)
                .max_buf_size(BUFFER)
                .max_headers(HEADERS)
                .serve_connection(TokioIo::new(Unstalled::new(stream, limits.stalled)), service)
        );
        let ended = tokio::select! {
            ended = connection.as_mut() => Ok(ended),
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                timeout(GRACE, connection).await
            }
        };
        // Clients come and go as they like.
        if let Ok(Err(error)) = ended {
            tracing::debug!(%from, %error, "connection ended");
        }
    }
}
