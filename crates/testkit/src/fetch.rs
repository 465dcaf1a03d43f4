//! A client that comes from where it is told to.

use std::net::Ipv4Addr;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Sends a request from one of the many addresses of loopback, and waits for all of the answer. An answer that breaks off is
/// none.
pub async fn fetch_from(
    address: Ipv4Addr,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
) -> Option<Response<Bytes>> {
    send_from(address, method, url, headers, "").await
}

/// The same with a body.
pub async fn send_from(
    address: Ipv4Addr,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Option<Response<Bytes>> {
    let mut connector = HttpConnector::new();
    connector.set_local_address(Some(address.into()));
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).expect("a request");
    let (head, body) = client.request(request).await.unwrap_or_else(|error| panic!("{url}: {error}")).into_parts();
    Some(Response::from_parts(head, body.collect().await.ok()?.to_bytes()))
}
