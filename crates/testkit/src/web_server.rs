//! A web server that BMCs fetch images from and booted machines report to.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::{CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, RANGE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::scratch::free_port;
use crate::wait::wait_for;

/// Under this address a guest with QEMU's user-mode network reaches the loopback of its host.
const HOST_SEEN_FROM_GUEST: &str = "10.0.2.2";

/// A plain HTTP server on loopback with a thread of its own: it serves what was [`put`](WebServer::put) and remembers
/// what was posted.
pub struct WebServer {
    address: Ipv4Addr,
    port: u16,
    shelf: Arc<Shelf>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One POST that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The path of its URL, with the leading slash.
    pub path: String,
    /// Its body.
    pub body: String,
}

#[derive(Default)]
struct Shelf {
    files: Mutex<HashMap<String, Bytes>>,
    fetched: Mutex<Vec<String>>,
    reports: Mutex<Vec<Report>>,
}

impl WebServer {
    /// Starts listening.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, free_port()));
        Self::on(listener.expect("a port that was free just now"))
    }

    /// Listens at this address of this machine, for files whose URLs must not change.
    pub fn start_at(address: SocketAddrV4) -> std::io::Result<Self> {
        std::net::TcpListener::bind(address).map(Self::on)
    }

    fn on(listener: std::net::TcpListener) -> Self {
        let SocketAddr::V4(address) = listener.local_addr().expect("the address of a socket") else {
            unreachable!("only addresses of version 4 are bound")
        };
        listener.set_nonblocking(true).expect("a socket that does not block");
        let shelf = Arc::new(Shelf::default());
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shelf);
        let thread = std::thread::spawn(move || serve(listener, &serving, stopped));
        WebServer { address: *address.ip(), port: address.port(), shelf, stop: Some(stop), thread: Some(thread) }
    }

    /// Puts a file on the shelf and returns its URL.
    pub fn put(&self, name: &str, content: impl Into<Bytes>) -> String {
        lock(&self.shelf.files).insert(format!("/{name}"), content.into());
        format!("http://{}:{}/{name}", self.address, self.port)
    }

    /// Takes a file off the shelf.
    pub fn take(&self, name: &str) {
        lock(&self.shelf.files).remove(&format!("/{name}"));
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL to which a guest of [`VmLab`](crate::VmLab) can post.
    pub fn guest_url(&self, path: &str) -> String {
        format!("http://{HOST_SEEN_FROM_GUEST}:{}/{path}", self.port)
    }

    /// The names of files that were fetched, oldest first.
    pub fn fetched(&self) -> Vec<String> {
        lock(&self.shelf.fetched).clone()
    }

    /// What was posted so far, oldest first.
    pub fn reports(&self) -> Vec<Report> {
        lock(&self.shelf.reports).clone()
    }

    /// Waits for a POST to `/path`.
    pub async fn wait_for_report(&self, path: &str, timeout: Duration) -> Report {
        let path = format!("/{path}");
        wait_for(&format!("a report to {path}"), timeout, || async {
            lock(&self.shelf.reports).iter().find(|report| report.path == path).cloned()
        })
        .await
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has already been printed, and this may run while another unwinds.
            let _ = thread.join();
        }
    }
}

fn serve(listener: std::net::TcpListener, shelf: &Arc<Shelf>, mut stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener).expect("a listening socket");
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                _ = &mut stopped => return,
            };
            let Ok((stream, _)) = accepted else { continue };
            let shelf = Arc::clone(shelf);
            connections.spawn(async move {
                let answer = service_fn(|request| answer(Arc::clone(&shelf), request));
                // A client that goes away half-way is its own business.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
}

async fn answer(shelf: Arc<Shelf>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    if request.method() == Method::POST {
        let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        lock(&shelf.reports).push(Report { path, body: String::from_utf8_lossy(&body).into_owned() });
        return Ok(Response::new(Full::default()));
    }
    let file = lock(&shelf.files).get(&path).cloned();
    let mut response = Response::new(Full::default());
    match file {
        Some(content) => {
            lock(&shelf.fetched).push(path.trim_start_matches('/').to_owned());
            let etag = format!("\"{}\"", STANDARD_NO_PAD.encode(Sha256::digest(&content)));
            let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
            let same = header(IF_RANGE).is_none_or(|known| known == etag);
            // hyper leaves the body out when the request was HEAD, and keeps its length.
            *response.body_mut() =
                Full::new(match header(RANGE).filter(|_| same).and_then(|text| part(text, &content)) {
                    Some(range) => {
                        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                        let said = format!("bytes {}-{}/{}", range.start, range.end - 1, content.len());
                        response.headers_mut().insert(CONTENT_RANGE, HeaderValue::try_from(said).expect("a header"));
                        content.slice(range)
                    }
                    None => content,
                });
            response.headers_mut().insert(ETAG, HeaderValue::try_from(etag).expect("a header"));
        }
        None => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(response)
}

/// What `bytes=first-last` means, if it is that simple.
fn part(range: &str, content: &Bytes) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = first.parse().ok()?..last.parse::<usize>().ok()?.checked_add(1)?.min(content.len());
    (range.start < range.end).then_some(range)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
