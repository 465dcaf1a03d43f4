//! Simulated BMCs, as `beskar7 sim` serves them.

use std::time::Duration;

use api::beskar7::PhysicalHost;
use bmc::{Address, Https, Transport as _, Trust};
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::program::{Running, beskar7};

/// A BMC's answer to somebody who trusts only that certificate.
async fn get(url: &str, path: &str, fingerprint: Option<&str>) -> Value {
    let trust = fingerprint.map_or(Trust::SystemRoots, |fingerprint| Trust::Pin(fingerprint.parse().unwrap()));
    let transport = Https::new(&Address::parse(url).unwrap(), &trust).unwrap();
    let request = http::Request::get(format!("{url}{path}")).body(Bytes::new()).unwrap();
    let response = transport.send(request).await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    serde_json::from_slice(response.body()).unwrap()
}

fn documents(yaml: &str) -> (Vec<Value>, Vec<PhysicalHost>) {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let (hosts, secrets): (Vec<_>, Vec<_>) = all.into_iter().partition(|document| document["kind"] == "PhysicalHost");
    (secrets, hosts.into_iter().map(|host| serde_json::from_value(host).unwrap()).collect())
}

#[tokio::test]
async fn it_answers_over_https_and_writes_manifests_that_fit() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hosts.yaml");
    let mut sim = Running::start(&[
        "sim",
        "--count",
        "3",
        "--personality",
        "mix",
        "--base-port",
        "0",
        "--namespace",
        "lab",
        "--manifests",
        file.to_str().unwrap(),
    ]);
    sim.says("3 BMCs. Ctrl-C ends them all.").await;
    let (secrets, hosts) = documents(&std::fs::read_to_string(&file).unwrap());
    assert_eq!((secrets.len(), hosts.len()), (3, 3));
    for (secret, host) in secrets.iter().zip(&hosts) {
        let connection = &host.spec.redfish_connection;
        assert_eq!(host.metadata.namespace.as_deref(), Some("lab"));
        assert_eq!(secret["metadata"]["name"], connection.credentials_secret_ref);
        assert_eq!(secret["stringData"], json!({"username": "admin", "password": "password"}));
        let root = get(&connection.address, "/redfish/v1/", connection.certificate_fingerprint.as_deref()).await;
        assert!(root["RedfishVersion"].is_string(), "{root}");
        // The table says the same.
        let row = sim.said().lines().find(|line| line.contains(&connection.address)).map(str::to_owned).unwrap();
        assert!(row.contains(connection.certificate_fingerprint.as_deref().unwrap()), "{row}");
        assert!(row.contains("admin"), "{row}");
    }
    sim.signal(Signal::INT);
    let (status, said) = sim.ends().await;
    assert!(status.success(), "{said}");
}

#[tokio::test]
async fn manifests_can_be_piped_on() {
    let mut sim = Running::start(&["sim", "--plain-http", "--base-port", "0", "--instant", "--manifests", "-"]);
    let line = sim.says("    address: ").await;
    let (_, url) = line.split_once("address: ").unwrap();
    let url = url.trim_matches('"');
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert!(get(url, "/redfish/v1", None).await["RedfishVersion"].is_string());
}

#[tokio::test]
async fn it_can_be_steered() {
    let mut sim = Running::start(&["sim", "--base-port", "0", "--control", "0", "--name", "rack"]);
    let line = sim.says("control: curl http://").await;
    let (_, url) = line.split_once("curl ").unwrap();
    let bmcs = get(url, "/bmcs", None).await;
    assert!(bmcs.to_string().contains("rack-000"), "{bmcs}");
}

#[tokio::test]
async fn a_recorded_bmc_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let resources = [
        (
            "",
            json!({"@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot", "@odata.id": "/redfish/v1", "Product": "Recorded", "Systems": {"@odata.id": "/redfish/v1/Systems"}}),
        ),
        ("Systems", json!({"@odata.id": "/redfish/v1/Systems", "Members": [{"@odata.id": "/redfish/v1/Systems/1"}]})),
        ("Systems/1", json!({"@odata.id": "/redfish/v1/Systems/1", "Id": "1", "PowerState": "Off"})),
    ];
    for (path, body) in resources {
        let folder = dir.path().join("redfish/v1").join(path);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("index.json"), body.to_string()).unwrap();
    }
    let mut sim =
        Running::start(&["sim", "--base-port", "0", "--plain-http", "--replay", dir.path().to_str().unwrap()]);
    let line = sim.says("look:").await;
    let url = line.split_whitespace().last().unwrap().trim_end_matches("/redfish/v1/Systems");
    assert_eq!(get(url, "/redfish/v1", None).await["Product"], "Recorded");

    let empty = tempfile::tempdir().unwrap();
    let error = beskar7(&["sim", "--replay", empty.path().to_str().unwrap()]).await.error();
    assert!(error.contains(empty.path().to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn it_ends_also_when_nobody_reads_its_logs() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut sim = tokio::process::Command::new(env!("CARGO_BIN_EXE_beskar7"))
        .args(["sim", "--base-port", "0"])
        .stdout(std::process::Stdio::piped())
        .stderr(writer)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sim.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().expect("it goes on").contains("Ctrl-C ends") {}
    let id = Pid::from_raw(i32::try_from(sim.id().unwrap()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let status = tokio::time::timeout(Duration::from_secs(30), sim.wait()).await.expect("it ends").unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = beskar7(&["sim", "--base-port", &port]).await.error();
    assert!(error.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{error}");
}
