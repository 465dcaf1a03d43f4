//! HTTP/1.1 over TLS, or over plain TCP where the address says so.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::{CertificateError, ClientConfig};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::{Transport, TransportError};
use crate::address::Address;
use crate::error::Error;
use crate::tls::{self, Fingerprint, PinMismatch, Sighting, Trust};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// One look uses a connection many times, but a fleet at rest must not hold a thousand: each is 50 KiB of buffers.
const IDLE_CONNECTIONS: usize = 1;
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest honest body in captures is an expanded collection of about 0.5 MB.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// Speaks to one BMC over the network.
pub struct Https {
    client: legacy::Client<Connector, Full<Bytes>>,
    sighting: Arc<Sighting>,
}

impl Https {
    /// Prepares to speak to that address; connects when something is sent.
    pub fn new(address: &Address, trust: &Trust) -> Result<Self, Error> {
        let sighting = Arc::new(Sighting::default());
        let tls = if address.is_secure() { Some(Arc::new(tls::client_config(trust, sighting.clone())?)) } else { None };
        let connector = Connector {
            target: Arc::new(Target {
                host: address.host().to_owned(),
                port: address.port(),
                tls,
                sighting: sighting.clone(),
            }),
        };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .build(connector);
        Ok(Self { client, sighting })
    }

    async fn exchange(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        let response = match self.client.request(request.clone().map(Full::new)).await {
            // iLO resets a connection that idled too long instead of closing it. The request died with the old connection.
            Err(error) if !error.is_connect() && ran_on_a_used_connection(&error) => {
                tracing::debug!(%error, "a reused connection was reset; sending once more");
                self.client.request(request.map(Full::new)).await
            }
            other => other,
        }
        .map_err(|error| explain(&error))?;
        if let Some(used) = response.extensions().get::<Used>() {
            used.0.store(true, Ordering::Relaxed);
        }
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                TransportError::TooLong(BODY_LIMIT)
            } else {
                TransportError::Broken(format!("the answer broke off ({})", root_cause(error.as_ref())))
            }
        })?;
        Ok(http::Response::from_parts(parts, body.to_bytes()))
    }
}

impl Transport for Https {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        self.exchange(request).boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        self.sighting.get()
    }
}

/// Whether a connection has answered before.
#[derive(Clone, Default)]
struct Used(Arc<AtomicBool>);

fn ran_on_a_used_connection(error: &legacy::Error) -> bool {
    let mut extras = http::Extensions::new();
    if let Some(info) = error.connect_info() {
        info.get_extras(&mut extras);
    }
    extras.get::<Used>().is_some_and(|used| used.0.load(Ordering::Relaxed))
}

fn explain(error: &legacy::Error) -> TransportError {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(ours) = current.downcast_ref::<TransportError>() {
            return ours.clone();
        }
        if let Some(hyper) = current.downcast_ref::<hyper::Error>()
            && hyper.is_parse()
        {
            return TransportError::NotHttp(hyper.to_string());
        }
        cause = current.source();
    }
    let why = root_cause(error);
    if error.is_connect() {
        TransportError::Connect(why)
    } else {
        TransportError::Broken(format!("the connection broke ({why})"))
    }
}

fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[derive(Clone)]
struct Connector {
    target: Arc<Target>,
}

struct Target {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    sighting: Arc<Sighting>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let target = self.target.clone();
        async move {
            match tokio::time::timeout(CONNECT_TIMEOUT, target.connect()).await {
                Ok(result) => result.map(TokioIo::new),
                Err(_) => Err(TransportError::Connect(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))),
            }
        }
        .boxed()
    }
}

impl Target {
    async fn connect(&self) -> Result<Stream, TransportError> {
        let tcp =
            TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| self.explain_tcp(&error))?;
        // A request is one small write; waiting for more only adds latency.
        let _ = tcp.set_nodelay(true);
        let used = Used::default();
        let Some(tls) = &self.tls else { return Ok(Stream { io: Io::Plain(tcp), used }) };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| TransportError::Connect(format!("{:?} is not a name that TLS can use", self.host)))?;
        let stream = TlsConnector::from(tls.clone())
            .connect(name, tcp)
            .await
            .map_err(|error| explain_tls(&error, self.sighting.get()))?;
        Ok(Stream { io: Io::Tls(Box::new(stream)), used })
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
struct Stream {
    io: Io,
    used: Used,
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.used.clone())
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(io) => Pin::new(io).poll_read(context, buffer),
            Io::Tls(io) => Pin::new(io).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Plain(io) => Pin::new(io).poll_write(context, buffer),
            Io::Tls(io) => Pin::new(io).poll_write(context, buffer),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(io) => Pin::new(io).poll_flush(context),
            Io::Tls(io) => Pin::new(io).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(io) => Pin::new(io).poll_shutdown(context),
            Io::Tls(io) => Pin::new(io).poll_shutdown(context),
        }
    }
}
