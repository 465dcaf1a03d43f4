//! Beskar7Machine: a claim on a PhysicalHost, and the order that goes with it.

use api::beskar7::conditions::reason;
use api::beskar7::{Beskar7Machine, HostSelector, Mode, ReleasePolicy, SelectorOperator, SelectorRequirement, names};
use api::capi;
use engine::claim::{Goal, Leave, Memory, Refused, Road};
use engine::placement::{Domain, Request, Requirements, Selector, Term, Test};
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use super::{PhysicalHosts, machine_status};
use crate::claims::{ClaimDialect, ClaimView};
use crate::cluster_api::MachineView;
use crate::dialect::HostDialect as _;

/// Beskar7Machines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beskar7Machines;

impl ClaimDialect for Beskar7Machines {
    type Claim = Beskar7Machine;
    type Hosts = PhysicalHosts;

    const NAME: &'static str = "beskar7machine";
    const FINALIZER: &'static str = names::MACHINE_FINALIZER;
    const FIELD_MANAGER: &'static str = names::FIELD_MANAGER;
    const ID_ANNOTATION: &'static str = names::CLAIM_ID;

    fn goal(machine: &Beskar7Machine) -> Goal {
        Goal {
            road: road(machine),
            unservable: unservable(machine.spec.mode()),
            needs_image: false,
            quarantine: machine.spec.release_policy == Some(ReleasePolicy::Quarantine),
        }
    }

    fn memory(machine: &Beskar7Machine) -> Memory {
        let protected = machine.finalizers().iter().any(|finalizer| finalizer == names::MACHINE_FINALIZER);
        Memory {
            id: machine.annotations().get(names::CLAIM_ID).filter(|id| protected && !id.is_empty()).cloned(),
            provider: machine.spec.provider_id.clone(),
        }
    }

    fn request(machine: &Beskar7Machine, owner: Option<&MachineView>, domain_keys: Vec<String>) -> Request {
        let wishes = machine.spec.hardware_requirements.unwrap_or_default();
        Request {
            claimant: machine.name_any(),
            since: machine.creation_timestamp().map_or(Timestamp::MIN, |time| time.0),
            namespace: machine.namespace().unwrap_or_default(),
            selector: machine.spec.host_selector.as_ref().map(selector).unwrap_or_default(),
            failure_domain: owner
                .and_then(|owner| owner.failure_domain.clone())
                .map(|name| Domain { keys: domain_keys, name }),
            requirements: Requirements {
                cores: wishes.min_cpu_cores.unwrap_or(0),
                memory_gb: wishes.min_memory_gb.unwrap_or(0).into(),
                disk_gb: wishes.min_disk_gb.unwrap_or(0).into(),
            },
            group: group(machine),
        }
    }

    fn order(machine: &Beskar7Machine, id: &str, _: Option<&MachineView>) -> Value {
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
                "bootIsoSource": machine.spec.image_url,
                "bootIsoMode": machine.spec.boot_mode,
            },
        })
    }

    fn release(id: &str, now: Timestamp, quarantine: Option<&str>) -> Value {
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
        json!({ "spec": { "providerID": provider } })
    }

    fn status(view: &ClaimView<'_, Beskar7Machine>) -> Option<Value> {
        let status = machine_status::project(view)?;
        if view.claim.status.as_ref() == Some(&status) {
            return None;
        }
        // Plain data with string keys: it cannot fail, and an empty status would be refused.
        serde_json::to_value(status).ok()
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
        Mode::PreBakedIso => return None,
        Mode::RemoteConfig => "provisioningMode RemoteConfig (which a configURL implies) needs the boot service",
        Mode::Pxe | Mode::IPxe => "provisioningMode PXE and iPXE need the network boot service",
        Mode::DiskImage => "targetImageURL needs the network boot service",
    };
    Some(Refused {
        reason: reason::MODE_UNSUPPORTED.to_owned(),
        message: format!(
            "{what}, which this version does not have. Use an imageURL with provisioningMode PreBakedISO."
        ),
    })
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
