use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::join_all;
use http::header::{CONTENT_RANGE, ETAG, HeaderValue, RANGE};
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::fetch::{FetchError, Fetcher, Guard, Patience};
use crate::iso::Source as _;

fn version(etag: &'static str, size: u64) -> Version {
    Version::new(&HeaderMap::from_iter([(ETAG, HeaderValue::from_static(etag))]), size)
}

fn url(name: &str) -> ImageUrl {
    ImageUrl::parse(&format!("http://images.test/{name}")).unwrap()
}

fn cache(limit: u64) -> (tempfile::TempDir, Arc<Cache>) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), limit).unwrap();
    (folder, Arc::new(cache))
}

#[tokio::test]
async fn one_version_of_one_url_is_one_file_and_has_no_name() {
    let (folder, cache) = cache(1000);
    let one = cache.place(&url("a"), &version("1", 10)).await.unwrap();
    assert!(Arc::ptr_eq(&one, &cache.place(&url("a"), &version("1", 10)).await.unwrap()));
    for (name, etag, size) in [("b", "1", 10), ("a", "2", 10), ("a", "1", 11)] {
        assert!(!Arc::ptr_eq(&one, &cache.place(&url(name), &version(etag, size)).await.unwrap()));
    }
    assert!(cache.place(&url("a"), &Version::new(&HeaderMap::new(), 10)).await.is_none(), "of no version");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_longest_unused_makes_room_but_none_that_is_read() {
    let (_folder, cache) = cache(100);
    let place = |name: &'static str, size| {
        let cache = cache.clone();
        async move { cache.place(&url(name), &version("1", size)).await }
    };
    let names = || {
        let mut names: Vec<_> = cache.shelf().images.iter().map(|kept| kept.url.uri().path().to_owned()).collect();
        names.sort();
        names.concat()
    };
    assert!(place("too-large", 101).await.is_none());
    let read = place("read", 40).await.unwrap();
    place("old", 30).await.unwrap();
    place("new", 30).await.unwrap();
    assert_eq!(names(), "/new/old/read");
    place("next", 30).await.unwrap();
    assert_eq!(names(), "/new/next/read");
    assert!(place("large", 61).await.is_none());
    assert_eq!(names(), "/new/next/read", "nobody goes in vain");
    drop(read);
    place("large", 61).await.unwrap();
    assert_eq!(names(), "/large/next");
}

#[tokio::test]
async fn a_run_ends_where_another_begins_and_is_shared() {
    let (_folder, cache) = cache(u64::MAX);
    let size = 100 * 1024 * 1024;
    let stored = cache.place(&url("a"), &version("1", size)).await.unwrap();
    let begin = |start: u64, end: u64| match stored.find(&(start..end)) {
        Found::Missing(run) => run,
        _ => panic!("somebody has {start} already"),
    };
    let mebi = 1024 * 1024;
    let mut middle = begin(10 * mebi, 11 * mebi);
    assert_eq!(*middle.range(), 10 * mebi..11 * mebi);
    let before = begin(9 * mebi, size);
    assert_eq!(*before.range(), 9 * mebi..10 * mebi);
    assert_eq!(*begin(50 * mebi, 50 * mebi + 1).range(), 50 * mebi..50 * mebi + 256 * 1024);
    assert_eq!(*begin(60 * mebi, size).range(), 60 * mebi..76 * mebi);
    assert_eq!(*begin(size - 5, size).range(), size - 5..size);

    let Found::Coming(going) = stored.find(&(10 * mebi + 2..size)) else { panic!("it is being fetched") };
    assert!(middle.add(vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cd")]).await);
    assert_eq!(arrival(going, 10 * mebi + 2).await, Ok(()));
    assert!(matches!(stored.find(&(10 * mebi + 2..size)), Found::Here(until) if until == 10 * mebi + 4));
    let read = stored.read(10 * mebi + 1, BytesMut::zeroed(3)).await.unwrap();
    assert_eq!(read, "bcd");

    let Found::Coming(going) = stored.find(&(10 * mebi + 4..size)) else { panic!("it is being fetched") };
    let error = FetchError::Changed { origin: "x".into() };
    middle.fail(error.clone());
    assert_eq!(arrival(going, 10 * mebi + 4).await, Err(error));
    assert_eq!(begin(10 * mebi + 4, size).range().start, 10 * mebi + 4, "the next may try again");
    let Found::Coming(going) = stored.find(&(9 * mebi..size)) else { panic!("it is being fetched") };
    drop(before);
    assert_eq!(arrival(going, 9 * mebi).await, Ok(()), "who waited looks again");
    begin(9 * mebi, size);
}

/// Takes nothing, as a disk that is full.
fn full_disk(_: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/full")
}

#[tokio::test]
async fn a_full_disk_is_not_written_again() {
    let stored = Arc::new(Stored::new(full_disk(Path::new("")).unwrap(), 1000));
    let Found::Missing(mut run) = stored.find(&(0..1000)) else { panic!("there is nothing yet") };
    let Found::Coming(going) = stored.find(&(0..1000)) else { panic!("it is being fetched") };
    assert!(!run.add(vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cd")]).await);
    drop(run);
    tokio::time::timeout(Duration::from_secs(5), arrival(going, 0)).await.unwrap().unwrap();
    assert!(matches!(stored.find(&(0..1000)), Found::Nowhere));
}

/// A web server with a thousand bytes.
async fn web_server(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let service = service_fn(async |request: Request<Incoming>| {
            let range = request.headers()[RANGE].to_str().unwrap().trim_start_matches("bytes=").to_owned();
            let (first, last) = range.split_once('-').unwrap();
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            let body = Full::new(Bytes::from(thousand()[first..=last].to_vec()));
            let answer = Response::builder().status(206).header(ETAG, "\"1\"");
            answer.header(CONTENT_RANGE, format!("bytes {first}-{last}/1000")).body(body)
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn thousand() -> Vec<u8> {
    (0..1000u32).map(|number| number.to_le_bytes()[0]).collect()
}

#[tokio::test]
async fn readers_are_served_from_the_users_server_when_the_disk_is_full() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a.iso", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(web_server(listener));
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache { make: full_disk, ..Cache::open(folder.path(), 1_000_000).unwrap() };
    let guard = Guard::allowing(["127.0.0.0/8".parse().unwrap()]);
    let fetcher = Fetcher::new(guard, None, Patience::default()).unwrap().with_cache(Arc::new(cache));
    let source = fetcher.open(&url).await.unwrap();
    let reads = (0..5).map(|number| source.read_at(number * 100, 500));
    for (number, read) in join_all(reads).await.into_iter().enumerate() {
        assert_eq!(read.unwrap(), thousand()[number * 100..][..500]);
    }
}

#[test]
fn what_an_earlier_process_left_is_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["0.beskar7-image", "12.beskar7-image", "somebody-elses"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    Cache::open(folder.path(), 0).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "switched off, it touches nothing");
    Cache::open(folder.path(), 1).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["somebody-elses"]);
}

#[test]
fn many_readers_get_small_buffers() {
    let kib = |readers| buffer_for(readers) / 1024;
    assert_eq!([0, 1, 8, 16, 20, 50, 64, 10_000].map(kib), [512, 512, 512, 256, 192, 64, 64, 64]);
    let worst: usize = (1..=50).map(buffer_for).sum();
    assert!(worst < 12 * 1024 * 1024, "who came first has a larger one: {worst}");
}
