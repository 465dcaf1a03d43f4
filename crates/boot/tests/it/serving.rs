//! BMCs that read their boot image.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use boot::fetch::{Fetcher, Guard, Patience};
use boot::iso::Source as _;
use boot::links::Links;
use boot::serve::{Images, IsoOrder, Limits, Service, tls};
use boot::ticket::{Key, Purpose};
use bytes::Bytes;
use futures::future::join_all;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use ring::rand::SystemRandom;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::lab::parameters;
use crate::stage::{KEY, Registry, Stage, ask, closed_port, fetcher, holder, images};
use crate::upstream::Manners;

#[tokio::test]
async fn the_whole_image_and_any_range_are_as_the_plan_says() {
    let (original, rewritten) = images().await;
    assert!(original != rewritten);
    let stage = Stage::new(original).await;
    let url = stage.iso(1);
    let size = rewritten.len();

    let whole = ask("GET", &url, &[]).await.unwrap();
    assert_eq!(whole.status(), StatusCode::OK);
    assert!(whole.body() == &rewritten);
    let etag = whole.headers()["etag"].to_str().unwrap().to_owned();
    assert!(etag.starts_with('"'), "strong: {etag}");
    assert_eq!(whole.headers()["accept-ranges"], "bytes");
    assert_eq!(whole.headers()["content-type"], "application/x-iso9660-image");

    for _ in 0..40 {
        let start = fastrand::usize(..size);
        let end = fastrand::usize(start..size);
        let range = format!("bytes={start}-{end}");
        let part = ask("GET", &url, &[("range", &range), ("if-range", &etag)]).await.unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(part.headers()["content-range"], format!("bytes {start}-{end}/{size}").as_str());
        assert_eq!(part.headers()["etag"], etag.as_str());
        assert!(part.body() == &rewritten.slice(start..=end), "{range}");
    }

    let head = ask("HEAD", &url, &[("range", "bytes=0-9")]).await.unwrap();
    assert_eq!(
        (head.status(), head.headers()["content-length"].to_str().unwrap()),
        (StatusCode::OK, &*size.to_string())
    );
    let beyond = ask("GET", &url, &[("range", &format!("bytes={size}-"))]).await.unwrap();
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(beyond.headers()["content-range"], format!("bytes */{size}").as_str());
    let other_version = ask("GET", &url, &[("range", "bytes=0-9"), ("if-range", "\"other\"")]).await.unwrap();
    assert_eq!((other_version.status(), other_version.body().len()), (StatusCode::OK, size));
    assert_eq!(ask("PUT", &url, &[]).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(stage.registry.reported(), []);
}

#[tokio::test]
async fn fifty_readers_are_one_look_at_the_image() {
    let (original, rewritten) = images().await;
    let stage = Stage::new(original).await;
    stage.upstream.behave(Manners { thinks: Duration::from_millis(100), ..Manners::default() });
    let url = stage.iso(1);
    let answers = join_all((0..50).map(|_| ask("GET", &url, &[]))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().body() == &rewritten));
    assert_eq!(stage.upstream.opened(), 1);
}

#[tokio::test]
async fn two_replicas_serve_the_same_bytes_under_the_same_name() {
    let (original, _) = images().await;
    let (one, two) = (Stage::new(original.clone()).await, Stage::new(original).await);
    let (one, two) = (ask("GET", &one.iso(1), &[]).await.unwrap(), ask("GET", &two.iso(1), &[]).await.unwrap());
    assert_eq!(one.headers()["etag"], two.headers()["etag"]);
    assert!(one.body() == two.body());
}

#[tokio::test]
async fn whoever_has_no_right_learns_nothing() {
    let (original, _) = images().await;
    let stage = Stage::new(original).await;
    let (iso, config) = (Purpose::Iso, Purpose::Config);
    let ticket = |purpose, number| stage.key.ticket(purpose, &holder(number));
    let foreign = Key::draw(&SystemRandom::new()).unwrap().ticket(iso, &holder(1));
    let mut renewed = holder(1);
    renewed.claim = "claim-0".into();
    let links = &stage.links;
    stage.registry.release(2);
    stage.registry.deploy(3, &stage.upstream.url());
    stage.registry.change(3, |delivery| (delivery.iso, delivery.config) = (None, false));
    let mut answers = Vec::new();
    for (why, url) in [
        ("unknown deployment", links.iso("d9", &ticket(iso, 9)).unwrap()),
        ("ticket of another host", links.iso("d1", &ticket(iso, 2)).unwrap()),
        ("ticket of another purpose", links.iso("d1", &ticket(config, 1)).unwrap()),
        ("ticket of an earlier claim", links.iso("d1", &stage.key.ticket(iso, &renewed)).unwrap()),
        ("ticket made with another key", links.iso("d1", &foreign).unwrap()),
        ("released", stage.iso(2)),
        ("nothing to serve", stage.iso(3)),
        ("released, config", stage.config(2)),
        ("config with the ticket of the ISO", links.config("d1", &ticket(iso, 1)).unwrap()),
        ("config of another host", links.config("d1", &ticket(config, 2)).unwrap()),
        ("no config to serve", stage.config(3)),
        ("no such path", stage.iso(1).replace("boot.iso", "other.iso")),
    ] {
        let answer = ask("GET", &url, &[]).await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{why}");
        let mut headers = answer.headers().clone();
        headers.remove("date");
        answers.push((headers, answer.into_body()));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "all answers are the same");
    assert_eq!(stage.upstream.asked(), 0, "nobody was asked on their behalf");
    assert_eq!(stage.registry.reported(), []);
}

#[tokio::test]
async fn a_release_ends_the_ticket_at_once() {
    let (original, _) = images().await;
    let stage = Stage::new(original).await;
    let url = stage.iso(1);
    assert_eq!(ask("HEAD", &url, &[]).await.unwrap().status(), StatusCode::OK);
    stage.registry.release(1);
    assert_eq!(ask("HEAD", &url, &[]).await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_answer_never_holds_more_than_one_buffer() {
    let (original, rewritten) = images().await;
    let stage = Stage::new(original).await;
    let service = Service::new(stage.registry.clone(), stage.key.clone(), Arc::new(Images::new(fetcher())));
    let (head, ()) = http::Request::get(stage.iso(1)).body(()).unwrap().into_parts();
    let mut body = service.answer(IpAddr::from([127, 0, 0, 1]), &head, Empty::<Bytes>::new()).await.into_body();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let bytes = frame.unwrap().into_data().unwrap();
        assert!(bytes.len() <= 64 * 1024, "{}", bytes.len());
        read.extend_from_slice(&bytes);
    }
    assert!(read == rewritten);
}

/// Also when nobody had waited for the failure.

#[tokio::test]
async fn orders_that_nobody_needs_any_more_are_forgotten() {
    let images = Images::new(fetcher());
    let nobody = closed_port().await;
    for number in 0..600 {
        let url = format!("http://{nobody}/{number}");
        images.prepare(&IsoOrder { url, parameters: parameters() }).await.unwrap_err();
    }
    assert!(format!("{images:?}").contains("count: 512"), "{images:?}");
}

#[tokio::test]
async fn connections_without_a_ticket_hold_up_nobody_who_has_one() {
    let (original, _) = images().await;
    let stage = Stage::limited(original, Limits { connections: 60, per_address: 20, ..Limits::default() }).await;
    let address = stage.address();
    // A BMC has read a part, and keeps its connection for the next one.
    let mut bmc = TcpStream::connect(address).await.unwrap();
    let part = format!(
        "GET {} HTTP/1.1\r\nhost: a\r\nrange: bytes=0-0\r\n\r\n",
        stage.iso(1).split_once(&address.to_string()).unwrap().1
    );
    let mut answer = async || {
        bmc.write_all(part.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        // The head, and the one byte that was asked for.
        while said.windows(4).position(|four| four == b"\r\n\r\n").is_none_or(|end| said.len() < end + 5) {
            assert_ne!(bmc.read_buf(&mut said).await.unwrap(), 0, "it was put out");
        }
        assert!(said.starts_with(b"HTTP/1.1 206"), "{}", String::from_utf8_lossy(&said));
    };
    answer().await;

    // From one address, from many, and all of them silent.
    let begun = tokio::time::Instant::now();
    let mut idle = Vec::new();
    for number in 0..220_u8 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        let last = if number < 110 { 9 } else { 10 + number % 11 };
        socket.bind((std::net::Ipv4Addr::new(127, 0, 0, last), 0).into()).unwrap();
        idle.push(socket.connect(address).await.unwrap());
    }
    let server = std::net::Ipv4Addr::new(127, 0, 0, 5);
    let fetched = testkit::fetch_from(server, "GET", &stage.config(1), &[]).await.unwrap();
    assert_eq!(fetched.status(), StatusCode::OK);
    answer().await;
    assert!(begun.elapsed() < Duration::from_secs(20), "nobody waits for the idle to go by themselves");
    drop(idle);
}

#[tokio::test]
async fn endless_heads_are_refused() {
    let stage = Stage::new(Bytes::new()).await;
    let address = stage.address();
    let mut endless = TcpStream::connect(address).await.unwrap();
    let mut said = Vec::new();
    let head = format!("GET / HTTP/1.1\r\nhost: a\r\nendless: {}\r\n\r\n", "x".repeat(1_000_000));
    // The server closes before it has read all, so neither side is sure to get its words across.
    let _ = endless.write_all(head.as_bytes()).await;
    let _ = endless.read_to_end(&mut said).await;
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&said));
}

/// Our own fetcher is the client: it must trust the certificate, and gets what a BMC gets.

#[tokio::test]
async fn an_image_is_served_over_tls() {
    let (original, rewritten) = images().await;
    let upstream = crate::upstream::Upstream::start(original).await;
    let registry = Arc::new(Registry::default());
    registry.deploy(1, &upstream.url());
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let config = tls(certified.cert.pem().as_bytes(), certified.signing_key.serialize_pem().as_bytes()).unwrap();
    assert!(tls(b"", b"").is_err());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let links = Links::new(&format!("https://localhost:{}", listener.local_addr().unwrap().port())).unwrap();
    let key = Key::from_text(KEY).unwrap();
    let url = links.iso("d1", &key.ticket(Purpose::Iso, &holder(1))).unwrap();
    let service = Arc::new(Service::new(registry, key, Arc::new(Images::new(fetcher()))));
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(service.serve(listener, Some(config), Limits::default(), stop.clone()));

    let guard = || Guard::allowing(["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()]);
    let trusting = Fetcher::new(guard(), Some(&certified.cert.pem()), Patience::default()).unwrap();
    let source = trusting.open(&url).await.unwrap();
    assert!(source.read_at(0, rewritten.len()).await.unwrap() == rewritten);
    let error = Fetcher::new(guard(), None, Patience::default()).unwrap().open(&url).await.unwrap_err();
    assert_eq!(error.reason(), "IsoServerUntrusted", "{error}");
    drop((source, trusting));
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), serving.join_all()).await.unwrap();
}
