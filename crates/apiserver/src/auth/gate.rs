//! The door between sockets and the server.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Body;
use tower_service::Service;

use super::Auth;
use crate::request::drain::drain;
use crate::status::Failure;
use crate::tls::Peer;

/// A service behind a door: requests without good credentials are answered with 401, others carry their
/// [`User`](super::User).
#[derive(Debug, Clone)]
pub struct Gate<S> {
    auth: Auth,
    app: S,
}

impl<S> Gate<S> {
    /// A door before a service.
    pub fn new(auth: Auth, app: S) -> Self {
        Self { auth, app }
    }
}

impl<S, B, R> Service<Request<B>> for Gate<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Send> + Send + Unpin + 'static,
    R: From<Bytes> + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.app.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let peer = request.extensions().get::<Peer>();
        match self.auth.authenticate(request.uri().path(), request.headers(), peer) {
            Ok(user) => {
                request.extensions_mut().insert(user);
                // Nobody shall be tempted to use or log it.
                request.headers_mut().remove(header::AUTHORIZATION);
                Box::pin(self.app.call(request))
            }
            Err(failure) => {
                let refusal = refusal(&failure);
                // Who asks first whether to send the body does not send it.
                let asks_first = request.headers().contains_key(header::EXPECT);
                Box::pin(async move {
                    if !asks_first {
                        drain(request.into_body()).await;
                    }
                    Ok(refusal)
                })
            }
        }
    }
}

fn refusal<R: From<Bytes>>(failure: &Failure) -> Response<R> {
    let mut response = Response::new(R::from(Bytes::from(failure.to_json().to_string())));
    *response.status_mut() = failure.code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
