//! The least that contract v1beta1 asks of an infrastructure provider, played by the test.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, TypeMeta};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testkit::{NewNode, NodeRole, Workload};

use super::CONTROL_PLANE;

const GROUP: &str = "infrastructure.cluster.x-k8s.io/v1";

pub(crate) const DEFINITIONS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: standinclusters.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta1: v1}}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: StandInCluster, plural: standinclusters}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: standinmachines.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta1: v1}}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: StandInMachine, plural: standinmachines}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: standinmachinetemplates.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta1: v1}}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: StandInMachineTemplate, plural: standinmachinetemplates}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

pub(crate) struct Provider<'a> {
    workload: &'a Workload<'a>,
    clusters: Api<DynamicObject>,
    machines: Api<DynamicObject>,
    owners: Api<DynamicObject>,
    nodes: Api<Node>,
}

impl<'a> Provider<'a> {
    pub(crate) fn new(client: &Client, workload: &'a Workload<'a>, namespace: &str) -> Self {
        Provider {
            workload,
            clusters: kind(client, namespace, GROUP, "StandInCluster"),
            machines: kind(client, namespace, GROUP, "StandInMachine"),
            owners: kind(client, namespace, "cluster.x-k8s.io/v1beta1", "Machine"),
            nodes: Api::all(client.clone()),
        }
    }

    /// Does for every object what can be done for it now.
    pub(crate) async fn step(&self) {
        let clusters = self.clusters.list(&ListParams::default()).await.expect("a list of clusters");
        for cluster in clusters.items.iter().filter(|cluster| is_new(cluster, "Cluster")) {
            let (host, port) = self.workload.endpoint();
            let spec = json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}});
            provision(&self.clusters, cluster, &spec).await;
        }
        let machines = self.machines.list(&ListParams::default()).await.expect("a list of machines");
        for machine in machines.items.iter().filter(|machine| is_new(machine, "Machine")) {
            let owner = self.owners.get(&owner(machine, "Machine").expect("a Machine")).await.expect("an owner");
            // A worker's comes when the control plane is there, so nobody may wait for it here.
            if owner.data["spec"]["bootstrap"]["dataSecretName"].is_string() {
                self.boot(machine, &owner.name_any()).await;
            }
        }
    }

    async fn boot(&self, machine: &DynamicObject, owner: &str) {
        let name = machine.name_any();
        let bootstrap = self.workload.bootstrap(owner, Duration::from_secs(10)).await;
        assert!(!bootstrap.value.is_empty() && bootstrap.format == "cloud-config", "{bootstrap:?}");
        let id = format!("stand-in://{name}");
        provision(&self.machines, machine, &json!({"spec": {"providerID": id}})).await;

        let control_plane = machine.labels().contains_key(CONTROL_PLANE);
        let node = NewNode {
            name: &name,
            system_uuid: "4c4c4544-0044-4410-8051-b4c04f4d3132",
            role: if control_plane { NodeRole::ControlPlane } else { NodeRole::Worker },
            version: "v1.33.13",
            addresses: &[IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))],
        };
        self.workload.boot_node(owner, &node).await;
        let known = json!({"spec": {"providerID": id}});
        self.nodes.patch(&name, &PatchParams::default(), &Patch::Merge(known)).await.expect("a providerID");
    }
}

/// Cluster API has taken it in, and nothing was done for it yet.
fn is_new(object: &DynamicObject, owner_kind: &str) -> bool {
    owner(object, owner_kind).is_some()
        && object.metadata.deletion_timestamp.is_none()
        && object.data["status"]["ready"] != json!(true)
}

fn owner(object: &DynamicObject, kind: &str) -> Option<String> {
    object.owner_references().iter().find(|owner| owner.kind == kind).map(|owner| owner.name.clone())
}

async fn provision(api: &Api<DynamicObject>, object: &DynamicObject, spec: &Value) {
    let name = object.name_any();
    api.patch(&name, &PatchParams::default(), &Patch::Merge(spec)).await.expect("a spec");
    let ready = json!({"status": {"ready": true}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready)).await.expect("a status");
}

/// The objects of one kind, whose plural is its name with an `s`.
pub(crate) fn kind(client: &Client, namespace: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let types = TypeMeta { api_version: version.to_owned(), kind: kind.to_owned() };
    let kind = GroupVersionKind::try_from(types).expect("a kind");
    let plural = format!("{}s", kind.kind.to_lowercase());
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk_with_plural(&kind, &plural))
}
