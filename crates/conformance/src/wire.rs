//! The smallest client that can ask: HTTP/1.1 over TLS, one connection, no retries but those that hide start-up.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::target::Target;

/// Far more than any answer takes.
const PATIENCE: Duration = Duration::from_secs(40);

/// How often a server may say "not yet" before that counts as its answer.
const START_UP_TRIES: u32 = 100;

/// A connection to a target that is opened when needed.
pub struct Wire {
    target: Target,
    sender: Option<SendRequest<Full<Bytes>>>,
    connections: JoinSet<()>,
}

/// What a server said, complete.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Wire {
    /// A wire to one server with one identity.
    pub fn new(target: Target) -> Self {
        Wire { target, sender: None, connections: JoinSet::new() }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Asks and reads the whole answer.
    pub(crate) async fn ask(&mut self, request: &Request<Bytes>) -> Reply {
        for attempt in 0.. {
            let (parts, body) = self.open(request).await.into_parts();
            let body = timeout(PATIENCE, body.collect())
                .await
                .unwrap_or_else(|_| panic!("{}: the answer to {} does not end", self.target.name(), request.uri()));
            // An answer that was cut off is recorded as far as it came.
            let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            // The real server asks for patience while it sets up the cache of a new kind.
            if parts.status == StatusCode::TOO_MANY_REQUESTS && attempt < START_UP_TRIES {
                sleep(Duration::from_millis(100)).await;
                continue;
            }
            return Reply { status: parts.status, headers: parts.headers, body };
        }
        unreachable!("the loop ends with an answer")
    }

    /// Asks and hands out the answer while it is coming.
    pub(crate) async fn open(&mut self, request: &Request<Bytes>) -> http::Response<Incoming> {
        let name = self.target.name();
        for attempt in 0..3 {
            let asked = self.with_identity(request);
            let answer = timeout(PATIENCE, self.sender().await.send_request(asked)).await;
            match answer.unwrap_or_else(|_| panic!("{name}: no answer to {} {}", request.method(), request.uri())) {
                Ok(response) => return response,
                // The server may close a connection that was idle.
                Err(error) if attempt == 2 => panic!("{name}: {} {}: {error:?}", request.method(), request.uri()),
                Err(_) => self.sender = None,
            }
        }
        unreachable!("the loop ends with an answer")
    }

    /// A connection of its own for a watch; it lives as long as the wire.
    pub(crate) fn another(&self) -> Wire {
        Wire::new(self.target.clone())
    }

    fn with_identity(&self, request: &Request<Bytes>) -> Request<Full<Bytes>> {
        let mut request = request.clone().map(Full::new);
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.target.address.parse().expect("an address is a header"));
        if let Some(token) = &self.target.token {
            headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a token is a header"));
        }
        request
    }

    async fn sender(&mut self) -> &mut SendRequest<Full<Bytes>> {
        let mut reusable = self.sender.take();
        if let Some(sender) = &mut reusable
            && sender.ready().await.is_err()
        {
            reusable = None;
        }
        let sender = match reusable {
            Some(sender) => sender,
            None => self.connect().await,
        };
        self.sender.insert(sender)
    }

    async fn connect(&mut self) -> SendRequest<Full<Bytes>> {
        let address = &self.target.address;
        let stream = TcpStream::connect(address)
            .await
            .unwrap_or_else(|error| panic!("{}: cannot connect to {address}: {error}", self.target.name()));
        // Without this, small requests wait for acknowledgements of earlier ones.
        stream.set_nodelay(true).expect("a socket option");
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned();
        let stream = TlsConnector::from(self.target.tls.clone())
            .connect(ServerName::try_from(host).expect("an address or a name"), stream)
            .await
            .unwrap_or_else(|error| panic!("{}: no TLS with {address}: {error}", self.target.name()));
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("an HTTP connection");
        self.connections.spawn(async {
            // What breaks a connection also breaks the request on it, which reports it.
            let _ = connection.await;
        });
        sender
    }
}
