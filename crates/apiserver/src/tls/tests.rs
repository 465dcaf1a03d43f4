use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::{ClientCertificate, ConnectionLimits, Peer, Pki, TlsError, serve, server_url, x509};
use crate::clock::Clock;

const DAY: i64 = 24;

/// A clock that is set by hand, and begins at the time of day that real TLS clients see.
#[derive(Clone)]
struct Hand(Arc<Mutex<Timestamp>>);

impl Hand {
    fn new() -> (Self, Clock) {
        #[expect(clippy::disallowed_methods, reason = "clients in these tests use the time of day")]
        let hand = Self(Arc::new(Mutex::new(Timestamp::now())));
        let inner = hand.clone();
        (hand, Clock::new(move || *inner.0.lock().unwrap()))
    }

    fn advance_days(&self, days: i64) {
        *self.0.lock().unwrap() += SignedDuration::from_hours(days * DAY);
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn an_authority_is_made_once_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let pki = folder.path().join("deep/pki");
    let (_, clock) = Hand::new();
    let first = Pki::open_or_create(&pki, &clock, &["10.1.2.3".into(), "Rack.Example".into()]).unwrap();
    assert_eq!(mode(&pki), 0o700);
    let files = ["ca.key", "ca.crt", "serving.pem", "admin.pem", "token.key"];
    let texts = files.map(|file| {
        assert_eq!(mode(&pki.join(file)), 0o600, "{file}");
        read(&pki, file)
    });
    let second = Pki::open_or_create(&pki, &clock, &["10.1.2.3".into(), "Rack.Example".into()]).unwrap();
    assert_eq!(texts, files.map(|file| read(&pki, file)));
    assert_eq!(std::fs::read_dir(&pki).unwrap().count(), files.len());
    assert_eq!(first.kubeconfig("x", "https://[::1]:1"), second.kubeconfig("x", "https://[::1]:1"));
    assert_eq!(first.token_key(), second.token_key());

    let facts = x509::facts(&chain(&texts[2])[0]).unwrap();
    assert_eq!(facts.names, ["localhost", "127.0.0.1", "::1", "10.1.2.3", "rack.example"]);
    let admin = second.client(&chain(&texts[3])).unwrap();
    assert_eq!((admin.name.as_str(), admin.groups.as_slice()), ("admin", &["system:masters".to_owned()][..]));
    assert_eq!(admin.fingerprint.len(), 64);
}

#[test]
fn another_name_renews_only_the_serving_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (_, clock) = Hand::new();
    Pki::open_or_create(folder.path(), &clock, &[]).unwrap();
    let before = ["ca.crt", "admin.pem", "serving.pem"].map(|file| read(folder.path(), file));
    Pki::open_or_create(folder.path(), &clock, &["0.0.0.0".into()]).unwrap();
    assert_eq!(before, ["ca.crt", "admin.pem", "serving.pem"].map(|file| read(folder.path(), file)));
    Pki::open_or_create(folder.path(), &clock, &["192.0.2.1".into()]).unwrap();
    let after = ["ca.crt", "admin.pem", "serving.pem"].map(|file| read(folder.path(), file));
    assert_eq!(before[..2], after[..2]);
    assert_ne!(before[2], after[2]);
}

#[test]
fn certificates_are_renewed_in_time_and_the_kubeconfig_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let (hand, clock) = Hand::new();
    let pki = Pki::open_or_create(&folder.path().join("pki"), &clock, &[]).unwrap();
    let place = folder.path().join("kubeconfig");
    pki.write_kubeconfig(&place, "lab", "https://127.0.0.1:6443").unwrap();
    assert_eq!(mode(&place), 0o600);
    let first = read(folder.path(), "kubeconfig");
    let authority = pki.authority_pem();

    hand.advance_days(274);
    pki.renew_if_due().unwrap();
    assert_eq!(read(folder.path(), "kubeconfig"), first);
    hand.advance_days(2);
    pki.renew_if_due().unwrap();
    assert_ne!(read(folder.path(), "kubeconfig"), first);
    assert_eq!(pki.authority_pem(), authority);
    let admin = chain(&read(folder.path(), "pki/admin.pem"));
    assert!(pki.client(&admin).is_some());

    // Off for two years: everything but the authority is new at the next start.
    hand.advance_days(730);
    let later = Pki::open_or_create(&folder.path().join("pki"), &clock, &[]).unwrap();
    assert_eq!(later.authority_pem(), authority);
    assert!(later.client(&admin).is_none());
    assert!(later.client(&chain(&read(folder.path(), "pki/admin.pem"))).is_some());

    // The authority keeps its key, so that what it signed stays good.
    hand.advance_days(8 * 365 - 30);
    let key = read(folder.path(), "pki/ca.key");
    let last = Pki::open_or_create(&folder.path().join("pki"), &clock, &[]).unwrap();
    assert_ne!(last.authority_pem(), authority);
    assert_eq!(read(folder.path(), "pki/ca.key"), key);
    assert!(last.client(&chain(&read(folder.path(), "pki/admin.pem"))).is_some());
}

#[test]
fn damaged_certificates_are_made_again_and_damaged_keys_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (_, clock) = Hand::new();
    Pki::open_or_create(folder.path(), &clock, &[]).unwrap();
    for file in ["serving.pem", "admin.pem", "ca.crt"] {
        std::fs::write(folder.path().join(file), [0xff, 0xfe]).unwrap();
        let pki = Pki::open_or_create(folder.path(), &clock, &[]).unwrap();
        assert!(pki.client(&chain(&read(folder.path(), "admin.pem"))).is_some(), "{file}");
    }
    for file in ["ca.key", "token.key"] {
        let good = read(folder.path(), file);
        std::fs::write(folder.path().join(file), "junk").unwrap();
        let error = Pki::open_or_create(folder.path(), &clock, &[]).unwrap_err();
        assert!(matches!(error, TlsError::Damaged { .. }), "{error}");
        std::fs::write(folder.path().join(file), good).unwrap();
    }
    std::fs::remove_file(folder.path().join("ca.key")).unwrap();
    let error = Pki::open_or_create(folder.path(), &clock, &[]).unwrap_err().to_string();
    assert!(error.contains("ca.key is missing: restore it"), "{error}");
}

#[test]
fn open_files_are_closed_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let (_, clock) = Hand::new();
    Pki::open_or_create(folder.path(), &clock, &[]).unwrap();
    let key = folder.path().join("ca.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    Pki::open_or_create(folder.path(), &clock, &[]).unwrap();
    assert_eq!((mode(&key), mode(folder.path())), (0o600, 0o700));
}

#[test]
fn a_kubeconfig_leads_to_loopback_when_the_server_listens_everywhere() {
    let url = |address: &str| server_url(address.parse::<SocketAddr>().unwrap());
    assert_eq!(url("0.0.0.0:6443"), "https://127.0.0.1:6443");
    assert_eq!(url("[::]:6443"), "https://[::1]:6443");
    assert_eq!(url("10.0.0.5:1"), "https://10.0.0.5:1");
}

#[test]
fn certificates_of_others_are_not_believed() {
    let (hand, clock) = Hand::new();
    let (ours, theirs) = (Pki::in_memory(&clock, &[]).unwrap(), Pki::in_memory(&clock, &[]).unwrap());
    let day = SignedDuration::from_hours(24);
    assert!(ours.client(&chain(&theirs.issue_client("admin", "system:masters", day).unwrap())).is_none());
    let mine = chain(&ours.issue_client("jane", "dev", day).unwrap());
    let jane = ours.client(&mine).unwrap();
    assert!(jane.is_valid_at(clock.now()));
    hand.advance_days(2);
    assert!(!jane.is_valid_at(clock.now()));
    assert!(ours.client(&mine).is_none());
    assert!(ours.client(&[]).is_none());
    assert!(ours.client(&[CertificateDer::from(vec![0x30, 0x80])]).is_none());
}

proptest! {
    #[test]
    fn any_bytes_may_be_given_for_a_certificate(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = x509::facts(&bytes);
    }

    #[test]
    fn any_damage_to_a_certificate_is_survived(at in 0usize..600, to in any::<u8>()) {
        static SOME: LazyLock<Vec<u8>> = LazyLock::new(|| {
            chain(&Pki::in_memory(&Hand::new().1, &[]).unwrap().authority_pem())[0].to_vec()
        });
        let mut der = SOME.clone();
        if let Some(byte) = der.get_mut(at) {
            *byte = to;
        }
        let _ = x509::facts(&der);
    }
}

/// A server on loopback that answers with what it knows of its peer.
struct Running {
    address: SocketAddr,
    pki: Pki,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    async fn start(pki: Pki) -> Self {
        Self::with(pki, Echo, ConnectionLimits::default()).await
    }

    async fn with<S, B>(pki: Pki, app: S, limits: ConnectionLimits) -> Self
    where
        S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (served, until) = (pki.clone(), stop.clone());
        tasks.spawn(async move { serve(listener, served, app, until, limits).await.unwrap() });
        Self { address, pki, stop, tasks }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }

    async fn ask(&self, identity: Option<&str>) -> String {
        let stream = self.connect(identity).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = connection.await;
        });
        let request = Request::get("/").header("host", "x").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    async fn connect(&self, identity: Option<&str>) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(chain(&self.pki.authority_pem()).remove(0)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(pem) => config
                .with_client_auth_cert(chain(pem), PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap())
                .unwrap(),
        };
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// Answers with more than anybody wants to have, and counts what it was asked for.
#[derive(Clone, Default)]
struct Endless {
    pieces: Arc<AtomicUsize>,
    given_up: Arc<Notify>,
}

const PIECE: usize = 64 * 1024;

impl tower_service::Service<Request<Incoming>> for Endless {
    type Response = Response<BoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Incoming>) -> Self::Future {
        struct End(Arc<Notify>);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let (pieces, end) = (self.pieces.clone(), End(self.given_up.clone()));
        let stream = futures::stream::repeat_with(move || {
            let _ = &end;
            pieces.fetch_add(1, Ordering::Relaxed);
            Ok(Frame::data(Bytes::from(vec![b'x'; PIECE])))
        });
        std::future::ready(Ok(Response::new(BodyExt::boxed(StreamBody::new(stream)))))
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off_and_little_waits_for_it() {
    let (_, clock) = Hand::new();
    let endless = Endless::default();
    let limits = ConnectionLimits { stalled: Duration::from_millis(300), ..ConnectionLimits::default() };
    let server = Running::with(Pki::in_memory(&clock, &[]).unwrap(), endless.clone(), limits).await;
    let mut stream = server.connect(None).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), endless.given_up.notified()).await.expect("it is given up");
    // What the system keeps for both ends of the socket is some megabytes; what we keep comes on top.
    let mut taken = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read) = stream.read(&mut buffer).await
        && read > 0
    {
        taken += read;
    }
    let kept = (endless.pieces.load(Ordering::Relaxed) * PIECE).saturating_sub(taken);
    assert!(kept <= 4 * PIECE, "{kept} bytes waited in the process");
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_make_room_for_new_ones_and_then_the_oldest_watch() {
    let (_, clock) = Hand::new();
    let limits = ConnectionLimits { connections: 20, ..ConnectionLimits::default() };
    let endless = Endless::default();
    let server = Running::with(Pki::in_memory(&clock, &[]).unwrap(), endless.clone(), limits).await;
    let mut watch = server.connect(None).await.unwrap();
    watch.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut buffer = vec![0; PIECE];
    watch.read_exact(&mut buffer).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..60 {
        idle.push(server.connect(None).await.expect("there is always room for one more"));
    }
    watch.read_exact(&mut buffer).await.expect("who is served is not sent away");
    let first = idle.first_mut().unwrap().read(&mut buffer).await;
    assert!(first.is_err() || first.is_ok_and(|read| read == 0), "the first has made room");

    let mut busy = vec![watch];
    while busy.len() < 20 {
        let mut stream = server.connect(None).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        stream.read_exact(&mut buffer).await.unwrap();
        busy.push(stream);
    }
    server.connect(None).await.expect("nobody can keep others out");
    let mut oldest = busy.remove(0);
    while let Ok(read) = oldest.read(&mut buffer).await
        && read > 0
    {}
    busy[0].read_exact(&mut buffer).await.expect("only the oldest has made room");
    server.stop().await;
}

#[derive(Clone)]
struct Echo;

impl tower_service::Service<Request<Incoming>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let who = match request.extensions().get::<Peer>() {
            Some(Peer::Certified(ClientCertificate { name, groups, .. })) => format!("{name} {}", groups.join(",")),
            other => format!("{other:?}"),
        };
        std::future::ready(Ok(Response::new(Full::new(Bytes::from(who)))))
    }
}

#[tokio::test]
async fn requests_carry_who_the_handshake_has_shown() {
    let (_, clock) = Hand::new();
    let server = Running::start(Pki::in_memory(&clock, &[]).unwrap()).await;
    let day = SignedDuration::from_hours(24);
    let jane = server.pki.issue_client("jane", "dev", day).unwrap();
    let expired = server.pki.issue_client("jane", "dev", -SignedDuration::from_hours(1)).unwrap();
    let stranger = Pki::in_memory(&clock, &[]).unwrap().issue_client("jane", "dev", day).unwrap();
    assert_eq!(server.ask(None).await, "Some(Unknown)");
    assert_eq!(server.ask(Some(&jane)).await, "jane dev");
    assert_eq!(server.ask(Some(&expired)).await, "Some(Refused)");
    assert_eq!(server.ask(Some(&stranger)).await, "Some(Refused)");
    server.stop().await;
}

#[tokio::test]
async fn a_silent_client_keeps_nobody_waiting() {
    let (_, clock) = Hand::new();
    let server = Running::start(Pki::in_memory(&clock, &[]).unwrap()).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Half of a handshake, from every second one.
        if silent.len() % 2 == 0 {
            stream.write_all(&[0x16, 3, 1, 0, 200, 1]).await.unwrap();
        }
        silent.push(stream);
    }
    assert_eq!(server.ask(None).await, "Some(Unknown)");
    // They do not keep the server from stopping either.
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_cut_off() {
    let (_, clock) = Hand::new();
    let server = Running::start(Pki::in_memory(&clock, &[]).unwrap()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&[0x16, 3, 1, 0, 200, 1]).await.unwrap();
    tokio::time::pause();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
    server.stop().await;
}

#[tokio::test]
async fn who_forgets_tls_is_told() {
    let (_, clock) = Hand::new();
    let server = Running::start(Pki::in_memory(&clock, &[]).unwrap()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 24];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.0 400 Bad Request");
    server.stop().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let (hand, clock) = Hand::new();
    let pki = Pki::in_memory(&clock, &[]).unwrap();
    let server = Running::start(pki.clone()).await;
    assert_eq!(server.ask(None).await, "Some(Unknown)");
    let old = pki.kubeconfig("x", "y");
    hand.advance_days(-400);
    pki.renew_if_due().unwrap();
    assert_ne!(pki.kubeconfig("x", "y"), old);
    hand.advance_days(400);
    pki.renew_if_due().unwrap();
    assert_eq!(server.ask(None).await, "Some(Unknown)");
    server.stop().await;
}
