//! metal-operator's kinds: as types, as CRDs beside upstream's, and as API servers take them.

mod rules;
mod samples;
mod stored;
mod types;
mod upstream;

use api::ironcore::{GROUP, VERSION};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use testkit::Cluster;
use tokio::sync::OnceCell;

/// All kinds.
const KINDS: [&str; 8] = [
    "Endpoint",
    "BMC",
    "BMCSecret",
    "Server",
    "ServerClaim",
    "ServerBootConfiguration",
    "ServerMaintenance",
    "ServerReadinessRule",
];

/// A real API server that knows metal-operator's kinds.
async fn cluster() -> &'static Cluster {
    static READY: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    READY
        .get_or_init(|| async {
            cluster.apply_yaml(&ours()).await;
        })
        .await;
    cluster
}

fn ours() -> String {
    api::crd::documents(&api::ironcore_crds())
}

/// The CRD of a kind.
fn crd(kind: &str) -> Value {
    let crd = api::ironcore_crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    serde_json::to_value(crd).unwrap()
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Objects of a kind; those of namespaced kinds are in that namespace.
fn objects(cluster: &Cluster, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, kind));
    if crd(kind)["spec"]["scope"] == "Cluster" {
        Api::all_with(cluster.admin(), &resource)
    } else {
        Api::namespaced_with(cluster.admin(), namespace, &resource)
    }
}

/// An object with these fields beside its name.
fn object(kind: &str, name: &str, fields: &Value) -> DynamicObject {
    let mut object = json!({"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

/// The spec of an object that nobody could object to, as its only field.
fn plain(kind: &str) -> Value {
    match kind {
        "Endpoint" => json!({"spec": {"macAddress": "23:11:8A:33:CF:EA", "ip": "192.0.2.10"}}),
        "BMC" => json!({"spec": {
            "access": {"ip": "192.0.2.10"},
            "bmcSecretRef": {"name": "bmc"},
            "protocol": {"name": "Redfish", "port": 443},
        }}),
        "BMCSecret" => json!({"data": {"username": "Zm9v", "password": "YmFy"}}),
        "Server" => json!({"spec": {"systemUUID": "38947555-7742-3448-3784-823347823834"}}),
        "ServerClaim" => json!({"spec": {"power": "On", "image": "image"}}),
        "ServerBootConfiguration" | "ServerMaintenance" => json!({"spec": {"serverRef": {"name": "server"}}}),
        "ServerReadinessRule" => json!({"spec": {
            "serverSelector": {"matchLabels": {"rack": "r1"}},
            "conditions": [{"type": "Healthy", "requiredStatus": "True"}],
            "enforcementMode": "Continuous",
            "taint": {"key": "unhealthy", "value": "true"},
        }}),
        other => panic!("no {other}"),
    }
}

/// An object on the API server.
struct Stored {
    objects: Api<DynamicObject>,
    name: String,
}

impl Stored {
    async fn new(kind: &str, fields: &Value) -> Stored {
        let cluster = cluster().await;
        // The name is unused, so it does for the objects that are in no namespace, too.
        let name = cluster.namespace("ironcore").await;
        let objects = objects(cluster, &name, kind);
        objects.create(&PostParams::default(), &object(kind, &name, fields)).await.unwrap();
        Stored { objects, name }
    }

    /// Changes the object: `Ok`, or what the API server says.
    async fn change(&self, patch: &Value) -> Result<Value, String> {
        let changed = self.objects.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        changed.map(|object| serde_json::to_value(object).unwrap()).map_err(|error| error.to_string())
    }

    /// Applies a status, in strict validation: what is not in the schema is refused.
    async fn apply_status(&self, manager: &str, kind: &str, status: &Value) -> Value {
        let patch = json!({"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": kind, "status": status});
        let params = PatchParams::apply(manager).validation_strict();
        let applied = self.objects.patch_status(&self.name, &params, &Patch::Apply(patch)).await.unwrap();
        applied.data["status"].clone()
    }
}
