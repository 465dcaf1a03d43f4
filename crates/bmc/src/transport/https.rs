//! HTTP/1.1 over TLS, or over plain TCP for `http://` addresses.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{self, BoxFuture, Either};
use http::header::HOST;
use http::{HeaderValue, Method, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
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
/// Longer than the time between two looks at rest, it is not kept: a firewall may have dropped it.
const KEPT_FOR: Duration = Duration::from_mins(3);
/// The second one is for the reads of one look. A fleet at rest must not hold two thousand.
const SPARE_FOR: Duration = Duration::from_secs(2);
/// A change goes over a connection that has just answered, or over a new one: some BMCs reset a connection that idled, and then
/// nobody knows whether they saw the change.
const FRESH: Duration = Duration::from_secs(1);
/// After an answer a connection is ready for the next request at once, unless the BMC did not care to read all of the last one.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);
/// Bounds the headers of an answer.
const HEADER_LIMIT: usize = 32 * 1024;
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
        let mut used = self.pool.take(is_read);
        loop {
            let (stream, was_used) = match used.take() {
                Some(stream) => (stream, true),
                None => (self.connect().await?, false),
            };
            let (error, was_not_sent) = match ask(stream, request.clone()).await {
                Ok((response, stream)) => {
                    if let Some(stream) = stream {
                        self.pool.put(stream);
                    }
                    return Ok(response);
                }
                Err(Unanswered::Broken { error, was_not_sent }) => (error, was_not_sent),
                Err(Unanswered::Other(error)) => return Err(error),
            };
            // Only reads are repeated blindly: a change that was sent may have taken effect, whatever happened to the answer.
            if was_used && (is_read || was_not_sent) {
                tracing::debug!(%error, "an idle connection was closed; using a new one");
                continue;
            }
            return Err(explain(&error, was_not_sent));
        }
    }

    async fn connect(&self) -> Result<Stream, TransportError> {
        tokio::time::timeout(CONNECT_TIMEOUT, self.target.connect()).await.unwrap_or_else(|_| {
            Err(TransportError::Connect(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())))
        })
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        if let Some(keeper) = self.pool.idle().keeper.take() {
            keeper.abort();
        }
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

/// Why a request brought no answer.
enum Unanswered {
    Broken { error: hyper::Error, was_not_sent: bool },
    Other(TransportError),
}

impl From<TrySendError<http::Request<Full<Bytes>>>> for Unanswered {
    fn from(mut error: TrySendError<http::Request<Full<Bytes>>>) -> Self {
        let was_not_sent = error.take_message().is_some();
        Self::Broken { error: error.into_error(), was_not_sent }
    }
}

/// Sends one request. Gives the connection back with the answer, unless that was its last.
///
/// What hyper needs for a connection (buffers, a channel: more than 30 KiB) is there for as long as this takes: a thousand
/// connections at rest are nothing but their TLS.
async fn ask(
    stream: Stream,
    request: http::Request<Bytes>,
) -> Result<(http::Response<Bytes>, Option<Stream>), Unanswered> {
    let (mut line, connection) = http1::Builder::new()
        .max_buf_size(HEADER_LIMIT)
        .ignore_invalid_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Unanswered::Other(TransportError::Connect(root_cause(&error))))?;
    let asking = async move {
        let (parts, body) = line.try_send_request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| {
            Unanswered::Other(if error.is::<LengthLimitError>() {
                TransportError::TooLong(BODY_LIMIT)
            } else {
                TransportError::Broken(format!("the answer broke off ({})", root_cause(error.as_ref())))
            })
        })?;
        let is_kept = tokio::time::timeout(SETTLES_WITHIN, line.ready()).await.is_ok_and(|ready| ready.is_ok());
        // The other end of the connection waits for this.
        drop(line);
        Ok((http::Response::from_parts(parts, body.to_bytes()), is_kept))
    };
    match future::select(pin!(asking), pin!(connection.without_shutdown())).await {
        Either::Left((outcome, connection)) => {
            let (response, is_kept) = outcome?;
            let parts = if is_kept { connection.await.ok() } else { None };
            let unread = parts.filter(|parts| parts.read_buf.is_empty());
            Ok((response, unread.map(|parts| parts.io.into_inner())))
        }
        // The BMC has closed it; its last answer is still to be read.
        Either::Right((_, asking)) => asking.await.map(|(response, _)| (response, None)),
    }
}

/// The connections to one BMC that are open and not in use.
#[derive(Default)]
struct Pool {
    idle: Mutex<Idle>,
    /// Reports one more to the keeper.
    put: Notify,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Idle {
    /// The last used is the last.
    streams: Vec<(Stream, Instant)>,
    keeper: Option<AbortHandle>,
}

impl Pool {
    /// A connection that is still open.
    fn take(&self, is_read: bool) -> Option<Stream> {
        let limit = if is_read { KEPT_FOR } else { FRESH };
        let mut idle = self.idle();
        idle.streams.retain(|(_, since)| since.elapsed() < KEPT_FOR);
        loop {
            let at = idle.streams.iter().rposition(|(_, since)| since.elapsed() < limit)?;
            let (mut stream, _) = idle.streams.remove(at);
            if !stream.has_ended(&mut Context::from_waker(Waker::noop())) {
                return Some(stream);
            }
        }
    }

    fn put(self: &Arc<Self>, stream: Stream) {
        let mut idle = self.idle();
        idle.streams.push((stream, Instant::now()));
        if idle.keeper.as_ref().is_none_or(AbortHandle::is_finished) {
            idle.keeper = Some(self.tasks.spawn(keep(self.clone())).abort_handle());
        }
        self.put.notify_one();
    }

    /// Closes idle connections, all but one; returns whether there will be more to close.
    fn close_spare(&self) -> bool {
        let mut idle = self.idle();
        while idle.streams.len() > 1 && idle.streams.first().is_some_and(|(_, since)| since.elapsed() >= SPARE_FOR) {
            idle.streams.remove(0);
        }
        idle.streams.len() > 1
    }

    /// Closes those that the BMC closes; comes to no end.
    async fn close_ended(&self) {
        poll_fn(|context| -> Poll<()> {
            self.idle().streams.retain_mut(|(stream, _)| !stream.has_ended(context));
            Poll::Pending
        })
        .await;
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the idle connections, until it is aborted.
async fn keep(pool: Arc<Pool>) {
    loop {
        let has_spare = pool.close_spare();
        tokio::select! {
            () = pool.put.notified() => {}
            () = pool.close_ended() => {}
            () = tokio::time::sleep(SPARE_FOR), if has_spare => {}
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
            io::ErrorKind::ConnectionRefused => {
                format!("the connection to port {} was refused: check address and port", self.port)
            }
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

/// One connection. The BMC hears of its end when it is dropped.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether the BMC closed it, or sent something unexpected; otherwise wakes when it does.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        Pin::new(self).poll_read(context, &mut ReadBuf::new(&mut [0])).is_ready()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // As much of it as the socket takes at once: closing never waits.
        let _ = Pin::new(self).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }
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
