//! A stand-in for the nodes of a workload cluster. The API server of the management cluster plays its API server, so
//! that the managers of Cluster API see a cluster come up although nothing boots.

mod control_plane;
mod node;

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::wait::wait_ok;

/// One workload cluster, known to Cluster API by its namespace and name.
pub struct Workload<'a> {
    cluster: &'a Cluster,
    namespace: String,
    name: String,
}

/// What a server reads when it boots for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// `cloud-config` or `ignition`.
    pub format: String,
    /// The payload.
    pub value: Vec<u8>,
}

/// What a kubelet says about its node when it joins. It does not know its providerID: on bare metal nobody tells it.
#[derive(Debug, Clone)]
pub struct NewNode<'a> {
    /// Its name, also as its Hostname address.
    pub name: &'a str,
    /// What the firmware says, `nodeInfo.systemUUID`.
    pub system_uuid: &'a str,
    /// Whether it runs a control plane.
    pub role: NodeRole,
    /// Of the kubelet and of kubeadm, with the `v`.
    pub version: &'a str,
    /// Its InternalIP addresses.
    pub addresses: &'a [IpAddr],
    /// What its kubelet was told to say of it, beside its role.
    pub labels: &'a [(&'a str, &'a str)],
}

/// What runs on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRole {
    /// kube-apiserver and its like, as static Pods.
    ControlPlane,
    /// The users' work.
    Worker,
}

impl<'a> Workload<'a> {
    /// Makes what must be there before the Cluster is: the authority, a kubeconfig, and certificates for an etcd that
    /// nobody asks for. In the audit log, whoever uses the kubeconfig is `<cluster>-kubeconfig`.
    pub async fn prepare(cluster: &'a Cluster, namespace: &str, name: &str) -> Workload<'a> {
        let kubeconfig = cluster.master_kubeconfig(&format!("{name}-kubeconfig"));
        let kubeconfig = std::fs::read_to_string(kubeconfig).expect("a kubeconfig of our own");
        let (certificate, key) = (cluster.authority().pem(), cluster.authority().key_pem());
        // Of etcd's own authority, only the certificate is given away. KubeadmControlPlane would make a kubeconfig itself,
        // but so late that the managers' first attempt to connect fails, and the next comes half a minute later.
        let secrets = [
            ("kubeconfig", json!({"value": kubeconfig})),
            ("ca", json!({"tls.crt": certificate, "tls.key": key})),
            ("etcd", json!({"tls.crt": certificate})),
            ("apiserver-etcd-client", json!({"tls.crt": certificate, "tls.key": key})),
        ];
        for (purpose, data) in secrets {
            let secret = cluster_secret(name, purpose, &data);
            cluster.apply_yaml_in(namespace, &secret.to_string()).await;
        }
        Workload { cluster, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The name of the Cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the infrastructure cluster gives as `controlPlaneEndpoint`.
    pub fn endpoint(&self) -> (&'static str, u16) {
        let port = self.cluster.url().rsplit(':').next().and_then(|port| port.parse().ok());
        ("127.0.0.1", port.expect("the API server's URL ends with its port"))
    }

    /// `manifests` with every KubeadmControlPlane made to work without a real etcd, DNS and proxy.
    pub fn fit(manifests: &str) -> String {
        control_plane::fit(manifests)
    }

    /// Waits until the bootstrap data of a Machine is there, and reads it as its server would.
    pub async fn bootstrap(&self, machine: &str, timeout: Duration) -> Bootstrap {
        let client = self.cluster.admin();
        let machines = machines(client.clone(), &self.namespace);
        let secrets: Api<Secret> = Api::namespaced(client, &self.namespace);
        wait_ok(&format!("the bootstrap data of {machine}"), timeout, async || {
            let machine = machines.get(machine).await.map_err(|error| error.to_string())?;
            let Some(name) = machine.data["spec"]["bootstrap"]["dataSecretName"].as_str() else {
                return Err(format!("not named yet; its status is {}", machine.data["status"]));
            };
            let secret = secrets.get(name).await.map_err(|error| error.to_string())?;
            let mut data = secret.data.unwrap_or_default();
            let value = data.remove("value").ok_or_else(|| format!("Secret {name} has no value"))?.0;
            // Who brings data of his own need not say what it is.
            let format = data.remove("format").map_or_else(|| "cloud-config".into(), |format| text(&format.0));
            Ok(Bootstrap { format, value })
        })
        .await
    }

    /// The server of `machine` has booted and joins as `node`.
    ///
    /// Its Node is Ready and has no providerID. A control plane brings its static Pods and what kubeadm leaves in
    /// `kube-system`, too.
    pub async fn boot_node(&self, machine: &str, node: &NewNode<'_>) {
        if node.role == NodeRole::ControlPlane {
            control_plane::join(self, machine, node).await;
        }
        node::register(&self.cluster.admin(), node).await;
    }

    /// The servers of the nodes that match `labels` run no longer; nobody is left who reports them.
    pub async fn forget_nodes(&self, labels: &str) {
        node::forget(&self.cluster.admin(), labels).await;
    }
}

/// The Machines of a namespace, as every release serves them.
pub(crate) fn machines(client: Client, namespace: &str) -> Api<DynamicObject> {
    resource(client, namespace, "cluster.x-k8s.io", "Machine", "machines")
}

fn resource(client: Client, namespace: &str, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1beta1", kind), plural);
    Api::namespaced_with(client, namespace, &resource)
}

fn cluster_secret(cluster: &str, purpose: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": format!("{cluster}-{purpose}"),
            "labels": {"cluster.x-k8s.io/cluster-name": cluster},
        },
        "stringData": data,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
