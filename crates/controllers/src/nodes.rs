//! Sets the provider ID of nodes. A kubelet on bare metal does not know it, and Cluster API identifies a node by nothing else.
//! The node of a server is found by the SMBIOS UUID.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::hardware::is_same_uuid;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::sync::Notify;
use tracing::{debug, info, warn};

use crate::api_client;
use crate::object::ObjectId;

/// How often to look for nodes.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a workload cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server whose node has not been seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// The Cluster that it joins.
    pub(crate) cluster: ObjectId,
    /// The provider ID for the node.
    pub(crate) provider: String,
    /// SMBIOS UUID of the server.
    pub(crate) uuid: String,
}

/// The servers whose nodes are awaited.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// By machine.
    awaited: Mutex<BTreeMap<ObjectId, Awaited>>,
    news: Notify,
}

/// Why the nodes of a workload cluster cannot be listed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0:#} does not exist yet")]
    NoKubeconfig(ObjectId),
    #[error("{0:#}: {1}")]
    BadKubeconfig(ObjectId, String),
    #[error(transparent)]
    Kube(#[from] Box<kube::Error>),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Silent,
}

impl Nodes {
    /// Waits for the node of a machine from now on.
    pub(crate) fn expect(&self, machine: &ObjectId, awaited: Awaited) {
        let mut all = self.awaited();
        if all.get(machine) != Some(&awaited) {
            all.insert(machine.clone(), awaited);
            self.news.notify_one();
        }
    }

    /// Stops waiting for it.
    pub(crate) fn forget(&self, machine: &ObjectId) {
        self.awaited().remove(machine);
    }

    /// Looks for nodes for as long as it is polled.
    pub(crate) async fn run(&self, client: &Client) {
        let mut clients = HashMap::new();
        let mut told = HashMap::new();
        loop {
            let mut clusters: BTreeMap<ObjectId, Vec<Awaited>> = BTreeMap::new();
            for awaited in self.awaited().values() {
                clusters.entry(awaited.cluster.clone()).or_default().push(awaited.clone());
            }
            if clusters.is_empty() {
                clients.clear();
                self.news.notified().await;
                continue;
            }
            for (cluster, awaited) in clusters {
                let looked = tokio::time::timeout(PATIENCE, look(client, &mut clients, &cluster, &awaited)).await;
                match looked.unwrap_or(Err(Error::Silent)) {
                    Ok(()) => drop(told.remove(&cluster)),
                    Err(error) => {
                        clients.remove(&cluster);
                        let error = error.to_string();
                        if told.get(&cluster) != Some(&error) {
                            warn!(%cluster, error, "cannot list the nodes of the workload cluster, retrying");
                            told.insert(cluster, error);
                        }
                    }
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn awaited(&self) -> MutexGuard<'_, BTreeMap<ObjectId, Awaited>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists the nodes of a cluster once, and sets the provider ID of those that are awaited.
async fn look(
    client: &Client,
    clients: &mut HashMap<ObjectId, Client>,
    cluster: &ObjectId,
    awaited: &[Awaited],
) -> Result<(), Error> {
    let known = clients.get(cluster).cloned();
    let workload = if let Some(known) = known { known } else { connect(client, cluster).await? };
    clients.insert(cluster.clone(), workload.clone());
    let nodes: Api<Node> = Api::all(workload);
    let boxed = |error: kube::Error| Error::Kube(Box::new(error));
    for node in nodes.list(&ListParams::default()).await.map_err(boxed)?.items {
        let given = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let Some(info) = info.filter(|_| given.is_none_or(str::is_empty)) else { continue };
        let Some(found) = awaited.iter().find(|awaited| is_same_uuid(&awaited.uuid, &info.system_uuid)) else {
            debug!(node = node.name_any(), uuid = info.system_uuid, "node without provider ID matches no machine");
            continue;
        };
        // Only if it is still this node: another one may get the same name.
        let patch = json!({
            "metadata": { "uid": node.uid(), "resourceVersion": node.resource_version() },
            "spec": { "providerID": found.provider },
        });
        match nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => info!(node = node.name_any(), provider = found.provider, "provider ID set"),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(boxed(error)),
        }
    }
    Ok(())
}

/// A client for a workload cluster, from the kubeconfig that Cluster API stores.
async fn connect(client: &Client, cluster: &ObjectId) -> Result<Client, Error> {
    let id = ObjectId::named::<Secret>(cluster.namespace.as_deref(), &format!("{}-kubeconfig", cluster.name));
    let secret = id.api::<Secret>(client).get_opt(&id.name).await.map_err(|error| Error::Kube(Box::new(error)))?;
    let secret = secret.ok_or_else(|| Error::NoKubeconfig(id.clone()))?;
    let bad = |why: String| Error::BadKubeconfig(id.clone(), why);
    let value = secret.data.unwrap_or_default().remove("value").ok_or_else(|| bad("it has no value".to_owned()))?;
    let text = String::from_utf8(value.0).map_err(|_| bad("its value is no text".to_owned()))?;
    let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|error| bad(error.to_string()))?;
    harmless(&kubeconfig).map_err(bad)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| bad(error.to_string()))?;
    let client = Client::try_from(config).map_err(|error| Error::Kube(Box::new(error)))?;
    Ok(api_client::bounded(client))
}

/// A kubeconfig can name programs to run and files to read. A user who may write Secrets must not reach the operator's files that
/// way.
fn harmless(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    for user in users {
        let suspicious = [
            ("exec", user.exec.is_some()),
            ("auth-provider", user.auth_provider.is_some()),
            ("tokenFile", user.token_file.is_some()),
            ("client-certificate", user.client_certificate.is_some()),
            ("client-key", user.client_key.is_some()),
        ];
        if let Some((what, _)) = suspicious.iter().find(|(_, found)| *found) {
            return Err(format!("it names something on the machine that reads it ({what}), which is not allowed here"));
        }
    }
    let clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    match clusters.into_iter().find(|cluster| cluster.certificate_authority.is_some()) {
        Some(_) => Err("it names a file (certificate-authority), which is not allowed here".to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfigs_that_reach_into_our_machine_are_refused() {
        let config = |cluster: &str, user: &str| {
            let yaml = format!(
                "clusters: [{{name: c, cluster: {{server: 'https://x', {cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]"
            );
            harmless(&Kubeconfig::from_yaml(&yaml).unwrap())
        };
        assert_eq!(config("certificate-authority-data: eA==", "token: t"), Ok(()));
        for (cluster, user, what) in [
            ("", "exec: {command: sh}", "exec"),
            ("", "auth-provider: {name: gcp, config: {}}", "auth-provider"),
            ("", "tokenFile: /etc/passwd", "tokenFile"),
            ("", "client-key: /etc/passwd", "client-key"),
            ("certificate-authority: /etc/passwd", "", "certificate-authority"),
        ] {
            let why = config(cluster, user).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }
}
