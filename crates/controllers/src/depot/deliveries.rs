//! What there is to serve, from a watch of the hosts that are to be served.

use std::collections::HashMap;
use std::future::ready;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use boot::serve::registry::{Probe, Refusal, Registry};
use boot::serve::{Bootstrap, Delivery, Directory, Gate, Problem, Unavailable};
use boot::ticket::Holder;
use bytes::Bytes;
use engine::host::{MayBoot, may_boot};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::HeaderValue;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client, Resource as _};
use serde_json::json;
use tracing::debug;

use super::inbox::Inbox;
use super::{Configuration, Depot, Shipment};
use crate::clock::Clock;
use crate::dialect::{HostDialect, Settings, View, known_anchor};
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::relatives::Related;
use crate::watches::{self, Change, Selection};

/// The deployments that are under way, in each replica.
pub(crate) struct Deliveries {
    depot: Arc<Depot>,
    client: Client,
    inbox: Inbox,
    means: Means,
    entries: Mutex<Entries>,
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
    pub boots: Option<Boots>,
}

/// An object that says in its status what a server is to boot.
#[derive(Debug, Clone)]
pub struct Boots {
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
    pub(super) fn new(depot: Arc<Depot>, client: Client, namespace: &str, means: Means) -> Self {
        let inbox = Inbox::new(client.clone(), namespace, means.clock.clone());
        Self { depot, client, inbox, means, entries: Mutex::default() }
    }

    /// Follows the hosts of a dialect for as long as it is polled.
    pub(crate) async fn follow<D: HostDialect>(&self, selection: &Selection) {
        let Some(fields) = D::served(&self.means.settings) else { return };
        let config = selection.watch();
        let config = if fields.is_empty() { config } else { config.fields(fields) };
        let hosts = watches::follow(selection.api(), config, |change: Change<'_, D::Host>| match change {
            Change::Seen(host) => self.entries().put(ObjectId::of(host), self.served::<D>(host)),
            Change::Gone(key) => self.entries().remove(&key),
            Change::Begin | Change::Complete => {}
        });
        hosts.for_each(|_| ready(())).await;
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
        let anchor = known_anchor::<D>(host).unwrap_or_default();
        let (related, now) = (&Related::default(), self.means.clock.now());
        // What is handed out does not depend on related objects.
        let settings = &self.means.settings;
        let goal = D::goal(&View { object: host, related, depot: Some(&self.depot), settings, now });
        let may_read = may_boot(&anchor, &goal) == MayBoot::Medium;
        let shipment = D::shipment(host).filter(|_| may_read)?;
        let (field, word) = (D::BOOTSTRAP_FIELD, D::provider_word(host));
        served(Errand::Deliver(Box::new(Parcel { shipment, field, word })))
    }

    fn find(&self, deployment: &str) -> Option<Served> {
        self.entries().by_deployment.get(deployment).cloned()
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
        Some(Delivery {
            iso: self.depot.order(&shipment).ok(),
            config: matches!(shipment.configuration, Configuration::In(_)),
            powered_on: shipment.powered_on,
            holder: shipment.holder,
        })
    }

    fn bootstrap<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>> {
        async move {
            let found = self.parcel(&delivery.holder.deployment);
            match found.as_ref().map(|(served, parcel)| (served, parcel, &parcel.shipment.configuration)) {
                Some((served, parcel, Configuration::In(secret))) => self.read(&served.host, parcel, secret).await,
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
async fn note_boot(client: &Client, boots: &Boots, now: Timestamp) -> Result<bool, Unavailable> {
    let Boots { id, resource, condition } = boots;
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
