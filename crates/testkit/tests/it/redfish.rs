//! A Redfish client of thirty lines, so that the test bed is tested without the project's own code.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use testkit::Sushy;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) async fn call(
    sushy: &Sushy,
    password: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(sushy.certificate_pem().as_bytes()).expect("a certificate");
    roots.add(certificate).expect("a usable certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = sushy.url().trim_start_matches("https://");
    let tcp = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.expect("a TLS session");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.expect("HTTP");

    let credentials = BASE64_STANDARD.encode(format!("{}:{password}", Sushy::USER));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address)
        .header(header::AUTHORIZATION, format!("Basic {credentials}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.map(|body| body.to_string()).unwrap_or_default())))
        .expect("a request");
    let exchange = async {
        let response = sender.send_request(request).await.expect("an answer");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    };
    tokio::pin!(exchange, connection);
    loop {
        tokio::select! {
            answer = &mut exchange => return answer,
            _ = &mut connection => {}
        }
    }
}
