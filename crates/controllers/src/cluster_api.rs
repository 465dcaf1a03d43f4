//! What Cluster API says about our machines: its Machines and Clusters, in whichever version is served, kept up to date
//! from watches.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::capi::{CONTROL_PLANE_LABEL, PAUSED_ANNOTATION};
use engine::claim::{Bootstrap, Machine, Owner};
use engine::cluster;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{info, warn};

use crate::kinds;
use crate::object::{KindId, ObjectId};
use crate::watches::{Change, Interruptions, Present, is_not_served, pauses};

/// Cluster API's own group.
pub(crate) const GROUP: &str = "cluster.x-k8s.io";

/// How often it is looked whether Cluster API was installed.
const INSTALLED_AGAIN: Duration = Duration::from_secs(5);

/// What is known of Machines and Clusters.
#[derive(Debug, Default)]
pub(crate) struct ClusterApi(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Kinds that are not served: Cluster API is not installed, or not completely.
    missing: BTreeSet<&'static str>,
    /// Kinds whose objects have been listed once.
    listed: BTreeSet<&'static str>,
    machines: HashMap<ObjectId, MachineView>,
    clusters: HashMap<ObjectId, ClusterView>,
    /// Labels that make the failure domains of a cluster, where its infrastructure says so.
    domain_keys: HashMap<ObjectId, Vec<String>>,
}

/// What matters of a Machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MachineView {
    pub(crate) cluster: String,
    /// The infrastructure object that it is made of.
    infrastructure: Option<ObjectId>,
    pub(crate) bootstrap: Bootstrap,
    /// The Secret with the bootstrap data.
    pub(crate) data_secret: Option<String>,
    pub(crate) failure_domain: Option<String>,
    pub(crate) is_control_plane: bool,
    pub(crate) has_node: bool,
    pub(crate) is_ready: bool,
    /// Type and address.
    pub(crate) addresses: Vec<(String, String)>,
    pub(crate) created: Option<Timestamp>,
}

/// What matters of a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterView {
    pub(crate) paused: bool,
    pub(crate) infrastructure_ready: bool,
    pub(crate) endpoint: Option<(String, u16)>,
    /// The kind that makes its control plane, if there is one.
    pub(crate) control_plane: Option<String>,
    /// Its infrastructure.
    infrastructure: Option<ObjectId>,
}

/// One of Cluster API's kinds, as we see it.
trait Kind: Clone + PartialEq + Send {
    const KIND: &'static str;
    fn read(object: &DynamicObject) -> Self;
    fn views(known: &mut Known) -> &mut HashMap<ObjectId, Self>;
    /// Who of ours depends on it.
    fn dependents(known: &Known, id: &ObjectId, view: &Self) -> Vec<ObjectId>;
}

impl Kind for MachineView {
    const KIND: &'static str = "Machine";

    fn read(object: &DynamicObject) -> Self {
        let data = &object.data;
        let text = |pointer: &str| data.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let given = |pointer: &str| text(pointer).filter(|text| !text.is_empty());
        let data_secret = text("/spec/bootstrap/dataSecretName");
        let has_config = data.pointer("/spec/bootstrap/configRef/name").is_some();
        let addresses = data.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
        let address = |address: &Value| {
            Some((address.get("type")?.as_str()?.to_owned(), address.get("address")?.as_str()?.to_owned()))
        };
        Self {
            cluster: text("/spec/clusterName").unwrap_or_default(),
            infrastructure: infrastructure(object),
            bootstrap: match data_secret.as_deref() {
                // Said on purpose of machines whose data comes from elsewhere.
                Some("") => Bootstrap::None,
                Some(_) => Bootstrap::Ready,
                None if has_config => Bootstrap::Awaited,
                None => Bootstrap::None,
            },
            data_secret: data_secret.filter(|name| !name.is_empty()),
            failure_domain: given("/spec/failureDomain"),
            is_control_plane: object.labels().contains_key(CONTROL_PLANE_LABEL),
            has_node: data.pointer("/status/nodeRef/name").is_some(),
            is_ready: holds(data, "InfrastructureReady"),
            addresses: addresses.filter_map(address).collect(),
            created: object.creation_timestamp().map(|time| time.0),
        }
    }

    fn views(known: &mut Known) -> &mut HashMap<ObjectId, Self> {
        &mut known.machines
    }

    fn dependents(known: &Known, id: &ObjectId, view: &Self) -> Vec<ObjectId> {
        let cluster = named::<ClusterView>(id.namespace(), &view.cluster);
        let cluster = known.clusters.get(&cluster);
        let cluster = cluster.filter(|_| view.is_control_plane).and_then(|cluster| cluster.infrastructure.as_ref());
        view.infrastructure.iter().chain(cluster).cloned().collect()
    }
}

impl Kind for ClusterView {
    const KIND: &'static str = "Cluster";

    fn read(object: &DynamicObject) -> Self {
        let data = &object.data;
        let flag = |pointer: &str| data.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let host = data.pointer("/spec/controlPlaneEndpoint/host").and_then(Value::as_str);
        let port = data.pointer("/spec/controlPlaneEndpoint/port").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        let kind = data.pointer("/spec/controlPlaneRef/kind").and_then(Value::as_str);
        Self {
            paused: flag("/spec/paused") || object.annotations().contains_key(PAUSED_ANNOTATION),
            infrastructure_ready: flag("/status/infrastructureReady")
                || flag("/status/initialization/infrastructureProvisioned"),
            endpoint: host.filter(|host| !host.is_empty()).map(str::to_owned).zip(port),
            control_plane: kind.map(str::to_owned),
            infrastructure: infrastructure(object),
        }
    }

    fn views(known: &mut Known) -> &mut HashMap<ObjectId, Self> {
        &mut known.clusters
    }

    fn dependents(known: &Known, id: &ObjectId, view: &Self) -> Vec<ObjectId> {
        let machines = known.machines_of(id).filter_map(|(_, machine)| machine.infrastructure.as_ref());
        machines.chain(&view.infrastructure).cloned().collect()
    }
}

impl Known {
    /// The Machines of a Cluster.
    fn machines_of(&self, cluster: &ObjectId) -> impl Iterator<Item = (&ObjectId, &MachineView)> {
        self.machines
            .iter()
            .filter(|(id, machine)| id.namespace == cluster.namespace && machine.cluster == cluster.name)
    }
}

/// What the reference of a Machine or a Cluster to its infrastructure names.
fn infrastructure(object: &DynamicObject) -> Option<ObjectId> {
    let reference = object.data.pointer("/spec/infrastructureRef")?;
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    // A version, or since v1beta2 only its group.
    let group = text("apiGroup").or_else(|| Some(text("apiVersion")?.split_once('/')?.0))?;
    let kind = KindId { group: group.to_owned().into(), kind: text("kind")?.to_owned().into() };
    Some(ObjectId { kind, namespace: object.namespace(), name: text("name")?.to_owned(), uid: None })
}

/// The Cluster of that name.
pub(crate) fn cluster_named(namespace: &str, name: &str) -> ObjectId {
    named::<ClusterView>(namespace, name)
}

fn named<K: Kind>(namespace: &str, name: &str) -> ObjectId {
    let kind = KindId { group: GROUP.into(), kind: K::KIND.into() };
    ObjectId { kind, namespace: Some(namespace.to_owned()), name: name.to_owned(), uid: None }
}

/// Whether a condition holds, in either of Cluster API's shapes.
fn holds(data: &Value, type_: &str) -> bool {
    let conditions = data.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions
        .filter(|condition| condition.get("type").and_then(Value::as_str) == Some(type_))
        .any(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
}

impl ClusterApi {
    /// For whom an infrastructure machine is.
    pub(crate) fn owner(&self, claim: &impl Resource) -> Owner {
        if let Some(why) = paused_itself(claim) {
            return Owner::Paused(why);
        }
        let namespace = claim.meta().namespace.clone().unwrap_or_default();
        let mut references = claim.meta().owner_references.iter().flatten();
        let known = self.known();
        let Some(reference) = references.find(|owner| owner.kind == "Machine" && is_ours(&owner.api_version)) else {
            return if known.missing.is_empty() { Owner::Awaited } else { Owner::NoClusterApi };
        };
        if !known.listed.contains(MachineView::KIND) || !known.listed.contains(ClusterView::KIND) {
            return Owner::Paused("Cluster API's Machines and Clusters have not been read yet.".to_owned());
        }
        let Some(machine) = known.machines.get(&named::<MachineView>(&namespace, &reference.name)) else {
            return Owner::Gone;
        };
        let id = named::<ClusterView>(&namespace, &machine.cluster);
        let Some(cluster) = known.clusters.get(&id) else { return Owner::Gone };
        if cluster.paused {
            return Owner::Paused(format!("{id:#} is paused."));
        }
        Owner::Machine(Machine { cluster_ready: cluster.infrastructure_ready, bootstrap: machine.bootstrap })
    }

    /// The Machine that an infrastructure machine belongs to.
    pub(crate) fn machine_of(&self, claim: &impl Resource) -> Option<MachineView> {
        let namespace = claim.meta().namespace.clone()?;
        let owner = claim.meta().owner_references.iter().flatten().find(|owner| owner.kind == "Machine")?;
        self.known().machines.get(&named::<MachineView>(&namespace, &owner.name)).cloned()
    }

    /// The Cluster that infrastructure belongs to; `Err` is why that cannot be told or used.
    pub(crate) fn cluster_of(&self, infrastructure: &impl Resource) -> Result<(ObjectId, ClusterView), cluster::Owner> {
        if let Some(why) = paused_itself(infrastructure) {
            return Err(cluster::Owner::Paused(why));
        }
        let namespace = infrastructure.meta().namespace.clone().unwrap_or_default();
        let mut references = infrastructure.meta().owner_references.iter().flatten();
        let known = self.known();
        let Some(reference) = references.find(|owner| owner.kind == "Cluster" && is_ours(&owner.api_version)) else {
            return Err(if known.missing.is_empty() { cluster::Owner::Awaited } else { cluster::Owner::NoClusterApi });
        };
        if !known.listed.contains(ClusterView::KIND) {
            return Err(cluster::Owner::Paused("Cluster API's Clusters have not been read yet.".to_owned()));
        }
        let id = named::<ClusterView>(&namespace, &reference.name);
        let Some(cluster) = known.clusters.get(&id).cloned() else { return Err(cluster::Owner::Gone) };
        if cluster.paused {
            return Err(cluster::Owner::Paused(format!("{id:#} is paused.")));
        }
        Ok((id, cluster))
    }

    /// The control-plane Machines of a cluster, oldest first.
    pub(crate) fn control_plane(&self, cluster: &ObjectId) -> Vec<MachineView> {
        let known = self.known();
        let mut ours: Vec<_> = known.machines_of(cluster).filter(|(_, machine)| machine.is_control_plane).collect();
        ours.sort_by_key(|(id, machine)| (machine.created, *id));
        ours.into_iter().map(|(_, machine)| machine.clone()).collect()
    }

    /// Says which labels make the failure domains of a cluster.
    pub(crate) fn set_domain_keys(&self, cluster: ObjectId, keys: Vec<String>) {
        self.known().domain_keys.insert(cluster, keys);
    }

    /// Which labels make the failure domains of a cluster.
    pub(crate) fn domain_keys(&self, namespace: &str, cluster: &str) -> Option<Vec<String>> {
        self.known().domain_keys.get(&named::<ClusterView>(namespace, cluster)).cloned()
    }

    /// Watches Machines and Clusters, and wakes who of ours depends on one that changed.
    pub(crate) async fn follow(&self, client: &Client, namespace: Option<&str>, wake: &UnboundedSender<ObjectId>) {
        let watch = |resource: ApiResource| -> Api<DynamicObject> {
            match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            }
        };
        futures::join!(
            self.follow_kind::<MachineView>(client, &watch, wake),
            self.follow_kind::<ClusterView>(client, &watch, wake)
        );
    }

    async fn follow_kind<K: Kind>(
        &self,
        client: &Client,
        watch: &(impl Fn(ApiResource) -> Api<DynamicObject> + Sync),
        wake: &UnboundedSender<ObjectId>,
    ) {
        let mut present = Present::default();
        loop {
            let resource = self.find(client, K::KIND).await;
            self.watch::<K>(watch(resource), &mut present, wake).await;
        }
    }

    /// The kind in the version that the API server prefers, or in another one. Waits until Cluster API is installed.
    async fn find(&self, client: &Client, kind: &'static str) -> ApiResource {
        let mut told = false;
        loop {
            match kinds::find(client, GROUP, kind, None).await {
                Ok(Some((resource, _))) => {
                    info!(kind, version = resource.version, "watching Cluster API");
                    self.known().missing.remove(kind);
                    return resource;
                }
                Ok(None) => {
                    self.known().missing.insert(kind);
                    if !std::mem::replace(&mut told, true) {
                        warn!(kind, "Cluster API CRDs missing; install them or use --without-cluster-api");
                    }
                }
                Err(error) => warn!(kind, %error, "cannot look up Cluster API, retrying"),
            }
            tokio::time::sleep(INSTALLED_AGAIN).await;
        }
    }

    /// Watches until the kind is not served any more: in another version, or not at all.
    async fn watch<K: Kind>(&self, api: Api<DynamicObject>, present: &mut Present, wake: &UnboundedSender<ObjectId>) {
        let mut interruptions = Interruptions::of(K::KIND);
        let stream = watcher(api, watcher::Config::default()).backoff(pauses());
        futures::pin_mut!(stream);
        while let Some(event) = stream.next().await {
            if event.as_ref().err().is_some_and(is_not_served) {
                warn!(kind = K::KIND, "the watched version of Cluster API is no longer served");
                return;
            }
            let Some(event) = interruptions.pass(event) else { continue };
            for dependent in present.take(&event, id_of::<K>).into_iter().flat_map(|change| self.take::<K>(change)) {
                // Nobody listens any more only when the loops have stopped.
                wake.send(dependent).ok();
            }
        }
    }

    /// Takes a change in, and tells who depends on it.
    fn take<K: Kind>(&self, change: Change<'_, DynamicObject>) -> Vec<ObjectId> {
        let mut known = self.known();
        match change {
            Change::Seen(object) => {
                let (id, view) = (id_of::<K>(object), K::read(object));
                let before = K::views(&mut known).insert(id.clone(), view.clone());
                let is_news = before != Some(view) && known.listed.contains(K::KIND);
                if is_news { dependents::<K>(&mut known, &id) } else { Vec::new() }
            }
            Change::Gone(id) => {
                let dependents = dependents::<K>(&mut known, &id);
                K::views(&mut known).remove(&id);
                dependents
            }
            Change::Complete if known.listed.insert(K::KIND) => {
                let all: Vec<ObjectId> = K::views(&mut known).keys().cloned().collect();
                all.iter().flat_map(|id| dependents::<K>(&mut known, id)).collect()
            }
            Change::Begin | Change::Complete => Vec::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who depends on an object.
fn dependents<K: Kind>(known: &mut Known, name: &ObjectId) -> Vec<ObjectId> {
    let view = K::views(known).get(name).cloned();
    view.map(|view| K::dependents(known, name, &view)).unwrap_or_default()
}

fn is_ours(api_version: &str) -> bool {
    api_version.split_once('/').is_some_and(|(group, _)| group == GROUP)
}

fn id_of<K: Kind>(object: &DynamicObject) -> ObjectId {
    named::<K>(&object.namespace().unwrap_or_default(), &object.name_any())
}

/// Why an object is left alone by its own wish.
pub(crate) fn paused_itself(object: &impl Resource) -> Option<String> {
    let annotations = object.meta().annotations.as_ref()?;
    annotations.contains_key(PAUSED_ANNOTATION).then(|| format!("Paused by its {PAUSED_ANNOTATION} annotation."))
}
