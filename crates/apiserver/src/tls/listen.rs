//! HTTPS over a listener: one task per connection, handshakes included, so that nobody waits for anybody.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use super::connections::{Connection, Connections};
use super::patient::Patient;
use super::{ClientCertificate, Pki, TlsError};

/// A handshake takes milliseconds; whoever takes longer is not a client.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection may be idle, or take to send the head of a request.
const IDLE: Duration = Duration::from_secs(90);
/// What answers in flight get when everything stops.
const GRACE: Duration = Duration::from_secs(5);
/// How much of an answer waits in a connection for a client that does not read. Watches write pieces of this size.
const BUFFERED: usize = 64 * 1024;
/// How often certificates are looked at.
const RENEWAL: Duration = Duration::from_hours(12);

/// What connections may cost.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// How many there may be. One more takes the place of the one that has been idle for longest; if none is idle, of the
    /// oldest watch, whose client connects again and goes on where it was.
    pub connections: usize,
    /// A client that reads nothing of what is sent to it for so long is cut off, as a slow watcher is by kube-apiserver: it
    /// connects again and goes on where it was.
    pub stalled: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connections: 1_000, stalled: Duration::from_secs(30) }
    }
}

/// Who is at the other end of a connection, as far as the handshake tells: an extension of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Showed no certificate.
    Unknown,
    /// Showed a certificate that is not good.
    Refused,
    /// Showed one of ours.
    Certified(ClientCertificate),
}

/// Answers requests that come through a listener until `stop` is cancelled; then answers in flight get a few seconds.
/// Requests carry their [`Peer`] as an extension.
pub async fn serve<S, B>(
    listener: TcpListener,
    pki: Pki,
    app: S,
    stop: CancellationToken,
    limits: ConnectionLimits,
) -> Result<(), TlsError>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let acceptor = TlsAcceptor::from(pki.server_config()?);
    let tasks = TaskTracker::new();
    let connections = Arc::new(Connections::new(limits.connections));
    let mut renewal = interval(RENEWAL);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            _ = renewal.tick() => {
                if let Err(error) = pki.renew_if_due() {
                    tracing::error!(%error, "certificates could not be renewed");
                }
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connections.admit();
                let (acceptor, pki, app, stop) = (acceptor.clone(), pki.clone(), app.clone(), stop.clone());
                tasks.spawn(async move {
                    let handshake = shake_hands(stream, limits.stalled, acceptor, &pki);
                    let handshake = tokio::select! {
                        () = stop.cancelled() => return,
                        () = connection.must_leave() => return,
                        handshake = timeout(HANDSHAKE, handshake) => handshake,
                    };
                    match handshake {
                        Ok(Ok((stream, peer))) => converse(stream, peer, app, stop, connection).await,
                        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => tracing::debug!("TLS handshake took too long"),
                    }
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
    tasks.close();
    tasks.wait().await;
    Ok(())
}

type Secured = tokio_rustls::server::TlsStream<Patient>;

async fn shake_hands(
    mut stream: TcpStream,
    stalled: Duration,
    acceptor: TlsAcceptor,
    pki: &Pki,
) -> io::Result<(Secured, Peer)> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    stream.peek(&mut first).await?;
    if first[0].is_ascii_uppercase() {
        // GET or POST, not a TLS record: say so, as Go's servers do.
        let answer = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a request without TLS"));
    }
    let stream = acceptor.accept(Patient::new(stream, stalled)).await?;
    let peer = match stream.get_ref().1.peer_certificates() {
        None | Some([]) => Peer::Unknown,
        Some(chain) => pki.client(chain).map_or(Peer::Refused, Peer::Certified),
    };
    Ok((stream, peer))
}

async fn converse<S, B>(stream: Secured, peer: Peer, app: S, stop: CancellationToken, connection: Connection)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let connection = Arc::new(connection);
    let working = Arc::clone(&connection);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let mut app = app.clone();
        let at_work = working.at_work();
        async move {
            let Ok(()) = std::future::poll_fn(|cx| app.poll_ready(cx)).await;
            let response = app.call(request).await?;
            // The work ends with the answer's last byte.
            Ok::<_, Infallible>(response.map(|body| {
                body.map_err(move |error| {
                    let _ = &at_work;
                    error
                })
            }))
        }
    });
    let mut conversation = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(BUFFERED)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        ended = conversation.as_mut() => return log(ended),
        () = connection.must_leave() => return,
        () = stop.cancelled() => conversation.as_mut().graceful_shutdown(),
    }
    if let Ok(ended) = timeout(GRACE, conversation).await {
        log(ended);
    }
}

fn log(ended: Result<(), hyper::Error>) {
    // Clients come and go as they like.
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
