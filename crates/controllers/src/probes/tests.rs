use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::*;

const ANY_PORT: &str = "127.0.0.1:0";

async fn fetch(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn alive_at_once_and_ready_when_told() {
    let (readiness, stop) = (Readiness::default(), CancellationToken::new());
    let server = serve_probes(ANY_PORT.parse().unwrap(), readiness.clone(), stop.clone()).await.unwrap();
    let address = server.address();
    let mut tasks = JoinSet::new();
    tasks.spawn(server);

    for path in ["/healthz", "/livez"] {
        assert!(fetch(address, path).await.starts_with("HTTP/1.1 200 "));
    }
    let early = fetch(address, "/readyz").await;
    assert!(early.starts_with("HTTP/1.1 503 ") && early.contains("not ready: the caches"), "{early}");
    readiness.set(true);
    assert!(fetch(address, "/readyz").await.starts_with("HTTP/1.1 200 "));
    assert!(fetch(address, "/metrics").await.starts_with("HTTP/1.1 404 "));

    stop.cancel();
    tasks.join_next().await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn metrics_are_openmetrics_text() {
    let (metrics, stop) = (Metrics::new(), CancellationToken::new());
    metrics.act("PowerOn", true);
    let server = serve_metrics(ANY_PORT.parse().unwrap(), metrics, stop).await.unwrap();
    let address = server.address();
    let mut tasks = JoinSet::new();
    tasks.spawn(server);
    let answer = fetch(address, "/metrics").await;
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0"), "{answer}");
    assert!(answer.contains(r#"beskar7_acts_total{act="PowerOn",outcome="ok"} 1"#), "{answer}");
    assert!(answer.trim_end().ends_with("# EOF"), "{answer}");
}

#[tokio::test]
async fn a_client_that_never_finishes_does_not_hold_up_a_shutdown() {
    let stop = CancellationToken::new();
    let server = serve_probes(ANY_PORT.parse().unwrap(), Readiness::default(), stop.clone()).await.unwrap();
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(server);
    slow.write_all(b"GET /healthz HT").await.unwrap();
    tokio::task::yield_now().await;
    stop.cancel();
    let ended = tokio::time::timeout(LAST_ANSWERS + Duration::from_secs(5), tasks.join_next()).await;
    assert!(ended.unwrap().unwrap().is_ok());
}

#[tokio::test]
async fn a_taken_port_is_a_sentence_that_names_the_flag() {
    let stop = CancellationToken::new();
    let first = serve_probes(ANY_PORT.parse().unwrap(), Readiness::default(), stop.clone()).await.unwrap();
    let error = serve_metrics(first.address(), Metrics::new(), stop).await.map(drop).unwrap_err().to_string();
    assert!(error.starts_with(&format!("Cannot listen on {} (--metrics-bind-address): ", first.address())), "{error}");
    assert!(error.ends_with(". Another process listens there; choose another port."), "{error}");
}
