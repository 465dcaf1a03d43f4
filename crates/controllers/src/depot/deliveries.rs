//! What there is to serve, from a watch of the hosts that are to be served.

use std::collections::HashMap;
use std::future::ready;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use boot::serve::registry::{Probe, Refusal, Registry};
use boot::serve::{Boots, Bootstrap, Client, Delivery, Directory, Gate, Problem, Step, Unavailable};
use boot::ticket::Holder;
use bytes::Bytes;
use engine::host::{BootPlan, Goal, LastBoot, Payload, boot_plan};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, StreamExt as _};
use http::HeaderValue;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Resource as _};
use netboot::client::{Mac, Uuid};
use netboot::dhcp::{Lease, Request};
use netboot::strangers::Strangers;
use serde_json::json;
use tracing::{debug, info};

use super::boots::{self, Ordered};
use super::inbox::Inbox;
use super::{Cargo, Configuration, Depot, Sessions, Shipment};
use crate::clock::Clock;
use crate::dialect::{HostDialect, Settings, View, known_anchor};
use crate::metrics::Metrics;
use crate::object::{self, KindId, ObjectId};
use crate::relatives::Related;
use crate::watches::{self, Change, Selection};

/// The deployments that are under way, in each replica.
pub(crate) struct Deliveries {
    depot: Arc<Depot>,
    client: kube::Client,
    inbox: Inbox,
    means: Means,
    entries: Mutex<Entries>,
    boots: Mutex<boots::Boots>,
    /// What all replicas have told of the present deployments.
    sessions: Sessions,
    /// Clients that boot from the network and are no known hosts.
    strangers: Mutex<Strangers<Timestamp>>,
}

/// What the operator lends the boot service.
pub(crate) struct Means {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) settings: Arc<Settings>,
}

/// A host, and what it is served.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) host: ObjectId,
    /// The host as the owner of what is recorded about it.
    pub(super) owner: Option<OwnerReference>,
    errand: Errand,
}

/// What there is to do for a host.
#[derive(Clone)]
enum Errand {
    /// Something is handed to its server.
    Deliver(Box<Parcel>),
    /// A probe tells what it finds in its server.
    Listen(Box<Probed>),
}

/// What a server is handed, and where its bootstrap data comes from.
#[derive(Clone)]
struct Parcel {
    shipment: Shipment,
    /// The field that names the Secret with its bootstrap data.
    field: &'static str,
    /// A word in that data, and what it stands for.
    word: Option<(&'static str, String)>,
}

/// A probe of a host's server.
#[derive(Debug, Clone)]
pub struct Probed {
    /// Who may report, and about which server.
    pub probe: Probe,
    /// What the server is to boot now, for whoever tells that it has: the object with a condition for that.
    pub boots: Option<BootState>,
}

/// An object that says in its status what a server is to boot.
#[derive(Debug, Clone)]
pub struct BootState {
    /// Which object.
    pub id: ObjectId,
    /// Its kind.
    pub resource: ApiResource,
    /// The condition that tells that the server has booted that.
    pub condition: &'static str,
}

impl Served {
    /// The deployment, or the probe.
    pub(super) fn id(&self) -> &str {
        &self.holder().deployment
    }

    fn holder(&self) -> &Holder {
        match &self.errand {
            Errand::Deliver(parcel) => &parcel.shipment.holder,
            Errand::Listen(probed) => &probed.probe.holder,
        }
    }
}

#[derive(Default)]
struct Entries {
    by_deployment: HashMap<String, Served>,
    by_host: HashMap<ObjectId, String>,
}

impl Deliveries {
    pub(super) fn new(depot: Arc<Depot>, client: kube::Client, namespace: &str, means: Means) -> Self {
        let inbox = Inbox::new(client.clone(), namespace, means.clock.clone());
        let (entries, boots, sessions, strangers) = Default::default();
        Self { depot, client, inbox, means, entries, boots, sessions, strangers }
    }

    /// Follows the hosts of a dialect for as long as it is polled.
    pub(crate) async fn follow<D: HostDialect>(&self, selection: &Selection) {
        // Whoever asks what to boot may be any host.
        let fields = if self.depot.serves_network() { Some("") } else { D::served(&self.means.settings) };
        let Some(fields) = fields else { return };
        let config = selection.watch();
        let config = if fields.is_empty() { config } else { config.fields(fields) };
        let hosts = watches::follow(selection.api(), config, |change: Change<'_, D::Host>| match change {
            Change::Seen(host) => {
                let key = ObjectId::of(host);
                if self.depot.serves_network() {
                    let identity = D::network_identity(host);
                    if let Some(leases) = self.depot.leases() {
                        leases.seen(&key, identity.address);
                    }
                    self.known().put(key.clone(), &identity, self.ordered::<D>(host));
                }
                self.entries().put(key, self.served::<D>(host));
            }
            Change::Gone(key) => {
                if let Some(leases) = self.depot.leases() {
                    leases.gone(&key);
                }
                self.known().remove(&key);
                self.entries().remove(&key);
            }
            Change::Complete => {
                if let Some(leases) = self.depot.leases() {
                    leases.listed(KindId::of::<D::Host>());
                }
            }
            Change::Begin => {}
        });
        hosts.for_each(|_| ready(())).await;
    }

    /// Follows what all replicas tell of boots from the network, for as long as it is polled.
    pub(super) async fn follow_sessions(&self, namespaces: Vec<Option<String>>) {
        // Nobody waits for it here: who asks what to boot is answered by what is known then.
        let (wake, _) = tokio::sync::mpsc::unbounded_channel();
        let apis = namespaces.iter().map(|namespace| object::api(&self.client, namespace.as_deref()));
        join_all(apis.map(|api| self.sessions.follow(api, &wake))).await;
    }

    /// Reports that are on their way may arrive.
    pub(super) async fn stop(&self) {
        self.inbox.stop().await;
    }

    /// What a host is served now. What an ended claim was given opens nothing any more, even if the same claim is written again
    /// meanwhile.
    fn served<D: HostDialect>(&self, host: &D::Host) -> Option<Served> {
        let served = |errand| Some(Served { host: ObjectId::of(host), owner: host.owner_ref(&()), errand });
        if let Some(probed) = D::probed(host) {
            return served(Errand::Listen(Box::new(probed)));
        }
        let shipment = D::shipment(host, &self.depot)?;
        let is_served = match shipment.cargo {
            Cargo::Iso { .. } => {
                let (goal, anchor) = (self.goal::<D>(host), known_anchor::<D>(host).unwrap_or_default());
                boot_plan(&anchor, &goal, LastBoot::default(), self.means.clock.now()) == BootPlan::Medium
            }
            // What a server has begun to read it may read to the end, whatever it may boot next.
            Cargo::Network(_) => shipment.powered_on && self.depot.serves_network(),
        };
        let (field, word) = (D::BOOTSTRAP_FIELD, D::provider_word(host));
        is_served.then(|| served(Errand::Deliver(Box::new(Parcel { shipment, field, word }))))?
    }

    /// What is handed out does not depend on related objects.
    fn goal<D: HostDialect>(&self, host: &D::Host) -> Goal {
        let (related, now) = (&Related::default(), self.means.clock.now());
        D::goal(&View { object: host, related, depot: Some(&self.depot), settings: &self.means.settings, now })
    }

    /// What decides about the boots of a host from the network.
    fn ordered<D: HostDialect>(&self, host: &D::Host) -> Ordered {
        Ordered {
            anchor: known_anchor::<D>(host).unwrap_or_default(),
            goal: self.goal::<D>(host),
            begun: D::record(host).and_then(|record| record.boot_begun),
        }
    }

    /// Which host a client is, and what it may boot now.
    pub(super) fn plan(&self, mac: &str, uuid: &str) -> (Option<ObjectId>, Boots) {
        let Ok(mac) = mac.parse::<Mac>() else {
            return (None, Boots::Nothing("This is not the MAC address of a server.".to_owned()));
        };
        let mut known = self.known();
        let found = match known.recognise(mac, uuid.parse::<Uuid>().ok()) {
            Ok(found) => found,
            Err(why) => return (None, Boots::Nothing(format!("This is no known host: {why}."))),
        };
        let host = found.host.clone();
        let served = self.served_of(&host);
        let handed = served.as_ref().and_then(|(served, parcel)| {
            let Cargo::Network(payload) = &parcel.shipment.cargo else { return None };
            self.sessions.of(&served.host, Some(served.id()))?.handed(payload)
        });
        let boots = match found.ordered.plan(handed, self.means.clock.now()) {
            BootPlan::Network(Payload::Site) | BootPlan::Medium => {
                Boots::Nothing(format!("{host} boots nothing that the boot service has."))
            }
            BootPlan::Nothing => Boots::Nothing(format!("There is nothing for {host} to boot now.")),
            BootPlan::Disk => Boots::Disk,
            BootPlan::Network(_) => match served {
                Some((_, parcel)) => Boots::Payload(Box::new(self.delivery_of(parcel.shipment))),
                // The watch is a moment behind.
                None => Boots::Nothing(format!("There is nothing for {host} to boot yet.")),
            },
        };
        debug!(%host, by = ?found.by, ?boots, "a server that boots from the network was recognised");
        drop(known);
        (Some(host), boots)
    }

    pub(super) fn depot(&self) -> &Depot {
        &self.depot
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        self.means.clock.as_ref()
    }

    /// What a host that asks for its address is told: what its status says, as this replica sees it.
    pub(super) fn lease(&self, host: &ObjectId, relay: Option<Ipv4Addr>) -> Option<Lease> {
        let stored = self.known().address(host)?;
        self.depot.leases()?.lease(stored, relay, self.means.clock.now())
    }

    /// A server has come so far, as somebody with this address tells.
    pub(super) fn note_step(&self, delivery: &Delivery, step: Step, by: String) {
        self.means.metrics.boot_step(match step {
            Step::Offered => "offered",
            Step::Asked => "asked",
            Step::Fetched(_) => "fetched",
        });
        if let Some(served) = self.find(&delivery.holder.deployment) {
            self.inbox.note(served, step, by);
        }
    }

    /// A client that boots from the network is no known host. It is told the first time, and listed.
    pub(super) fn met_stranger(&self, request: &Request, why: &str) {
        let kind = request.architecture().map_or_else(|| request.vendor(), |architecture| architecture.to_string());
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = strangers.list().iter().all(|known| known.mac != request.mac);
        strangers.saw(request.mac, request.uuid, &kind, why, self.means.clock.now());
        if is_new {
            info!(mac = %request.mac, uuid = request.uuid.map(|uuid| uuid.to_string()), kind, why, "a machine that boots from the network is no known host");
        }
    }

    pub(super) fn know_stranger(&self, request: &Request) {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).forget(request.mac);
    }

    fn served_of(&self, host: &ObjectId) -> Option<(Served, Parcel)> {
        let deployment = self.entries().by_host.get(host).cloned()?;
        self.parcel(&deployment)
    }

    fn delivery_of(&self, shipment: Shipment) -> Delivery {
        let is_network = matches!(shipment.cargo, Cargo::Network(_));
        let configuration = shipment.configuration.as_ref().filter(|_| is_network);
        Delivery {
            iso: self.depot.order(&shipment).ok(),
            configuration: configuration.map(|configuration| boot::serve::Configuration {
                url: match configuration {
                    Configuration::At(url) => Some(url.clone()),
                    Configuration::In(_) => None,
                },
                family: shipment.family,
            }),
            config: matches!(shipment.configuration, Some(Configuration::In(_))),
            powered_on: shipment.powered_on,
            payload: match shipment.cargo {
                Cargo::Network(payload) => Some(payload),
                Cargo::Iso { .. } => None,
            },
            holder: shipment.holder,
        }
    }

    fn find(&self, deployment: &str) -> Option<Served> {
        self.entries().by_deployment.get(deployment).cloned()
    }

    fn known(&self) -> MutexGuard<'_, boots::Boots> {
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parcel(&self, deployment: &str) -> Option<(Served, Parcel)> {
        let served = self.find(deployment)?;
        let Errand::Deliver(parcel) = &served.errand else { return None };
        let parcel = parcel.as_ref().clone();
        Some((served, parcel))
    }

    fn listening(&self, probe: &str) -> Option<(Served, Probed)> {
        let served = self.find(probe)?;
        let Errand::Listen(probed) = &served.errand else { return None };
        let probed = probed.as_ref().clone();
        Some((served, probed))
    }

    async fn read(&self, host: &ObjectId, parcel: &Parcel, name: &str) -> Result<Bootstrap, Unavailable> {
        let Parcel { field, word, .. } = parcel;
        let id = ObjectId::named::<Secret>(host.namespace.as_deref(), name);
        let unavailable = |what: &str| Unavailable { why: format!("{id:#}, named in {field}, {what}") };
        let secret = id
            .api::<Secret>(&self.client)
            .get_opt(name)
            .await
            .map_err(|error| unavailable(&format!("cannot be read: {error}")))?;
        let data = secret.ok_or_else(|| unavailable("does not exist"))?.data.unwrap_or_default();
        let value = data.get("value").filter(|value| !value.0.is_empty());
        let value = value.ok_or_else(|| unavailable("has no key value"))?;
        let format = data.get("format").map_or(&b""[..], |format| &format.0);
        Ok(Bootstrap { bytes: named_after(word.as_ref(), &value.0), content_type: content_type(format) })
    }
}

impl Entries {
    fn put(&mut self, key: ObjectId, served: Option<Served>) {
        self.remove(&key);
        if let Some(served) = served {
            let deployment = served.id().to_owned();
            debug!(host = %key, deployment, "is to be served");
            self.by_host.insert(key, deployment.clone());
            self.by_deployment.insert(deployment, served);
        }
    }

    fn remove(&mut self, key: &ObjectId) {
        if let Some(deployment) = self.by_host.remove(key) {
            self.by_deployment.remove(&deployment);
        }
    }
}

impl Directory for Deliveries {
    fn delivery(&self, deployment: &str) -> Option<Delivery> {
        let (_, Parcel { shipment, .. }) = self.parcel(deployment)?;
        Some(self.delivery_of(shipment))
    }

    fn boots(&self, client: &Client) -> Boots {
        self.plan(&client.mac, &client.uuid).1
    }

    fn note(&self, delivery: &Delivery, step: Step, from: IpAddr) {
        self.note_step(delivery, step, from.to_canonical().to_string());
    }

    fn bootstrap<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>> {
        async move {
            let found = self.parcel(&delivery.holder.deployment);
            match found.as_ref().map(|(served, parcel)| (served, parcel, &parcel.shipment.configuration)) {
                Some((served, parcel, Some(Configuration::In(secret)))) => {
                    self.read(&served.host, parcel, secret).await
                }
                _ => Err(Unavailable { why: "the host was released meanwhile".to_owned() }),
            }
        }
        .boxed()
    }

    fn first_seen<'a>(&'a self, delivery: &'a Delivery, from: IpAddr) -> BoxFuture<'a, Result<Gate, Unavailable>> {
        async move {
            match self.find(&delivery.holder.deployment) {
                Some(served) => self.inbox.first_seen(&served, delivery, from).await,
                None => Err(Unavailable { why: "the host was released meanwhile".to_owned() }),
            }
        }
        .boxed()
    }

    fn report(&self, delivery: &Delivery, problem: &Problem) {
        if let Some(served) = self.find(&delivery.holder.deployment) {
            self.inbox.report(served, problem);
        }
    }
}

impl Registry for Deliveries {
    fn probe(&self, id: &str) -> Option<Probe> {
        Some(self.listening(id)?.1.probe)
    }

    fn register<'a>(&'a self, probe: &'a Probe, report: String) -> BoxFuture<'a, Result<(), Unavailable>> {
        async move {
            match self.find(&probe.holder.deployment) {
                Some(served) => self.inbox.register(&served, &report).await,
                // It is over.
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn reported<'a>(&'a self, probe: &'a Probe) -> BoxFuture<'a, Result<Option<String>, Unavailable>> {
        async move {
            match self.find(&probe.holder.deployment) {
                Some(served) => self.inbox.reported(&served).await,
                None => Ok(None),
            }
        }
        .boxed()
    }

    fn forget<'a>(&'a self, probe: &'a Probe) -> BoxFuture<'a, Result<bool, Unavailable>> {
        async move {
            match self.find(&probe.holder.deployment) {
                Some(served) => self.inbox.forget(&served).await,
                None => Ok(false),
            }
        }
        .boxed()
    }

    fn booted<'a>(&'a self, probe: &'a Probe) -> BoxFuture<'a, Result<bool, Unavailable>> {
        async move {
            let found = self.listening(&probe.holder.deployment);
            match found.and_then(|(_, probed)| probed.boots) {
                Some(boots) => note_boot(&self.client, &boots, self.means.clock.now()).await,
                None => Ok(false),
            }
        }
        .boxed()
    }

    fn refused(&self, why: Refusal) {
        self.means.metrics.registry_refused(why.reason());
    }
}

/// Notes that a server has booted what it was to boot. Nobody else writes this condition, so it has a field manager of its own.
async fn note_boot(client: &kube::Client, boots: &BootState, now: Timestamp) -> Result<bool, Unavailable> {
    let BootState { id, resource, condition } = boots;
    let objects: Api<DynamicObject> = match &id.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let told = json!({
        "type": condition,
        "status": "True",
        "reason": condition,
        "message": "The server has told that it booted.",
        "lastTransitionTime": Time(now),
    });
    let status = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "status": { "conditions": [told] },
    });
    let params = PatchParams::apply("beskar7-registry").force();
    match objects.patch_status(&id.name, &params, &Patch::Apply(&status)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(Unavailable { why: format!("the condition of {id:#} cannot be written: {error}") }),
    }
}

/// Whoever writes a template does not know on which server it will be used. Only text has such words.
fn named_after(word: Option<&(&'static str, String)>, data: &[u8]) -> Bytes {
    match (std::str::from_utf8(data), word) {
        (Ok(text), Some((word, provider))) => text.replace(word, provider).into(),
        _ => Bytes::copy_from_slice(data),
    }
}

fn content_type(format: &[u8]) -> HeaderValue {
    HeaderValue::from_static(match format {
        b"cloud-config" => "text/cloud-config",
        b"ignition" => "application/vnd.coreos.ignition+json",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_data_learns_the_name_of_its_server_and_is_not_changed_otherwise() {
        let word = ("BESKAR7_PROVIDER_ID", "b7://racks/server-01".to_owned());
        let table: [(&[u8], &[u8]); 3] = [
            (
                b"provider-id: BESKAR7_PROVIDER_ID\nx: 'BESKAR7_PROVIDER_ID'",
                b"provider-id: b7://racks/server-01\nx: 'b7://racks/server-01'",
            ),
            (b"#cloud-config", b"#cloud-config"),
            (b"\xff BESKAR7_PROVIDER_ID", b"\xff BESKAR7_PROVIDER_ID"),
        ];
        for (data, expected) in table {
            assert_eq!(named_after(Some(&word), data), expected);
        }
    }
}
