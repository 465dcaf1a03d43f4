//! The status of a Beskar7Machine: where its claim stands, in the words of Cluster API.

use api::beskar7::conditions::{self as types, reason};
use api::beskar7::{Beskar7Machine, Beskar7MachineStatus, LocalObjectReference, names, phases};
use api::capi::{AddressType, Condition, Initialization, MachineAddress};
use engine::claim::{Bootstrap, Refused, Standing};
use engine::placement::domain;

use super::findings::{Finding, holds, not, put};
use crate::claims::ClaimView;
use crate::herald::News;
use crate::roster::Holding;

/// The whole status, or `None` while there is nothing to say that lasts.
pub(super) fn project(view: &ClaimView<'_, Beskar7Machine>) -> Option<Beskar7MachineStatus> {
    let before = view.claim.status.clone().unwrap_or_default();
    let was_ready = before.ready == Some(true);
    let mut status = Beskar7MachineStatus { observed_generation: view.claim.metadata.generation, ..before };
    let told = match view.standing {
        standing if is_silent(standing) => return None,
        Standing::Paused(why) => {
            // Nothing but that is written while it is paused.
            let mut status = view.claim.status.clone().unwrap_or_default();
            put(&mut status.conditions, holds(types::PAUSED, reason::PAUSED, why), view.now);
            return Some(status);
        }
        standing => told(standing),
    };
    status.phase = Some(told.phase.to_owned());
    status.host_ref = told.host.map(|name| LocalObjectReference { name: name.to_owned() });
    status.failure_reason = told.failure.map(|refused| refused.reason.clone());
    status.failure_message = told.failure.map(|refused| refused.message.clone());
    if let Standing::Provisioned { .. } = view.standing {
        status.ready = Some(true);
        status.initialization = Some(Initialization { provisioned: Some(true) });
    } else if !was_ready {
        // What was once provisioned stays so; what ails it now is told by a condition.
        status.ready = Some(false);
    }
    if let Some(holding) = view.holding {
        status.addresses = addresses(view.claim, holding);
        status.failure_domain = domain(&holding.labels, &view.domain_keys).map(str::to_owned);
    }
    let ready = Finding { type_: types::READY, ..told.ready.clone() };
    for finding in [ready, told.ready, told.associated].into_iter().chain(bootstrap(view)) {
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
pub(super) fn news(view: &ClaimView<'_, Beskar7Machine>) -> Option<News> {
    if is_silent(view.standing) || matches!(view.standing, Standing::Paused(_)) {
        return None;
    }
    let Finding { severity, reason, message, .. } = told(view.standing).ready;
    let before = view.claim.status.as_ref().and_then(|status| status.condition(types::INFRASTRUCTURE_READY));
    let is_new = before.is_none_or(|before| before.reason != reason);
    is_new.then(|| News { warning: [Condition::WARNING, Condition::ERROR].contains(&severity), reason, message })
}

/// The address that was given, then what the BMC knows.
fn addresses(machine: &Beskar7Machine, holding: &Holding) -> Vec<MachineAddress> {
    let given = machine.spec.static_ip.as_deref().and_then(|text| text.split("::").next());
    let given = given.map(|address| MachineAddress { type_: AddressType::InternalIp, address: address.to_owned() });
    let known =
        holding.addresses.iter().filter(|known| given.as_ref().is_none_or(|given| given.address != known.address));
    given.iter().chain(known).cloned().collect()
}

/// What there is to say.
struct Told<'a> {
    phase: &'static str,
    host: Option<&'a str>,
    ready: Finding,
    associated: Finding,
    failure: Option<&'a Refused>,
}

fn told(standing: &Standing) -> Told<'_> {
    let not_ready = |severity, reason: &str, message: &str| not(types::INFRASTRUCTURE_READY, severity, reason, message);
    let waits = |phase, reason: &str, message: &str| Told {
        phase,
        host: None,
        ready: not_ready(Condition::INFO, reason, message),
        associated: not(types::PHYSICAL_HOST_ASSOCIATED, Condition::INFO, reason, message),
        failure: None,
    };
    let associated =
        |host: &str| holds(types::PHYSICAL_HOST_ASSOCIATED, "Associated", &format!("Claims PhysicalHost {host}."));
    match standing {
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
            waits(phases::PENDING, why.as_ref().map_or("LookingAtImage", |why| why.reason.as_str()), message)
        }
        Standing::AwaitsHost(why) => {
            waits(phases::PENDING, reason::WAITING_FOR_PHYSICAL_HOST, why.as_deref().unwrap_or("Looking for a host."))
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
            ready: match fault {
                Some(fault) => {
                    not_ready(Condition::WARNING, &fault.reason, &format!("PhysicalHost {host}: {}", fault.message))
                }
                None => not_ready(
                    Condition::INFO,
                    reason::PHYSICAL_HOST_NOT_READY,
                    &format!("PhysicalHost {host} is being provisioned; its status tells how far it is."),
                ),
            },
            associated: associated(host),
            failure: None,
        },
        Standing::Provisioned { host, trouble, .. } => Told {
            phase: phases::PROVISIONED,
            host: Some(host),
            ready: match trouble {
                Some(trouble) => not_ready(Condition::WARNING, &trouble.reason, &trouble.message),
                None => holds(
                    types::INFRASTRUCTURE_READY,
                    "Provisioned",
                    &format!("PhysicalHost {host} runs for this machine."),
                ),
            },
            associated: associated(host),
            failure: None,
        },
        Standing::Lost { provider } => {
            let message = format!(
                "The PhysicalHost that this machine was provisioned on ({provider}) is gone or claimed by somebody else. Its server is not touched and no other one is taken. Restore the host, or delete the machine."
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

const BOOTSTRAP_MISSING: &str = "The Secret with the bootstrap data, which the Machine names in spec.bootstrap.dataSecretName, does not exist. Create it; it is noticed at once.";

/// Only said of machines of a cluster.
fn bootstrap(view: &ClaimView<'_, Beskar7Machine>) -> Option<Finding> {
    let machine = view.machine?;
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
        Bootstrap::Ready => Some(holds(types::BOOTSTRAP_DATA_READY, "Ready", "The bootstrap data is there.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_whose_host_is_left_alone_does_not_say_that_its_server_is_switched_off() {
        let standing = |reason: &str, fault: bool| Standing::Releasing {
            host: "server-01".into(),
            wait: Some(Refused { reason: reason.into(), message: "The host is under maintenance.".into() }),
            fault: fault.then(|| Refused { reason: "Unreachable".into(), message: "No answer.".into() }),
        };
        for fault in [false, true] {
            let parked = standing("Maintenance", fault);
            let Finding { severity, reason, message, .. } = told(&parked).ready;
            assert_eq!((severity, reason.as_str()), (Condition::WARNING, "ReleasePhysicalHostFailed"));
            assert!(
                message.starts_with("PhysicalHost server-01 is not released yet and its server is not powered off")
            );
            assert!(message.contains("The host is under maintenance.") && message.contains("force-release=true"));
        }
        assert!(told(&standing("PoweringOff", false)).ready.message.contains("is being switched off"));
    }
}
