//! Probes that tell what they have found, and those who pretend to be one.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use boot::links::Links;
use boot::serve::registry::{Probe, REPORT_LIMIT, Refusal, Registry};
use boot::serve::{Images, Limits, Service, Unavailable};
use boot::ticket::{Holder, Key, Purpose};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, stream};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::stage::{self, KEY, fetcher};

const UUID: &str = "38947555-7742-3448-3784-823347823834";
const OTHER: &str = "38947555-7742-3448-3784-000000000000";

/// What is kept of two probes: `p1`, which is waited for, and `p2`, which is over.
#[derive(Default)]
struct Book(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    report: Option<String>,
    boots: bool,
    booted: u32,
    refused: Vec<Refusal>,
    /// The API server does not answer.
    hangs: bool,
}

impl Book {
    fn ask<T: Send + 'static>(
        &self,
        answer: impl FnOnce(&mut Pages) -> T,
    ) -> BoxFuture<'static, Result<T, Unavailable>> {
        let mut pages = self.0.lock().unwrap();
        if pages.hangs {
            return std::future::pending().boxed();
        }
        let answered = answer(&mut pages);
        async { Ok(answered) }.boxed()
    }

    fn refused(&self) -> Vec<Refusal> {
        std::mem::take(&mut self.0.lock().unwrap().refused)
    }
}

impl Registry for Book {
    fn probe(&self, id: &str) -> Option<Probe> {
        let probe = |number| Probe { holder: holder(number), system: UUID.into(), open: number == 1 };
        ["p1", "p2"].contains(&id).then(|| probe(if id == "p1" { 1 } else { 2 }))
    }

    fn register<'a>(&'a self, _: &'a Probe, report: String) -> BoxFuture<'a, Result<(), Unavailable>> {
        self.ask(|pages| pages.report = Some(report))
    }

    fn reported<'a>(&'a self, _: &'a Probe) -> BoxFuture<'a, Result<Option<String>, Unavailable>> {
        self.ask(|pages| pages.report.clone())
    }

    fn forget<'a>(&'a self, _: &'a Probe) -> BoxFuture<'a, Result<bool, Unavailable>> {
        self.ask(|pages| pages.report.take().is_some())
    }

    fn booted<'a>(&'a self, _: &'a Probe) -> BoxFuture<'a, Result<bool, Unavailable>> {
        self.ask(|pages| {
            pages.booted += u32::from(pages.boots);
            pages.boots
        })
    }

    fn refused(&self, why: Refusal) {
        self.0.lock().unwrap().refused.push(why);
    }
}

fn holder(number: u32) -> Holder {
    Holder {
        kind: "Server".into(),
        namespace: String::new(),
        host: format!("server-{number}"),
        claim: String::new(),
        deployment: format!("p{number}"),
    }
}

struct Counter {
    book: Arc<Book>,
    service: Service,
    key: Key,
}

impl Counter {
    fn open() -> Self {
        let (book, key) = (Arc::new(Book::default()), Key::from_text(KEY).unwrap());
        let nothing = Arc::new(stage::Registry::default());
        let service = Service::new(nothing, key.clone(), Arc::new(Images::new(fetcher()))).with_registry(book.clone());
        Self { book, service, key }
    }

    /// The URL that a probe is given.
    fn url(&self, number: u32) -> String {
        let links = Links::new("http://boot").unwrap();
        links.registry(&format!("p{number}"), &self.key.ticket(Purpose::Registry, &holder(number))).unwrap()
    }

    async fn send<B>(&self, method: &str, url: &str, body: B) -> (StatusCode, String)
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, ()) = Request::builder().method(method).uri(url).body(()).unwrap().into_parts();
        let answer: Response<_> = self.service.answer(IpAddr::from([127, 0, 0, 1]), &head, body).await;
        let (head, body) = answer.into_parts();
        (head.status, String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap())
    }

    async fn tell(&self, url: &str, text: &str) -> StatusCode {
        self.send("POST", &format!("{url}/register"), Full::new(Bytes::from(text.to_owned()))).await.0
    }

    fn report(&self) -> Option<String> {
        self.book.0.lock().unwrap().report.clone()
    }
}

fn registration(uuid: &str, data: &str) -> String {
    format!(r#"{{"systemUUID": "{uuid}", "data": {data}}}"#)
}

const DATA: &str = r#"{"networkInterfaces":[{"name":"eth0","macAddress":"aa:bb:cc:dd:ee:ff"}]}"#;

#[tokio::test]
async fn what_a_probe_tells_is_kept_read_and_forgotten_as_metal_operators_registry_does() {
    let counter = Counter::open();
    let url = counter.url(1);
    let system = format!("{url}/systems/{UUID}");
    assert_eq!(counter.send("GET", &system, Empty::new()).await.0, StatusCode::NOT_FOUND);
    assert_eq!(counter.tell(&url, &registration(UUID, DATA)).await, StatusCode::CREATED);
    assert_eq!(counter.send("GET", &system, Empty::new()).await, (StatusCode::OK, DATA.to_owned()));
    // In any case, as firmware has it.
    let shouted = registration(&UUID.to_uppercase(), r#"{"later": true}"#);
    assert_eq!(counter.tell(&url, &shouted).await, StatusCode::CREATED);
    assert_eq!(counter.report().as_deref(), Some(r#"{"later": true}"#));

    let delete = format!("{url}/delete/{UUID}");
    assert_eq!(counter.send("DELETE", &delete, Empty::new()).await.0, StatusCode::OK);
    assert_eq!(counter.send("DELETE", &delete, Empty::new()).await.0, StatusCode::NOT_FOUND);
    assert_eq!(counter.book.refused(), []);
}

#[tokio::test]
async fn a_report_that_is_not_waited_for_is_taken_and_changes_nothing() {
    let counter = Counter::open();
    assert_eq!(counter.tell(&counter.url(2), &registration(UUID, DATA)).await, StatusCode::CREATED);
    assert_eq!((counter.report(), counter.book.refused()), (None, vec![]));
}

#[tokio::test]
async fn whoever_tells_that_a_server_has_booted_is_heard_if_it_was_to_boot() {
    let counter = Counter::open();
    let url = format!("{}/bootstate", counter.url(1));
    let told = |booted: bool| Full::new(Bytes::from(format!(r#"{{"systemUUID": "{UUID}", "booted": {booted}}}"#)));
    let (status, why) = counter.send("POST", &url, told(true)).await;
    assert_eq!((status, why.as_str()), (StatusCode::NOT_FOUND, "server server-1 has no boot configuration\n"));
    counter.book.0.lock().unwrap().boots = true;
    assert_eq!(counter.send("POST", &url, told(false)).await.0, StatusCode::OK);
    assert_eq!(counter.send("POST", &url, told(true)).await.0, StatusCode::OK);
    assert_eq!(counter.book.0.lock().unwrap().booted, 1);
}

#[tokio::test]
async fn whoever_may_not_tell_or_tells_nonsense_is_refused_and_counted_and_nothing_is_kept() {
    let counter = Counter::open();
    let url = counter.url(1);
    let of_another = url.replace("/p1/", "/p2/");
    let of_an_image = {
        let ticket = counter.key.ticket(Purpose::Iso, &holder(1));
        Links::new("http://boot").unwrap().registry("p1", &ticket).unwrap()
    };
    let unknown = url.replace("/p1/", "/p3/");
    let good = registration(UUID, DATA);
    let register = |url: &str| ("POST", format!("{url}/register"));
    let table = [
        (register(&of_another), good.clone(), StatusCode::NOT_FOUND, Refusal::Ticket),
        (register(&of_an_image), good.clone(), StatusCode::NOT_FOUND, Refusal::Ticket),
        (register(&unknown), good.clone(), StatusCode::NOT_FOUND, Refusal::Ticket),
        (register(&url), registration(OTHER, DATA), StatusCode::NOT_FOUND, Refusal::OtherSystem),
        (register(&url), registration("", DATA), StatusCode::NOT_FOUND, Refusal::OtherSystem),
        (("GET", format!("{url}/systems/{OTHER}")), String::new(), StatusCode::NOT_FOUND, Refusal::OtherSystem),
        (("DELETE", format!("{url}/delete/{OTHER}")), String::new(), StatusCode::NOT_FOUND, Refusal::OtherSystem),
        (register(&url), String::new(), StatusCode::BAD_REQUEST, Refusal::Malformed),
        (register(&url), "\0\u{1}\u{7f}garbage".into(), StatusCode::BAD_REQUEST, Refusal::Malformed),
        (register(&url), format!("[{}", "[".repeat(100_000)), StatusCode::BAD_REQUEST, Refusal::Malformed),
        (register(&url), format!("{good}{good}"), StatusCode::BAD_REQUEST, Refusal::Malformed),
        (register(&url), registration(UUID, "null"), StatusCode::BAD_REQUEST, Refusal::Malformed),
        (register(&url), registration(UUID, "[1]"), StatusCode::BAD_REQUEST, Refusal::Malformed),
        (
            (register(&url)),
            format!(r#"{{"systemUUID":"{UUID}","data":{{"at":{}}}}}"#, "[".repeat(200_000)),
            StatusCode::BAD_REQUEST,
            Refusal::Malformed,
        ),
        (register(&url), " ".repeat(REPORT_LIMIT + 1), StatusCode::PAYLOAD_TOO_LARGE, Refusal::TooLarge),
        (("GET", format!("{url}/register")), String::new(), StatusCode::METHOD_NOT_ALLOWED, Refusal::Method),
        (("PUT", format!("{url}/systems/{UUID}")), good.clone(), StatusCode::METHOD_NOT_ALLOWED, Refusal::Method),
    ];
    for ((method, url), body, status, refusal) in table {
        let what = format!("{method} {url} {body:.60}");
        let (answered, told) = counter.send(method, &url, Full::new(Bytes::from(body))).await;
        assert_eq!((answered, counter.book.refused()), (status, vec![refusal]), "{what}: {told}");
        assert_eq!(counter.report(), None, "{what}");
    }
    // Whoever asks for something else finds nothing.
    for path in ["", "/", "/other", "/register/more"] {
        let (status, _) = counter.send("POST", &format!("{url}{path}"), Full::new(Bytes::from(good.clone()))).await;
        assert!(matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED), "{path}: {status}");
    }
    assert_eq!(counter.report(), None);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_and_an_api_server_that_hangs_are_waited_for_so_long_and_no_longer() {
    let counter = Counter::open();
    let url = format!("{}/register", counter.url(1));
    let began = tokio::time::Instant::now();
    let endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
    assert_eq!(counter.send("POST", &url, endless).await.0, StatusCode::REQUEST_TIMEOUT);
    assert!(began.elapsed() <= Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(counter.book.refused(), [Refusal::TooSlow]);

    counter.book.0.lock().unwrap().hangs = true;
    let began = tokio::time::Instant::now();
    let status = counter.tell(&counter.url(1), &registration(UUID, DATA)).await;
    assert_eq!((status, counter.book.refused()), (StatusCode::SERVICE_UNAVAILABLE, vec![Refusal::Unavailable]));
    assert!(began.elapsed() < Duration::from_secs(5), "metalprobe gives up then: {:?}", began.elapsed());
}

#[tokio::test]
async fn a_hundred_megabytes_are_refused_before_they_are_sent() {
    let counter = Counter::open();
    let url = counter.url(1);
    let path = url.strip_prefix("http://boot").unwrap().to_owned();
    let book = counter.book.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let mut serving = JoinSet::new();
    serving.spawn(Arc::new(counter.service).serve(listener, None, Limits::default(), stop));

    let head = format!("POST {path}/register HTTP/1.1\r\nHost: boot\r\n");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for (rest, body) in [
        ("Content-Length: 104857600\r\n\r\n", String::new()),
        // It does not say how much it is going to be.
        ("Transfer-Encoding: chunked\r\n\r\n", chunk.repeat(5)),
    ] {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(format!("{head}{rest}{body}").as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(std::str::from_utf8(&answer).unwrap(), "HTTP/1.1 413", "{rest}");
        assert_eq!(book.refused(), [Refusal::TooLarge]);
    }
    assert_eq!(book.0.lock().unwrap().report, None);
}
