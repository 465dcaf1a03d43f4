//! A web server with bad manners.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_RANGE, LOCATION, RANGE};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// How a server behaves. By default, well.
#[derive(Clone)]
pub(crate) struct Manners {
    /// What it says about the version; empty says nothing.
    pub(crate) etag: &'static str,
    pub(crate) without_ranges: bool,
    pub(crate) ignores_if_range: bool,
    /// Answers this, whatever is asked.
    pub(crate) status: Option<u16>,
    /// Where paths lead.
    pub(crate) redirects: HashMap<String, String>,
    /// Paths that are no longer good.
    pub(crate) expired: Vec<String>,
    /// No answer goes beyond this place of the image, whatever it promises.
    pub(crate) cut_at: u64,
    /// Nor has more bytes than this.
    pub(crate) breaks_after: u64,
    /// How long it thinks before it answers.
    pub(crate) thinks: Duration,
    /// How long it pauses before each 16 KiB.
    pub(crate) pauses: Duration,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            etag: "\"one\"",
            without_ranges: false,
            ignores_if_range: false,
            status: None,
            redirects: HashMap::new(),
            expired: Vec::new(),
            cut_at: u64::MAX,
            breaks_after: u64::MAX,
            thinks: Duration::ZERO,
            pauses: Duration::ZERO,
        }
    }
}

pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    server: Arc<Server>,
    _task: JoinSet<()>,
}

struct Server {
    content: Mutex<Bytes>,
    manners: Mutex<Manners>,
    opened: AtomicUsize,
    asked: AtomicUsize,
    sent: AtomicU64,
}

impl Upstream {
    pub(crate) async fn start(content: Bytes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(Server {
            content: Mutex::new(content),
            manners: Mutex::default(),
            opened: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
        });
        let (accepting, mut task) = (server.clone(), JoinSet::new());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let server = accepting.clone();
                connections.spawn(async move {
                    let service = service_fn(|request| server.answer(request));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, server, _task: task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/image.iso", self.address)
    }

    pub(crate) fn behave(&self, manners: Manners) {
        *self.server.manners.lock().unwrap() = manners;
    }

    pub(crate) fn replace(&self, content: Bytes, etag: &'static str) {
        *self.server.content.lock().unwrap() = content;
        self.server.manners.lock().unwrap().etag = etag;
    }

    /// How often somebody asked how long the image is.
    pub(crate) fn opened(&self) -> usize {
        self.server.opened.load(Ordering::SeqCst)
    }

    pub(crate) fn asked(&self) -> usize {
        self.server.asked.load(Ordering::SeqCst)
    }

    /// How many bytes of images it was asked for.
    pub(crate) fn sent(&self) -> u64 {
        self.server.sent.load(Ordering::SeqCst)
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let manners = self.manners.lock().unwrap().clone();
        let content = self.content.lock().unwrap().clone();
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(manners.thinks).await;
        let header = |name| request.headers().get(name).map(|value: &http::HeaderValue| value.to_str().unwrap());
        let path = request.uri().path();
        if let Some(location) = manners.redirects.get(path) {
            return Ok(bare(Response::builder().status(302).header(LOCATION, location)));
        }
        if let Some(status) = manners.status {
            return Ok(bare(Response::builder().status(status)));
        }
        if manners.expired.iter().any(|expired| expired == path) {
            return Ok(bare(Response::builder().status(403)));
        }
        if header(RANGE) == Some("bytes=0-0") {
            self.opened.fetch_add(1, Ordering::SeqCst);
        }
        let size = content.len() as u64;
        let mut answer = Response::builder();
        if !manners.etag.is_empty() {
            answer = answer.header(ETAG, manners.etag);
        }
        let same = manners.ignores_if_range || header(IF_RANGE).is_none_or(|mark| mark == manners.etag);
        let range = match header(RANGE).filter(|_| same && !manners.without_ranges) {
            None => 0..size,
            Some(range) => {
                let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
                let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
                if first >= size {
                    return Ok(bare(answer.status(416)));
                }
                let range = first..(last + 1).min(size);
                let said = format!("bytes {}-{}/{size}", range.start, range.end - 1);
                answer = answer.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, said);
                range
            }
        };
        let end = range.end.min(manners.cut_at).min(range.start.saturating_add(manners.breaks_after)).max(range.start);
        self.sent.fetch_add(end - range.start, Ordering::SeqCst);
        let bytes = content.slice(usize::try_from(range.start).unwrap()..usize::try_from(end).unwrap());
        let chunks: Vec<Bytes> =
            (0..bytes.len()).step_by(16384).map(|at| bytes.slice(at..(at + 16384).min(bytes.len()))).collect();
        let pauses = manners.pauses;
        let chunks = stream::iter(chunks).then(move |chunk| async move {
            tokio::time::sleep(pauses).await;
            Ok(Frame::data(chunk))
        });
        let broken = stream::iter((end < range.end).then(|| Err(std::io::Error::other("cut off"))));
        let body = StreamBody::new(chunks.chain(broken)).boxed_unsync();
        Ok(answer.header(CONTENT_LENGTH, range.end - range.start).body(body).unwrap())
    }
}

fn bare(answer: http::response::Builder) -> Answer {
    answer.body(Empty::new().map_err(|never| match never {}).boxed_unsync()).unwrap()
}
