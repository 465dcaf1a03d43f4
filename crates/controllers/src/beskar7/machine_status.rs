//! The status of a Beskar7Machine: where its claim stands, in the words of Cluster API.

use api::beskar7::conditions::{self as types, reason};
use api::beskar7::{Beskar7Machine, Beskar7MachineStatus, HostRefusal, LocalObjectReference, names, phases};
use api::capi::{AddressType, Condition, Initialization, MachineAddress};
use engine::claim::{Bootstrap, Refusal, Refused, Standing};
use engine::placement::domain;
use engine::server::without_secrets;

use super::findings::{Finding, holds, not, put, time, unknown};
use crate::claims::{ClaimView, Decided, LASTING};
use crate::herald::News;
use crate::roster::Holding;

/// The whole status, or `None` while there is nothing to say that lasts.
pub(super) fn project(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'_>) -> Option<Beskar7MachineStatus> {
    let before = view.claim.status.clone().unwrap_or_default();
    let was_ready = before.ready == Some(true);
    let mut status = Beskar7MachineStatus { observed_generation: view.claim.metadata.generation, ..before };
    let told = match decided.standing {
        standing if is_silent(standing) => return None,
        Standing::Paused(why) => {
            // Nothing but that is written while it is paused.
            let mut status = view.claim.status.clone().unwrap_or_default();
            put(&mut status.conditions, holds(types::PAUSED, reason::PAUSED, why), view.now);
            return Some(status);
        }
        _ => told(view, decided),
    };
    status.refused_by = decided.refusals.iter().map(|refusal| stored(refusal, view)).collect();
    status.phase = Some(told.phase.to_owned());
    status.host_ref = told.host.map(|name| LocalObjectReference { name: name.to_owned() });
    status.failure_reason = told.failure.map(|refused| refused.reason.clone());
    status.failure_message = told.failure.map(|refused| refused.message.clone());
    if let Standing::Provisioned { .. } = decided.standing {
        status.ready = Some(true);
        status.initialization = Some(Initialization { provisioned: Some(true) });
    } else if !was_ready {
        // What was once provisioned stays so; what ails it now is told by a condition.
        status.ready = Some(false);
    }
    if let Some(holding) = decided.holding {
        status.addresses = addresses(view.claim, holding);
        status.failure_domain = domain(&holding.labels, &view.domain_keys).map(str::to_owned);
    }
    let ready = Finding { type_: types::READY, ..told.ready.clone() };
    let static_ip = static_ip(view, decided);
    if static_ip.is_none() {
        status.conditions.retain(|condition| condition.type_ != types::STATIC_IP_IN_EFFECT);
    }
    for finding in [ready, told.ready, told.associated].into_iter().chain(bootstrap(decided)).chain(static_ip) {
        put(&mut status.conditions, finding, view.now);
    }
    put(&mut status.conditions, not(types::PAUSED, "", reason::NOT_PAUSED, ""), view.now);
    Some(status)
}

/// A machine that lives elsewhere is none of our business, one without an owner is not written to, and the placer answers in a
/// moment.
fn is_silent(standing: &Standing) -> bool {
    matches!(
        standing,
        Standing::Moving
            | Standing::AwaitsOwner
            | Standing::Left
            | Standing::AwaitsHost(None)
            | Standing::AwaitsImage(None)
    )
}

/// What is told by an event: whenever a machine stands for another reason than before.
pub(super) fn news(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'_>) -> Option<News> {
    if is_silent(decided.standing) || matches!(decided.standing, Standing::Paused(_)) {
        return None;
    }
    let Finding { severity, reason, message, .. } = told(view, decided).ready;
    let before = view.claim.status.as_ref().and_then(|status| status.condition(types::INFRASTRUCTURE_READY));
    let is_new = before.is_none_or(|before| before.reason != reason);
    is_new.then(|| News { warning: [Condition::WARNING, Condition::ERROR].contains(&severity), reason, message })
}

/// The address that was given, then what the BMC knows.
fn addresses(machine: &Beskar7Machine, holding: &Holding) -> Vec<MachineAddress> {
    let given = static_address(machine);
    let known = holding.addresses.iter().filter(|known| Some(known.address.as_str()) != given);
    let known = known.filter_map(|known| Some((AddressType::named(&known.kind)?, known.address.as_str())));
    let all = given.map(|given| (AddressType::InternalIp, given)).into_iter().chain(known);
    all.map(|(type_, address)| MachineAddress { type_, address: address.to_owned() }).collect()
}

/// The address of `staticIP`.
fn static_address(machine: &Beskar7Machine) -> Option<&str> {
    machine.spec.static_ip.as_deref()?.split("::").next()
}

/// Nothing that is booted from an image gets its address from us, so whoever gives one is told what it is for.
fn static_ip(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'_>) -> Option<Finding> {
    let address = static_address(view.claim)?;
    let type_ = types::STATIC_IP_IN_EFFECT;
    let seen = decided.holding.into_iter().flat_map(|holding| &holding.addresses);
    if seen.into_iter().any(|seen| seen.address == address) {
        return Some(holds(
            type_,
            reason::ADDRESS_SEEN,
            &format!("The server has the address {address} of spec.staticIP."),
        ));
    }
    let message = format!(
        "spec.staticIP is shown as an address of the machine, but does not configure the server: a system that is booted from imageURL gets its network from its image, from its configuration or by DHCP. Let these give it {address}, or remove the field."
    );
    Some(unknown(type_, reason::LEFT_TO_THE_IMAGE, &message))
}

/// What there is to say.
struct Told<'a> {
    phase: &'static str,
    host: Option<&'a str>,
    ready: Finding,
    associated: Finding,
    failure: Option<&'a Refused>,
}

fn told<'a>(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'a>) -> Told<'a> {
    let mut told = told_of_standing(view, decided);
    if decided.holding.is_some_and(|holding| holding.host.ignores_order())
        && matches!(decided.standing, Standing::Provisioning { .. } | Standing::Provisioned { .. })
    {
        told.ready.message = format!("{} {ORDER_IGNORED}", told.ready.message);
    }
    told
}

const ORDER_IGNORED: &str = "What the machine asks for (imageURL, bootMode, osFamily or configURL) was changed after its server had been started; that has no effect. To boot another image, create a new machine.";

/// How far the host is: what ails it, else what it waits for if that lasts, else that it is on its way.
fn on_the_way(
    view: &ClaimView<'_, Beskar7Machine>,
    decided: &Decided<'_>,
    host: &str,
    fault: Option<&Refused>,
) -> Finding {
    let not_ready = |severity, reason: &str, message: &str| not(types::INFRASTRUCTURE_READY, severity, reason, message);
    let holding = decided.holding.filter(|holding| holding.host.name == host);
    if let Some(fault) = fault {
        let next_try = holding.and_then(|holding| holding.next_try);
        let next_try = next_try.map(|at| format!(" Next try at {at}.")).unwrap_or_default();
        let message = format!("PhysicalHost {host}: {}{next_try}", fault.message);
        return not_ready(Condition::WARNING, &fault.reason, &message);
    }
    let waiting = |reason: &str, message: &str| not_ready(Condition::INFO, reason, message);
    let reason = reason::PHYSICAL_HOST_NOT_READY;
    let wait = holding.and_then(|holding| holding.waiting.as_ref());
    let lasts = wait.filter(|wait| wait.since.is_none_or(|since| view.now.duration_since(since) >= LASTING));
    if let Some(wait) = lasts {
        let deadline = wait.deadline.map(|at| format!(" Deadline: {at}.")).unwrap_or_default();
        return waiting(reason, &format!("PhysicalHost {host}: {}{deadline}", wait.message));
    }
    // What was said of this host before is not older than a moment.
    let is_of_host = |status: &&Beskar7MachineStatus| status.host_ref.as_ref().is_some_and(|of| of.name == host);
    let before = view.claim.status.as_ref().filter(is_of_host);
    let before = before.and_then(|status| status.condition(types::INFRASTRUCTURE_READY));
    match before.filter(|before| wait.is_some() && before.reason == reason) {
        Some(before) => waiting(reason, &before.message),
        None => waiting(reason, &format!("PhysicalHost {host} is being provisioned.")),
    }
}

/// Why there is no host, and who refused.
fn without_host(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'_>, why: Option<&str>) -> String {
    let why = why.unwrap_or("Looking for a host.");
    let refusals = decided.refusals.iter().filter(|refusal| refusal.holds(view.now)).take(REFUSALS_TOLD);
    let refusals = refusals.map(|Refusal { host, why, until, .. }| {
        format!("{host}: {}: {} It is tried again after {}.", why.reason, why.message, time(*until).0)
    });
    match refusals.collect::<Vec<_>>() {
        refusals if refusals.is_empty() => why.to_owned(),
        refusals => format!("{why} Refused by {}", refusals.join(" ")),
    }
}

/// A sentence with more of them would not be read.
const REFUSALS_TOLD: usize = 5;

fn stored(refusal: &Refusal, view: &ClaimView<'_, Beskar7Machine>) -> HostRefusal {
    HostRefusal {
        host: refusal.host.clone(),
        reason: refusal.why.reason.clone(),
        message: refusal.why.message.chars().take(1024).collect(),
        image: view.claim.spec.image_url.as_deref().map(without_secrets),
        order: refusal.order.clone(),
        count: refusal.count,
        retry_after: time(refusal.until),
    }
}

fn told_of_standing<'a>(view: &ClaimView<'_, Beskar7Machine>, decided: &Decided<'a>) -> Told<'a> {
    let not_ready = |severity, reason: &str, message: &str| not(types::INFRASTRUCTURE_READY, severity, reason, message);
    let waits = |phase, reason: &str, message: &str| Told {
        phase,
        host: None,
        ready: not_ready(Condition::INFO, reason, message),
        associated: not(types::PHYSICAL_HOST_ASSOCIATED, Condition::INFO, reason, message),
        failure: None,
    };
    let associated = |host: &str| {
        holds(types::PHYSICAL_HOST_ASSOCIATED, reason::ASSOCIATED, &format!("Claims PhysicalHost {host}."))
    };
    match decided.standing {
        Standing::NoClusterApi => waits(phases::PENDING, reason::CLUSTER_API_MISSING, CLUSTER_API_MISSING),
        Standing::AwaitsCluster => waits(
            phases::PENDING,
            reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
            "Waiting for the infrastructure of the cluster (its Beskar7Cluster) to be ready.",
        ),
        Standing::AwaitsBootstrap(Bootstrap::Missing) => {
            waits(phases::PENDING, reason::BOOTSTRAP_DATA_UNAVAILABLE, BOOTSTRAP_MISSING)
        }
        Standing::AwaitsBootstrap(_) => waits(
            phases::PENDING,
            reason::WAITING_FOR_BOOTSTRAP_DATA,
            "Waiting for the bootstrap provider to make the bootstrap data.",
        ),
        Standing::Blocked(refused) => Told {
            phase: phases::PENDING,
            host: None,
            ready: not_ready(Condition::ERROR, &refused.reason, &refused.message),
            associated: not(types::PHYSICAL_HOST_ASSOCIATED, Condition::ERROR, &refused.reason, &refused.message),
            failure: None,
        },
        Standing::AwaitsImage(why) => {
            let message = why.as_ref().map_or("Looking at the image.", |why| why.message.as_str());
            waits(phases::PENDING, why.as_ref().map_or(reason::LOOKING_AT_IMAGE, |why| why.reason.as_str()), message)
        }
        Standing::AwaitsHost(why) => {
            waits(phases::PENDING, reason::WAITING_FOR_PHYSICAL_HOST, &without_host(view, decided, why.as_deref()))
        }
        Standing::Refused { host, why } => {
            let message = format!(
                "PhysicalHost {host} cannot serve this machine: {} It is given back, and another one is looked for.",
                why.message
            );
            Told {
                phase: phases::PENDING,
                host: Some(host),
                ready: not_ready(Condition::WARNING, &why.reason, &message),
                associated: not(types::PHYSICAL_HOST_ASSOCIATED, Condition::WARNING, &why.reason, &message),
                failure: None,
            }
        }
        Standing::Unservable(refused) => Told {
            phase: phases::FAILED,
            host: None,
            ready: not_ready(Condition::ERROR, &refused.reason, &refused.message),
            associated: not(types::PHYSICAL_HOST_ASSOCIATED, Condition::ERROR, &refused.reason, &refused.message),
            failure: Some(refused),
        },
        Standing::Provisioning { host, fault, .. } => Told {
            phase: phases::PROVISIONING,
            host: Some(host),
            ready: on_the_way(view, decided, host, fault.as_ref()),
            associated: associated(host),
            failure: None,
        },
        Standing::Provisioned { host, is_off, .. } => Told {
            phase: phases::PROVISIONED,
            host: Some(host),
            ready: match is_off {
                true => not_ready(Condition::WARNING, reason::POWERED_OFF, &format!("PhysicalHost {host} is off.")),
                false if decided.holding.is_some_and(|holding| holding.assumed_booted) => holds(
                    types::INFRASTRUCTURE_READY,
                    reason::PROVISIONED,
                    &format!("PhysicalHost {host}: boot started, not observed."),
                ),
                false => holds(
                    types::INFRASTRUCTURE_READY,
                    reason::PROVISIONED,
                    &format!("PhysicalHost {host} has booted the image for this machine."),
                ),
            },
            associated: associated(host),
            failure: None,
        },
        Standing::Lost { provider } => {
            let message = format!(
                "The PhysicalHost that this machine was provisioned on ({provider}) is gone or claimed by somebody else. Its server is not touched, and the machine will not move to another host. Restore the host, or delete the machine."
            );
            Told {
                phase: phases::FAILED,
                host: None,
                ready: not_ready(Condition::ERROR, reason::HOST_LOST, &message),
                associated: not(types::PHYSICAL_HOST_ASSOCIATED, Condition::ERROR, reason::HOST_LOST, &message),
                failure: None,
            }
        }
        Standing::Releasing { host, fault, wait } => {
            let held =
                wait.as_ref().filter(|wait| [reason::MAINTENANCE, reason::PAUSED].contains(&wait.reason.as_str()));
            let (severity, reason, message) = match (held, fault) {
                (Some(held), _) => (
                    Condition::WARNING,
                    reason::RELEASE_PHYSICAL_HOST_FAILED,
                    format!(
                        "PhysicalHost {host} is not released yet and its server is not powered off: {} To let the machine go without that, annotate it with {}=true; the host is then kept from others.",
                        held.message,
                        names::FORCE_RELEASE
                    ),
                ),
                (None, Some(fault)) => (
                    Condition::WARNING,
                    reason::RELEASE_PHYSICAL_HOST_FAILED,
                    format!(
                        "PhysicalHost {host} cannot be released yet: {} If the server cannot be reached any more, annotate the machine with {}=true: it then goes at once, and the host is kept from others.",
                        fault.message,
                        names::FORCE_RELEASE
                    ),
                ),
                (None, None) => (
                    Condition::INFO,
                    reason::DELETING,
                    format!("PhysicalHost {host} is being switched off and cleaned up."),
                ),
            };
            Told {
                phase: phases::DELETING,
                host: Some(host),
                ready: not_ready(severity, reason, &message),
                associated: associated(host),
                failure: None,
            }
        }
        Standing::Paused(_) | Standing::Moving | Standing::AwaitsOwner | Standing::Left => {
            waits(phases::PENDING, reason::WAITING_FOR_PHYSICAL_HOST, "")
        }
    }
}

const CLUSTER_API_MISSING: &str = "Cluster API is not installed: the kinds Machine and Cluster of cluster.x-k8s.io are not served, so this machine has no owner and nothing is done for it. Install Cluster API (that is noticed within seconds), or start the operator with --without-cluster-api to have machines provisioned without it.";

const BOOTSTRAP_MISSING: &str = "The Secret with the bootstrap data, which the Machine names in spec.bootstrap.dataSecretName, does not exist. Create it; it is noticed at once.";

/// Only said of machines of a cluster.
fn bootstrap(decided: &Decided<'_>) -> Option<Finding> {
    let machine = decided.machine?;
    match machine.bootstrap {
        Bootstrap::None => None,
        Bootstrap::Awaited => Some(not(
            types::BOOTSTRAP_DATA_READY,
            Condition::INFO,
            reason::WAITING_FOR_BOOTSTRAP_DATA,
            "The bootstrap provider has not made the bootstrap data yet.",
        )),
        Bootstrap::Missing => Some(not(
            types::BOOTSTRAP_DATA_READY,
            Condition::WARNING,
            reason::BOOTSTRAP_DATA_UNAVAILABLE,
            BOOTSTRAP_MISSING,
        )),
        Bootstrap::Ready => Some(holds(types::BOOTSTRAP_DATA_READY, reason::READY, "The bootstrap data is there.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::Address;

    fn view(claim: &Beskar7Machine) -> ClaimView<'_, Beskar7Machine> {
        let now = "2026-11-15T08:00:00Z".parse().unwrap();
        ClaimView {
            claim,
            machine: None,
            domain_keys: Vec::new(),
            has_boot_service: false,
            boots: crate::depot::NetworkBoots::default(),
            related: crate::relatives::nobody(),
            now,
        }
    }

    #[test]
    fn a_machine_whose_host_is_left_alone_does_not_say_that_its_server_is_switched_off() {
        let standing = |reason: &str, fault: bool| Standing::Releasing {
            host: "server-01".into(),
            wait: Some(Refused { reason: reason.into(), message: "The host is under maintenance.".into() }),
            fault: fault.then(|| Refused { reason: "Unreachable".into(), message: "No answer.".into() }),
        };
        let claim: Beskar7Machine = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "node"}, "spec": {"imageURL": "http://a/b.iso"}}),
        )
        .unwrap();
        let ready = |standing: &Standing| {
            told(&view(&claim), &Decided { standing, refusals: &[], holding: None, machine: None, lack: None }).ready
        };
        for fault in [false, true] {
            let Finding { severity, reason, message, .. } = ready(&standing("Maintenance", fault));
            assert_eq!((severity, reason.as_str()), (Condition::WARNING, "ReleasePhysicalHostFailed"));
            assert!(
                message.starts_with("PhysicalHost server-01 is not released yet and its server is not powered off")
            );
            assert!(message.contains("The host is under maintenance.") && message.contains("force-release=true"));
        }
        assert!(ready(&standing("PoweringOff", false)).message.contains("is being switched off"));
    }

    #[test]
    fn a_static_ip_that_nothing_configures_is_told_about_until_the_server_is_seen_with_it() {
        let object = |spec: serde_json::Value, status: Option<Beskar7MachineStatus>| -> Beskar7Machine {
            let object = serde_json::json!({"metadata": {"name": "node"}, "spec": spec, "status": status});
            serde_json::from_value(object).unwrap()
        };
        let project = |claim: &Beskar7Machine, addresses: &[&str]| {
            let standing = Standing::Provisioned {
                host: "server-01".into(),
                provider: "b7://lab/server-01".into(),
                is_off: false,
            };
            let host = serde_json::json!({
                "metadata": {"name": "server-01", "namespace": "lab", "annotations": {"beskar7.io/claim-id": "id"}},
                "spec": {
                    "redfishConnection": {"address": "https://a", "credentialsSecretRef": "bmc"},
                    "consumerRef": {"kind": "Beskar7Machine", "name": "node", "namespace": "lab"},
                },
            });
            let host = serde_json::from_value(host).unwrap();
            let mut holding = super::super::offer::offer(&host).holdings.remove(0);
            let address = |address: &&str| Address { kind: "InternalIP".to_owned(), address: (*address).to_owned() };
            holding.addresses = addresses.iter().map(address).collect();
            let (standing, holding) = (&standing, Some(&holding));
            project(&view(claim), &Decided { standing, refusals: &[], holding, machine: None, lack: None }).unwrap()
        };
        let told = |status: &Beskar7MachineStatus| {
            let condition = status.condition(types::STATIC_IP_IN_EFFECT)?;
            Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
        };
        let given = serde_json::json!({"imageURL": "http://a/b.iso", "staticIP": "192.0.2.20::192.0.2.1:24"});

        let status = project(&object(given.clone(), None), &["192.0.2.7"]);
        let (state, reason, message) = told(&status).unwrap();
        assert_eq!((state.as_str(), reason.as_str()), (Condition::UNKNOWN, "LeftToTheImage"));
        assert!(message.contains("spec.staticIP") && message.contains("192.0.2.20"), "{message}");
        assert_eq!(status.addresses[0].address, "192.0.2.20");

        let status = project(&object(given, Some(status)), &["192.0.2.20"]);
        assert_eq!(told(&status).unwrap().0, Condition::TRUE);

        let without = serde_json::json!({"imageURL": "http://a/b.iso"});
        assert_eq!(told(&project(&object(without, Some(status)), &[])), None, "nobody asks any more");
    }
}
