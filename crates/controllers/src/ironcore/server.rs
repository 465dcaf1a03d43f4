//! Server: the host of metal-operator's kinds.

use std::sync::Arc;

use api::beskar7::names as common;
use api::ironcore::names::{self, operations};
use api::ironcore::states::{boot, claim as phases, power, reclaim, server as states};
use api::ironcore::{
    Bmc, BmcSecret, Endpoint, Server, ServerBootConfiguration, ServerClaim, ServerClaimReference, ServerMaintenance,
    ServerReadinessRule, ServerStatus,
};
use bmc::SystemChoice;
use engine::failure::{Failure, Kind};
use engine::host::{
    Anchor, Author, Claim, Consumer, Deletion, Disks, Gate, Goal, Lasting, NetworkProtocol, Newcomer, Order, Payload,
    Phase, Proof, Recipe, Record, Request, Road, Starts, Turn, Words,
};
use engine::server::Seen;
use kube::{Resource as _, ResourceExt};
use serde_json::{Map, Value, json};

use super::{OURS, Settings, access, counts, is_ignored, maintenance, offer, operation, probe, readiness, status};
use crate::consumer::id_by_words;
use crate::depot::Probed;
use crate::dialect::{Attention, Connection, HostDialect, Outcome, View, Writes, known_anchor, merge, server_identity};
use crate::fingerprint::digest;
use crate::metrics::{Count, OwnGauge, OwnMetric};
use crate::object::ObjectId;
use crate::relatives::{Related, Relative};
use crate::roster::{Free, Offer};
use crate::writer::Ownership;

pub(super) const CLAIM_ID: &str = common::CLAIM_ID;
pub(super) const RELEASE: &str = common::RELEASE;
pub(super) const PROVISION: &str = common::PROVISION;
pub(super) const INSPECT: &str = common::INSPECT;
pub(super) const FORCE_DELETE: &str = common::FORCE_DELETE;

/// Servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Servers;

impl HostDialect for Servers {
    type Host = Server;

    const NAME: &'static str = "ironcore";
    const STATES: &'static [&'static str] = &states::ALL;
    const METRICS: &'static [OwnMetric] = counts::METRICS;
    const GAUGES: &'static [OwnGauge<Server>] = counts::GAUGES;
    const FINALIZER: &'static str = names::SERVER_FINALIZER;
    const OURS: Ownership = OURS;

    const RECORD: &'static [&'static str] = &["status", "record"];
    const CREDENTIALS_FIELD: &'static str = "spec.bmcSecretRef of its BMC";
    const CA_BUNDLE_FIELD: &'static str = access::TRUST;
    const BOOTSTRAP_FIELD: &'static str = "spec.ignitionSecretRef of its ServerBootConfiguration";

    /// Of metal-operator's manager.
    const RIVAL_LEASE: Option<&'static str> = Some("f26702e4.ironcore.dev");

    const CLAIM_ID: &'static str = CLAIM_ID;
    const CLUSTER_API: bool = false;

    fn relatives() -> Vec<Relative> {
        super::relatives()
    }

    fn depends_on(view: &View<'_, Server>) -> Vec<ObjectId> {
        let spec = &view.object.spec;
        let rules = Some(ObjectId::all::<ServerReadinessRule>());
        let bmc = spec.bmc_ref.as_ref().map(|reference| &reference.name);
        let endpoint = bmc.and_then(|name| view.related.get::<Bmc>(None, name)?.spec.endpoint_ref.clone());
        let claim = spec.server_claim_ref.as_ref();
        let names = [
            bmc.map(|name| ObjectId::named::<Bmc>(None, name)),
            endpoint.map(|endpoint| ObjectId::named::<Endpoint>(None, &endpoint.name)),
            claim.map(|claim| ObjectId::named::<ServerClaim>(Some(&claim.namespace), &claim.name)),
            rules,
        ];
        names.into_iter().flatten().chain(probe::depends_on(view.object, &view.settings.ironcore)).collect()
    }

    fn attention(view: &View<'_, Server>) -> Attention {
        if is_ignored(view.object) { Attention::Nothing } else { Attention::Full }
    }

    fn goal(view: &View<'_, Server>) -> Goal {
        goal(view.object, view.related, &view.settings.ironcore)
    }

    fn proof(view: &View<'_, Server>) -> Option<Proof> {
        Some(proof(view.object, view.related))
    }

    fn connection(view: &View<'_, Server>, _: Option<&Anchor>) -> Result<Connection, Failure> {
        let (spec, settings) = (&view.object.spec, &view.settings.ironcore);
        let invalid = |why: String| Failure::new(Kind::AddressInvalid, why);
        let connection = match (&spec.bmc_ref, &spec.bmc) {
            (Some(reference), _) => {
                let bmc = view.related.get::<Bmc>(None, &reference.name).ok_or_else(|| {
                    invalid(format!(
                        "BMC {}, named in spec.bmcRef, does not exist. Create it; it is noticed at once.",
                        reference.name
                    ))
                })?;
                access::of_bmc(&bmc, view.related, settings)?
            }
            (None, Some(inline)) => {
                let secret = ObjectId::named::<BmcSecret>(None, &inline.bmc_secret_ref.name);
                Connection {
                    address: access::address(&inline.address, "spec.bmc.address", &inline.protocol, settings)?,
                    system: SystemChoice::Only,
                    credentials: secret.into(),
                    trust: access::trust(view.object, settings)?,
                    family: None,
                }
            }
            (None, None) => {
                return Err(invalid(
                    "Neither spec.bmcRef nor spec.bmc is set. Name the BMC of the server in one of them.".to_owned(),
                ));
            }
        };
        Ok(Connection { system: SystemChoice::Named(spec.system_uuid.clone()), ..connection })
    }

    fn served(settings: &crate::dialect::Settings) -> Option<&'static str> {
        settings.ironcore.probe.as_ref().map(|_| "")
    }

    fn probed(server: &Server) -> Option<Probed> {
        probe::probed(server)
    }

    fn state(server: &Server) -> &'static str {
        let shown = server.status.as_ref().map_or("", |status| status.state.as_str());
        states::ALL.into_iter().find(|state| *state == shown).unwrap_or(states::INITIAL)
    }

    fn record(server: &Server) -> Option<Record> {
        serde_json::from_str(server.status.as_ref()?.record.as_deref()?).ok()
    }

    fn server_identity(server: &Server) -> Option<String> {
        let serial = server.status.as_ref().map(|status| status.serial_number.as_str());
        let uuid = known_anchor::<Self>(server)?.uuid;
        server_identity(uuid.as_deref(), serial)
    }

    fn offer(server: &Server) -> Offer {
        offer::offer(server)
    }

    fn announced(key: &ObjectId, free: &Free, patch: &Value) -> Option<Anchor> {
        let mut object = json!({ "metadata": { "name": key.name }, "spec": { "systemUUID": "" } });
        merge(&mut object, patch);
        let server: Server = serde_json::from_value(object).ok()?;
        // What is booted waits for the boot configuration.
        Some(free.anchor.announcing_claim(claim(&server)?, free.request.clone()))
    }

    fn without_claim() -> Value {
        json!({
            "metadata": { "annotations": { CLAIM_ID: null } },
            "spec": { "serverClaimRef": null, "bootConfigurationRef": null, "power": null },
        })
    }

    fn decided(is_ok: bool) -> Option<Count> {
        Some(counts::decided(is_ok))
    }

    fn render(outcome: &Outcome<'_, Server>) -> Writes {
        let status = status::project(outcome);
        Writes {
            object: change(outcome, &status),
            events: operation::events(outcome),
            companions: probe::companions(outcome),
            status: status::changed(outcome.host, status),
            ..Writes::default()
        }
    }

    fn paused_status(_: &View<'_, Server>, _: &str, _: Option<&Seen>) -> Option<Value> {
        None
    }

    fn shows_pause(_: &Server) -> bool {
        false
    }

    fn event_reason(reason: &'static str) -> Option<&'static str> {
        Some(status::event_reason(reason))
    }

    fn phase_name(phase: Phase) -> &'static str {
        status::word(phase).unwrap_or(phase.as_str())
    }

    fn words() -> &'static dyn Words {
        &super::words::ServerWords
    }
}

pub(super) fn goal(server: &Server, related: &Related, settings: &Settings) -> Goal {
    let annotation = |name: &str| server.annotations().get(name).filter(|value| !value.is_empty()).cloned();
    let claim = claim(server);
    let claimed = claim.as_ref().and(server.spec.server_claim_ref.as_ref());
    let wish = claimed.map(|reference| wish(reference, related));
    // A server that nobody has is kept off, once it was met.
    let is_met = known_anchor::<Servers>(server).is_some_and(|anchor| anchor.free_since.is_some());
    let is_retained = claim.is_none() && server.spec.server_claim_ref.is_some();
    let maintenance = lent(server, related);
    Goal {
        road: road(server, maintenance.is_some()),
        maintenance: maintenance.map(|maintenance| maintenance::wish(&maintenance, related)).unwrap_or_default(),
        disks: disks(server, settings),
        author: claim.as_ref().map(|claim| author(server, claim)).unwrap_or_default(),
        order: claim.as_ref().zip(wish.as_ref()).map(|(claim, wish)| order(server, claim, wish, related)),
        online: match &wish {
            Some(wish) => wish.online,
            None => is_met.then_some(false),
        },
        claim,
        power_lasts: Lasting::Always,
        quarantine: is_retained && server.spec.reclaim_policy == reclaim::RETAIN,
        newcomer: if settings.enforce_first_boot { Newcomer::SwitchOff } else { Newcomer::AwaitOff },
        gentle_release: true,
        probe: probe::wish(server, related, settings),
        turn: turn(server, related),
        inspect: annotation(INSPECT),
        reboot: operation::restart_id(server, Servers::record(server).as_ref()),
        restart: operation::restart(server).unwrap_or_default(),
        held_off: operation::cut(server),
        release: annotation(RELEASE),
        provision: annotation(PROVISION),
        ..Goal::default()
    }
}

fn turn(server: &Server, related: &Related) -> Option<Turn> {
    let reference = server.spec.bmc_ref.as_ref()?;
    super::bmc::turn(related.get::<Bmc>(None, &reference.name)?.as_ref(), &server.spec.system_uuid)
}

/// The maintenance that has the server. That is written down before anything is done for it.
fn lent(server: &Server, related: &Related) -> Option<Arc<ServerMaintenance>> {
    let holder = server.spec.server_maintenance_ref.as_ref()?;
    let next = maintenance::whose_turn(server, related)?;
    (next.approved && maintenance::reference(&next.maintenance) == *holder).then_some(next.maintenance)
}

fn disks(server: &Server, settings: &Settings) -> Disks {
    let ended = server.annotations().get(RELEASED);
    if !settings.require_sanitized {
        Disks::Kept
    } else if ended.is_some() && server.annotations().get(WIPED) == ended {
        Disks::Wiped
    } else {
        Disks::MustBeWiped
    }
}

fn road(server: &Server, is_lent: bool) -> Road {
    let may_go =
        server.annotations().get(names::OPERATION).is_some_and(|asked| asked == operations::ALLOW_IN_PROGRESS_DELETE);
    if server.metadata.deletion_timestamp.is_some() && (!is_lent || may_go) {
        let force = server.annotations().get(FORCE_DELETE).is_some_and(|value| value == "true");
        return Road::Delete(if force { Deletion::Force } else { Deletion::CleanUp });
    }
    if operation::is_parked(server) {
        // Whoever took it over may switch it on.
        return Road::Park;
    }
    if operation::parks(server) {
        Road::ParkOff
    } else if is_lent {
        Road::Lend
    } else {
        Road::Manage
    }
}

/// The claim on a server. One that was ended, while the reference stays until a person has removed it, is none.
fn claim(server: &Server) -> Option<Claim> {
    let reference = server.spec.server_claim_ref.as_ref()?;
    let consumer = Consumer {
        api_version: ServerClaim::api_version(&()).into_owned(),
        kind: ServerClaim::kind(&()).into_owned(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
    };
    let given = server.annotations().get(CLAIM_ID).filter(|id| !id.is_empty());
    if given.is_none() && is_released(server) {
        return None;
    }
    let id = given.cloned().unwrap_or_else(|| id_by_words(&consumer));
    Some(Claim { id, consumer: Some(consumer) })
}

/// Annotation that we write on a Server when its claim ends: which claim that was. It goes with the reference.
pub(super) const RELEASED: &str = "beskar7.io/released";

/// Annotation for whoever has wiped the disks of a Server: the claim that it had last, as [`RELEASED`] names it. Removed once heeded.
pub(super) const WIPED: &str = "beskar7.io/wiped";

/// Whether the claim that the reference names has ended.
fn is_released(server: &Server) -> bool {
    let reference = server.spec.server_claim_ref.as_ref();
    let named = reference.map(|reference| format!("{}/{}", reference.namespace, reference.name));
    named.is_some() && server.annotations().get(RELEASED) == named.as_ref()
}

fn author(server: &Server, claim: &Claim) -> Author {
    if server.annotations().get(CLAIM_ID) == Some(&claim.id) { Author::Claimer } else { Author::Hand }
}

/// What the claim of a server wants.
struct Wish {
    online: Option<bool>,
    starts: Starts,
    exists: bool,
}

fn wish(reference: &ServerClaimReference, related: &Related) -> Wish {
    let claim = related.get::<ServerClaim>(Some(&reference.namespace), &reference.name);
    let first = claim
        .as_ref()
        .and_then(|claim| claim.annotations().get(names::BOOT))
        .is_some_and(|boot| boot == names::BOOT_FIRST);
    Wish {
        online: claim.as_deref().and_then(super::claim::wanted_power),
        starts: if first { Starts::First } else { Starts::EveryByUs },
        exists: claim.is_some(),
    }
}

fn order(server: &Server, claim: &Claim, wish: &Wish, related: &Related) -> Order {
    let anchor = known_anchor::<Servers>(server);
    Order {
        deployment: digest(&Anchor::words_of_deployment(anchor.as_ref(), &format!("network {}", claim.id))),
        gate: Some(gate(server, wish, related)),
        recipe: Ok(Recipe::Network { protocol: NetworkProtocol::Pxe, payload: Payload::Site, starts: wish.starts }),
    }
}

/// Who must be ready before the server boots.
fn gate(server: &Server, wish: &Wish, related: &Related) -> Gate {
    let closed = |keeper: String| Gate { keeper, open: false };
    if !wish.exists {
        return closed("the ServerClaim in spec.serverClaimRef, which does not exist,".to_owned());
    }
    if wish.online != Some(true) {
        return closed("spec.power: On of the ServerClaim".to_owned());
    }
    let Some(reference) = &server.spec.boot_configuration_ref else {
        return closed("the ServerBootConfiguration of the claim".to_owned());
    };
    let configuration = related.get::<ServerBootConfiguration>(Some(&reference.namespace), &reference.name);
    let is_meant = |configuration: &ServerBootConfiguration| {
        configuration.spec.server_ref.name == server.name_any()
            && configuration.metadata.deletion_timestamp.is_none()
            && !probe::marked_internal(configuration)
    };
    let state = configuration
        .filter(|configuration| is_meant(configuration))
        .and_then(|configuration| configuration.status.clone());
    let keeper = format!("ServerBootConfiguration {}/{}", reference.namespace, reference.name);
    match state.map(|status| status.state).as_deref() {
        Some(boot::READY) => Gate { keeper, open: true },
        Some(boot::ERROR) => closed(format!("{keeper}, whose boot provider reports an error,")),
        _ => closed(keeper),
    }
}

/// What upstream has written down of a server that we know nothing of. What it shows of the power may be old, so a server that somebody has
/// is never taken for one that is off.
fn proof(server: &Server, related: &Related) -> Proof {
    let is_known = server.finalizers().iter().any(|finalizer| finalizer == names::SERVER_FINALIZER);
    let state = server.status.as_ref().map_or("", |status| status.state.as_str());
    let claim = server.spec.server_claim_ref.as_ref();
    let is_claimed = claim.is_some();
    // The claim may remember what the server has lost.
    let is_bound = claim
        .and_then(|claim| related.get::<ServerClaim>(Some(&claim.namespace), &claim.name))
        .filter(|claim| claim.status.as_ref().is_some_and(|status| status.phase == phases::BOUND))
        .and_then(|claim| claim.spec.server_ref.clone())
        .is_some_and(|bound| bound.name == server.name_any());
    match state {
        states::RESERVED | states::MAINTENANCE | states::PARKED | states::CLEANUP if is_claimed => Proof::Deployed,
        "" if is_claimed && (is_known || is_bound) => Proof::Deployed,
        _ => Proof::Free,
    }
}

/// What is to be changed of the object beside its status.
fn change(outcome: &Outcome<'_, Server>, status: &ServerStatus) -> Option<Value> {
    let server = outcome.host;
    let mut annotations = Map::new();
    let mut take_off = |name: &str| {
        if server.annotations().contains_key(name) {
            annotations.insert(name.to_owned(), Value::Null);
        }
    };
    for request in &outcome.step.heeded {
        match request {
            Request::Release => take_off(RELEASE),
            Request::Provision => take_off(PROVISION),
            // The annotation that asked for it is taken off, so one that is there is new.
            Request::OffOnce | Request::Restart => take_off(names::OPERATION),
            Request::Wiped => take_off(WIPED),
            Request::Inspect => {}
        }
    }
    let mut change = json!({});
    let is_over = outcome.goal.claim.is_none() && is_released(server);
    // Until then, a person can see whose claim it was.
    let is_free = !outcome.step.record.anchor.is_in_use();
    if is_over && is_free && server.spec.reclaim_policy != reclaim::RETAIN {
        change["spec"] = json!({ "serverClaimRef": null, "bootConfigurationRef": null });
        take_off(RELEASED);
    } else if is_over && server.spec.boot_configuration_ref.is_some() {
        change["spec"] = json!({ "bootConfigurationRef": null });
    } else if server.spec.server_claim_ref.is_none() {
        take_off(RELEASED);
    }
    operation::follow(outcome, &mut annotations);
    if let Some(taints) = readiness::follow(server, &status.conditions, outcome.related, &mut annotations) {
        change["spec"]["taints"] = json!(taints);
    }
    if !annotations.is_empty() {
        change["metadata"]["annotations"] = Value::Object(annotations);
    }
    // Upstream lets a BMC own its Servers, so that the deletion of one would be that of all.
    let others: Vec<_> = server.owner_references().iter().filter(|owner| owner.kind != Bmc::kind(&())).collect();
    if others.len() < server.owner_references().len() {
        change["metadata"]["ownerReferences"] = json!(others);
    }
    // Without it, the server could never be started again: the claim itself has written it once and does not look any more.
    if outcome.goal.claim.is_some()
        && let (Some(claim), None) = (&server.spec.server_claim_ref, &server.spec.boot_configuration_ref)
    {
        change["spec"]["bootConfigurationRef"] = json!({ "namespace": claim.namespace, "name": claim.name });
    }
    if let Some(reference) = probe::reference(outcome) {
        change["spec"]["bootConfigurationRef"] = reference;
    }
    lend(outcome, &mut change);
    (change != json!({})).then_some(change)
}

/// Says who has the server for maintenance, what it boots for that, and which power it is to have.
fn lend(outcome: &Outcome<'_, Server>, change: &mut Value) {
    let server = outcome.host;
    let next = maintenance::whose_turn(server, outcome.related).filter(|next| next.approved);
    let holder = next.as_ref().map(|next| maintenance::reference(&next.maintenance));
    let is_going = server.metadata.deletion_timestamp.is_some();
    if server.spec.server_maintenance_ref != holder && !(is_going && holder.is_some()) {
        change["spec"]["serverMaintenanceRef"] = json!(holder);
    }
    let template = next.as_ref().and_then(|next| next.maintenance.spec.server_boot_configuration_template.as_ref());
    let configuration = holder.filter(|_| template.is_some());
    if server.spec.maintenance_boot_configuration_ref != configuration {
        change["spec"]["maintenanceBootConfigurationRef"] = json!(configuration);
    }
    let is_lent = outcome.goal.road == Road::Lend;
    let claimed = outcome.goal.claim.as_ref().and(outcome.goal.online);
    let wanted = if is_lent { outcome.goal.maintenance.online } else { claimed };
    let is_over = |field: &str| change["spec"].get(field).is_some_and(Value::is_null);
    let word = match wanted {
        Some(true) => power::ON,
        Some(false) => power::OFF,
        // What is there without a claim or a maintenance is somebody else's, and says nothing.
        None if ["serverClaimRef", "bootConfigurationRef", "serverMaintenanceRef"].into_iter().any(is_over) => "",
        None => return,
    };
    if server.spec.power != word {
        change["spec"]["power"] = if word.is_empty() { Value::Null } else { json!(word) };
    }
}
