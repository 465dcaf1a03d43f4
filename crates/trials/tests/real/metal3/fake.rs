//! A stand-in for an operator of BareMetalHosts, without servers: it says what CAPM3 waits for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use testkit::{Cluster, wait_for};
use tokio::task::JoinSet;

use super::HostSide;
use crate::clusters::PATIENCE;

const PAUSED: &str = "baremetalhost.metal3.io/paused";
const STATUS: &str = "baremetalhost.metal3.io/status";

pub(crate) struct FakeHosts {
    cluster: &'static Cluster,
    namespace: String,
    acts: Arc<Mutex<Vec<String>>>,
    /// Ends when this is dropped.
    _work: JoinSet<()>,
}

impl FakeHosts {
    async fn begin(cluster: &'static Cluster, namespace: String, acts: Arc<Mutex<Vec<String>>>) -> Self {
        let definition = testkit::part("bmo").join("crds/metal3.io_baremetalhosts.yaml");
        let definition = std::fs::read_to_string(definition).unwrap();
        cluster.apply_yaml(&definition).await;
        // Only kinds with this label are moved.
        let label = "clusterctl.cluster.x-k8s.io=";
        cluster.kubectl(&["label", "crd", "baremetalhosts.metal3.io", label]).await.ok();
        let operator = Operator { client: cluster.admin(), namespace: namespace.clone(), acts: acts.clone() };
        let mut work = JoinSet::new();
        work.spawn(operator.run());
        Self { cluster, namespace, acts, _work: work }
    }
}

impl HostSide for FakeHosts {
    const INTERFACE: &'static str = "eth0";

    async fn start(cluster: &'static Cluster) -> Self {
        let namespace = cluster.namespace("metal3").await;
        Self::begin(cluster, namespace, Arc::default()).await
    }

    async fn start_beside(&self, cluster: &'static Cluster) -> Self {
        Self::begin(cluster, self.namespace.clone(), self.acts.clone()).await
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    async fn add_hosts(&self, count: usize) {
        join_all((0..count).map(async |number| {
            let host = HOST.replace("NUMBER", &number.to_string());
            self.cluster.apply_yaml_in(&self.namespace, &host).await;
        }))
        .await;
        let hosts = hosts(self.cluster.admin(), &self.namespace);
        wait_for("all hosts to be available", PATIENCE, async || {
            let hosts = hosts.list(&ListParams::default()).await.unwrap().items;
            hosts.iter().all(|host| state(host) == "available").then_some(())
        })
        .await;
    }

    fn acts(&self) -> Vec<String> {
        self.acts.lock().unwrap().clone()
    }

    async fn check_servers(&self, free: &[DynamicObject]) {
        for host in free {
            assert_eq!(host.data["status"]["poweredOn"], false, "{}", host.name_any());
        }
    }
}

struct Operator {
    client: Client,
    namespace: String,
    acts: Arc<Mutex<Vec<String>>>,
}

impl Operator {
    /// One step for each host, over and over. What fails is tried again with the next.
    async fn run(self) {
        let hosts = hosts(self.client.clone(), &self.namespace);
        let mut rounds = tokio::time::interval(Duration::from_millis(200));
        loop {
            rounds.tick().await;
            let Ok(list) = hosts.list(&ListParams::default()).await else { continue };
            for host in list.items.iter().filter(|host| !host.annotations().contains_key(PAUSED)) {
                let _ = self.step(&hosts, host).await;
            }
        }
    }

    async fn step(&self, hosts: &Api<DynamicObject>, host: &DynamicObject) -> kube::Result<()> {
        let name = host.name_any();
        let wanted = &host.data["spec"]["image"];
        let status = match (state(host), wanted.is_null()) {
            ("", _) => {
                self.own_secret(host).await?;
                Self::first_status(host)
            }
            ("available", false) => said("provisioning", false, wanted),
            ("provisioning", _) => {
                self.acts.lock().unwrap().push(format!("{name}: on"));
                said("provisioned", true, wanted)
            }
            ("provisioned", true) => said("deprovisioning", true, wanted),
            ("deprovisioning", _) => {
                self.acts.lock().unwrap().push(format!("{name}: off"));
                said("available", false, &Value::Null)
            }
            _ => return Ok(()),
        };
        let params = PatchParams::default();
        hosts.patch_status(&name, &params, &Patch::Merge(json!({ "status": status }))).await?;
        if host.annotations().contains_key(STATUS) {
            let none = json!({ "metadata": { "annotations": { STATUS: null } } });
            hosts.patch(&name, &params, &Patch::Merge(none)).await?;
        }
        Ok(())
    }

    /// What the annotation has kept of a host that was moved. Without it, one that is to boot something was moved, too: clusterctl
    /// does not wait until CAPM3 has written it.
    fn first_status(host: &DynamicObject) -> Value {
        let image = &host.data["spec"]["image"];
        let mut status = match host.annotations().get(STATUS) {
            Some(kept) => serde_json::from_str(kept).unwrap(),
            None if image.is_null() => said("available", false, image),
            None => said("provisioned", true, image),
        };
        let boot = host.data["spec"]["bootMACAddress"].as_str().unwrap();
        status["hardware"] = json!({ "nics": [
            { "name": FakeHosts::INTERFACE, "mac": boot.replace("52:54:00", "52:54:01") },
            { "name": "eth1", "mac": boot },
        ] });
        status
    }

    /// Without its owner, the Secret would not be moved with its host.
    async fn own_secret(&self, host: &DynamicObject) -> kube::Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let owner = json!({ "metadata": { "ownerReferences": [{
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "name": host.name_any(),
            "uid": host.uid().unwrap(),
        }] } });
        let name = host.data["spec"]["bmc"]["credentialsName"].as_str().unwrap();
        secrets.patch(name, &PatchParams::default(), &Patch::Merge(owner)).await?;
        Ok(())
    }
}

fn said(state: &str, powered: bool, image: &Value) -> Value {
    json!({
        "errorCount": 0,
        "errorMessage": "",
        "operationalStatus": "OK",
        "poweredOn": powered,
        "provisioning": { "ID": "", "state": state, "image": image },
    })
}

fn state(host: &DynamicObject) -> &str {
    host.data["status"]["provisioning"]["state"].as_str().unwrap_or_default()
}

fn hosts(client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
    Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&kind))
}

const HOST: &str = "
apiVersion: v1
kind: Secret
metadata: {name: server-NUMBER-bmc}
stringData: {username: admin, password: password}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: server-NUMBER}
spec:
  online: false
  bootMACAddress: 52:54:00:00:00:0NUMBER
  bmc: {address: 'redfish-virtualmedia+http://server-NUMBER/redfish/v1/Systems/1', credentialsName: server-NUMBER-bmc}
";
