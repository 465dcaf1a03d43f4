//! Real sockets: certificates, wrong protocols, connections that are reused and reset.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bmc::{
    Address, Bmc, Client, Credentials, Endpoint, Fingerprint, Https, Options, RedfishSystem, SystemChoice, Trust,
};
use bytes::Bytes;
use engine::failure::Kind;
use engine::server::Scope;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::script::Script;

struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    fn self_signed(names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        Self { certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Serves the script on a socket until it is dropped; counts connections.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

async fn serve(script: &Script, identity: Option<&Identity>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    serve_on(listener, script, identity)
}

fn serve_on(listener: TcpListener, script: &Script, identity: Option<&Identity>) -> Server {
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let acceptor = identity.map(Identity::acceptor);
    let (script, counter) = (script.clone(), connections.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut running = JoinSet::new();
        while let Ok((tcp, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let (script, acceptor) = (script.clone(), acceptor.clone());
            running.spawn(async move {
                match acceptor {
                    None => http(tcp, script).await,
                    Some(acceptor) => {
                        if let Ok(tls) = acceptor.accept(tcp).await {
                            http(tls, script).await;
                        }
                    }
                }
            });
        }
    });
    Server { address, connections, _tasks: tasks }
}

async fn http(io: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static, script: Script) {
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let mut script = script.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let answer = script.call(http::Request::from_parts(parts, body)).await.unwrap();
            Ok::<_, hyper::Error>(answer.map(Full::<Bytes>::new))
        }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service).await;
}

fn system(url: &str, trust: &Trust) -> RedfishSystem {
    let address = Address::parse(url).unwrap();
    let transport = Https::new(&address, trust).unwrap();
    let endpoint = Endpoint { address, credentials: Credentials::new("root", "calvin-2"), family: None };
    RedfishSystem::new(Client::new(endpoint, Arc::new(transport), Options::default()), SystemChoice::Only)
}

#[tokio::test]
async fn an_untrusted_certificate_is_shown_ready_to_paste_and_the_pin_works() {
    let identity = Identity::self_signed(&["bmc.example.com"]);
    let script = Script::new(|_| None);
    let server = serve(&script, Some(&identity)).await;
    let url = format!("https://{}", server.address);
    let error = system(&url, &Trust::SystemRoots).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::CertificateUntrusted);
    let told = error.to_string();
    assert!(told.ends_with(&format!("Its fingerprint is {}", identity.fingerprint())), "{told}");
    assert!(script.asked().is_empty(), "nothing was sent");

    let pin = told.split("Its fingerprint is ").nth(1).unwrap();
    let pinned = system(&url, &Trust::Pin(pin.parse().unwrap()));
    let seen = pinned.look(Scope::Power).await.unwrap();
    assert_eq!(seen.certificate, Some(identity.fingerprint().to_hex()));
    // The first was for the refusal. One that was idle for too long, on a busy machine, is followed by another.
    let (connections, requests) = (server.connections.load(Ordering::Relaxed) - 1, script.asked().len());
    assert!(connections < requests, "a connection serves many requests: {connections} for {requests}");
    pinned.client().close().await;

    let anything = system(&url, &Trust::Anything);
    anything.look(Scope::Power).await.unwrap();
    anything.client().close().await;
}

#[tokio::test]
async fn a_changed_certificate_is_a_fault_of_its_own() {
    let (old, new) = (Identity::self_signed(&["a"]), Identity::self_signed(&["a"]));
    let script = Script::new(|_| None);
    let server = serve(&script, Some(&new)).await;
    let url = format!("https://{}", server.address);
    let error = system(&url, &Trust::Pin(old.fingerprint())).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::CertificateChanged);
    let told = error.to_string();
    assert!(told.contains(&old.fingerprint().to_string()) && told.contains(&new.fingerprint().to_string()), "{told}");
    assert!(script.asked().is_empty());
}

/// The last listener goes with its task, a moment after it was dropped.
async fn bind_again(address: SocketAddr) -> TcpListener {
    for _ in 0..1000 {
        if let Ok(listener) = TcpListener::bind(address).await {
            return listener;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("cannot listen on {address} again")
}

#[tokio::test]
async fn the_first_certificate_is_kept_to() {
    let (old, new) = (Identity::self_signed(&["a"]), Identity::self_signed(&["a"]));
    let script = Script::new(|_| None);
    let server = serve(&script, Some(&old)).await;
    let address = server.address;
    let system = system(&format!("https://{address}"), &Trust::FirstUse);
    let seen = system.look(Scope::Power).await.unwrap();
    assert_eq!(seen.certificate, Some(old.fingerprint().to_hex()));
    drop(server);
    let _server = serve_on(bind_again(address).await, &script, Some(&new));
    assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::CertificateChanged);
}

#[tokio::test]
async fn a_ca_bundle_is_believed_and_names_are_checked() {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let issue = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        Identity { certificate: certificate.der().clone(), key: key.serialize_der() }
    };
    let trust = Trust::CaBundle(authority.pem());
    let script = Script::new(|_| None);

    let server = serve(&script, Some(&issue("127.0.0.1"))).await;
    system(&format!("https://{}", server.address), &trust).look(Scope::Power).await.unwrap();

    let server = serve(&script, Some(&issue("other.example.com"))).await;
    let error = system(&format!("https://{}", server.address), &trust).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::CertificateUntrusted);
    assert!(error.to_string().contains("another name"), "{error}");

    let mut expired = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_before = rcgen::date_time_ymd(2000, 1, 1);
    let key = KeyPair::generate().unwrap();
    let expired = expired.signed_by(&key, &authority).unwrap();
    let server = serve(&script, Some(&Identity { certificate: expired.der().clone(), key: key.serialize_der() })).await;
    let error = system(&format!("https://{}", server.address), &trust).look(Scope::Power).await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
}

#[tokio::test]
async fn a_stolen_certificate_without_its_key_is_no_good() {
    // The handshake is signed with another key than the certificate's; rustls refuses to serve that, so the DER is crossed.
    let (real, thief) = (Identity::self_signed(&["a"]), Identity::self_signed(&["a"]));
    let script = Script::new(|_| None);
    let key = rustls::crypto::ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(
        thief.key.clone(),
    )))
    .unwrap();
    let certified = rustls::sign::CertifiedKey::new(vec![real.certificate.clone()], key);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let _ = acceptor.accept(tcp).await;
        }
    });
    for trust in [Trust::Pin(real.fingerprint()), Trust::FirstUse] {
        let error = system(&url, &trust).look(Scope::Power).await.unwrap_err();
        assert_eq!(error.kind(), Kind::CertificateUntrusted, "{error}");
    }
    assert!(script.asked().is_empty());
}

#[tokio::test]
async fn plain_http_and_tls_are_told_apart() {
    let script = Script::new(|_| None);
    let plain = serve(&script, None).await;
    system(&format!("http://{}", plain.address), &Trust::SystemRoots).look(Scope::Power).await.unwrap();
    let error = system(&format!("https://{}", plain.address), &Trust::Anything).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotRedfish);
    assert!(error.to_string().contains("http://"), "{error}");

    let identity = Identity::self_signed(&["a"]);
    let secure = serve(&script, Some(&identity)).await;
    let error = system(&format!("http://{}", secure.address), &Trust::Anything).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotRedfish, "{error}");
    assert!(error.to_string().contains("https://"), "{error}");
}

#[tokio::test]
async fn ipv6_is_spoken_where_there_is_any() {
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        eprintln!("SKIPPED: this machine has no IPv6");
        return;
    };
    let script = Script::new(|_| None);
    let identity = Identity::self_signed(&["::1"]);
    let server = serve_on(listener, &script, Some(&identity));
    let url = format!("https://[::1]:{}", server.address.port());
    system(&url, &Trust::Pin(identity.fingerprint())).look(Scope::Power).await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_names_the_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = system(&format!("https://{address}"), &Trust::Anything).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
    assert!(
        error.to_string().contains(&address.port().to_string()) && error.to_string().contains("refused"),
        "{error}"
    );
}

/// Answers one request per connection and resets the connection when it is used a second time, as an iLO does.
async fn ilo(mut tcp: TcpStream, requests: Arc<AtomicUsize>) {
    let mut buffer = [0u8; 4096];
    if tcp.read(&mut buffer).await.is_ok_and(|read| read > 0) {
        requests.fetch_add(1, Ordering::Relaxed);
        let body = "{}";
        let _ =
            tcp.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
    }
    let _ = tcp.read(&mut buffer).await;
    requests.fetch_add(1, Ordering::Relaxed);
    tcp.set_zero_linger().unwrap();
}

#[tokio::test]
async fn ilo_resets_a_reused_connection_and_is_asked_once_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut running = JoinSet::new();
        while let Ok((tcp, _)) = listener.accept().await {
            running.spawn(ilo(tcp, counted.clone()));
        }
    });
    let transport = Https::new(&address, &Trust::Anything).unwrap();
    for _ in 0..3 {
        let request = http::Request::get(format!("{}/", address.origin())).body(Bytes::new()).unwrap();
        let answer = bmc::Transport::send(&transport, request).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(requests.load(Ordering::Relaxed), 5, "first, then twice: reset and once more");
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let script = Script::new(|_| Some(crate::script::Reply::text(200, &"x".repeat(9 * 1024 * 1024))));
    let server = serve(&script, None).await;
    let error = system(&format!("http://{}", server.address), &Trust::Anything).look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::BadAnswer);
}
