//! A management cluster with Cluster API and Metal3's providers, hosts, and stand-ins for the nodes that join.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::{AuditWrite, CapiRelease, Cluster, ClusterApi, Metal3, NewNode, NodeRole, Workload, wait_ok};

use super::hosts::{Hosts, INTERFACE};
use super::manifests;
use crate::clusters::PATIENCE;

const NAME: &str = "walk";
const VERSION: &str = "v1.33.13";
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// Of Cluster API.
const CORE: &str = "cluster.x-k8s.io/v1beta2";
const METAL3: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const HOSTS: &str = "metal3.io/v1alpha1";

/// An API server with the managers of Cluster API.
pub(crate) struct Management {
    cluster: &'static Cluster,
    managers: ClusterApi,
}

pub(crate) struct Site {
    pub(crate) hosts: Hosts,
    management: Management,
    providers: Metal3,
    workload: Arc<Workload<'static>>,
    /// Metal3Machines whose nodes have joined.
    joined: Arc<Mutex<BTreeSet<String>>>,
}

impl Management {
    pub(crate) async fn start() -> Self {
        // Ends with the process, as the shared one does.
        let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
        let managers = ClusterApi::start(cluster, CapiRelease::V1_13).await;
        Self { cluster, managers }
    }
}

impl Site {
    /// All managers, and so many hosts.
    pub(crate) async fn start(count: usize) -> Self {
        let management = Management::start().await;
        let hosts = Hosts::start(management.cluster).await;
        let (workload, providers, ()) = tokio::join!(
            Workload::prepare(management.cluster, hosts.namespace(), NAME),
            Metal3::start(management.cluster),
            hosts.add(count),
        );
        Self { hosts, management, providers, workload: Arc::new(workload), joined: Arc::default() }
    }

    /// The same servers and the same workload cluster, seen from another management cluster.
    pub(crate) async fn beside(&self, management: Management) -> Self {
        let hosts = self.hosts.start_beside(management.cluster).await;
        let providers = Metal3::start(management.cluster).await;
        Self { hosts, management, providers, workload: self.workload.clone(), joined: self.joined.clone() }
    }

    pub(crate) fn cluster(&self) -> &'static Cluster {
        self.management.cluster
    }

    pub(crate) fn namespace(&self) -> &str {
        self.hosts.namespace()
    }

    pub(crate) async fn apply_cluster(&self, control_planes: u32, workers: u32) {
        let (host, port) = self.workload.endpoint();
        let manifests = manifests::CLUSTER
            .replace("ENDPOINT", &format!("{{host: {host}, port: {port}}}"))
            .replace("TEMPLATE", manifests::TEMPLATE)
            .replace("NODE", manifests::NODE)
            .replace("INTERFACE", INTERFACE)
            // A control plane must have three machines to do without one.
            .replace("SURGE", if control_planes < 3 { "1" } else { "0" })
            .replace("CONTROL_PLANES", &control_planes.to_string())
            .replace("WORKERS", &workers.to_string())
            .replace("VERSION", VERSION);
        self.cluster().apply_yaml_in(self.namespace(), &Workload::fit(&manifests)).await;
    }

    /// Lets the nodes of provisioned hosts join, once for each Metal3Machine. CAPM3 looks for a node, and for a free host, every
    /// half minute, and at once when a Metal3Machine changes: so these are told what they wait for.
    async fn step(&self) {
        self.management.managers.assert_alive();
        self.providers.assert_alive();
        let hosts = self.bare_metal_hosts().await;
        let free: Vec<_> = hosts.iter().filter(|host| is_free(host)).map(ResourceExt::name_any).collect();
        for machine in self.list(METAL3, "Metal3Machine").await {
            let name = machine.name_any();
            let host = hosts.iter().find(|host| host.data["spec"]["consumerRef"]["name"] == name.as_str());
            match host {
                Some(host) if state(host) == "provisioned" && !self.joined.lock().unwrap().contains(&name) => {
                    self.join(&machine, host).await;
                    self.tell(&machine, "node", &name).await;
                    self.joined.lock().unwrap().insert(name);
                }
                None if machine.metadata.deletion_timestamp.is_none() => {
                    self.tell(&machine, "free", &free.join(".")).await;
                }
                _ => {}
            }
        }
    }

    /// The server of a host has booted, and its node says which host it runs on. What it was before is gone.
    async fn join(&self, machine: &DynamicObject, host: &DynamicObject) {
        let owner = machine.owner_references().iter().find(|owner| owner.kind == "Machine").unwrap();
        let uid = host.uid().unwrap();
        self.workload.forget_nodes(&format!("metal3.io/uuid={uid}")).await;
        let role = if is_leader(machine) { NodeRole::ControlPlane } else { NodeRole::Worker };
        let node = NewNode {
            name: &machine.name_any(),
            system_uuid: &uid,
            role,
            version: VERSION,
            addresses: &["192.0.2.7".parse().unwrap()],
            labels: &[("metal3.io/uuid", &uid)],
        };
        self.workload.boot_node(&owner.name, &node).await;
    }

    async fn tell(&self, machine: &DynamicObject, what: &str, value: &str) {
        let key = format!("beskar7.test/{what}");
        if machine.annotations().get(&key).is_none_or(|told| told != value) {
            let annotation = json!({ "metadata": { "annotations": { key: value } } });
            self.patch(METAL3, "Metal3Machine", &machine.name_any(), annotation).await;
        }
    }

    /// CAPM3 looks every half minute at data that was paused when it came, and at once when it changes.
    pub(crate) async fn wake_data(&self) {
        for kind in ["Metal3DataTemplate", "Metal3Data"] {
            for data in self.list(METAL3, kind).await {
                let annotation = json!({ "metadata": { "annotations": { "beskar7.test/moved": data.uid() } } });
                self.patch(METAL3, kind, &data.name_any(), annotation).await;
            }
        }
    }

    pub(crate) async fn wait_for_running(&self, control_planes: usize, workers: usize) {
        wait_ok("all machines to run", PATIENCE, async || {
            self.step().await;
            let machines = self.list(CORE, "Machine").await;
            let leading = machines.iter().filter(|machine| is_leader(machine)).count();
            let all_run = machines.iter().all(|machine| {
                machine.data["status"]["phase"] == "Running" && machine.metadata.deletion_timestamp.is_none()
            });
            if all_run && leading == control_planes && machines.len() == control_planes + workers {
                return Ok(());
            }
            let told = machines.iter().map(|it| {
                format!("{}: {} {}", it.name_any(), it.data["status"]["phase"], it.data["status"]["conditions"])
            });
            let hosts = self.bare_metal_hosts().await;
            let hosts = hosts.iter().map(|host| {
                format!("{}: {} {}", host.name_any(), state(host), host.data["spec"]["consumerRef"]["name"])
            });
            Err(told.chain(hosts).collect::<Vec<_>>().join("\n"))
        })
        .await;
    }

    /// Everybody agrees about which machine has which host, and each was told its own addresses.
    pub(crate) async fn check_hosts_and_machines(&self) {
        let hosts = self.bare_metal_hosts().await;
        let mut addresses = BTreeSet::new();
        for machine in self.list(METAL3, "Metal3Machine").await {
            let name = machine.name_any();
            let host = hosts.iter().find(|host| host.data["spec"]["consumerRef"]["name"] == name.as_str()).unwrap();
            assert_eq!(state(host), "provisioned", "{}", host.name_any());
            let provider = format!("metal3://{}/{}/{name}", self.namespace(), host.name_any());
            assert_eq!(machine.data["spec"]["providerID"], provider.as_str());

            let told = self.meta_data(host).await;
            let nics = host.data["status"]["hardware"]["nics"].as_array().unwrap();
            let first = nics.iter().find(|nic| nic["name"] == INTERFACE).unwrap();
            assert_eq!(told["name"], name.as_str());
            assert_eq!(told["mac"], first["mac"]);
            assert_eq!(told["boot-mac"], host.data["spec"]["bootMACAddress"]);
            let address = told["address"].as_str().unwrap().to_owned();
            assert!(address.starts_with("192.0.2."), "{address}");
            assert!(addresses.insert(address), "{addresses:?}");
        }
    }

    async fn meta_data(&self, host: &DynamicObject) -> Value {
        let secrets: Api<Secret> = Api::namespaced(self.cluster().admin(), self.namespace());
        let secret = secrets.get(host.data["spec"]["metaData"]["name"].as_str().unwrap()).await.unwrap();
        let text = String::from_utf8(secret.data.unwrap()["metaData"].0.clone()).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    }

    /// Names of the hosts that control planes have, or that workers have.
    pub(crate) async fn hosts_of(&self, leading: bool) -> BTreeSet<String> {
        let machines = self.list(METAL3, "Metal3Machine").await;
        let wanted: BTreeSet<_> =
            machines.iter().filter(|machine| is_leader(machine) == leading).map(ResourceExt::name_any).collect();
        let hosts = self.bare_metal_hosts().await;
        let has = |host: &&DynamicObject| {
            host.data["spec"]["consumerRef"]["name"].as_str().is_some_and(|consumer| wanted.contains(consumer))
        };
        hosts.iter().filter(has).map(ResourceExt::name_any).collect()
    }

    pub(crate) async fn used_hosts(&self) -> BTreeSet<String> {
        &self.hosts_of(true).await | &self.hosts_of(false).await
    }

    pub(crate) async fn scale_workers(&self, replicas: u32) {
        self.patch(CORE, "MachineDeployment", NAME, json!({ "spec": { "replicas": replicas } })).await;
    }

    /// Gives control plane and workers another template, and waits until all machines are new ones.
    pub(crate) async fn roll_out(&self, template: &str) {
        let before: BTreeSet<_> = self.machine_names().await;
        let spec = json!({ "spec": { "infrastructureRef": { "name": template } } });
        let control_plane = json!({ "spec": { "machineTemplate": spec } });
        self.patch("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", NAME, control_plane).await;
        self.patch(CORE, "MachineDeployment", NAME, json!({ "spec": { "template": spec } })).await;
        wait_ok("all machines to be new ones", PATIENCE, async || {
            self.step().await;
            let now = self.machine_names().await;
            if now.len() == before.len() && now.is_disjoint(&before) { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
    }

    async fn machine_names(&self) -> BTreeSet<String> {
        self.list(CORE, "Machine").await.iter().map(ResourceExt::name_any).collect()
    }

    pub(crate) async fn pause(&self, paused: bool) {
        self.patch(CORE, "Cluster", NAME, json!({ "spec": { "paused": paused } })).await;
    }

    pub(crate) async fn wait_for_paused_hosts(&self, count: usize) {
        wait_ok(&format!("{count} hosts to be paused"), PATIENCE, async || {
            let hosts = self.bare_metal_hosts().await;
            let paused: Vec<_> = hosts
                .iter()
                .filter(|host| host.annotations().contains_key(PAUSED))
                .map(ResourceExt::name_any)
                .collect();
            if paused.len() == count { Ok(()) } else { Err(format!("{paused:?}")) }
        })
        .await;
    }

    /// Has `clusterctl move` take hosts along that belong to no cluster, and what belongs to them.
    pub(crate) async fn move_free_hosts(&self) {
        let label = "clusterctl.cluster.x-k8s.io/move-hierarchy=";
        self.cluster().kubectl(&["label", "crd", "baremetalhosts.metal3.io", label]).await.ok();
    }

    /// Waits until every host has moved. A host that is not paused may take a moment to let go.
    pub(crate) async fn wait_for_no_hosts(&self) {
        wait_ok("all hosts to be gone", PATIENCE, async || {
            let left = self.bare_metal_hosts().await;
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }

    /// Has the API server refuse to `create` or to `delete` a host of that name from now on.
    pub(crate) async fn refuse(&self, verb: &str, host: &str) {
        let refusal = manifests::REFUSAL.replace("HOST", host).replace("OPERATION", &verb.to_uppercase());
        self.cluster().apply_yaml(&refusal).await;
        let hosts = self.api(HOSTS, "BareMetalHost");
        let probe = json!({
            "apiVersion": HOSTS,
            "kind": "BareMetalHost",
            "metadata": { "name": host },
            "spec": { "online": false },
        });
        let probe: DynamicObject = serde_json::from_value(probe).unwrap();
        // The API server hears of the policy a moment after it is stored.
        wait_ok(&format!("{verb} of {host} to be refused"), PATIENCE, async || {
            let answer = match verb {
                "create" => {
                    hosts.create(&PostParams { dry_run: true, ..PostParams::default() }, &probe).await.map(drop)
                }
                _ => hosts.delete(host, &DeleteParams::default().dry_run()).await.map(drop),
            };
            match answer {
                Err(kube::Error::Api(refusal)) if refusal.message.contains("ValidatingAdmissionPolicy") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Waits until a move was refused what it wants.
    pub(crate) async fn wait_for_refusal(&self, verb: &str) {
        wait_ok(&format!("{verb} to be refused"), PATIENCE, async || {
            let writes = self.cluster().writes("clusterctl", &[]).await;
            let refused =
                |write: &AuditWrite| write.resource == "baremetalhosts" && write.verb == verb && write.code == 422;
            if writes.iter().any(refused) { Ok(()) } else { Err(format!("the last write is {:?}", writes.last())) }
        })
        .await;
    }

    pub(crate) async fn accept(&self) {
        let refusal = ["validatingadmissionpolicybinding/refuse", "validatingadmissionpolicy/refuse"];
        self.cluster().kubectl(&["delete", refusal[0], refusal[1]]).await.ok();
    }

    pub(crate) async fn delete_cluster(&self) {
        let clusters = self.api(CORE, "Cluster");
        clusters.delete(NAME, &DeleteParams::default()).await.unwrap();
        wait_ok("the Cluster to be gone", PATIENCE, async || {
            self.step().await;
            match clusters.get_opt(NAME).await.unwrap() {
                None => Ok(()),
                Some(cluster) => Err(cluster.data["status"].to_string()),
            }
        })
        .await;
    }

    /// Waits until so many hosts are available, off, and nobody's.
    pub(crate) async fn wait_for_free_hosts(&self, count: usize) {
        wait_ok(&format!("{count} hosts to be free"), PATIENCE, async || {
            let hosts = self.bare_metal_hosts().await;
            let free = hosts.iter().filter(|host| is_free(host)).count();
            if free == count { Ok(()) } else { Err(format!("{free} are")) }
        })
        .await;
    }

    pub(crate) async fn bare_metal_hosts(&self) -> Vec<DynamicObject> {
        self.list(HOSTS, "BareMetalHost").await
    }

    async fn list(&self, version: &str, kind: &str) -> Vec<DynamicObject> {
        self.api(version, kind).list(&ListParams::default()).await.unwrap().items
    }

    async fn patch(&self, version: &str, kind: &str, name: &str, patch: Value) {
        self.api(version, kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.cluster().admin(), self.namespace(), &resource)
    }
}

fn is_leader(object: &DynamicObject) -> bool {
    object.labels().contains_key(CONTROL_PLANE)
}

fn is_free(host: &DynamicObject) -> bool {
    let off = host.data["status"]["poweredOn"] == false && host.data["spec"]["online"] == false;
    state(host) == "available" && off && host.data["spec"]["consumerRef"].is_null()
}

fn state(host: &DynamicObject) -> &str {
    host.data["status"]["provisioning"]["state"].as_str().unwrap_or_default()
}
