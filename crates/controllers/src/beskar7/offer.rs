//! A PhysicalHost as those see it who claim one.

use api::beskar7::conditions::{BOOT_SERVED, HOST_INSPECTED, reason};
use api::beskar7::{Beskar7Machine, HardwareDetails, PhysicalHost, PhysicalHostStatus, ProviderId, names, states};
use api::capi::{self, AddressType, Condition};
use engine::claim::{Host, Refused};
use engine::failure::Kind;
use engine::host::{self, Anchor, Availability, Consumer, Goal, Milestone, Overview, Phase, Record};
use engine::placement::{self, Candidate, Capacity, MediaWays};
use engine::server::PowerState;
use kube::ResourceExt;

use super::PhysicalHosts;
use super::order::OrderOnHost;
use crate::dialect::{HostDialect as _, settled_anchor};
use crate::object::{KindId, ObjectId};
use crate::roster::{Address, Free, Holding, Offer, Waiting};

pub(super) fn offer(host: &PhysicalHost) -> Offer {
    let anchor = settled_anchor::<PhysicalHosts>(host).ok().flatten();
    let goal = super::goal(host, None);
    let record = PhysicalHosts::record(host);
    let overview = overview(host, &goal, anchor.as_ref(), record.as_ref());
    let candidate = candidate(host, &overview);
    let holdings = holdings(host, &overview, record.as_ref());
    let is_free = candidate.availability == placement::Availability::Free;
    let request = goal.power_request();
    let free = anchor.filter(|_| is_free).map(|anchor| Box::new(Free { anchor, request }));
    Offer { candidate, holdings, free }
}

fn candidate(host: &PhysicalHost, overview: &Overview<'_>) -> Candidate {
    let annotation = |name: &str| host.annotations().get(name);
    let hardware = host.status.as_ref().and_then(inventory);
    let hardware = hardware.as_ref();
    Candidate {
        namespace: host.namespace().unwrap_or_default(),
        name: host.name_any(),
        taints: Vec::new(),
        labels: host.labels().clone(),
        availability: availability(host, overview),
        rack: host.labels().get(names::RACK_LABEL).filter(|rack| !rack.is_empty()).cloned(),
        capacity: hardware.map(capacity),
        media: hardware.and_then(media),
        network_boot: hardware.and_then(|hardware| hardware.network_boot),
        released: annotation(names::RELEASED_AT).and_then(|time| time.parse().ok()),
    }
}

/// What the engine can tell of a host from its object.
fn overview<'a>(
    host: &PhysicalHost,
    goal: &'a Goal,
    anchor: Option<&'a Anchor>,
    record: Option<&Record>,
) -> Overview<'a> {
    let status = host.status.as_ref();
    let fault = status.and_then(|status| status.fault.as_ref());
    let power = status.and_then(|status| status.observed_power_state.as_deref()).unwrap_or_default();
    Overview {
        goal,
        anchor,
        phase: record.map(|record| record.phase),
        fault: fault.map(|fault| Kind::named(&fault.reason).unwrap_or(Kind::Internal)),
        power: PowerState::named(power),
        paused: host.annotations().contains_key(capi::PAUSED_ANNOTATION),
    }
}

/// Whether it can be had, in the words that users know.
fn availability(host: &PhysicalHost, overview: &Overview<'_>) -> placement::Availability {
    let state = host.status.as_ref().and_then(|status| status.state.as_deref()).unwrap_or("not looked at yet");
    let why = match overview.availability() {
        Availability::Free => return placement::Availability::Free,
        Availability::Running => return placement::Availability::Running,
        Availability::Claimed(claim) => {
            let group = host.annotations().get(names::CLAIM_GROUP).cloned();
            return placement::Availability::Claimed { holder: claim.holder(), group };
        }
        Availability::Deleting => states::DELETING.to_owned(),
        Availability::Quarantined => states::QUARANTINED.to_owned(),
        Availability::Paused => "Paused".to_owned(),
        Availability::Faulty(kind) => {
            let told = host.status.as_ref().and_then(|status| status.fault.as_ref());
            format!("{state}: {}", told.map_or(kind.reason(), |fault| fault.reason.as_str()))
        }
        Availability::SwitchingOff => "being switched off".to_owned(),
        Availability::Aside | Availability::NotReady(_) => state.to_owned(),
    };
    placement::Availability::Unavailable(why)
}

/// What the server is made of, if that was read since it became this host's.
fn inventory(status: &PhysicalHostStatus) -> Option<HardwareDetails> {
    let inspected = status.condition(HOST_INSPECTED).is_some_and(Condition::is_true);
    Some(status.hardware_details.as_ref().filter(|_| inspected)?.unpack())
}

fn capacity(hardware: &HardwareDetails) -> Capacity {
    Capacity {
        cores: hardware.cores.unwrap_or_else(|| hardware.processors.iter().filter_map(|cpu| cpu.cores).sum()),
        memory_bytes: hardware.memory_mib.unwrap_or(0) << 20,
        disk_bytes: hardware.drives.iter().filter_map(|drive| drive.capacity_bytes).collect(),
    }
}

fn media(hardware: &HardwareDetails) -> Option<MediaWays> {
    let media = hardware.virtual_media.as_ref()?;
    Some(MediaWays { drives: media.drives, schemes: media.schemes.clone() })
}

/// The host as those see it who claim it.
fn holdings(host: &PhysicalHost, overview: &Overview<'_>, record: Option<&Record>) -> Vec<Holding> {
    let holdings = overview.holdings();
    if holdings.is_empty() {
        return Vec::new();
    }
    let anchor = overview.anchor;
    let status = host.status.clone().unwrap_or_default();
    let hardware = status.hardware_details.as_ref().map(api::beskar7::Inventory::unpack);
    let (namespace, name) = (host.namespace().unwrap_or_default(), host.name_any());
    let provider = ProviderId::new(&namespace, &name).map(|id| id.to_string()).unwrap_or_default();
    let fault = status.fault.as_ref().map(|fault| (&fault.reason, &fault.message)).or_else(|| {
        let served = status.condition(BOOT_SERVED).filter(|served| !served.is_true())?;
        Some((&served.reason, &served.message))
    });
    let wait = status.waiting.as_ref().map(|wait| (wait.reason.clone(), wait.message.clone()));
    let wait = left_alone(host).or(wait).map(|(reason, message)| Refused { reason, message });
    let refuses = record.and_then(|record| Some(record.fault.as_ref()?.failure.kind.refuses_claim()));
    let told = |(reason, message): (&String, &String)| Refused { reason: reason.clone(), message: message.clone() };
    holdings
        .into_iter()
        .map(|host::Holding { claim, claimed, bound }| Holding {
            host: Host {
                name: name.clone(),
                provider: provider.clone(),
                claimed,
                bound,
                phase: record.map_or(Phase::Registering, |record| record.phase),
                milestone: anchor.map_or(Milestone::None, |anchor| anchor.milestone),
                // Only its claimer knows what it wants now.
                ordered: true,
                refusal: fault.filter(|_| refuses == Some(true)).map(told),
                fault: fault.map(told),
                wait: wait.clone(),
                power: record.map_or(PowerState::Unknown, |record| record.power),
            },
            claimant: claimant(&claim.consumer.unwrap_or_default()),
            id: claim.id,
            addresses: addresses(&status),
            labels: host.labels().clone(),
            uuid: anchor.and_then(|anchor| anchor.uuid.clone()).or_else(|| hardware.as_ref()?.uuid.clone()),
            order: OrderOnHost::of(host).words(),
            waiting: status.waiting.as_ref().map(waiting),
            next_try: status.fault.as_ref().and_then(|fault| fault.next_try.as_ref()).map(|time| time.0),
            assumed_booted: record.is_some_and(|record| record.assumed_booted),
        })
        .collect()
}

/// References made by hand need not say of which kind their object is.
fn claimant(consumer: &Consumer) -> ObjectId {
    let Consumer { api_version, kind, namespace, name } = consumer;
    let machine = ObjectId::named::<Beskar7Machine>(Some(namespace), name);
    if api_version.is_empty() || kind.is_empty() {
        return machine;
    }
    ObjectId { kind: KindId::referred(api_version, kind), ..machine }
}

/// Why nothing is done to the server, and until when.
fn left_alone(host: &PhysicalHost) -> Option<(String, String)> {
    let paused = capi::PAUSED_ANNOTATION;
    if host.annotations().contains_key(paused) {
        let message =
            format!("The host is paused: nothing is done to its server until its annotation {paused} is removed.");
        return Some((reason::PAUSED.to_owned(), message));
    }
    let maintenance = host.spec.maintenance.as_ref().filter(|_| host.metadata.deletion_timestamp.is_none())?;
    let why = maintenance.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let message =
        format!("The host is under maintenance{why}: nothing is done to its server until spec.maintenance is removed.");
    Some((reason::MAINTENANCE.to_owned(), message))
}

fn waiting(wait: &api::beskar7::Waiting) -> Waiting {
    let is_for_others = engine::host::Waiting::FOR_OTHERS.contains(&wait.reason.as_str());
    Waiting {
        message: wait.message.clone(),
        since: wait.since.as_ref().map(|time| time.0),
        // Nothing but a reminder comes at the deadline of a wait for somebody else.
        deadline: wait.deadline.as_ref().filter(|_| !is_for_others).map(|time| time.0),
    }
}

/// Where it fetched its bootstrap data from is where it runs; what the BMC knows may be from before.
fn addresses(status: &PhysicalHostStatus) -> Vec<Address> {
    let address =
        |kind: AddressType, address: &str| Address { kind: kind.as_str().to_owned(), address: address.to_owned() };
    let fetched = status.fetched_from.as_ref();
    let known = status.addresses.iter().filter(|known| Some(&known.address) != fetched);
    let known = known.map(|known| address(known.type_, &known.address));
    fetched.iter().map(|fetched| address(AddressType::InternalIp, fetched)).chain(known).collect()
}
