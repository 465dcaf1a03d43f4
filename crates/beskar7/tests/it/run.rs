//! The operator as a process: how it starts, works and ends.

use std::net::TcpListener;
use std::time::Duration;

use bmc::{Address, Https, Transport as _, Trust};
use bytes::Bytes;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use rustix::process::Signal;
use serde_json::Value;
use testkit::{Account, Cluster, free_port, wait_for};

use crate::program::{Running, beskar7};
use crate::{cluster, workspace};

const LEASE: &str = "beskar7.infrastructure.cluster.x-k8s.io";
const PATIENCE: Duration = Duration::from_mins(1);

/// The account of an installation in one namespace, with the Role that we ship for it.
async fn operator(cluster: &Cluster, namespace: &str) -> Account {
    let rbac = |file: &str| {
        let file = workspace().join("config/rbac/namespaced").join(file);
        std::fs::read_to_string(file).unwrap().replace("beskar7-system", namespace)
    };
    let roles = ["role.yaml", "role_binding.yaml"].map(rbac).join("\n---\n");
    cluster.service_account(namespace, "beskar7", &roles).await
}

async fn answers(address: &str, path: &str) -> Option<String> {
    let url = format!("http://{address}");
    let transport = Https::new(&Address::parse(&url).unwrap(), &Trust::SystemRoots).unwrap();
    let request = http::Request::get(format!("{url}{path}")).body(Bytes::new()).unwrap();
    let response = transport.send(request).await.ok().filter(|response| response.status().is_success())?;
    String::from_utf8(response.body().to_vec()).ok()
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let cluster = cluster().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    let said = beskar7(&["run", "--kubeconfig", kubeconfig, "--metrics-bind-address", &address, "-n", "default"]).await;
    let error = said.error();
    let sentence = format!("error: Cannot listen on {address} (--metrics-bind-address)");
    assert!(error.contains(&sentence), "{error}");
    assert!(error.contains("choose another port"), "{error}");
}

#[tokio::test]
async fn times_that_contradict_each_other_are_refused() {
    let cluster = cluster().await;
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    let flags = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect-renew-deadline=1m"];
    let error = beskar7(&[&["run", "--kubeconfig", kubeconfig, "-n", "default"], &flags[..]].concat()).await.error();
    assert!(error.contains("the lease duration must be longer than the renew deadline"), "{error}");
}

#[tokio::test]
async fn a_lease_that_cannot_be_written_is_told_at_once() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("lease").await;
    let account = operator(cluster, &namespace).await;
    let admin = cluster.admin_kubeconfig().to_str().unwrap();
    let error = beskar7(&["run", "--kubeconfig", admin, "-n", "nowhere"]).await.error();
    assert!(error.contains("kubectl create namespace nowhere"), "{error}");
    assert!(error.contains("--leader-elect=false"), "{error}");

    if cluster.is_embedded_and_has("no roles") {
        return;
    }
    let flags = ["-n", &namespace, "--leader-elect-namespace", "default"];
    let kubeconfig = account.kubeconfig().to_str().unwrap();
    let error = beskar7(&[&["run", "--kubeconfig", kubeconfig], &flags[..]].concat()).await.error();
    assert!(error.contains("cannot create resource \"leases\""), "{error}");
    assert!(error.contains("have the role granted"), "{error}");
}

#[tokio::test]
async fn it_looks_after_simulated_servers_with_a_role_only_until_it_is_told_to_stop() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("run").await;
    let account = operator(cluster, &namespace).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hosts.yaml");
    let manifests = file.to_str().unwrap();
    let mut sim =
        Running::start(&["sim", "--count=2", "--base-port=0", "--instant", "--manifests", manifests, "-n", &namespace]);
    sim.says("2 BMCs.").await;
    cluster.kubectl(&["apply", "-f", manifests]).await.ok();

    let probes = format!("127.0.0.1:{}", free_port());
    let metrics = format!("127.0.0.1:{}", free_port());
    let kubeconfig = account.kubeconfig().to_str().unwrap();
    let mut run = Running::start(&[
        "run",
        "--kubeconfig",
        kubeconfig,
        "--namespace",
        &namespace,
        "--health-probe-bind-address",
        &probes,
        "--metrics-bind-address",
        &metrics,
    ]);
    let line = run.says("beskar7 looks after PhysicalHosts").await;
    let log: Value = serde_json::from_str(&line).expect("logs are JSON without a terminal");
    assert_eq!(log["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(log["namespace"], namespace);
    assert_eq!(log["lease"], format!("{namespace}/{LEASE}"));
    let identity = log["identity"].as_str().unwrap().to_owned();

    wait_for("the operator to be ready", PATIENCE, || answers(&probes, "/readyz")).await;
    let fleet = || async {
        let said = beskar7(&["hosts", "--kubeconfig", kubeconfig, "-n", &namespace]).await.ok();
        said.contains("2 hosts: 2 Available").then_some(said)
    };
    wait_for("both hosts to be available", PATIENCE, fleet).await;
    assert_eq!(holder(cluster, &namespace).await.as_deref(), Some(identity.as_str()));
    let counted = answers(&metrics, "/metrics").await.expect("metrics are served");
    assert!(counted.contains("beskar7_"), "{counted}");

    // A person: the operator's own role has no leave to read a single host.
    let admin = cluster.admin_kubeconfig().to_str().unwrap();
    let power = async |action: &str| {
        let said = beskar7(&["power", action, "sim-000", "-n", &namespace, "--kubeconfig", admin]).await.ok();
        said.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(power("on").await, format!("{namespace}/sim-000: on"));
    assert_eq!(power("cycle").await, format!("{namespace}/sim-000: restarted"));
    assert_eq!(power("off").await, format!("{namespace}/sim-000: off"));

    run.signal(Signal::TERM);
    let (status, said) = run.ends().await;
    assert!(status.success(), "{said}");
    assert!(said.contains("SIGTERM: stopping"), "{said}");
    assert_eq!(holder(cluster, &namespace).await.as_deref().unwrap_or_default(), "", "the lease is given back");
    assert!(!said.contains("password"), "{said}");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_but_not_before_the_sessions_on_bmcs_are_closed() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("forced").await;
    let account = operator(cluster, &namespace).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hosts.yaml");
    let manifests = file.to_str().unwrap();
    let fleet = ["sim", "--count=3", "--base-port=0", "--instant", "--control=0", "-n", &namespace];
    let mut sim = Running::start(&[&fleet[..], &["--manifests", manifests]].concat());
    sim.says("3 BMCs.").await;
    let line = sim.says("control: curl http://").await;
    let control = line.split_once("curl http://").unwrap().1.trim().to_owned();
    cluster.kubectl(&["apply", "-f", manifests]).await.ok();
    let kubeconfig = account.kubeconfig().to_str().unwrap();
    let addresses = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let run =
        Running::start(&[&["run", "--kubeconfig", kubeconfig, "--namespace", &namespace], &addresses[..]].concat());
    let available = || async {
        let said = beskar7(&["hosts", "--kubeconfig", kubeconfig, "-n", &namespace]).await.ok();
        said.contains("3 hosts: 3 Available").then_some(said)
    };
    wait_for("all hosts to be available", PATIENCE, available).await;
    let sessions = async |name: &str| {
        let bmc = answers(&control, &format!("/bmcs/{name}")).await.unwrap();
        let bmc: Value = serde_json::from_str(&bmc).unwrap();
        bmc["sessions"].as_u64().unwrap()
    };
    for name in ["sim-000", "sim-001", "sim-002"] {
        assert_eq!(sessions(name).await, 1, "{name}");
    }
    // One hangs, so that a stop in good order takes seconds; the others take a moment to end a session.
    add_fault(&control, "sim-000", r#"{"effect": "Hang"}"#).await;
    for name in ["sim-001", "sim-002"] {
        add_fault(&control, name, r#"{"effect": {"Latency": 0.5}}"#).await;
    }
    let begun = std::time::Instant::now();
    run.signal(Signal::TERM);
    run.signal(Signal::INT);
    let (status, said) = run.ends().await;
    let took = begun.elapsed();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(took < Duration::from_secs(4), "{took:?}: {said}");
    assert!(said.contains("ending at once") && said.contains("did not end their sessions in time"), "{said}");
    for (name, open) in [("sim-000", 1), ("sim-001", 0), ("sim-002", 0)] {
        assert_eq!(sessions(name).await, open, "{name}: {said}");
    }
}

async fn add_fault(control: &str, name: &str, fault: &str) {
    let url = format!("http://{control}");
    let transport = Https::new(&Address::parse(&url).unwrap(), &Trust::SystemRoots).unwrap();
    let request = http::Request::post(format!("{url}/bmcs/{name}/faults")).body(Bytes::from(fault.to_owned())).unwrap();
    let response = transport.send(request).await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
}

#[tokio::test]
async fn it_runs_on_however_little_is_logged() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("quiet").await;
    let account = operator(cluster, &namespace).await;
    let probes = format!("127.0.0.1:{}", free_port());
    let run = Running::start(&[
        "run",
        "--kubeconfig",
        account.kubeconfig().to_str().unwrap(),
        "--namespace",
        &namespace,
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address",
        &probes,
        "--log-level=off",
    ]);
    wait_for("the operator to be ready", PATIENCE, || answers(&probes, "/readyz")).await;
    run.signal(Signal::INT);
    let (status, said) = run.ends().await;
    assert!(status.success(), "{said}");
    assert_eq!(said, "");
}

async fn holder(cluster: &Cluster, namespace: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.admin(), namespace);
    leases.get(LEASE).await.ok()?.spec?.holder_identity
}
