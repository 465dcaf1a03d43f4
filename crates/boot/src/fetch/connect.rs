//! Connections that go to checked addresses only.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::url::origin;
use super::{FetchError, Guard};

/// Looks a name up once, and connects to what it found if the guard agrees: there is no second look-up that could find
/// something else.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    guard: Arc<Guard>,
    tls: Arc<ClientConfig>,
    patience: Duration,
}

impl Connector {
    pub(crate) fn new(guard: Guard, tls: Arc<ClientConfig>, patience: Duration) -> Self {
        Self { guard: Arc::new(guard), tls, patience }
    }

    async fn connect(&self, uri: &Uri) -> Result<Stream, FetchError> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let unreachable = |why: String| FetchError::Unreachable { origin: origin(uri), why };
        let found = tokio::net::lookup_host((host, port)).await.map_err(|error| unreachable(error.to_string()))?;
        let tcp = self.reach(host, found.collect()).await?.map_err(|error| unreachable(error.to_string()))?;
        // A request is one small write; waiting for more only adds latency.
        let _ = tcp.set_nodelay(true);
        if !secure {
            return Ok(Stream::Plain(tcp));
        }
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| unreachable(format!("{host:?} is not a name that TLS can use")))?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, tcp).await.map_err(|error| {
            let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match cause {
                Some(cause @ rustls::Error::InvalidCertificate(_)) => {
                    FetchError::Untrusted { origin: origin(uri), why: cause.to_string() }
                }
                _ => unreachable(error.to_string()),
            }
        })?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// The first connection that comes about. Forbidden addresses are left out; if all are, that is the error.
    async fn reach(&self, host: &str, found: Vec<SocketAddr>) -> Result<io::Result<TcpStream>, FetchError> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let mut forbidden = None;
        let mut tried = false;
        let share = self.patience / u32::try_from(found.len().max(1)).unwrap_or(u32::MAX);
        for address in found {
            if let Some(what) = self.guard.refuses(address.ip()) {
                forbidden = Some(FetchError::Forbidden { host: host.to_owned(), address: address.ip(), what });
                continue;
            }
            tried = true;
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(Ok(stream)),
                Ok(Err(error)) => failed = error,
                Err(_) => failed = io::Error::new(io::ErrorKind::TimedOut, "no connection in time"),
            }
        }
        match forbidden {
            Some(forbidden) if !tried => Err(forbidden),
            _ => Ok(Err(failed)),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Self::Response, FetchError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        async move {
            let Ok(connected) = timeout(connector.patience, connector.connect(&uri)).await else {
                let why = format!("no connection within {} s", connector.patience.as_secs());
                return Err(FetchError::Unreachable { origin: origin(&uri), why });
            };
            connected.map(TokioIo::new)
        }
        .boxed()
    }
}

/// One connection.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(context, buffer),
            Self::Tls(io) => Pin::new(io).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(context, buffer),
            Self::Tls(io) => Pin::new(io).poll_write(context, buffer),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(context),
            Self::Tls(io) => Pin::new(io).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(context),
            Self::Tls(io) => Pin::new(io).poll_shutdown(context),
        }
    }
}
