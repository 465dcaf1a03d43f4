//! Metal3's kinds: as types, as CRDs beside upstream's, and as API servers take them.

mod examples;
mod rules;
mod stored;
mod types;
mod upstream;

use api::metal3::{GROUP, VERSION};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use testkit::Cluster;
use tokio::sync::OnceCell;

use crate::merge;

/// A real API server that knows Metal3's kinds.
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
    api::crd::documents(&api::metal3_crds())
}

fn hosts(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, "BareMetalHost");
    Api::namespaced_with(cluster.admin(), namespace, &ApiResource::from_gvk(&kind))
}

/// A host that nobody could object to, with a merge patch laid over its spec.
fn host(name: &str, spec: &Value) -> DynamicObject {
    let mut host = json!({
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name},
        "spec": {
            "online": true,
            "bmc": {"address": "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "credentialsName": "bmc"},
        },
    });
    merge(&mut host["spec"], spec);
    serde_json::from_value(host).unwrap()
}
