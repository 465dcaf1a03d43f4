//! BMCs behind sockets: one HTTPS endpoint each.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bmc::{Bmc, Dropped};
use crate::cert::Certificate;

/// Why an endpoint could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The port is taken, or the process has no more file descriptors.
    #[error("cannot listen on {address} for {name}: {why}{}", hint(why))]
    Bind {
        /// For which BMC.
        name: String,
        /// Where.
        address: SocketAddr,
        /// Why.
        why: io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// The ports do not reach for the fleet.
    #[error("{count} BMCs from port {base} on do not fit below port 65536")]
    Ports {
        /// First port.
        base: u16,
        /// How many.
        count: usize,
    },
}

fn hint(error: &io::Error) -> &'static str {
    // EMFILE: every endpoint holds one descriptor, and so does every connection.
    if error.raw_os_error() == Some(24) { " (raise the limit of open files: ulimit -n)" } else { "" }
}

/// Requests of clients are small.
const LARGEST_BODY: usize = 1 << 20;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What an answer in flight gets when everything stops.
const GRACE: Duration = Duration::from_secs(2);

/// An open endpoint of one BMC. It closes when the token with which it was opened is cancelled.
#[derive(Clone, Debug)]
pub struct Endpoint {
    bmc: Bmc,
    address: SocketAddr,
    certificate: Option<Arc<RwLock<Certificate>>>,
    /// Connections that were accepted, and after a handshake where there is one.
    connections: Arc<AtomicU64>,
    stop: CancellationToken,
    /// Ends the connections of now.
    present: Arc<Mutex<CancellationToken>>,
}

impl Endpoint {
    /// Opens an endpoint for a BMC, with a certificate of its own or, without `tls`, in the clear. Its tasks run on
    /// `tasks` until `stop` is cancelled.
    pub async fn open(
        bmc: Bmc,
        address: SocketAddr,
        tls: bool,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Self, ListenError> {
        let bound = TcpListener::bind(address).await.and_then(|l| Ok((l.local_addr()?, l)));
        let (address, listener) =
            bound.map_err(|why| ListenError::Bind { name: bmc.name().to_owned(), address, why })?;
        let certificate =
            if tls { Some(Arc::new(RwLock::new(Certificate::self_signed(bmc.name(), address.ip())?))) } else { None };
        let present = Arc::new(Mutex::new(stop.child_token()));
        let endpoint = Self { bmc, address, certificate, connections: Arc::default(), stop: stop.clone(), present };
        tasks.spawn(endpoint.clone().accept(listener, tasks.clone()));
        Ok(endpoint)
    }

    /// The BMC behind it.
    pub fn bmc(&self) -> &Bmc {
        &self.bmc
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients on this machine.
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            ip => ip,
        };
        format!("{scheme}://{}", SocketAddr::new(ip, self.address.port()))
    }

    /// The certificate that it shows now.
    pub fn certificate(&self) -> Option<Certificate> {
        Some(self.certificate.as_ref()?.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// How many connections clients have made, each with a handshake where there is TLS.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Shows another certificate, with another key. Its web server restarts for that, so open connections end.
    pub fn rotate_certificate(&self) -> Result<(), ListenError> {
        if let Some(shown) = &self.certificate {
            let new = Certificate::self_signed(self.bmc.name(), self.address.ip())?;
            *shown.write().unwrap_or_else(PoisonError::into_inner) = new;
            let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, self.stop.child_token()).cancel();
        }
        Ok(())
    }

    async fn accept(self, listener: TcpListener, tasks: TaskTracker) {
        while let Some(stream) = next(&listener, &self.stop).await {
            let (bmc, connections) = (self.bmc.clone(), self.connections.clone());
            let stop = self.present.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match self.certificate() {
                None => {
                    connections.fetch_add(1, Ordering::Relaxed);
                    tasks.spawn(converse(bmc, stream, stop))
                }
                Some(certificate) => tasks.spawn(async move {
                    let acceptor = TlsAcceptor::from(certificate.server);
                    // Clients that do not speak TLS, or do not trust us, are no news.
                    if let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(stream)).await {
                        connections.fetch_add(1, Ordering::Relaxed);
                        converse(bmc, stream, stop).await;
                    }
                }),
            };
        }
    }
}

/// The next connection, or `None` at the end.
pub(crate) async fn next(listener: &TcpListener, stop: &CancellationToken) -> Option<TcpStream> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return None,
        };
        match accepted {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                return Some(stream);
            }
            // Out of descriptors, mostly: wait until some connections are closed.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// A stream whose connection can be reset.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for tokio_rustls::server::TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

async fn converse(bmc: Bmc, stream: impl Wire, stop: CancellationToken) {
    let reset_after = bmc.personality().login.forgets_connections;
    let last = Mutex::new(None::<Instant>);
    serve(stream, stop, |request| {
        let now = Instant::now();
        let before = last.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        // Its end was forgotten; the client learns it when it uses the connection again.
        let forgotten = before.zip(reset_after).is_some_and(|(before, period)| now > before + period);
        let bmc = bmc.clone();
        async move { if forgotten { Err(Dropped::Reset) } else { bmc.call(request).await } }
    })
    .await;
}

/// HTTP/1.1 over one connection. When `answer` fails, the connection is reset.
pub(crate) async fn serve<W, A, F, E>(stream: W, stop: CancellationToken, answer: A)
where
    W: Wire,
    A: Fn(Request<Bytes>) -> F,
    F: Future<Output = Result<Response<Bytes>, E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let answer = &answer;
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = Limited::new(body, LARGEST_BODY).collect().await.map_err(io::Error::other)?.to_bytes();
            let response = answer(Request::from_parts(parts, body)).await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(response.map(Full::new))
        })
    });
    let mut connection =
        http1::Builder::new().keep_alive(true).max_buf_size(64 << 10).serve_connection(TokioIo::new(stream), service);
    let mut deadline = None;
    let ended = loop {
        tokio::select! {
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended.is_ok(),
            () = stop.cancelled(), if deadline.is_none() => {
                Pin::new(&mut connection).graceful_shutdown();
                deadline = Some(Instant::now() + GRACE);
            }
            () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => break false,
        }
    };
    let mut stream = connection.into_parts().io.into_inner();
    if ended {
        let _ = stream.shutdown().await;
    } else {
        let _ = stream.tcp().set_zero_linger();
    }
}
