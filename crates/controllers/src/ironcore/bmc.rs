//! BMC: a management controller, and a Server for each system behind it.

use std::collections::BTreeMap;

use api::ironcore::conditions::{self as types, reasons};
use api::ironcore::states::bmc as states;
use api::ironcore::{Bmc, BmcStatus, Endpoint, LocalObjectReference, Server, ServerSpec, names};
use engine::discovery::{Found, Numbers};
use engine::failure::{Class, Failure, Kind};
use engine::hardware::is_same_uuid;
use engine::host::Turn;
use engine::server::{Manager, Scope, Service};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{OURS, access, is_ignored};
use crate::companions::Companion;
use crate::conditions::{finding, put};
use crate::dialect::{Connection, View};
use crate::hands::Job;
use crate::object::ObjectId;
use crate::objects::{Decision, Look, ObjectDialect};
use crate::relatives::Relative;
use crate::writer::Ownership;

/// How often a BMC is asked what is behind it: it seldom changes, its servers are looked at all the time, and where it cannot expand
/// collections, each of its systems is a request.
const REST: SignedDuration = SignedDuration::from_mins(30);
/// How often a BMC that does not answer is tried. The end of an outage is noticed sooner.
const AGAIN: SignedDuration = SignedDuration::from_mins(2);

/// BMCs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bmcs;

/// What is remembered of a BMC.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Memory {
    /// The numbers of its servers.
    systems: Numbers,
    /// What the BMC has refused. It is not tried again with the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl ObjectDialect for Bmcs {
    type Object = Bmc;

    const NAME: &'static str = "bmc";
    const FINALIZER: &'static str = names::BMC_FINALIZER;
    const OURS: Ownership = OURS;
    const SECRET_FIELDS: [&'static str; 2] = ["spec.bmcSecretRef", access::TRUST];

    fn relatives() -> Vec<Relative> {
        super::relatives()
    }

    fn depends_on(view: &View<'_, Bmc>) -> Vec<ObjectId> {
        let endpoint = view.object.spec.endpoint_ref.iter();
        endpoint.map(|endpoint| ObjectId::named::<Endpoint>(None, &endpoint.name)).collect()
    }

    fn connection(view: &View<'_, Bmc>) -> Option<Result<Connection, Failure>> {
        let is_left_alone = is_ignored(view.object) || view.object.metadata.deletion_timestamp.is_some();
        (!is_left_alone).then(|| access::of_bmc(view.object, view.related, &view.settings.ironcore))
    }

    fn step(view: &View<'_, Bmc>, look: &Look<'_>) -> Decision {
        let bmc = view.object;
        if bmc.metadata.deletion_timestamp.is_some() {
            return Decision { finished: true, ..Decision::default() };
        }
        if is_ignored(bmc) {
            return Decision::default();
        }
        let mut decision = Decision::default();
        let mut memory = memory(bmc, view);
        let mut status = BmcStatus { record: None, ..bmc.status.clone().unwrap_or_default() };
        if let Ok(place) = access::place(bmc, view.related) {
            (status.ip, status.mac_address) = (place.ip, place.mac);
        }
        if status.state.is_empty() {
            states::PENDING.clone_into(&mut status.state);
        }
        let ask = Job { number: 0, acts: Vec::new(), look: Scope::Service };
        let is_refused = memory.refused.as_deref() == Some(look.inputs);
        match look.sight.map(|sight| (sight.at, &sight.seen)) {
            None if is_refused => {}
            None => decision.job = Some(ask),
            Some((at, Ok(seen))) => {
                memory.refused = None;
                if let Some(service) = &seen.service {
                    take_in(&mut status, bmc, service);
                    let found = memory.systems.assign(&service.systems);
                    decision.writes.companions = found.iter().map(|found| server(view, found)).collect();
                }
                put(&mut status.conditions, &finding(types::READY, true, reasons::CONNECTED), view.now);
                let rest = at + REST.saturating_mul(800 + i32::from(look.spread) * 400 / 255) / 1000;
                decision.job = (rest <= view.now).then_some(ask);
                decision.again = Some(rest.max(view.now + SignedDuration::from_secs(1)));
            }
            Some((at, Err(failure))) => {
                states::ERROR.clone_into(&mut status.state);
                let told = finding(types::READY, false, reason(failure)).saying(failure.tell(&super::words::BmcWords));
                put(&mut status.conditions, &told, view.now);
                if failure.kind.class() == Class::Auth {
                    memory.refused = Some(look.inputs.to_owned());
                } else {
                    decision.job = (at + AGAIN <= view.now).then_some(ask);
                    decision.again = Some((at + AGAIN).max(view.now + SignedDuration::from_secs(1)));
                }
            }
        }
        status.record = serde_json::to_string(&memory).ok().filter(|_| memory != Memory::default());
        // In a moment there is more to say.
        let is_asked = bmc.status.is_none() && decision.job.is_some();
        let is_new = !is_asked && bmc.status.as_ref() != Some(&status);
        decision.writes.status = is_new.then(|| serde_json::to_value(status).ok()).flatten();
        decision.writes.object = without_owner(bmc);
        decision
    }
}

/// Upstream's reason for a failure.
pub(super) fn reason(failure: &Failure) -> &'static str {
    match failure.kind {
        Kind::AuthenticationFailed | Kind::PasswordChangeRequired => reasons::AUTHENTICATION_FAILED,
        Kind::Unreachable | Kind::Busy | Kind::BreakerOpen | Kind::SessionLimit => reasons::CONNECTION_FAILED,
        Kind::BadAnswer | Kind::TaskFailed => reasons::INTERNAL_SERVER_ERROR,
        kind => kind.reason(),
    }
}

/// The turn of a server among those behind its BMC.
pub(super) fn turn(bmc: &Bmc, uuid: &str) -> Option<Turn> {
    recorded(bmc).systems.turn(uuid)
}

fn recorded(bmc: &Bmc) -> Memory {
    let record = bmc.status.as_ref().and_then(|status| status.record.as_deref());
    record.and_then(|record| serde_json::from_str(record).ok()).unwrap_or_default()
}

/// What is remembered, and what the servers that there are show of it.
fn memory(bmc: &Bmc, view: &View<'_, Bmc>) -> Memory {
    let mut memory = recorded(bmc);
    let name = bmc.name_any();
    for server in view.related.all::<Server>().iter().filter(|server| is_behind(server, &name)) {
        if let Some(number) = number(&name, &server.name_any()) {
            memory.systems.know(&server.spec.system_uuid, number);
        }
    }
    memory
}

fn is_behind(server: &Server, bmc: &str) -> bool {
    server.spec.bmc_ref.as_ref().is_some_and(|reference| reference.name == bmc)
}

fn name_of(bmc: &str, number: u32) -> String {
    format!("{bmc}-system-{number}")
}

fn number(bmc: &str, server: &str) -> Option<u32> {
    server.strip_prefix(bmc)?.strip_prefix("-system-")?.parse().ok()
}

/// The Server of a system: the one that names its UUID, whatever it is called, or a new one.
fn server(view: &View<'_, Bmc>, found: &Found) -> Companion {
    let bmc = view.object.name_any();
    let all = view.related.all::<Server>();
    let known =
        all.iter().find(|server| is_behind(server, &bmc) && is_same_uuid(&server.spec.system_uuid, &found.uuid));
    let name = known.map_or_else(|| name_of(&bmc, found.number), |known| known.name_any());
    let spec = ServerSpec {
        // However its owner has written it.
        system_uuid: known.map_or_else(|| found.uuid.clone(), |known| known.spec.system_uuid.clone()),
        system_uri: found.uri.clone(),
        bmc_ref: Some(LocalObjectReference::new(&bmc)),
        ..ServerSpec::default()
    };
    let mut server = Server::new(&name, spec);
    let labels: BTreeMap<_, _> = view.object.labels().clone();
    server.metadata.labels = (!labels.is_empty()).then_some(labels);
    Companion::like(&server)
}

fn take_in(status: &mut BmcStatus, bmc: &Bmc, service: &Service) {
    let wanted = bmc.spec.bmc_uuid.as_str();
    let is_wanted = |manager: &&Manager| manager.uuid.as_deref().is_some_and(|uuid| is_same_uuid(uuid, wanted));
    let manager = service.managers.iter().find(is_wanted).or_else(|| service.managers.first());
    let Some(manager) = manager else {
        states::ENABLED.clone_into(&mut status.state);
        return;
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    status.manufacturer = text(&manager.manufacturer);
    status.model = text(&manager.model);
    status.sku = text(&manager.part_number);
    status.serial_number = text(&manager.serial_number);
    status.firmware_version = text(&manager.firmware_version);
    status.state = manager.state.clone().unwrap_or_else(|| states::ENABLED.to_owned());
    status.power_state = manager.power_state.clone().unwrap_or_else(|| "Unknown".to_owned());
    let reset = manager.last_reset.as_ref().and_then(|time| time.parse().ok());
    status.last_reset_time = reset.map(Time).or(status.last_reset_time.take());
}

/// Upstream lets an Endpoint own its BMC, so that the deletion of one would be that of the other.
fn without_owner(bmc: &Bmc) -> Option<serde_json::Value> {
    let others: Vec<_> = bmc.owner_references().iter().filter(|owner| owner.kind != "Endpoint").collect();
    (others.len() < bmc.owner_references().len()).then(|| json!({ "metadata": { "ownerReferences": others } }))
}
