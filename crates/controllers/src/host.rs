//! The loop of a host: object → goal and record → step → anchor, status, acts.
//!
//! One status writer, fenced: every write bears the resourceVersion that it was decided on, and acts are handed over
//! only after the writes that explain them.

mod carry_out;

use std::sync::Arc;
use std::time::Duration;

use bmc::Endpoint;
use engine::failure::{Failure, Kind};
use engine::hardware::is_same_uuid;
use engine::host::{
    Anchor, Ask, BmcSight, Deletion, Goal, Hold, Inquiry, Milestone, Payload, Phase, Presence, Proof, Recipe, Record,
    Remembered, Road, Sight, Step, Waiting, step,
};
use engine::server::{Scope, Seen};
use jiff::SignedDuration;
use kube::runtime::reflector::Store;
use kube::{Client, Resource as _, ResourceExt};

use crate::brake::{Answer, Brake};
use crate::clock::Clock;
use crate::companions::Companions;
use crate::consumer;
use crate::depot::{Depot, Session, Sessions};
use crate::dialect::{Attention, Connection, HostDialect, Settings, TrustWish, View, anchor, server_identity};
use crate::drive::Loop;
use crate::fingerprint;
use crate::hands::{Hands, Line};
use crate::herald::Herald;
use crate::index::Index;
use crate::marks::Marks;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::relatives::{Dependents, Related};
use crate::roster::Roster;
use crate::vault::Vault;
use crate::watches::Change;
use crate::writer::{WriteError, Writer};

/// How often one reconcile may step: once, and once more for each question that the step may ask.
const QUESTIONS: usize = 7;

/// How often it is looked whether a paused cluster goes on: clusters are not watched.
const PAUSE_AGAIN: Duration = Duration::from_secs(10);

/// Nothing may be done to a host now, for this reason; but it is looked at, if that was all that was decided.
struct Paused {
    why: String,
    number: u64,
    look: Option<Scope>,
    stranger: bool,
}

/// A step, and the look that it was decided on: what is stored of a server is what was decided on, whatever is seen meanwhile.
struct Decision {
    step: Step,
    bmc: Option<BmcSight>,
}

/// What all reconciles of one dialect share.
pub struct HostLoop<D: HostDialect> {
    pub(crate) client: Client,
    pub(crate) index: Arc<Index>,
    pub(crate) dependents: Arc<Dependents>,
    pub(crate) related: Related,
    pub(crate) companions: Companions,
    pub(crate) marks: Marks,
    pub(crate) vault: Vault,
    pub(crate) hands: Arc<Hands>,
    pub(crate) brake: Arc<Brake>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) herald: Arc<Herald>,
    pub(crate) writer: Writer<D::Host>,
    pub(crate) roster: Arc<Roster>,
    /// Whether machines have clusters here that may be paused.
    pub(crate) cluster_api: bool,
    /// What servers are handed; `None` if nothing can be.
    pub(crate) depot: Option<Arc<Depot>>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) settings: Arc<Settings>,
}

/// A host as one reconcile sees it.
struct Case<'a, D: HostDialect> {
    host: &'a D::Host,
    key: ObjectId,
    goal: Goal,
    remembered: Remembered,
    connection: Result<Connection, Failure>,
    inputs: String,
    target: String,
}

impl<D: HostDialect> Case<'_, D> {
    /// What is remembered of the server, wherever.
    fn anchor(&self) -> Option<&Anchor> {
        let anchor = self.remembered.anchor.as_ref().ok().and_then(Option::as_ref);
        anchor.or(self.remembered.record.as_ref().map(|record| &record.anchor))
    }
}

impl<D: HostDialect> Loop for HostLoop<D> {
    type Object = D::Host;

    fn writer(&self) -> &Writer<D::Host> {
        &self.writer
    }

    async fn decide(&self, host: Arc<D::Host>) -> Result<Option<Duration>, WriteError> {
        self.decide(host).await
    }

    fn take(&self, change: &Change<'_, D::Host>) {
        match change {
            Change::Seen(host) => {
                self.list(&self.view(host));
                let key = ObjectId::of(*host);
                self.welcome(&key);
                if !self.brake.has_begun() {
                    self.recall_place(&key, host);
                }
            }
            Change::Gone(key) => {
                self.index.remove(key);
                self.dependents.remove(key);
                self.forget(key);
            }
            Change::Begin | Change::Complete => {}
        }
        self.roster.take::<D>(change).iter().for_each(|claimant| self.hands.wake(claimant));
    }

    fn count(&self, store: Store<D::Host>) {
        let all = store.clone();
        let hosts = move || {
            let hosts = store.state();
            hosts.iter().map(|host| (host.namespace().unwrap_or_default(), D::state(host))).collect()
        };
        self.metrics.follow_hosts(D::NAME, D::STATES, hosts);
        self.metrics.follow_gauges(D::GAUGES, move || all.state());
        self.metrics.declare(D::METRICS);
    }

    fn decided(&self, is_ok: bool) {
        self.metrics.count(D::decided(is_ok).as_slice());
    }

    fn halt(&self, key: &ObjectId) {
        self.retire(key);
    }

    fn resume(&self, key: &ObjectId) {
        self.welcome(key);
    }
}

impl<D: HostDialect> HostLoop<D> {
    fn view<'a>(&'a self, host: &'a D::Host) -> View<'a, D::Host> {
        View {
            object: host,
            related: &self.related,
            depot: self.depot.as_deref(),
            settings: &self.settings,
            now: self.clock.now(),
        }
    }

    /// Notes which server a host names, and which objects it depends on.
    fn list(&self, view: &View<'_, D::Host>) {
        let connection = self.index.put::<D>(view);
        let secrets = connection.iter().flat_map(Connection::secrets).cloned();
        let others = D::depends_on(view).into_iter().chain(D::marked(view));
        self.dependents.set(&ObjectId::of(view.object), secrets.chain(others).collect());
    }

    /// Decides, and tells when to look again if nothing changes before.
    pub(crate) async fn decide(&self, host: Arc<D::Host>) -> Result<Option<Duration>, WriteError> {
        let host = self.writer.newest(host);
        let host = host.as_ref();
        let key = ObjectId::of(host);
        if !self.hands.knows(&key) {
            // The watch has shown its end after this was begun.
            return Ok(None);
        }
        let ours = host.finalizers().iter().any(|finalizer| finalizer == D::FINALIZER);
        if host.meta().deletion_timestamp.is_some() && !ours {
            self.retire(&key);
            return Ok(None);
        }
        let view = self.view(host);
        if !self.related.is_empty() {
            // What it names may have changed with what it depends on.
            self.list(&view);
        }
        let goal = D::goal(&view);
        match D::attention(&view) {
            // An object that goes on living elsewhere is let go of, whatever else is said.
            _ if goal.road == Road::Delete(Deletion::Move) => {}
            Attention::Full => {}
            Attention::StatusOnly(why) => {
                self.pause(&view, &key, &why, None).await?;
                return Ok(None);
            }
            Attention::Nothing => {
                self.brake.rest(&key);
                return Ok(None);
            }
        }
        let case = self.case(&view, key, goal);
        match self.step(&case).await {
            Ok(decision) => self.carry_out(&case, decision).await,
            Err(Paused { why, number, look, stranger }) => {
                let sight = self.hands.sight(&case.key);
                let seen = shown(sight.as_ref(), &case, stranger);
                self.pause(&view, &case.key, &why, seen).await?;
                self.submit(&case.key, number, Vec::new(), look);
                Ok(Some(PAUSE_AGAIN))
            }
        }
    }

    fn case<'a>(&self, view: &View<'a, D::Host>, key: ObjectId, goal: Goal) -> Case<'a, D> {
        let host = view.object;
        let (anchor, record) = (anchor(host), D::record(host));
        let proof = proof::<D>(view, &anchor, record.as_ref());
        let remembered = Remembered { anchor, record, proof };
        let known = remembered.anchor.as_ref().ok().and_then(Option::as_ref);
        let connection = D::connection(view, known.or(remembered.record.as_ref().map(|record| &record.anchor)));
        let (inputs, target) = match &connection {
            Ok(connection) => {
                (fingerprint::inputs(connection, &self.vault, stored_inputs(&remembered)), connection.target())
            }
            // An address that makes no sense says nothing about the server of a host in use; a free host has none then.
            Err(failure) => {
                let known = remembered.record.as_ref().filter(|record| record.anchor.is_in_use());
                let known = known.and_then(|record| record.target.clone());
                (fingerprint::digest(&failure.to_string()), known.unwrap_or_else(|| "none".to_owned()))
            }
        };
        Case { host, key, goal, remembered, connection, inputs, target }
    }

    /// Steps, answering the questions that the step asks on the way.
    async fn step(&self, case: &Case<'_, D>) -> Result<Decision, Paused> {
        let bmc = self.hands.sight(&case.key);
        if let Some(identity) = bmc.as_ref().and_then(|bmc| identity(bmc, case)) {
            // Whoever has the lesser right learns that now, and not at its next look.
            for rival in self.index.see(&case.key, &identity) {
                self.hands.wake(&rival);
            }
        }
        let session = self.session(&case.key, case.anchor().and_then(Anchor::session));
        let mut sight = Sight {
            now: self.clock.now(),
            inputs: case.inputs.clone(),
            target: case.target.clone(),
            bmc,
            consumer: Presence::NotLookedUp,
            fetched: session.as_ref().and_then(|session| Some(session.fetched.as_ref()?.at.0)),
            handed: session.as_ref().zip(payload(&case.goal)).and_then(|(session, payload)| session.handed(payload)),
            probed: session.as_ref().and_then(|session| Some(session.report.as_ref()?.at.0)),
            claimer: Presence::NotLookedUp,
            rival: self.index.rival(&case.key).map(|rival| rival_words(&case.key, &rival)),
            granted: Vec::new(),
            hold: None,
            spread: spread(&case.key),
        };
        let mut next = step(&case.goal, case.remembered.clone(), &sight);
        let mut may_act = false;
        for _ in 0..QUESTIONS {
            // A paused host that has to be looked at before something can be done to it stays paused meanwhile.
            let is_held = D::shows_pause(case.host) && next.look.is_some() && next.record.wait.is_some();
            if !may_act && (next.ask.is_some() || !next.acts.is_empty() || is_held) {
                self.check_pause(case, &next).await?;
                may_act = true;
                continue;
            }
            if next.inquire == Some(Inquiry::Consumer) && sight.consumer == Presence::NotLookedUp {
                sight.consumer = self.look_up_consumer(&case.key, &next).await;
            } else if next.inquire == Some(Inquiry::Claimer) && sight.claimer == Presence::NotLookedUp {
                sight.claimer = self.look_up_claimer(case).await;
            } else if let Some(ask) = next.ask.filter(|_| sight.hold.is_none()) {
                self.ask_brake(&case.key, ask, &mut sight);
            } else if wants_bmc(&next) && !self.hands.is_connected(&case.key, &case.inputs) {
                match self.connect(case).await {
                    Ok(()) => break,
                    Err(failure) => self.hands.refuse(&case.key, &case.inputs, next.record.acted, failure),
                }
                sight.bmc = self.hands.sight(&case.key);
                sight.now = self.clock.now();
            } else {
                break;
            }
            next = step(&case.goal, case.remembered.clone(), &sight);
        }
        Ok(Decision { step: next, bmc: sight.bmc })
    }

    /// A host whose cluster is paused is looked at, but nothing is done to it.
    async fn check_pause(&self, case: &Case<'_, D>, step: &Step) -> Result<(), Paused> {
        let recorded = step.record.anchor.claim.as_ref().and_then(|claim| claim.consumer.as_ref());
        let consumer = recorded.or(case.goal.consumer.as_ref()).filter(|_| D::CLUSTER_API);
        let Some(consumer) = consumer else { return Ok(()) };
        match consumer::pause(&self.client, consumer, case.key.namespace(), self.cluster_api).await {
            Some(why) => Err(Paused {
                why,
                number: step.record.acted,
                look: step.look.filter(|_| step.acts.is_empty()),
                stranger: step.stranger,
            }),
            None => Ok(()),
        }
    }

    async fn look_up_consumer(&self, key: &ObjectId, step: &Step) -> Presence {
        match &step.record.anchor.claim {
            Some(claim) => consumer::presence(&self.client, claim, key.namespace(), D::CLAIM_ID).await,
            None => Presence::Gone,
        }
    }

    async fn look_up_claimer(&self, case: &Case<'_, D>) -> Presence {
        match &case.goal.claim {
            Some(claim) => consumer::claimer(&self.client, claim, case.key.namespace(), D::CLAIM_ID).await,
            None => Presence::Gone,
        }
    }

    fn ask_brake(&self, key: &ObjectId, ask: Ask, sight: &mut Sight) {
        match self.brake.ask(key, ask) {
            Answer::Go => sight.granted.push(ask),
            Answer::NotNow { limit, again_in } => {
                let again_in = SignedDuration::try_from(again_in).unwrap_or(SignedDuration::from_secs(60));
                sight.hold = Some(Hold { limit, until: sight.now + again_in });
            }
        }
    }

    async fn connect(&self, case: &Case<'_, D>) -> Result<(), Failure> {
        let connection = case.connection.as_ref().map_err(Clone::clone)?;
        let (fields, stored) = ([D::CREDENTIALS_FIELD, D::CA_BUNDLE_FIELD], stored_inputs(&case.remembered));
        connect(&self.hands, &self.vault, &case.key, connection, fields, stored).await
    }

    /// A deployment that an earlier leader began keeps its slot, and who waited for one its place. The whole fleet is listed before
    /// the first host is decided on.
    fn recall_place(&self, key: &ObjectId, host: &D::Host) {
        let Some(record) = D::record(host).filter(|record| record.fault.is_none()) else { return };
        let held = record.wait.as_ref().filter(|wait| matches!(wait.what, Waiting::FleetBrake { .. }));
        match (record.phase, held) {
            (Phase::Preparing, Some(wait)) => self.brake.recall(key, wait.since),
            (Phase::Preparing, None) if record.anchor.milestone == Milestone::Armed => self.brake.resume(key),
            (Phase::Provisioning, _) => self.brake.resume(key),
            _ => {}
        }
    }

    fn session(&self, key: &ObjectId, id: Option<&str>) -> Option<Session> {
        self.sessions.of(key, id)
    }

    /// Nothing is done for it any more. How it ended is remembered until the watch has shown that: it may still show the
    /// host as it was before its deletion, and such a one would be looked at.
    fn retire(&self, key: &ObjectId) {
        self.hands.forget(key);
        self.brake.forget(key);
    }

    /// The watch has shown it.
    pub(crate) fn welcome(&self, key: &ObjectId) {
        self.hands.welcome(key);
    }

    /// The watch has shown its end.
    pub(crate) fn forget(&self, key: &ObjectId) {
        self.retire(key);
        self.writer.forget(key);
    }
}

/// Takes up a way to the BMC of an object. The fields name its credentials and its certificate authorities, for whoever made a mistake there.
pub(crate) async fn connect(
    hands: &Hands,
    vault: &Vault,
    key: &ObjectId,
    connection: &Connection,
    [credentials_field, ca_field]: [&str; 2],
    stored: Vec<&str>,
) -> Result<(), Failure> {
    let credentials = vault.login(&connection.credentials, credentials_field).await?;
    let trust = vault.trust(&connection.trust, ca_field).await?;
    let line = Line {
        key: fingerprint::line(connection, &credentials.word, vault),
        endpoint: Endpoint {
            address: connection.address.clone(),
            credentials: credentials.credentials,
            family: connection.family,
        },
        trust,
        system: connection.system.clone(),
    };
    // Of what was read just now, which may be newer than what this began with: a password is tried once.
    let inputs = fingerprint::inputs(connection, vault, stored);
    hands.connect(key, &inputs, line).map_err(|failure| match &connection.trust {
        TrustWish::CaBundle(secret) if failure.kind == Kind::TrustInvalid => {
            Failure::new(failure.kind, format!("{failure} ({secret:#}). Correct it; the change is noticed at once."))
        }
        _ => failure,
    })
}

/// The inputs that holds and faults are stored for.
fn stored_inputs(remembered: &Remembered) -> Vec<&str> {
    let record = remembered.record.as_ref();
    let anchors = remembered.anchor.iter().flatten().chain(record.map(|record| &record.anchor));
    let held = anchors.filter_map(|anchor| anchor.hold.as_ref()).map(|hold| hold.inputs.as_str());
    let faults = record.into_iter().flat_map(|record| [&record.fault, &record.beneath]).flatten();
    held.chain(faults.map(|fault| fault.inputs.as_str())).collect()
}

/// What another operator has left behind, for hosts that we know nothing of. Of an adopted one we know no more than that it was in use.
pub(crate) fn proof<D: HostDialect>(
    view: &View<'_, D::Host>,
    anchor: &Result<Option<Anchor>, Failure>,
    record: Option<&Record>,
) -> Option<Proof> {
    // What cannot be read is not unknown.
    let annotated = anchor.as_ref().ok()?.as_ref();
    let newest = annotated.into_iter().chain(record.map(|record| &record.anchor)).max_by_key(|anchor| anchor.seq);
    if newest.is_none_or(|anchor| anchor.adopted) { D::proof(view) } else { None }
}

/// The last good look, if it was at the server of this host.
fn shown<'a, D: HostDialect>(sight: Option<&'a BmcSight>, case: &Case<'_, D>, stranger: bool) -> Option<&'a Seen> {
    sight.filter(|sight| !stranger && sight.inputs == case.inputs)?.seen.as_ref().ok()
}

/// Which server a look showed, if it was so deep, and if it is this host's.
fn identity<D: HostDialect>(bmc: &BmcSight, case: &Case<'_, D>) -> Option<String> {
    let seen = bmc.seen.as_ref().ok().filter(|_| bmc.inputs == case.inputs)?;
    let registered = case.anchor().and_then(|anchor| anchor.uuid.as_deref());
    if let (Some(registered), Some(shown)) = (registered, &seen.uuid)
        && !is_same_uuid(registered, shown)
    {
        return None;
    }
    let hardware = seen.hardware.as_ref()?;
    server_identity(hardware.uuid.as_deref(), hardware.serial_number.as_deref())
}

fn wants_bmc(step: &Step) -> bool {
    !step.finished && step.look.is_some()
}

/// Its kind is worth a word only if it is another one.
fn rival_words(key: &ObjectId, rival: &ObjectId) -> String {
    if rival.kind == key.kind { rival.to_string() } else { format!("{rival:#}") }
}

/// What the boot service hands over for the order of a host.
fn payload(goal: &Goal) -> Option<&Payload> {
    match goal.order.as_ref()?.recipe.as_ref().ok()? {
        Recipe::Network { payload, .. } => Some(payload),
        Recipe::Iso { .. } => None,
    }
}

pub(crate) fn spread(key: &ObjectId) -> u8 {
    key.uid
        .iter()
        .flat_map(|uid| uid.bytes())
        .chain(key.name.bytes())
        .fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte))
}

#[cfg(test)]
mod tests {
    use api::beskar7::PhysicalHost;
    use engine::hardware::Hardware;

    use serde_json::json;

    use super::*;
    use crate::beskar7::PhysicalHosts;
    use crate::simulation::Blades;

    #[test]
    fn what_another_operator_has_left_behind_counts_only_where_we_know_no_better() {
        let of = |seq, adopted| Anchor { seq, adopted, ..Anchor::default() };
        let record = |anchor| {
            let record = json!({ "phase": "Provisioned", "since": "2026-11-18T08:00:00Z" });
            Record { anchor, ..serde_json::from_value(record).unwrap() }
        };
        let blade = json!({ "metadata": { "name": "a" }, "spec": { "console": "a" }, "status": { "deployed": true } });
        let blade = serde_json::from_value(blade).unwrap();
        let table = [
            ("nothing is known", Ok(None), None, true),
            ("adopted", Ok(Some(of(1, true))), None, true),
            ("adopted, and the annotation is lost", Ok(None), Some(record(of(1, true))), true),
            ("adopted, as an old manifest says", Ok(Some(of(1, true))), Some(record(of(2, false))), false),
            ("ours", Ok(Some(of(2, false))), Some(record(of(1, true))), false),
            ("ours, and the status is lost", Ok(Some(of(1, false))), None, false),
            ("unreadable", Err(Failure::new(Kind::AnchorUnreadable, "none")), None, false),
        ];
        for (what, anchor, record, counts) in table {
            let proof = proof::<Blades>(&View::alone(&blade), &anchor, record.as_ref());
            assert_eq!(proof, counts.then_some(Proof::Deployed), "{what}");
        }
    }

    #[test]
    fn nothing_of_another_server_is_shown_or_remembered_as_this_ones() {
        let object = json!({
            "metadata": { "name": "a", "namespace": "lab" },
            "spec": { "redfishConnection": { "address": "https://a", "credentialsSecretRef": "bmc" } },
        });
        let host: PhysicalHost = serde_json::from_value(object).unwrap();
        let anchor = Anchor { uuid: Some("registered".into()), ..Anchor::default() };
        let case = Case::<PhysicalHosts> {
            host: &host,
            key: ObjectId::of(&host),
            goal: Goal::default(),
            remembered: Remembered { anchor: Ok(Some(anchor)), record: None, proof: None },
            connection: Err(Failure::new(Kind::Internal, "none")),
            inputs: "i".into(),
            target: "t".into(),
        };
        let now: jiff::Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        for (uuid, is_ours) in [("registered", true), ("another", false)] {
            let serial_number = Some("S1".into());
            let hardware = Hardware { uuid: Some(uuid.into()), serial_number, ..Hardware::default() };
            let seen = Seen { uuid: Some(uuid.into()), hardware: Some(Box::new(hardware)), ..Seen::default() };
            let bmc = BmcSight { at: now, after: 0, inputs: "i".into(), act: None, seen: Ok(seen) };
            let sight = Sight {
                now,
                inputs: "i".into(),
                target: "t".into(),
                bmc: Some(bmc.clone()),
                consumer: Presence::NotLookedUp,
                fetched: None,
                handed: None,
                probed: None,
                claimer: Presence::NotLookedUp,
                rival: None,
                granted: Vec::new(),
                hold: None,
                spread: 0,
            };
            let next = step(&case.goal, case.remembered.clone(), &sight);
            assert_eq!(shown(Some(&bmc), &case, next.stranger).is_some(), is_ours, "{uuid}");
            assert_eq!(identity(&bmc, &case).is_some(), is_ours, "{uuid}");
        }
    }
}
