//! What there is to serve, from a watch of the hosts that are to be served.

use std::collections::HashMap;
use std::future::ready;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use boot::serve::{Bootstrap, Delivery, Directory, Gate, Problem, Unavailable};
use bytes::Bytes;
use engine::host::{MayBoot, may_boot};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::HeaderValue;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Client, Resource as _};
use tracing::debug;

use super::inbox::Inbox;
use super::{Configuration, Depot, Shipment};
use crate::clock::Clock;
use crate::dialect::{HostDialect, Settings, View, known_anchor};
use crate::object::ObjectId;
use crate::relatives::Related;
use crate::watches::{self, Change, Selection};

/// The deployments that are under way, in each replica.
pub(crate) struct Deliveries {
    depot: Arc<Depot>,
    client: Client,
    inbox: Inbox,
    clock: Arc<dyn Clock>,
    entries: Mutex<Entries>,
}

/// A host, and what it is served.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) host: ObjectId,
    /// The host as the owner of what is recorded about it.
    pub(super) owner: Option<OwnerReference>,
    pub(super) shipment: Shipment,
    /// The field that names the Secret with its bootstrap data.
    field: &'static str,
    /// A word in that data, and what it stands for.
    word: Option<(&'static str, String)>,
}

#[derive(Default)]
struct Entries {
    by_deployment: HashMap<String, Served>,
    by_host: HashMap<ObjectId, String>,
}

impl Deliveries {
    pub(super) fn new(depot: Arc<Depot>, client: Client, namespace: &str, clock: Arc<dyn Clock>) -> Self {
        let inbox = Inbox::new(client.clone(), namespace, clock.clone());
        Self { depot, client, inbox, clock, entries: Mutex::default() }
    }

    /// Follows the hosts of a dialect for as long as it is polled.
    pub(crate) async fn follow<D: HostDialect>(&self, selection: &Selection) {
        let config = selection.watch();
        let config = if D::SERVED.is_empty() { config } else { config.fields(D::SERVED) };
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
        let anchor = known_anchor::<D>(host).unwrap_or_default();
        let (related, now) = (&Related::default(), self.clock.now());
        // What is served depends on none of these.
        let settings = &Settings::default();
        let goal = D::goal(&View { object: host, related, depot: Some(&self.depot), settings, now });
        let may_read = may_boot(&anchor, &goal) == MayBoot::Medium;
        let shipment = D::shipment(host).filter(|_| may_read)?;
        Some(Served {
            host: ObjectId::of(host),
            owner: host.owner_ref(&()),
            shipment,
            field: D::BOOTSTRAP_FIELD,
            word: D::provider_word(host),
        })
    }

    fn find(&self, deployment: &str) -> Option<Served> {
        self.entries().by_deployment.get(deployment).cloned()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, served: &Served, name: &str) -> Result<Bootstrap, Unavailable> {
        let Served { host, field, word, .. } = served;
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
            let deployment = served.shipment.holder.deployment.clone();
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
        let shipment = self.find(deployment)?.shipment;
        Some(Delivery {
            iso: self.depot.order(&shipment).ok(),
            config: matches!(shipment.configuration, Configuration::In(_)),
            powered_on: shipment.powered_on,
            holder: shipment.holder,
        })
    }

    fn bootstrap<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>> {
        async move {
            let served = self.find(&delivery.holder.deployment);
            match served.as_ref().map(|served| (served, &served.shipment.configuration)) {
                Some((served, Configuration::In(secret))) => self.read(served, secret).await,
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
