//! The Metal3 dialect: BareMetalHost.

mod address;
mod annotations;
mod conditions;
mod counts;
mod hardware;
mod history;
mod proof;
mod status;
mod words;

use std::collections::BTreeMap;

use api::capi;
use api::metal3::{BareMetalHost, HardwareData, SecretReference, conditions as types, names, states};
use bmc::SystemChoice;
use engine::failure::{Failure, Kind};
use engine::host::{
    Anchor, Claim, Deletion, Goal, Lasting, Order, Phase, Proof, Recipe, Record, Request, Road, Starts, Words,
};
use engine::placement::{Availability, Candidate};
use engine::server::{self, Seen};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;

use self::address::BmcAddress;
use self::annotations::Detached;
use crate::dialect::{
    Attention, Connection, HostDialect, Mark, Outcome, TrustWish, View, Writes, known_anchor, server_identity,
};
use crate::fingerprint::digest;
use crate::metrics::OwnMetric;
use crate::object::ObjectId;
use crate::relatives::Relative;
use crate::roster::Offer;
use crate::writer::Ownership;

/// Field manager of what we write.
const MANAGER: &str = "beskar7";
/// The format of an image that is booted and written nowhere.
const LIVE_ISO: &str = "live-iso";
/// The value of `spec.inspectionMode` for no inspection.
const NO_INSPECTION: &str = "disabled";

pub(crate) type Hosts = BareMetalHosts;

/// BareMetalHosts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BareMetalHosts;

impl HostDialect for BareMetalHosts {
    type Host = BareMetalHost;

    const NAME: &'static str = "metal3";
    const STATES: &'static [&'static str] = &states::ALL;
    const FINALIZER: &'static str = names::HOST_FINALIZER;
    const METRICS: &'static [OwnMetric] = counts::METRICS;
    const OURS: Ownership = Ownership { manager: MANAGER, conditions: &types::ALL, left_behind: &["errorType"] };

    const RECORD: &'static [&'static str] = &["status", "record"];
    // Nothing is served to these hosts.
    const CREDENTIALS_FIELD: &'static str = "spec.bmc.credentialsName";
    const CA_BUNDLE_FIELD: &'static str = "spec.bmc";
    const BOOTSTRAP_FIELD: &'static str = "spec.userData";

    const RIVAL_LEASE: Option<&'static str> = Some("baremetal-operator");
    const MARK: Option<Mark> = Some(Mark {
        labels: &[(names::ENVIRONMENT_LABEL, names::ENVIRONMENT_LABEL_VALUE)],
        finalizer: names::SECRET_FINALIZER,
    });
    const COMPANION_FINALIZERS: &'static [&'static str] = &[names::HARDWARE_DATA_FINALIZER];

    const CLAIM_ID: &'static str = "beskar7.io/claim-id";
    const CLUSTER_API: bool = false;

    fn relatives() -> Vec<Relative> {
        vec![Relative::of::<HardwareData>(|_| Vec::new())]
    }

    fn marked(view: &View<'_, BareMetalHost>) -> Vec<ObjectId> {
        let (name, namespace) = (&view.object.spec.bmc.credentials_name, view.object.namespace());
        let secret = (!name.is_empty()).then(|| ObjectId::named::<Secret>(namespace.as_deref(), name));
        secret.into_iter().collect()
    }

    fn attention(view: &View<'_, BareMetalHost>) -> Attention {
        let host = view.object;
        if host.annotations().contains_key(names::PAUSED) {
            return Attention::Nothing;
        }
        let is_kept = known_anchor::<Self>(host).is_some() || host.metadata.deletion_timestamp.is_some();
        if host.spec.bmc.is_unset() && !is_kept {
            return Attention::StatusOnly("No BMC is given in spec.bmc, so the host is not managed.".to_owned());
        }
        Attention::Full
    }

    fn goal(view: &View<'_, BareMetalHost>) -> Goal {
        goal(view.object)
    }

    fn proof(view: &View<'_, BareMetalHost>) -> Option<Proof> {
        Some(proof::proof(view.object))
    }

    fn connection(view: &View<'_, BareMetalHost>, _: Option<&Anchor>) -> Result<Connection, Failure> {
        let (wish, namespace) = (&view.object.spec.bmc, view.object.namespace());
        let BmcAddress { service: address, system, .. } = BmcAddress::parse(&wish.address)?;
        if wish.credentials_name.is_empty() {
            return Err(Failure::new(
                Kind::SecretNotFound,
                "spec.bmc.credentialsName is empty. Name a Secret in the host's namespace with the keys username and password.".to_owned(),
            ));
        }
        let trust = if wish.disable_certificate_verification { TrustWish::Anything } else { TrustWish::SystemRoots };
        Ok(Connection {
            system: system.map_or(SystemChoice::Only, SystemChoice::Named),
            credentials: ObjectId::named::<Secret>(namespace.as_deref(), &wish.credentials_name).into(),
            trust,
            family: None,
            address,
        })
    }

    fn state(host: &BareMetalHost) -> &'static str {
        let shown = host.status.as_ref().map_or(states::NONE, |status| status.provisioning.state.as_str());
        states::ALL.into_iter().find(|state| *state == shown).unwrap_or(states::NONE)
    }

    fn record(host: &BareMetalHost) -> Option<Record> {
        serde_json::from_str(host.status.as_ref()?.record.as_deref()?).ok()
    }

    fn server_identity(host: &BareMetalHost) -> Option<String> {
        let hardware = host.status.as_ref()?.hardware.as_ref()?;
        let uuid = known_anchor::<Self>(host)?.uuid;
        server_identity(uuid.as_deref(), Some(&hardware.system_vendor.serial_number))
    }

    fn offer(host: &BareMetalHost) -> Offer {
        let candidate = Candidate {
            namespace: host.namespace().unwrap_or_default(),
            name: host.name_any(),
            taints: Vec::new(),
            labels: host.labels().clone(),
            availability: Availability::Unavailable("Cluster API's provider chooses BareMetalHosts".to_owned()),
            rack: None,
            capacity: None,
            media: None,
            network_boot: None,
            released: None,
        };
        Offer { candidate, holdings: Vec::new(), free: None }
    }

    fn without_claim() -> serde_json::Value {
        json!({})
    }

    fn render(outcome: &Outcome<'_, BareMetalHost>) -> Writes {
        let status = status::project(outcome);
        let companions = status.hardware.as_ref().map(|hardware| hardware::companion(outcome.host, hardware));
        Writes {
            object: without_heeded(outcome),
            companions: companions.into_iter().collect(),
            events: status::events(outcome.host, &status, outcome),
            counts: counts::counts(outcome, &status::before(outcome.host), &status),
            status: status::changed(outcome.host, status, outcome.now),
        }
    }

    fn paused_status(view: &View<'_, BareMetalHost>, _: &str, _: Option<&Seen>) -> Option<serde_json::Value> {
        status::changed(view.object, status::unmanaged(view.object, view.now), view.now)
    }

    fn shows_pause(_: &BareMetalHost) -> bool {
        false
    }

    fn event_reason(reason: &'static str) -> Option<&'static str> {
        status::event_reason(reason)
    }

    fn phase_name(phase: Phase) -> &'static str {
        status::word(phase).unwrap_or(phase.as_str())
    }

    fn words() -> &'static dyn Words {
        &words::HostWords
    }
}

fn goal(host: &BareMetalHost) -> Goal {
    let claim = claim(host);
    let order = claim.as_ref().map(|claim| order(host, claim));
    let inspect = host.annotations().get(names::INSPECT).filter(|value| *value != names::INSPECT_DISABLED);
    Goal {
        road: road(host),
        claim,
        // Nothing is provisioned while the host is to be off.
        claim_waits: !host.spec.online,
        order,
        external: host.spec.externally_provisioned,
        online: Some(host.spec.online),
        power_lasts: Lasting::UntilRelease,
        held_off: annotations::held_off(host.annotations()),
        never_off: host.spec.disable_power_off,
        without_inventory: is_inspection_disabled(host),
        boot_mode: boot_mode(&host.spec.boot_mode),
        // The annotation is taken off when it was heeded, so one that is there is new.
        inspect: inspect.map(|_| host.resource_version().unwrap_or_default()),
        ..Goal::default()
    }
}

fn road(host: &BareMetalHost) -> Road {
    let detached = host.annotations().get(names::DETACHED).map(|text| Detached::parse(text));
    let is_deleted = host.metadata.deletion_timestamp.is_some();
    match detached {
        _ if is_deleted && host.annotations().contains_key(capi::DELETE_FOR_MOVE_ANNOTATION) => {
            Road::Delete(Deletion::Move)
        }
        Some(detached) if is_deleted && !detached.delays_deletion => Road::Delete(Deletion::Detached(detached.when)),
        Some(detached) => Road::Detach(detached.when),
        None if is_deleted => Road::Delete(Deletion::CleanUp),
        None => Road::Manage,
    }
}

/// The host orders for itself. Only the URL of an image tells one order from another.
fn claim(host: &BareMetalHost) -> Option<Claim> {
    let method = host.spec.custom_deploy.as_ref().map(|deploy| &deploy.method).filter(|method| !method.is_empty());
    let url = host.spec.image.as_ref().map(|image| &image.url).filter(|url| !url.is_empty());
    let words = match (method, url) {
        (Some(method), _) => format!("custom {method}"),
        (None, Some(url)) => format!("image {url}"),
        (None, None) => return None,
    };
    Some(Claim { id: digest(&words), consumer: None })
}

fn order(host: &BareMetalHost, claim: &Claim) -> Order {
    let anchor = known_anchor::<BareMetalHosts>(host);
    let deployment = digest(&Anchor::words_of_deployment(anchor.as_ref(), &claim.id));
    Order { deployment, gate: None, recipe: recipe(host) }
}

/// A live system has no disk to come back from, so every start by us boots it again.
fn recipe(host: &BareMetalHost) -> Result<Recipe, Failure> {
    let invalid = |what: String| Err(Failure::new(Kind::OrderInvalid, what));
    if let Some((field, reference)) = foreign_reference(host) {
        return invalid(format!(
            "{field}.namespace is {:?}: Secrets are read from the host's own namespace only. Remove it, or move the Secret.",
            reference.namespace
        ));
    }
    let custom = host.spec.custom_deploy.as_ref().is_some_and(|deploy| !deploy.method.is_empty());
    match host.spec.image.as_ref() {
        Some(image) if !custom && image.format.as_deref() == Some(LIVE_ISO) => {
            Ok(Recipe::Iso { url: image.url.clone(), starts: Starts::EveryByUs })
        }
        _ => {
            let field = if custom { "spec.customDeploy" } else { "spec.image" };
            invalid(format!(
                "{field}: writing disk images needs the agent, which this version does not have yet. Nothing was done to the server. Order an image with format: live-iso, or remove {field}."
            ))
        }
    }
}

/// A reference to a Secret in another namespace.
fn foreign_reference(host: &BareMetalHost) -> Option<(&'static str, &SecretReference)> {
    let own = host.namespace().unwrap_or_default();
    let spec = &host.spec;
    [("spec.userData", &spec.user_data), ("spec.networkData", &spec.network_data), ("spec.metaData", &spec.meta_data)]
        .into_iter()
        .filter_map(|(field, reference)| Some((field, reference.as_ref()?)))
        .find(|(_, reference)| !reference.namespace.is_empty() && reference.namespace != own)
}

fn is_inspection_disabled(host: &BareMetalHost) -> bool {
    let annotated = host.annotations().get(names::INSPECT).is_some_and(|value| value == names::INSPECT_DISABLED);
    annotated || host.spec.inspection_mode == NO_INSPECTION
}

/// Without a word, the server boots with the firmware that it is set to.
fn boot_mode(word: &str) -> Option<server::BootMode> {
    match word {
        "UEFI" | "UEFISecureBoot" => Some(server::BootMode::Uefi),
        "legacy" => Some(server::BootMode::Legacy),
        _ => None,
    }
}

/// Takes off the annotations that were heeded, and those that count no more once there is a status.
fn without_heeded(outcome: &Outcome<'_, BareMetalHost>) -> Option<serde_json::Value> {
    let heeded = outcome.step.heeded.iter().filter_map(|request| match request {
        Request::Inspect => Some(names::INSPECT),
        Request::OffOnce => Some(names::REBOOT),
        Request::Release | Request::Provision | Request::Restart | Request::Wiped => None,
    });
    let read = [names::STATUS, names::HARDWARE_DETAILS];
    let gone = heeded.chain(read).filter(|name| outcome.host.annotations().contains_key(*name));
    let annotations: BTreeMap<_, Option<&str>> = gone.map(|name| (name, None)).collect();
    (!annotations.is_empty()).then(|| json!({ "metadata": { "annotations": annotations } }))
}

/// The phase that is shown: a detached host keeps its state.
fn shown_phase(record: &Record) -> Phase {
    match record.phase {
        Phase::Detached | Phase::Parked | Phase::Lent | Phase::Quarantined => record.left.unwrap_or(record.phase),
        phase => phase,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transition_tests;
