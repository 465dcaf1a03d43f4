//! The Beskar7 dialect: PhysicalHost.

mod cluster;
mod conditions;
mod findings;
mod hardware;
mod machine;
mod machine_status;
mod offer;
mod order;
mod shipment;
mod status;
mod words;

pub(crate) use cluster::Beskar7Clusters as Clusters;
pub(crate) use machine::Beskar7Machines as Claims;

use std::collections::BTreeMap;

use api::beskar7::conditions::{self as types, HOST_INSPECTED, PAUSED};
use api::beskar7::{BootMode, Inventory, NetworkBoot, PhysicalHost, ProviderId, RedfishConnection, names, states};
use api::capi::{self, Condition};
use bmc::{Address, Family, Fingerprint, SystemChoice};
use engine::failure::{Failure, Kind};
use engine::host::{
    Anchor, Author, Claim, Consumer, Deletion, Goal, NetworkProtocol, Order, Payload, Recipe, Record, Request, Road,
    Starts, Words,
};
use engine::server::{self, Seen};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;

use self::shipment::{boot_url_missing, network_boot_missing};
use crate::consumer::id_by_words;
use crate::depot::{Cargo, Depot, Shipment};
use crate::dialect::{
    ANCHOR_ANNOTATION, Attention, Connection, HostDialect, NetworkIdentity, Outcome, TrustWish, View, Writes, merge,
    server_identity,
};
use crate::object::ObjectId;
use crate::roster::{Free, Offer};
use crate::writer::Ownership;

const PAUSED_BY_ANNOTATION: &str =
    "The host is paused by its cluster.x-k8s.io/paused annotation: it is neither watched nor touched.";

/// What is ours in the status of every kind of this dialect.
const OURS: Ownership = Ownership { manager: names::FIELD_MANAGER, conditions: &types::ALL, left_behind: &[] };

pub(crate) type Hosts = PhysicalHosts;

/// PhysicalHosts.
#[derive(Debug, Clone, Copy)]
pub struct PhysicalHosts;

impl HostDialect for PhysicalHosts {
    type Host = PhysicalHost;

    const NAME: &'static str = "beskar7";
    const STATES: &'static [&'static str] = &states::ALL;
    const FINALIZER: &'static str = names::HOST_FINALIZER;
    const OURS: Ownership = OURS;

    const RECORD: &'static [&'static str] = &["status", "record"];
    const CREDENTIALS_FIELD: &'static str = "spec.redfishConnection.credentialsSecretRef";
    const CA_BUNDLE_FIELD: &'static str = "spec.redfishConnection.caBundleSecretRef";
    const BOOTSTRAP_FIELD: &'static str = "spec.userDataSecretRef";

    fn attention(view: &View<'_, PhysicalHost>) -> Attention {
        if view.object.annotations().contains_key(capi::PAUSED_ANNOTATION) {
            Attention::StatusOnly(PAUSED_BY_ANNOTATION.to_owned())
        } else {
            Attention::Full
        }
    }

    fn goal(view: &View<'_, PhysicalHost>) -> Goal {
        goal(view.object, view.depot)
    }

    fn served(_: &crate::dialect::Settings) -> Option<&'static str> {
        Some("spec.remoteConfig.osFamily!=")
    }

    fn shipment(host: &PhysicalHost, depot: &Depot) -> Option<Shipment> {
        let (claim, anchor) = (claim(host)?, known_anchor(host));
        if host.spec.network_boot.is_some() {
            return network(host, &claim, anchor.as_ref(), Some(depot))?.ok();
        }
        shipment::shipment(host, &claim, anchor.as_ref())?.ok()
    }

    fn network_identity(host: &PhysicalHost) -> NetworkIdentity {
        let details = host.status.as_ref().and_then(|status| status.hardware_details.as_ref());
        let hardware = details.map(Inventory::unpack).unwrap_or_default();
        let cards = hardware.nics.iter().filter_map(|nic| nic.mac_address.clone());
        let address = host.status.as_ref().and_then(|status| status.boot_address.as_ref()?.parse().ok());
        NetworkIdentity {
            macs: cards.chain(host.spec.boot_mac_address.clone()).collect(),
            uuid: hardware.uuid,
            address,
        }
    }

    fn connection(view: &View<'_, PhysicalHost>, anchor: Option<&Anchor>) -> Result<Connection, Failure> {
        let (wish, namespace) = (&view.object.spec.redfish_connection, view.object.namespace());
        let secret = |name: &str| ObjectId::named::<Secret>(namespace.as_deref(), name);
        let address = Address::parse(&wish.address)?;
        let system = match wish.system_id.as_deref().or(address.system()) {
            Some(system) => SystemChoice::Named(system.to_owned()),
            None => SystemChoice::Only,
        };
        let family = wish.vendor.as_deref().map(family).transpose()?;
        Ok(Connection {
            system,
            credentials: secret(&wish.credentials_secret_ref).into(),
            trust: trust(wish, secret, anchor)?,
            family,
            address,
        })
    }

    fn provider_word(host: &PhysicalHost) -> Option<(&'static str, String)> {
        let provider = ProviderId::new(&host.namespace()?, &host.name_any())?;
        Some((names::PROVIDER_ID_WORD, provider.to_string()))
    }

    fn state(host: &PhysicalHost) -> &'static str {
        let shown = host.status.as_ref().and_then(|status| status.state.as_deref());
        states::ALL.into_iter().find(|state| Some(*state) == shown).unwrap_or(states::ENROLLING)
    }

    fn record(host: &PhysicalHost) -> Option<Record> {
        status::record(host.status.as_ref()?)
    }

    fn server_identity(host: &PhysicalHost) -> Option<String> {
        let status = host.status.as_ref()?;
        // The details outlive a change of the address; what they tell of is then another server.
        let inspected = status.condition(HOST_INSPECTED).is_some_and(Condition::is_true);
        let hardware = status.hardware_details.as_ref().filter(|_| inspected)?.unpack();
        server_identity(hardware.uuid.as_deref(), hardware.serial_number.as_deref())
    }

    fn offer(host: &PhysicalHost) -> Offer {
        offer::offer(host)
    }

    fn announced(key: &ObjectId, free: &Free, patch: &serde_json::Value) -> Option<Anchor> {
        // As much of the host as the order's id is made from.
        let mut object = json!({
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "annotations": { ANCHOR_ANNOTATION: free.anchor.to_json() },
            },
            "spec": { "redfishConnection": { "address": "", "credentialsSecretRef": "" } },
        });
        merge(&mut object, patch);
        let host: PhysicalHost = serde_json::from_value(object).ok()?;
        let claim = claim(&host)?;
        let order = order(&host, &claim, None)?;
        let undo = match &order.recipe {
            Ok(recipe) => recipe.undo(),
            // Only who serves the image knows its URL, and for what is to be undone that does not matter.
            Err(failure) if failure.kind == Kind::BootUrlMissing => {
                Recipe::Iso { url: String::new(), starts: Starts::First }.undo()
            }
            Err(_) => return None,
        };
        Some(free.anchor.announcing(claim, order.deployment, undo, free.request.clone()))
    }

    fn without_claim() -> serde_json::Value {
        json!({
            "metadata": { "annotations": { names::CLAIM_ID: null, names::CLAIM_GROUP: null } },
            "spec": { "consumerRef": null, "bootIsoSource": null, "bootIsoMode": null, "remoteConfig": null, "userDataSecretRef": null,
                "networkBoot": null, "bootEveryStart": null },
        })
    }

    fn render(outcome: &Outcome<'_, PhysicalHost>) -> Writes {
        let status = changed(outcome.host, status::project(outcome));
        Writes { object: without(&outcome.step.heeded), status, ..Writes::default() }
    }

    fn paused_status(view: &View<'_, PhysicalHost>, why: &str, seen: Option<&Seen>) -> Option<serde_json::Value> {
        changed(view.object, status::paused(view.object, why, seen, view.now))
    }

    fn shows_pause(host: &PhysicalHost) -> bool {
        let condition = host.status.as_ref().and_then(|status| status.condition(PAUSED));
        condition.is_some_and(Condition::is_true)
    }

    fn event_reason(reason: &'static str) -> Option<&'static str> {
        Some(status::event_reason(reason))
    }

    fn words() -> &'static dyn Words {
        &words::HostWords
    }

    const CLAIM_ID: &'static str = names::CLAIM_ID;
    const CLUSTER_API: bool = true;
}

/// Takes off the annotations of requests that were heeded.
fn without(heeded: &[Request]) -> Option<serde_json::Value> {
    let name = |request: &Request| match request {
        Request::Release => Some(names::RELEASE),
        Request::Provision => Some(names::PROVISION),
        // They are told from new ones by their ids.
        Request::Inspect | Request::OffOnce | Request::Restart | Request::Wiped => None,
    };
    let annotations: BTreeMap<_, Option<&str>> =
        heeded.iter().filter_map(|request| Some((name(request)?, None))).collect();
    (!annotations.is_empty()).then(|| json!({ "metadata": { "annotations": annotations } }))
}

/// A status that says nothing new is not written.
fn changed(host: &PhysicalHost, status: api::beskar7::PhysicalHostStatus) -> Option<serde_json::Value> {
    if host.status.as_ref() == Some(&status) {
        return None;
    }
    // Plain data with string keys: it cannot fail, and an empty status would be refused.
    serde_json::to_value(status).ok()
}

fn goal(host: &PhysicalHost, depot: Option<&Depot>) -> Goal {
    let claim = claim(host);
    let order = claim.as_ref().and_then(|claim| order(host, claim, depot));
    let annotation = |name: &str| host.annotations().get(name).filter(|value| !value.is_empty()).cloned();
    Goal {
        road: road(host),
        quarantine: host.annotations().contains_key(names::QUARANTINE),
        consumer: claim.as_ref().and_then(|claim| claim.consumer.clone()),
        author: claim.as_ref().map(|claim| author(host, claim)).unwrap_or_default(),
        claim,
        order,
        online: host.spec.online,
        claimable_while_running: host.spec.claimable_while_running == Some(true),
        power_id: annotation(names::POWER_REQUEST),
        boot_mode: host.spec.boot_iso_mode.or(host.spec.boot_mode).map(|mode| match mode {
            BootMode::Uefi => server::BootMode::Uefi,
            BootMode::Legacy => server::BootMode::Legacy,
        }),
        reboot: annotation(names::REBOOT),
        inspect: annotation(names::INSPECT),
        pin_on_first_use: host.spec.redfish_connection.trust_on_first_use == Some(true),
        release: annotation(names::RELEASE),
        provision: annotation(names::PROVISION),
        ..Goal::default()
    }
}

fn road(host: &PhysicalHost) -> Road {
    let annotated = |name: &str| host.annotations().contains_key(name);
    if host.metadata.deletion_timestamp.is_some() {
        let force = host.annotations().get(names::FORCE_DELETE).is_some_and(|value| value == "true");
        return Road::Delete(if annotated(capi::DELETE_FOR_MOVE_ANNOTATION) {
            Deletion::Move
        } else if force {
            Deletion::Force
        } else {
            Deletion::CleanUp
        });
    }
    if host.spec.maintenance.is_some() { Road::Park } else { Road::Manage }
}

/// A claimer says who it is by a random id. A reference written by hand has none: then its own words identify it.
fn claim(host: &PhysicalHost) -> Option<Claim> {
    let reference = host.spec.consumer_ref.as_ref()?;
    let consumer = Consumer {
        api_version: reference.api_version.clone().unwrap_or_default(),
        kind: reference.kind.clone().unwrap_or_default(),
        namespace: reference.namespace.clone().or_else(|| host.namespace()).unwrap_or_default(),
        name: reference.name.clone().unwrap_or_default(),
    };
    let given = host.annotations().get(names::CLAIM_ID).filter(|id| !id.is_empty());
    let id = given.cloned().unwrap_or_else(|| id_by_words(&consumer));
    Some(Claim { id, consumer: Some(consumer) })
}

/// Whoever bears the claim's id itself can be asked about it, if it is named well enough.
fn author(host: &PhysicalHost, claim: &Claim) -> Author {
    let given = host.annotations().get(names::CLAIM_ID) == Some(&claim.id);
    let named = |consumer: &Consumer| !consumer.api_version.is_empty() && !consumer.kind.is_empty();
    if given && claim.consumer.as_ref().is_some_and(named) { Author::Claimer } else { Author::Hand }
}

fn known_anchor(host: &PhysicalHost) -> Option<Anchor> {
    crate::dialect::known_anchor::<PhysicalHosts>(host)
}

fn order(host: &PhysicalHost, claim: &Claim, depot: Option<&Depot>) -> Option<Order> {
    let anchor = known_anchor(host);
    let starts = if host.spec.boot_every_start == Some(true) { Starts::EveryByUs } else { Starts::First };
    // What was ordered before there was a choice keeps its id.
    let every = if starts == Starts::EveryByUs { " every-start" } else { "" };
    let deployment = |words: &str| shipment::deployment(&format!("{} {words}{every}", claim.id), anchor.as_ref());
    if let Some(wish) = &host.spec.network_boot {
        let protocol = match wish.protocol {
            api::beskar7::NetworkProtocol::Pxe => NetworkProtocol::Pxe,
            api::beskar7::NetworkProtocol::Http => NetworkProtocol::Http { uri: wish.url.clone() },
        };
        let recipe = match network(host, claim, anchor.as_ref(), depot).transpose() {
            Err(failure) => Err(failure),
            Ok(Some(_)) if depot.is_none_or(|depot| !depot.serves_network()) => Err(network_boot_missing()),
            Ok(Some(Shipment { cargo: Cargo::Network(payload), .. })) => {
                match depot.and_then(|depot| no_address(host, depot)) {
                    Some(failure) => Err(failure),
                    None => Ok(payload),
                }
            }
            Ok(_) => Ok(Payload::Site),
        };
        let recipe = recipe.map(|payload| Recipe::Network { protocol, payload, starts });
        return Some(Order { deployment: network_deployment(wish, deployment), gate: None, recipe });
    }
    let url = host.spec.boot_iso_source.clone()?;
    let (deployment, recipe) = match shipment::shipment(host, claim, anchor.as_ref()) {
        None => (deployment(&format!("iso {url}")), Ok(url)),
        Some(Err(failure)) => (deployment(&format!("iso {url}")), Err(failure)),
        Some(Ok(shipment)) => {
            let url = depot.ok_or_else(boot_url_missing).and_then(|depot| depot.image_url(&shipment));
            (shipment.holder.deployment, url)
        }
    };
    Some(Order { deployment, gate: None, recipe: recipe.map(|url| Recipe::Iso { url, starts }) })
}

/// Why a server that gets its address from us cannot boot from the network: there is no address for it.
fn no_address(host: &PhysicalHost, depot: &Depot) -> Option<Failure> {
    let has_address = host.status.as_ref().is_some_and(|status| status.boot_address.is_some());
    let sentence = depot.leases().filter(|_| !has_address)?.exhausted()?;
    Some(Failure::new(Kind::OrderInvalid, sentence))
}

/// The id of a deployment by network boot.
fn network_deployment(wish: &NetworkBoot, deployment: impl Fn(&str) -> String) -> String {
    let word = match wish.protocol {
        api::beskar7::NetworkProtocol::Pxe => "pxe",
        api::beskar7::NetworkProtocol::Http => "http",
    };
    let given = [&wish.url, &wish.image_url, &wish.config_url].map(|url| url.as_deref().unwrap_or("-"));
    deployment(&format!("network {word} {}{}", given.join(" "), order::served_words(wish)))
}

/// What we hand to a server that boots from the network, or why that makes no sense; `None` if others serve it.
fn network(
    host: &PhysicalHost,
    claim: &Claim,
    anchor: Option<&Anchor>,
    depot: Option<&Depot>,
) -> Option<Result<Shipment, Failure>> {
    let wish = host.spec.network_boot.as_ref()?;
    let every = if host.spec.boot_every_start == Some(true) { " every-start" } else { "" };
    let deployment =
        network_deployment(wish, |words| shipment::deployment(&format!("{} {words}{every}", claim.id), anchor));
    match shipment::payload(wish, depot.is_some_and(Depot::answers_dhcp)) {
        Ok(Payload::Site) => None,
        Ok(payload) => Some(shipment::network_shipment(host, claim, payload, deployment, anchor)),
        Err(failure) => Some(Err(failure)),
    }
}

fn trust(
    wish: &RedfishConnection,
    secret: impl Fn(&str) -> ObjectId,
    anchor: Option<&Anchor>,
) -> Result<TrustWish, Failure> {
    let pin = |text: &str| -> Result<TrustWish, Failure> { Ok(TrustWish::Pin(text.parse::<Fingerprint>()?)) };
    if let Some(fingerprint) = wish.pin() {
        return pin(&fingerprint);
    }
    if let Some(bundle) = &wish.ca_bundle_secret_ref {
        return Ok(TrustWish::CaBundle(secret(&bundle.name)));
    }
    if wish.insecure_skip_verify == Some(true) {
        return Ok(TrustWish::Anything);
    }
    if wish.trust_on_first_use == Some(true) {
        return anchor.and_then(|anchor| anchor.pin.as_deref()).map_or(Ok(TrustWish::FirstUse), pin);
    }
    Ok(TrustWish::SystemRoots)
}

fn family(vendor: &str) -> Result<Family, Failure> {
    vendor.parse().map_err(|error: bmc::Error| {
        Failure::new(
            Kind::AddressInvalid,
            format!("spec.redfishConnection.vendor: {error}. Leave it out to have the BMC asked."),
        )
    })
}

#[cfg(test)]
mod tests;
