//! Request → response. Sockets exist only in [`Https`]; a simulator answers through [`InProcess`].

use std::fmt::Display;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tower_service::Service;

use crate::tls::Fingerprint;

mod https;

pub use https::Https;

/// Carries a request to one BMC and its response back. Knows nothing of Redfish.
pub trait Transport: Send + Sync {
    /// Sends a request and reads the whole response.
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;

    /// The certificate that the BMC showed last; `None` before the first handshake and without TLS.
    fn certificate(&self) -> Option<Fingerprint>;
}

/// Why no response came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection was made: the request was certainly not seen.
    #[error("{0}")]
    Connect(String),
    /// The connection broke after the request may have been seen.
    #[error("{0}")]
    Broken(String),
    /// No answer in time.
    #[error("no answer within {0} s")]
    TimedOut(u64),
    /// What answered does not speak TLS.
    #[error("it does not speak TLS ({0}); if it serves plain HTTP, write http:// in the address")]
    NotTls(String),
    /// What answered does not speak HTTP.
    #[error("it does not speak HTTP ({0}); if it serves TLS, write https:// in the address")]
    NotHttp(String),
    /// TLS failed for another reason than the certificate.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// The certificate is not trusted.
    #[error("{why}")]
    Untrusted {
        /// Why not.
        why: String,
        /// Of the certificate that was shown.
        fingerprint: Fingerprint,
    },
    /// The certificate is not the pinned one.
    #[error("the certificate is {seen}, not {pinned}")]
    Changed {
        /// What was expected.
        pinned: Fingerprint,
        /// What was shown.
        seen: Fingerprint,
    },
    /// The body is too long.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl TransportError {
    /// Whether the BMC certainly has not seen the request, so that even a mutation may be sent again.
    pub fn was_not_sent(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::TimedOut(_) | Self::TooLong(_) | Self::NotHttp(_))
    }

    /// Whether trying again at once may help.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Broken(_) | Self::TimedOut(_))
    }
}

/// A service in this process: no sockets, so that time can be paused.
#[derive(Debug, Clone)]
pub struct InProcess<S, E> {
    service: S,
    judge: fn(E) -> TransportError,
}

impl<S, E: Display> InProcess<S, E> {
    /// Answers through this service. Its errors count as broken connections: the request may have been carried out.
    pub fn new(service: S) -> Self {
        Self::judging(service, |error| TransportError::Broken(error.to_string()))
    }
}

impl<S, E> InProcess<S, E> {
    /// Answers through this service, and maps its errors.
    pub fn judging(service: S, judge: fn(E) -> TransportError) -> Self {
        Self { service, judge }
    }
}

impl<S, E> Transport for InProcess<S, E>
where
    S: Service<http::Request<Bytes>, Response = http::Response<Bytes>, Error = E> + Clone + Send + Sync,
    S::Future: Send,
{
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let mut service = self.service.clone();
        async move {
            std::future::poll_fn(|context| service.poll_ready(context)).await.map_err(self.judge)?;
            service.call(request).await.map_err(self.judge)
        }
        .boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        None
    }
}
