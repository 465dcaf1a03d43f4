//! Power wishes, with the test as the operator that answers them.

use std::time::Duration;

use api::beskar7::names;
use serde_json::{Value, json};
use testkit::{Cluster, wait_for};

use crate::program::{Running, Said, beskar7};
use crate::{cluster, get_host, put_host, put_status};

const PATIENCE: Duration = Duration::from_secs(30);

struct Bench {
    cluster: &'static Cluster,
    namespace: String,
}

impl Bench {
    async fn new(spec: &Value, status: &Value) -> Self {
        let cluster = cluster().await;
        let namespace = cluster.namespace("power").await;
        put_host(cluster, &namespace, "a", spec, status).await;
        Self { cluster, namespace }
    }

    fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let kubeconfig = self.cluster.admin_kubeconfig().to_str().unwrap();
        [&["power"], arguments, &["--kubeconfig", kubeconfig, "-n", &self.namespace]].concat()
    }

    async fn power(&self, arguments: &[&str]) -> Said {
        beskar7(&self.arguments(arguments)).await
    }

    fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&self.arguments(arguments))
    }

    async fn online(&self) -> Option<bool> {
        get_host(self.cluster, &self.namespace, "a").await.spec.online
    }

    async fn put(&self, status: &Value) {
        put_status(self.cluster, &self.namespace, "a", status).await;
    }

    /// Waits until the wish is on the object, and tells its generation.
    async fn wished(&self, online: bool) -> i64 {
        let wished = || async {
            let host = get_host(self.cluster, &self.namespace, "a").await;
            (host.spec.online == Some(online)).then_some(host.metadata.generation?)
        };
        wait_for("the wish", PATIENCE, wished).await
    }
}

#[tokio::test]
async fn on_waits_until_the_server_is_on_and_tells_what_happens() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let mut power = bench.start(&["on", "a"]);
    let generation = bench.wished(true).await;
    let waiting = json!({"reason": "PoweringOn", "message": "Waiting for the server to power on."});
    bench.put(&json!({"observedGeneration": generation, "waiting": waiting})).await;
    power.says("a: Waiting for the server to power on.").await;
    bench.put(&json!({"observedPowerState": "On", "waiting": null})).await;
    let (status, said) = power.ends().await;
    assert!(status.success(), "{said}");
    let lines = ["power on requested (spec.online: true)", "Waiting for the server to power on.", "on"];
    let lines = lines.map(|line| format!("{}/a: {line}", bench.namespace));
    assert_eq!(said.lines().collect::<Vec<_>>(), lines);
}

#[tokio::test]
async fn several_hosts_are_followed_at_once() {
    let status = json!({"state": "Available", "observedPowerState": "On", "observedGeneration": 2});
    let bench = Bench::new(&json!({}), &status).await;
    for name in ["b", "c"] {
        put_host(bench.cluster, &bench.namespace, name, &json!({}), &status).await;
    }
    let power = bench.start(&["on", "a", "b", "c", "b"]);
    bench.wished(true).await;
    let (status, said) = power.ends().await;
    assert!(status.success(), "{said}");
    let mut done: Vec<_> = said.lines().filter(|line| line.ends_with(": on")).collect();
    done.sort_unstable();
    assert_eq!(done, ["a", "b", "c"].map(|name| format!("{}/{name}: on", bench.namespace)));
}

#[tokio::test]
async fn a_host_that_goes_away_is_not_waited_for() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let power = bench.start(&["on", "a"]);
    bench.wished(true).await;
    bench.cluster.kubectl(&["delete", "ph", "a", "-n", &bench.namespace]).await.ok();
    let (status, said) = power.ends().await;
    assert!(!status.success());
    assert!(said.contains("/a: is gone"), "{said}");
}

#[tokio::test]
async fn off_ends_with_the_fault_if_there_is_one() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "On"})).await;
    let power = bench.start(&["off", "a"]);
    let generation = bench.wished(false).await;
    let fault = json!({"reason": "Unreachable", "message": "No answer."});
    bench.put(&json!({"observedGeneration": generation, "fault": fault})).await;
    let (status, said) = power.ends().await;
    assert!(!status.success());
    assert!(said.contains("a: has a fault (Unreachable): No answer."), "{said}");
    assert!(said.contains("1 of 1 host did not reach the requested state"), "{said}");
}

#[tokio::test]
async fn cycle_asks_for_one_restart_by_a_fresh_id() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "On"})).await;
    let annotation = || async {
        let host = get_host(bench.cluster, &bench.namespace, "a").await;
        host.metadata.annotations.unwrap_or_default().get(names::REBOOT).cloned()
    };
    let power = bench.start(&["cycle", "a"]);
    let id = wait_for("the annotation", PATIENCE, annotation).await;
    let record = json!({"phase": "Available", "since": "2026-11-15T11:00:00Z", "rebooted": id});
    bench.put(&json!({"record": record.to_string()})).await;
    let (status, said) = power.ends().await;
    assert!(status.success(), "{said}");
    assert!(said.ends_with("a: restarted"), "{said}");
    assert_eq!(bench.online().await, None, "a restart says nothing about the time after");

    bench.power(&["cycle", "a", "--wait=false"]).await.ok();
    assert_ne!(annotation().await, Some(id));
}

#[tokio::test]
async fn a_host_in_use_needs_a_word_more() {
    let claimed = json!({"consumerRef": {"kind": "Beskar7Machine", "name": "node-01"}});
    let bench = Bench::new(&claimed, &json!({"state": "Provisioned", "observedPowerState": "On"})).await;
    for action in ["off", "cycle"] {
        let error = bench.power(&[action, "a"]).await.error();
        assert!(error.contains("/a (Provisioned) is held by Beskar7Machine node-01"), "{error}");
        assert!(error.contains("add --yes; nothing was changed"), "{error}");
    }
    assert_eq!(bench.online().await, None);
    bench.power(&["on", "a", "--wait=false"]).await.ok();
    assert_eq!(bench.online().await, Some(true), "nobody loses a server by its being on");
    bench.power(&["off", "a", "--yes", "--wait=false"]).await.ok();
    assert_eq!(bench.online().await, Some(false));
}

#[tokio::test]
async fn a_host_that_is_left_alone_is_not_waited_for() {
    let status = json!({"state": "Maintenance", "observedPowerState": "Off"});
    let bench = Bench::new(&json!({"maintenance": {"reason": "new disks"}}), &status).await;
    let error = bench.power(&["on", "a"]).await.error();
    assert!(error.contains("a is under maintenance (new disks) and is left alone"), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(bench.online().await, None);

    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let annotate = ["annotate", "ph", "a", "-n", &bench.namespace, "cluster.x-k8s.io/paused="];
    bench.cluster.kubectl(&annotate).await.ok();
    let error = bench.power(&["on", "a"]).await.error();
    assert!(error.contains("is paused and is left alone until its annotation cluster.x-k8s.io/paused"), "{error}");
}

#[tokio::test]
async fn a_restart_of_a_host_that_is_to_be_off_is_refused() {
    let bench =
        Bench::new(&json!({"online": false}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let error = bench.power(&["cycle", "a"]).await.error();
    assert!(error.contains("its power is requested off (spec.online: false)"), "{error}");
}

#[tokio::test]
async fn nobody_is_touched_unless_all_can_be() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let error = bench.power(&["on", "a", "b"]).await.error();
    assert!(error.contains(&format!("there is no host {}/b; `beskar7 hosts` lists them", bench.namespace)), "{error}");
    assert_eq!(bench.online().await, None);
    // With its namespace, as `beskar7 hosts -o name` writes it.
    let named = format!("{}/a", bench.namespace);
    let kubeconfig = bench.cluster.admin_kubeconfig().to_str().unwrap();
    beskar7(&["power", "on", &named, "--kubeconfig", kubeconfig, "--wait=false"]).await.ok();
    assert_eq!(bench.online().await, Some(true));
}

#[tokio::test]
async fn patience_has_an_end() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let error = bench.power(&["on", "a", "--timeout", "1s"]).await.error();
    assert!(
        error.contains(&format!("timed out after 1s: {}/a. The request stays in effect", bench.namespace)),
        "{error}"
    );
    assert_eq!(bench.online().await, Some(true));
}

#[tokio::test]
async fn each_request_has_an_id_of_its_own_and_auto_takes_both_back() {
    let bench = Bench::new(&json!({}), &json!({"state": "Available", "observedPowerState": "Off"})).await;
    let request = || async {
        let host = get_host(bench.cluster, &bench.namespace, "a").await;
        host.metadata.annotations.unwrap_or_default().get(names::POWER_REQUEST).cloned()
    };
    bench.power(&["on", "a", "--wait=false"]).await.ok();
    let first = request().await.unwrap();
    bench.power(&["on", "a", "--wait=false"]).await.ok();
    assert_ne!(request().await, Some(first), "asked anew, although spec.online says so already");
    bench.power(&["auto", "a", "--wait=false"]).await.ok();
    assert_eq!((bench.online().await, request().await), (None, None));
}
