//! HTTP/1.1 over TLS, or over plain TCP where the address says so.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::HOST;
use http::{HeaderValue, Method, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::TaskTracker;

use super::{Transport, TransportError};
use crate::address::Address;
use crate::error::Error;
use crate::tls::{self, Fingerprint, PinMismatch, Sighting, Trust};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A BMC spends up to a second on a handshake, so one connection is kept for the next look, for as long as the BMC keeps it.
/// Longer than a look at rest is apart nobody waits for it: a firewall in between may have forgotten it.
const KEPT_FOR: Duration = Duration::from_mins(3);
/// The second one is for the reads of one look. A fleet at rest must not hold two thousand.
const SPARE_FOR: Duration = Duration::from_secs(2);
/// A change goes over a connection that has just answered, or over a new one: some BMCs reset a connection that idled, and then
/// nobody knows whether they saw the change.
const FRESH: Duration = Duration::from_secs(1);
/// Bounds the headers of an answer, and what a connection at rest holds.
const BUFFER_LIMIT: usize = 32 * 1024;
/// The largest honest body in captures is an expanded collection of about 0.5 MB.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// Speaks to one BMC over the network.
pub struct Https {
    target: Target,
    pool: Arc<Pool>,
}

impl Https {
    /// Prepares to speak to that address; connects when something is sent.
    pub fn new(address: &Address, trust: &Trust) -> Result<Self, Error> {
        let sighting = Arc::new(Sighting::default());
        let tls = if address.is_secure() { Some(Arc::new(tls::client_config(trust, sighting.clone())?)) } else { None };
        let target = Target { host: address.host().to_owned(), port: address.port(), tls, sighting };
        Ok(Self { target, pool: Arc::default() })
    }

    async fn exchange(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let request = in_origin_form(request);
        let mut used = self.pool.take(is_read).await;
        let (line, response) = loop {
            let (mut line, was_used) = match used.take() {
                Some(line) => (line, true),
                None => (self.connect().await?, false),
            };
            let mut error = match line.try_send_request(request.clone().map(Full::new)).await {
                Ok(response) => break (line, response),
                Err(error) => error,
            };
            let was_not_sent = error.take_message().is_some();
            let error = error.into_error();
            // Only reads are repeated blindly: a change that went out may have been carried out, whatever became of the answer.
            if was_used && (is_read || was_not_sent) {
                tracing::debug!(%error, "a connection that had idled is gone; sending over a new one");
                continue;
            }
            return Err(explain(&error, was_not_sent));
        };
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                TransportError::TooLong(BODY_LIMIT)
            } else {
                TransportError::Broken(format!("the answer broke off ({})", root_cause(error.as_ref())))
            }
        })?;
        self.pool.put(line);
        Ok(http::Response::from_parts(parts, body.to_bytes()))
    }

    async fn connect(&self) -> Result<Line, TransportError> {
        let connecting = async {
            let stream = self.target.connect().await?;
            http1::Builder::new()
                .max_buf_size(BUFFER_LIMIT)
                .ignore_invalid_headers_in_responses(true)
                .allow_spaces_after_header_name_in_responses(true)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(|error| TransportError::Connect(root_cause(&error)))
        };
        let (line, connection) = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| {
            Err(TransportError::Connect(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())))
        })?;
        // It ends when its other end is dropped, and whoever uses it hears of its errors.
        self.pool.tasks.spawn(async move { connection.await.ok() });
        Ok(line)
    }
}

impl Transport for Https {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        self.exchange(request).boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        self.target.sighting.get()
    }
}

/// One end of an open connection.
type Line = SendRequest<Full<Bytes>>;

/// The connections to one BMC that are open and not in use; the last used is the last.
#[derive(Default)]
struct Pool {
    idle: Mutex<Idle>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Idle {
    lines: Vec<(Line, Instant)>,
    is_swept: bool,
}

impl Pool {
    /// One that still stands.
    async fn take(&self, is_read: bool) -> Option<Line> {
        let limit = if is_read { KEPT_FOR } else { FRESH };
        loop {
            let mut line = self.pop(limit)?;
            if line.ready().await.is_ok() {
                return Some(line);
            }
        }
    }

    fn pop(&self, limit: Duration) -> Option<Line> {
        let mut idle = self.idle();
        idle.lines.retain(|(line, since)| !line.is_closed() && since.elapsed() < KEPT_FOR);
        let at = idle.lines.iter().rposition(|(_, since)| since.elapsed() < limit)?;
        Some(idle.lines.remove(at).0)
    }

    fn put(self: &Arc<Self>, line: Line) {
        let mut idle = self.idle();
        idle.lines.push((line, Instant::now()));
        if idle.lines.len() > 1 && !std::mem::replace(&mut idle.is_swept, true) {
            self.tasks.spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes all but one, once nobody has used them for a moment.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SPARE_FOR).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle();
        idle.lines.retain(|(line, _)| !line.is_closed());
        while idle.lines.len() > 1 && idle.lines.first().is_some_and(|(_, since)| since.elapsed() >= SPARE_FOR) {
            idle.lines.remove(0);
        }
        if idle.lines.len() <= 1 {
            idle.is_swept = false;
            return;
        }
    }
}

/// As it is sent to a server, as opposed to a proxy.
fn in_origin_form(mut request: http::Request<Bytes>) -> http::Request<Bytes> {
    if let Some(host) = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
    request
}

fn explain(error: &hyper::Error, was_not_sent: bool) -> TransportError {
    if error.is_parse() {
        return TransportError::NotHttp(error.to_string());
    }
    let why = format!("the connection broke ({})", root_cause(error));
    if was_not_sent { TransportError::Connect(why) } else { TransportError::Broken(why) }
}

fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

struct Target {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    sighting: Arc<Sighting>,
}

impl Target {
    async fn connect(&self) -> Result<Stream, TransportError> {
        let tcp =
            TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| self.explain_tcp(&error))?;
        // A request is one small write; waiting for more only adds latency.
        let _ = tcp.set_nodelay(true);
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(tcp)) };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| TransportError::Connect(format!("{:?} is not a name that TLS can use", self.host)))?;
        let stream = TlsConnector::from(tls.clone())
            .connect(name, tcp)
            .await
            .map_err(|error| explain_tls(&error, self.sighting.get()))?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    fn explain_tcp(&self, error: &io::Error) -> TransportError {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => format!("the connection to port {} was refused", self.port),
            _ => error.to_string(),
        };
        TransportError::Connect(why)
    }
}

fn explain_tls(error: &io::Error, seen: Option<Fingerprint>) -> TransportError {
    let Some(cause) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return TransportError::Connect(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "the connection was closed during the TLS handshake; perhaps this port does not serve TLS".into()
            }
            _ => error.to_string(),
        });
    };
    match (cause, seen) {
        (rustls::Error::InvalidMessage(_), _) => TransportError::NotTls(cause.to_string()),
        (rustls::Error::InvalidCertificate(CertificateError::Other(other)), _) if other.0.is::<PinMismatch>() => {
            match other.0.downcast_ref::<PinMismatch>() {
                Some(PinMismatch { pinned, seen }) => TransportError::Changed { pinned: *pinned, seen: *seen },
                None => TransportError::Tls(cause.to_string()),
            }
        }
        (rustls::Error::InvalidCertificate(why), Some(fingerprint)) => {
            TransportError::Untrusted { why: explain_certificate(why), fingerprint }
        }
        (rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_), _) => TransportError::Tls(format!(
            "{cause}; firmware that only knows old TLS (RSA key exchange, TLS 1.1) is not supported, update the BMC"
        )),
        _ => TransportError::Tls(cause.to_string()),
    }
}

fn explain_certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    match error {
        E::UnknownIssuer => "it is self-signed or signed by an authority that is not trusted here".into(),
        E::Expired | E::ExpiredContext { .. } => "it has expired".into(),
        E::NotValidYet | E::NotValidYetContext { .. } => {
            "it is not valid yet (is the clock of this machine right?)".into()
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            format!("it is for another name than the address ({error})")
        }
        E::Revoked => "it was revoked".into(),
        other => other.to_string(),
    }
}

/// One connection.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(io) => Pin::new(io).poll_read(context, buffer),
            Self::Tls(io) => Pin::new(io).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(io) => Pin::new(io).poll_write(context, buffer),
            Self::Tls(io) => Pin::new(io).poll_write(context, buffer),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(io) => Pin::new(io).poll_flush(context),
            Self::Tls(io) => Pin::new(io).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(io) => Pin::new(io).poll_shutdown(context),
            Self::Tls(io) => Pin::new(io).poll_shutdown(context),
        }
    }
}
