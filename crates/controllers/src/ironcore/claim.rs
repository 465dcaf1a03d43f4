//! ServerClaim: a claim on a Server, and the boot configuration that goes with it.

use std::collections::BTreeMap;

use api::ironcore::conditions::{self as types, reasons};
use api::ironcore::states::{claim as phases, power, taint};
use api::ironcore::{
    LocalObjectReference, ServerBootConfiguration, ServerBootConfigurationSpec, ServerClaim, ServerMaintenance, names,
};
use engine::claim::{Binds, Goal, Leave, Memory, Refused, Road, Standing};
use engine::host::{Consumer, Phase};
use engine::placement::{BootWay, Pool, Request, Requirements, Selector, Toleration};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use super::server::{CLAIM_ID, RELEASE, RELEASED, Servers};
use super::{OURS, labels, maintenance};
use crate::claims::{ClaimDialect, ClaimView, Decided, LASTING};
use crate::companions::Companion;
use crate::conditions::{Finding, finding, put};
use crate::consumer::id_by_words;
use crate::depot::Question;
use crate::herald::News;
use crate::object::ObjectId;
use crate::relatives::Relative;
use crate::writer::Ownership;

/// Annotation that we write on a ServerClaim together with `spec.serverRef`: which server it is bound to. The reference alone may be its
/// author's wish.
const BOUND_TO: &str = "beskar7.io/bound-to";

/// ServerClaims.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerClaims;

impl ClaimDialect for ServerClaims {
    type Claim = ServerClaim;
    type Hosts = Servers;

    const NAME: &'static str = "serverclaim";
    const PHASES: &'static [&'static str] = &[phases::BOUND, phases::UNBOUND];
    const FINALIZER: &'static str = names::SERVER_CLAIM_FINALIZER;
    const OURS: Ownership = OURS;
    const DOMAIN_KEYS: &'static [&'static str] = &[];
    const CLUSTER_API: bool = false;

    fn relatives() -> Vec<Relative> {
        super::relatives()
    }

    fn depends_on(view: &ClaimView<'_, ServerClaim>) -> Vec<ObjectId> {
        let namespace = view.claim.namespace();
        let configuration = ObjectId::named::<ServerBootConfiguration>(namespace.as_deref(), &view.claim.name_any());
        let is_bound = view.claim.spec.server_ref.is_some();
        [configuration]
            .into_iter()
            .chain(ignition(view.claim))
            .chain(is_bound.then(ObjectId::all::<ServerMaintenance>))
            .collect()
    }

    fn is_left_alone(claim: &ServerClaim) -> bool {
        super::is_ignored(claim)
    }

    fn bearers(_: &ObjectId) -> ListParams {
        ListParams::default()
    }

    fn pool(_: &ServerClaim) -> Pool {
        Pool::Everything
    }

    fn phase(claim: &ServerClaim) -> &'static str {
        let is_bound = claim.status.as_ref().is_some_and(|status| status.phase == phases::BOUND);
        if is_bound { phases::BOUND } else { phases::UNBOUND }
    }

    fn goal(view: &ClaimView<'_, ServerClaim>) -> Goal {
        let claim = view.claim;
        let is_leaving = claim.metadata.deletion_timestamp.is_some();
        Goal {
            road: if is_leaving { Road::Leave(Leave::Release) } else { Road::Keep },
            unservable: None,
            blocked: selector(claim).err(),
            needs_bootstrap: None,
            needs_image: false,
            quarantine: false,
            binds: Binds::WhenAccepted,
            order: String::new(),
        }
    }

    fn image(_: &ClaimView<'_, ServerClaim>) -> Option<Question> {
        None
    }

    fn memory(view: &ClaimView<'_, ServerClaim>) -> Memory {
        let claim = view.claim;
        let protected = claim.finalizers().iter().any(|finalizer| finalizer == names::SERVER_CLAIM_FINALIZER);
        let annotation = |name: &str| claim.annotations().get(name).filter(|value| !value.is_empty()).cloned();
        // Upstream's claims have no ids, nor do the references to them on their servers: both go by their words.
        let is_upstreams = Self::phase(claim) == phases::BOUND && annotation(CLAIM_ID).is_none();
        let bound = claim.spec.server_ref.as_ref().filter(|_| is_upstreams);
        Memory {
            id: annotation(CLAIM_ID).or_else(|| bound.map(|_| id_by_words(&consumer(claim)))).filter(|_| protected),
            provider: annotation(BOUND_TO).or_else(|| bound.map(|reference| reference.name.clone())),
            refusals: Vec::new(),
        }
    }

    fn request(view: &ClaimView<'_, ServerClaim>) -> Request {
        let claim = view.claim;
        let tolerates =
            |toleration: &&api::ironcore::Toleration| matches!(toleration.effect.as_str(), "" | taint::NO_BIND);
        let tolerations = claim.spec.tolerations.iter().filter(tolerates).map(|toleration| Toleration {
            key: toleration.key.clone(),
            value: (toleration.operator != taint::EXISTS).then(|| toleration.value.clone()),
        });
        Request {
            claimant: ObjectId::of(claim).to_string(),
            since: claim.creation_timestamp().map_or(Timestamp::MIN, |time| time.0),
            pool: Pool::Everything,
            named: claim.spec.server_ref.as_ref().map(|reference| reference.name.clone()),
            tolerations: tolerations.collect(),
            selector: selector(claim).unwrap_or_default(),
            failure_domain: None,
            domain_keys: Vec::new(),
            requirements: Requirements::default(),
            way: BootWay::Network,
            refused_by: BTreeMap::new(),
            group: String::new(),
        }
    }

    fn order(view: &ClaimView<'_, ServerClaim>, id: &str) -> Value {
        let reference = json!({ "namespace": view.claim.namespace(), "name": view.claim.name_any() });
        let mut order = json!({
            "metadata": { "annotations": { CLAIM_ID: id, RELEASE: null, RELEASED: null } },
            "spec": { "serverClaimRef": reference, "bootConfigurationRef": reference },
        });
        // The mirror of what is wanted, which the server's own loop would have to write.
        if let Some(online) = wanted_power(view.claim) {
            order["spec"]["power"] = json!(if online { power::ON } else { power::OFF });
        }
        order
    }

    fn is_ordered(_: &ClaimView<'_, ServerClaim>, _: &str) -> bool {
        // What is booted is said by the boot configuration.
        true
    }

    fn reorder(_: &ClaimView<'_, ServerClaim>) -> Value {
        json!({})
    }

    fn release(view: &ClaimView<'_, ServerClaim>, id: &str, _: Timestamp, _: Option<&str>) -> Value {
        // Whether the reference goes, too, is said by the reclaim policy of the server.
        let ended = format!("{}/{}", view.claim.namespace().unwrap_or_default(), view.claim.name_any());
        json!({ "metadata": { "annotations": { CLAIM_ID: null, RELEASE: id, RELEASED: ended } } })
    }

    fn quarantine(_: &str) -> Value {
        json!({})
    }

    fn provider(server: &str) -> Value {
        json!({ "metadata": { "annotations": { BOUND_TO: server } }, "spec": { "serverRef": { "name": server } } })
    }

    fn change(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>) -> Option<Value> {
        let Standing::Provisioned { host: server, .. } = decided.standing else { return None };
        let is_needed = !maintenance::all_of(server, view.related).is_empty();
        let is_told = view.claim.labels().contains_key(names::MAINTENANCE_NEEDED_LABEL);
        // What its owner has agreed to is over together with what it was for.
        let labels = if is_needed {
            json!({ names::MAINTENANCE_NEEDED_LABEL: "true" })
        } else {
            json!({ names::MAINTENANCE_NEEDED_LABEL: null, names::MAINTENANCE_APPROVED_LABEL: null })
        };
        (is_needed != is_told).then(|| json!({ "metadata": { "labels": labels } }))
    }

    fn needs(view: &ClaimView<'_, ServerClaim>) -> Option<(ObjectId, &'static str, &'static str)> {
        let secret = ignition(view.claim)?;
        Some((secret, "spec.ignitionSecretRef", names::IGNITION_KEY))
    }

    fn companions(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>) -> Vec<Companion> {
        let (claim, name, namespace) = (view.claim, view.claim.name_any(), view.claim.namespace());
        let server = match decided.standing {
            Standing::Provisioned { host, .. } => host,
            Standing::Releasing { .. } | Standing::Left => {
                return vec![Companion::without::<ServerBootConfiguration>(namespace.as_deref(), &name)];
            }
            _ => return Vec::new(),
        };
        let spec = ServerBootConfigurationSpec {
            server_ref: LocalObjectReference::new(server),
            image: claim.spec.image.clone(),
            ignition_secret_ref: claim.spec.ignition_secret_ref.clone(),
        };
        let mut configuration = ServerBootConfiguration::new(&name, spec);
        configuration.metadata.namespace = namespace;
        configuration.metadata.owner_references = claim.controller_owner_ref(&()).map(|owner| vec![owner]);
        vec![Companion::renewed(&configuration)]
    }

    fn status(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>) -> Option<Value> {
        let before = view.claim.status.clone().unwrap_or_default();
        match decided.standing {
            // In a moment there is a server, or a reason why there is none.
            Standing::AwaitsHost(None) if before.phase.is_empty() => return None,
            // In a moment it is bound.
            Standing::Provisioning { fault: None, .. } if !has_waited(view, decided) => return None,
            _ => {}
        }
        let mut status = before.clone();
        let is_bound = matches!(decided.standing, Standing::Provisioned { .. }) || before.phase == phases::BOUND;
        let phase = if is_bound { phases::BOUND } else { phases::UNBOUND };
        phase.clone_into(&mut status.phase);
        put(&mut status.conditions, &ready(view, decided), view.now);
        (status != before).then(|| serde_json::to_value(status).ok()).flatten()
    }

    fn news(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>) -> Option<News> {
        let was_bound = view.claim.status.as_ref().is_some_and(|status| status.phase == phases::BOUND);
        match decided.standing {
            Standing::Provisioned { host, .. } if !was_bound => Some(News {
                warning: false,
                reason: phases::BOUND.to_owned(),
                message: format!("Bound to Server {host}."),
            }),
            _ => None,
        }
    }
}

/// The Secret with what the boot provider hands to the server.
fn ignition(claim: &ServerClaim) -> Option<ObjectId> {
    let reference = claim.spec.ignition_secret_ref.as_ref()?;
    Some(ObjectId::named::<Secret>(claim.namespace().as_deref(), &reference.name))
}

fn consumer(claim: &ServerClaim) -> Consumer {
    Consumer {
        api_version: ServerClaim::api_version(&()).into_owned(),
        kind: ServerClaim::kind(&()).into_owned(),
        namespace: claim.namespace().unwrap_or_default(),
        name: claim.name_any(),
    }
}

/// Whether the server of a claim runs what was asked for, and if not, why.
fn ready(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>) -> Finding {
    let not = |reason: &'static str, message: String| finding(types::READY, false, reason).saying(message);
    match decided.standing {
        Standing::AwaitsHost(why) => {
            not(reasons::NO_SERVER, why.clone().unwrap_or_else(|| "Looking for a server.".to_owned()))
        }
        Standing::Blocked(why) | Standing::Unservable(why) => not(reasons::CLAIM_INVALID, why.message.clone()),
        Standing::Lost { provider } => not(
            reasons::SERVER_LOST,
            format!(
                "Server {provider} does not belong to this claim any more. A claim gets no other server: delete it and create another one."
            ),
        ),
        Standing::Releasing { host, wait, fault } => {
            let why = fault.as_ref().or(wait.as_ref()).map(|why| format!(" {}", why.message)).unwrap_or_default();
            not(reasons::RELEASING, format!("Server {host} is being switched off and cleaned up.{why}"))
        }
        Standing::Provisioned { host, is_off, .. } => bound(view, decided, host, *is_off),
        Standing::Provisioning { host, wait, fault } => {
            let why = fault.as_ref().or(wait.as_ref()).map(|why| format!(" {}", why.message)).unwrap_or_default();
            not(reasons::RESERVING, format!("Server {host} is being reserved.{why}"))
        }
        Standing::Refused { host, why } => {
            not(reasons::RESERVING, format!("Server {host} cannot serve the claim: {}", why.message))
        }
        _ => not(reasons::RESERVING, String::new()),
    }
}

/// Whether the server of a claim has waited for so long that users want to know for what. Each of the others would be a write.
fn has_waited(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>) -> bool {
    let since = decided.holding.and_then(|holding| holding.waiting.as_ref()?.since);
    since.is_some_and(|since| view.now.duration_since(since) >= LASTING)
}

/// Whether a claim wants its server on or off; `None` leaves the power as it is.
pub(super) fn wanted_power(claim: &ServerClaim) -> Option<bool> {
    match claim.spec.power.as_str() {
        power::ON => Some(true),
        power::OFF => Some(false),
        _ => None,
    }
}

fn bound(view: &ClaimView<'_, ServerClaim>, decided: &Decided<'_>, server: &str, is_off: bool) -> Finding {
    let claim = view.claim;
    let not = |reason: &'static str, message: String| finding(types::READY, false, reason).saying(message);
    let host = decided.holding.map(|holding| &holding.host);
    if let Some(fault) = host.and_then(|host| host.fault.as_ref()) {
        return not(reasons::SERVER_FAULTY, format!("Server {server}: {}", fault.message));
    }
    let has_booted = host.is_some_and(|host| host.phase == Phase::Provisioned);
    if let Some(lack) = decided.lack.filter(|_| !has_booted) {
        return not(lack.kind.reason(), lack.to_string());
    }
    match claim.spec.power.as_str() {
        power::ON if has_booted && !is_off => finding(types::READY, true, reasons::SERVER_RUNS),
        power::ON => {
            let mut said = claim.status.iter().flat_map(|status| &status.conditions);
            let said = said.find(|said| said.type_ == types::READY && said.reason == reasons::BOOTING);
            // What was said is not older than a moment.
            let message = said.filter(|_| !has_waited(view, decided)).map(|said| said.message.clone());
            let wait = host.and_then(|host| host.wait.as_ref()).map(|wait| wait.message.clone());
            not(reasons::BOOTING, message.or(wait).unwrap_or_default())
        }
        power::OFF => not(reasons::POWERED_OFF, "The server is off, as spec.power says.".to_owned()),
        other => not(
            reasons::CLAIM_INVALID,
            format!("spec.power is {other:?}, so the power is left as it is. Write On or Off."),
        ),
    }
}

/// The labels that a server must have, or what is wrong with how that is said.
fn selector(claim: &ServerClaim) -> Result<Selector, Refused> {
    let Some(given) = &claim.spec.server_selector else { return Ok(Selector::default()) };
    labels::selector(given).map_err(|why| Refused {
        reason: reasons::CLAIM_INVALID.to_owned(),
        message: format!("{why}; the selector cannot be changed, so create another claim."),
    })
}
