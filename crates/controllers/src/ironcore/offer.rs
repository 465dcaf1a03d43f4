//! A Server as those see it who claim one.

use api::ironcore::states::taint;
use api::ironcore::{Server, ServerClaim};
use engine::claim::{Host, Refused};
use engine::host::{self, Anchor, Availability, Goal, Milestone, Overview, Phase, Record};
use engine::placement::{self, Candidate, Taint};
use engine::server::PowerState;
use kube::ResourceExt;

use super::Settings;
use super::server::{Servers, goal};
use super::words::ServerWords;
use crate::dialect::{HostDialect as _, settled_anchor};
use crate::object::ObjectId;
use crate::relatives::Related;
use crate::roster::{Free, Holding, Offer, Waiting};

pub(super) fn offer(server: &Server) -> Offer {
    let anchor = settled_anchor::<Servers>(server).ok().flatten();
    // Whether it can be had is said by the object itself.
    let goal = goal(server, &Related::default(), &Settings::default());
    let record = Servers::record(server);
    let overview = overview(server, &goal, anchor.as_ref(), record.as_ref());
    let candidate = candidate(server, &overview, record.as_ref());
    let holdings = holdings(server, &overview, record.as_ref());
    let is_free = candidate.availability == placement::Availability::Free;
    let free = anchor.filter(|_| is_free).map(|anchor| Box::new(Free { anchor, request: goal.power_request() }));
    Offer { candidate, holdings, free }
}

fn overview<'a>(server: &Server, goal: &'a Goal, anchor: Option<&'a Anchor>, record: Option<&Record>) -> Overview<'a> {
    Overview {
        goal,
        anchor,
        phase: record.map(|record| record.phase),
        fault: record.and_then(|record| record.fault.as_ref()).map(|fault| fault.failure.kind),
        power: record.map_or(PowerState::Unknown, |record| record.power),
        paused: super::is_ignored(server),
    }
}

fn candidate(server: &Server, overview: &Overview<'_>, record: Option<&Record>) -> Candidate {
    let keeps_away = |taint: &&api::ironcore::Taint| matches!(taint.effect.as_str(), "" | taint::NO_BIND);
    let taints = server.spec.taints.iter().filter(keeps_away);
    Candidate {
        namespace: String::new(),
        name: server.name_any(),
        taints: taints.map(|taint| Taint { key: taint.key.clone(), value: taint.value.clone() }).collect(),
        labels: server.labels().clone(),
        availability: availability(server, overview),
        rack: None,
        capacity: None,
        media: None,
        network_boot: None,
        released: record.and_then(|record| record.anchor.free_since),
    }
}

fn availability(server: &Server, overview: &Overview<'_>) -> placement::Availability {
    let state = server.status.as_ref().map(|status| status.state.as_str()).filter(|state| !state.is_empty());
    let state = state.unwrap_or("not looked at yet");
    let why = match overview.availability() {
        Availability::Claimed(claim) => {
            return placement::Availability::Claimed { holder: claim.holder(), group: None };
        }
        _ if server.spec.server_maintenance_ref.is_some() => "under maintenance".to_owned(),
        _ if server.spec.unclaimable => "cordoned: spec.unclaimable is true".to_owned(),
        Availability::Free => return placement::Availability::Free,
        Availability::Running => return placement::Availability::Running,
        Availability::Deleting => "being deleted".to_owned(),
        Availability::Paused => "ignored, as its annotation says".to_owned(),
        Availability::Faulty(kind) => format!("{state}: {}", kind.reason()),
        Availability::SwitchingOff => "being switched off".to_owned(),
        Availability::Quarantined | Availability::Aside | Availability::NotReady(_) => state.to_owned(),
    };
    placement::Availability::Unavailable(why)
}

fn holdings(server: &Server, overview: &Overview<'_>, record: Option<&Record>) -> Vec<Holding> {
    let name = server.name_any();
    let fault = record.and_then(|record| record.fault.as_ref());
    let told = fault.map(|fault| Refused {
        reason: fault.failure.kind.reason().to_owned(),
        message: fault.failure.tell(&ServerWords),
    });
    let wait = record.and_then(|record| record.wait.as_ref());
    let shown = wait.map(|wait| Refused { reason: wait.what.name().to_owned(), message: wait.what.tell(&ServerWords) });
    let holding = |host::Holding { claim, claimed, bound }| {
        let consumer = claim.consumer.unwrap_or_default();
        Holding {
            host: Host {
                name: name.clone(),
                provider: name.clone(),
                claimed,
                bound,
                phase: record.map_or(Phase::Registering, |record| record.phase),
                milestone: overview.anchor.map_or(Milestone::None, |anchor| anchor.milestone),
                ordered: true,
                refusal: told.clone().filter(|_| fault.is_some_and(|fault| fault.failure.kind.refuses_claim())),
                fault: told.clone(),
                wait: shown.clone(),
                power: overview.power,
            },
            claimant: ObjectId::named::<ServerClaim>(Some(&consumer.namespace), &consumer.name),
            id: claim.id,
            addresses: Vec::new(),
            labels: server.labels().clone(),
            uuid: overview.anchor.and_then(|anchor| anchor.uuid.clone()),
            order: String::new(),
            waiting: wait.map(|wait| Waiting {
                message: wait.what.tell(&ServerWords),
                since: Some(wait.since),
                deadline: Some(wait.deadline),
            }),
            next_try: fault.map(|fault| fault.next_try),
            assumed_booted: record.is_some_and(|record| record.assumed_booted),
        }
    };
    overview.holdings().into_iter().map(holding).collect()
}
