//! What fifty readers cost. The service runs in a process of its own, so that nobody else's memory is counted.

use std::process::Stdio;
use std::sync::Arc;

use boot::fetch::Cache;
use boot::links::Links;
use boot::serve::{Images, Limits, Service};
use boot::ticket::{Key, Purpose};
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::lab::{ISOLINUX, Lab};
use crate::stage::{KEY, Registry, ask, fetcher, holder};
use crate::upstream::Upstream;

const UPSTREAM: &str = "BESKAR7_TEST_UPSTREAM";
const FOLDER: &str = "BESKAR7_TEST_FOLDER";
const READERS: usize = 50;
/// If an answer kept its image, this is what each would cost.
const IMAGE: usize = 12 * 1024 * 1024;
const BOUND_KB: u64 = 20 * 1024;

#[tokio::test]
async fn fifty_readers_fit_into_twenty_megabytes() {
    measure(None).await;
}

#[tokio::test]
async fn fifty_readers_of_a_kept_image_fit_into_twenty_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    measure(folder.path().to_str()).await;
}

async fn measure(folder: Option<&str>) {
    let lab = Lab::new();
    lab.put_isolinux("label live\n  linux /vmlinuz\n  append quiet\n");
    let iso = lab.put("vmlinuz", vec![7; IMAGE]).build(&[ISOLINUX]);
    let upstream = Upstream::start(std::fs::read(iso).unwrap().into()).await;
    let mut service = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::a_service_for_another_process", "--ignored", "--nocapture"])
        .env(UPSTREAM, upstream.url())
        .envs(folder.map(|folder| (FOLDER, folder)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(service.stdout.take().unwrap()).lines();
    let address = loop {
        let line = said.next_line().await.unwrap().expect("the service says where it is");
        if let Some((_, address)) = line.split_once("serves at ") {
            break address.to_owned();
        }
    };
    let links = Links::new(&address).unwrap();
    let url = links.iso("d1", &Key::from_text(KEY).unwrap().ticket(Purpose::Iso, &holder(1))).unwrap();
    assert_eq!(ask("HEAD", &url, &[]).await.unwrap().status(), StatusCode::OK);
    let before = peak_kb(service.id().unwrap());
    let read: usize = join_all((0..READERS).map(|_| read_slowly(&url))).await.into_iter().sum();
    assert!(read >= READERS * IMAGE, "{read}");
    let grown = peak_kb(service.id().unwrap()) - before;
    assert!(grown <= BOUND_KB, "{READERS} readers cost {grown} KB on top of {before} KB");
    drop(service.stdin.take());
    assert!(service.wait().await.unwrap().success());
}

/// Lets the service fill its buffers, then reads.
async fn read_slowly(url: &str) -> usize {
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let request = Request::get(url).body(Empty::new()).unwrap();
    let mut body = client.request(request).await.unwrap().into_body();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().into_data().unwrap().len();
    }
    read
}

/// The most that a process has ever had in memory.
fn peak_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Not a test: the service that the test above measures. Ends with its standard input.
#[tokio::test]
#[ignore = "run by those that count readers"]
async fn a_service_for_another_process() {
    // Whoever runs all ignored tests is not one of those.
    let Ok(upstream) = std::env::var(UPSTREAM) else { return };
    let registry = Arc::new(Registry::default());
    registry.deploy(1, &upstream);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("serves at http://{}", listener.local_addr().unwrap());
    let fetcher = match std::env::var_os(FOLDER) {
        Some(folder) => fetcher().with_cache(Arc::new(Cache::open(folder.as_ref(), Cache::DEFAULT_LIMIT).unwrap())),
        None => fetcher(),
    };
    let service = Service::new(registry, Key::from_text(KEY).unwrap(), Arc::new(Images::new(fetcher)));
    let stop = CancellationToken::new();
    let ended = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin()));
    tokio::select! {
        () = Arc::new(service).serve(listener, None, Limits::default(), stop) => {}
        _ = ended => {}
    }
}
