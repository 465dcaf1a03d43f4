//! Beskar7Machine: a claim on a PhysicalHost, and the order that goes with it.

use std::collections::BTreeMap;

use api::beskar7::conditions::reason;
use api::beskar7::{
    Beskar7Machine, BootMode, HostRefusal, HostSelector, Mode, ReleasePolicy, SelectorOperator, SelectorRequirement,
    names, phases,
};
use api::capi;
use boot::iso::Firmware;
use engine::claim::{Binds, Goal, Leave, Memory, Refusal, Refused, Road};
use engine::failure::Failure;
use engine::host::Payload;
use engine::placement::{BootWay, Pool, Request, Requirements, Selector, Term, Test};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use super::order::OrderOnHost;
use super::shipment::{boot_url_missing, family, network_boot_missing, payload};
use super::{OURS, PhysicalHosts, machine_status};
use crate::claims::{ClaimDialect, ClaimView, Decided};
use crate::depot::{Check, ImageWords, Question};
use crate::dialect::HostDialect as _;
use crate::fingerprint::digest;
use crate::herald::News;
use crate::object::ObjectId;
use crate::writer::Ownership;

const IMAGE_WORDS: ImageWords = ImageWords {
    image: "imageURL",
    firmware: "bootMode",
    advice: "Use another image, or one that brings its configuration with it, with provisioningMode PreBakedISO.",
};

/// Beskar7Machines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beskar7Machines;

impl ClaimDialect for Beskar7Machines {
    type Claim = Beskar7Machine;
    type Hosts = PhysicalHosts;

    const NAME: &'static str = "beskar7machine";
    const PHASES: &'static [&'static str] = &phases::ALL;
    const FINALIZER: &'static str = names::MACHINE_FINALIZER;
    const OURS: Ownership = OURS;
    const DOMAIN_KEYS: &'static [&'static str] = &[names::ZONE_LABEL];
    const CLUSTER_API: bool = true;

    fn bearers(claim: &ObjectId) -> ListParams {
        ListParams::default().fields(&format!("spec.consumerRef.name={}", claim.name))
    }

    fn pool(machine: &Beskar7Machine) -> Pool {
        Pool::Namespace(machine.namespace().unwrap_or_default())
    }

    fn phase(machine: &Beskar7Machine) -> &'static str {
        let shown = machine.status.as_ref().and_then(|status| status.phase.as_deref());
        phases::ALL.into_iter().find(|phase| Some(*phase) == shown).unwrap_or(phases::PENDING)
    }

    fn goal(view: &ClaimView<'_, Beskar7Machine>) -> Goal {
        let machine = view.claim;
        let is_remote = machine.spec.mode() == Mode::RemoteConfig;
        let is_served = served(view).is_some();
        // What boots from the network need not be configured by us; what belongs to Cluster API is.
        let is_configured = is_remote || (is_served && view.machine.is_some());
        let needs_data = is_configured && machine.spec.given_config_url().is_none();
        let lacks_service = is_remote && !view.has_boot_service;
        let lacks_network = machine.spec.boot.is_some() && !view.boots.serves_network;
        let blocked = lacks_service.then(boot_url_missing).or_else(|| lacks_network.then(network_boot_missing));
        Goal {
            road: road(machine),
            unservable: unservable(machine.spec.mode()),
            blocked: blocked.as_ref().map(refused),
            needs_bootstrap: needs_data.then(no_bootstrap_data),
            needs_image: is_remote || is_served,
            quarantine: machine.spec.release_policy == Some(ReleasePolicy::Quarantine),
            binds: Binds::WhenBooted,
            order: digest(&OrderOnHost::wanted_by(machine).words()),
        }
    }

    fn image(view: &ClaimView<'_, Beskar7Machine>) -> Option<Question> {
        let machine = view.claim;
        let image = machine.spec.image_url.clone()?;
        if let Some(payload) = served(view) {
            return Some(Question { image, check: Check::Network(payload), words: IMAGE_WORDS });
        }
        (machine.spec.mode() == Mode::RemoteConfig).then_some(())?;
        let check = Check::Iso {
            family: family(machine.spec.os_family?).ok()?,
            config_url: machine.spec.given_config_url().map(str::to_owned),
            firmware: machine.spec.boot_mode.map(|mode| match mode {
                BootMode::Uefi => Firmware::Uefi,
                BootMode::Legacy => Firmware::Bios,
            }),
        };
        Some(Question { image, check, words: IMAGE_WORDS })
    }

    fn memory(view: &ClaimView<'_, Beskar7Machine>) -> Memory {
        let machine = view.claim;
        let protected = machine.finalizers().iter().any(|finalizer| finalizer == names::MACHINE_FINALIZER);
        Memory {
            id: machine.annotations().get(names::CLAIM_ID).filter(|id| protected && !id.is_empty()).cloned(),
            provider: machine.spec.provider_id.clone(),
            refusals: machine.status.iter().flat_map(|status| &status.refused_by).map(refusal).collect(),
        }
    }

    fn request(view: &ClaimView<'_, Beskar7Machine>) -> Request {
        let machine = view.claim;
        let wishes = machine.spec.hardware_requirements.unwrap_or_default();
        Request {
            claimant: machine.name_any(),
            since: machine.creation_timestamp().map_or(Timestamp::MIN, |time| time.0),
            pool: Self::pool(machine),
            named: None,
            tolerations: Vec::new(),
            selector: machine.spec.host_selector.as_ref().map(selector).unwrap_or_default(),
            failure_domain: view.machine.as_ref().and_then(|owner| owner.failure_domain.clone()),
            domain_keys: view.domain_keys.clone(),
            requirements: Requirements {
                cores: wishes.min_cpu_cores.unwrap_or(0),
                memory_gb: wishes.min_memory_gb.unwrap_or(0).into(),
                disk_gb: wishes.min_disk_gb.unwrap_or(0).into(),
            },
            way: way(machine),
            refused_by: BTreeMap::default(),
            group: group(machine),
        }
    }

    fn order(view: &ClaimView<'_, Beskar7Machine>, id: &str) -> Value {
        let machine = view.claim;
        let order = OrderOnHost::wanted_by(machine);
        let is_remote = order.remote.as_ref().is_some_and(|remote| remote.config_url.is_none());
        let is_network = order.network.as_ref().is_some_and(|network| network.config_url.is_none());
        let is_served = is_remote || (is_network && served(view).is_some());
        let served = view.machine.as_ref().filter(|_| is_served).and_then(|owner| owner.data_secret.as_ref());
        json!({
            "metadata": { "annotations": {
                names::CLAIM_ID: id,
                names::CLAIM_GROUP: group(machine),
                // What was said about an earlier claim.
                names::RELEASE: null,
            } },
            "spec": {
                "consumerRef": {
                    "apiVersion": Beskar7Machine::api_version(&()),
                    "kind": Beskar7Machine::kind(&()),
                    "namespace": machine.namespace(),
                    "name": machine.name_any(),
                    "uid": machine.uid(),
                },
                "bootIsoSource": order.image,
                "bootIsoMode": order.boot_mode,
                "remoteConfig": order.remote,
                "networkBoot": order.network,
                "bootEveryStart": order.every_start.then_some(true),
                "userDataSecretRef": served.map(|name| json!({ "name": name })),
            },
        })
    }

    fn is_ordered(view: &ClaimView<'_, Beskar7Machine>, on_host: &str) -> bool {
        unservable(view.claim.spec.mode()).is_some() || OrderOnHost::wanted_by(view.claim).words() == on_host
    }

    fn reorder(view: &ClaimView<'_, Beskar7Machine>) -> Value {
        let mut patch = json!({ "spec": Self::order(view, "")["spec"] });
        // The claim stays as it is.
        patch["spec"].as_object_mut().map(|spec| spec.remove("consumerRef"));
        patch
    }

    fn release(_: &ClaimView<'_, Beskar7Machine>, id: &str, now: Timestamp, quarantine: Option<&str>) -> Value {
        let mut patch = PhysicalHosts::without_claim();
        let annotations = &mut patch["metadata"]["annotations"];
        // Only this claim: whatever is claimed later is not released by it.
        annotations[names::RELEASE] = json!(id);
        annotations[names::RELEASED_AT] = json!(super::findings::time(now));
        if let Some(why) = quarantine {
            annotations[names::QUARANTINE] = json!(why);
        }
        patch
    }

    fn quarantine(why: &str) -> Value {
        json!({ "metadata": { "annotations": { names::QUARANTINE: why } } })
    }

    fn provider(provider: &str) -> Value {
        let annotations = json!({ capi::BLOCK_MOVE_ANNOTATION: null });
        json!({ "metadata": { "annotations": annotations }, "spec": { "providerID": provider } })
    }

    fn status(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'_>) -> Option<Value> {
        let status = machine_status::project(view, decided)?;
        if view.claim.status.as_ref() == Some(&status) {
            return None;
        }
        // Plain data with string keys: it cannot fail, and an empty status would be refused.
        serde_json::to_value(status).ok()
    }

    fn news(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'_>) -> Option<News> {
        machine_status::news(view, decided)
    }
}

/// What we serve to the server of a machine that boots from the network, if we do.
fn served(view: &ClaimView<'_, Beskar7Machine>) -> Option<Payload> {
    let network = OrderOnHost::wanted_by(view.claim).network?;
    let payload = payload(&network, view.boots.answers_dhcp).ok().filter(|_| view.boots.serves_network)?;
    (payload != Payload::Site).then_some(payload)
}

fn way(machine: &Beskar7Machine) -> BootWay {
    let OrderOnHost { image, network, .. } = OrderOnHost::wanted_by(machine);
    match (network, image) {
        (Some(_), _) => BootWay::Network,
        (None, Some(url)) => {
            url.split_once("://").map_or(BootWay::Any, |(scheme, _)| BootWay::Image(scheme.to_owned()))
        }
        (None, None) => BootWay::Any,
    }
}

fn refusal(stored: &HostRefusal) -> Refusal {
    Refusal {
        host: stored.host.clone(),
        order: stored.order.clone(),
        why: Refused { reason: stored.reason.clone(), message: stored.message.clone() },
        count: stored.count,
        until: stored.retry_after.0,
    }
}

fn road(machine: &Beskar7Machine) -> Road {
    if machine.metadata.deletion_timestamp.is_none() {
        return Road::Keep;
    }
    let annotations = machine.annotations();
    let says_true = |name: &str| annotations.get(name).is_some_and(|value| value == "true");
    Road::Leave(if annotations.contains_key(capi::DELETE_FOR_MOVE_ANNOTATION) {
        Leave::Move
    } else if says_true(names::FORCE_RELEASE) || says_true(names::UPSTREAM_FORCE_RELEASE) {
        Leave::Force
    } else {
        Leave::Release
    })
}

/// What this version cannot do yet.
fn unservable(mode: Mode) -> Option<Refused> {
    let what = match mode {
        Mode::PreBakedIso | Mode::RemoteConfig | Mode::Pxe | Mode::IPxe => return None,
        Mode::DiskImage => "targetImageURL needs the network boot service",
    };
    Some(Refused {
        reason: reason::MODE_UNSUPPORTED.to_owned(),
        message: format!(
            "{what}, which this version does not have. Use an imageURL with provisioningMode PreBakedISO, RemoteConfig, PXE or iPXE."
        ),
    })
}

fn no_bootstrap_data() -> Refused {
    Refused {
        reason: reason::BOOTSTRAP_DATA_UNAVAILABLE.to_owned(),
        message: "provisioningMode RemoteConfig without configURL hands over the bootstrap data of a Cluster API Machine, and there is none for this machine. Set configURL, or spec.bootstrap of the Machine.".to_owned(),
    }
}

fn refused(failure: &Failure) -> Refused {
    Refused { reason: failure.kind.reason().to_owned(), message: failure.to_string() }
}

/// Machines of one cluster and role are spread over racks.
fn group(machine: &Beskar7Machine) -> String {
    let label = |name: &str| machine.labels().get(name).map(String::as_str);
    let cluster = label(capi::CLUSTER_NAME_LABEL).unwrap_or_default();
    let role = if label(capi::CONTROL_PLANE_LABEL).is_some() { "control-plane" } else { "worker" };
    format!("{cluster}/{role}")
}

fn selector(wish: &HostSelector) -> Selector {
    let labels =
        wish.match_labels.iter().map(|(key, value)| Term { key: key.clone(), test: Test::In([value.clone()].into()) });
    let term = |SelectorRequirement { key, operator, values }: &SelectorRequirement| {
        let values = || values.iter().cloned().collect();
        let test = match operator {
            SelectorOperator::In => Test::In(values()),
            SelectorOperator::NotIn => Test::NotIn(values()),
            SelectorOperator::Exists => Test::Exists,
            SelectorOperator::DoesNotExist => Test::Absent,
        };
        Term { key: key.clone(), test }
    };
    Selector(labels.chain(wish.match_expressions.iter().map(term)).collect())
}
