//! Random histories: whatever the owner wants, the BMC does and befalls the loop, what the world checks at every step
//! and every act holds; and when things calm down, every goal is reached.

use proptest::{
    prelude::{Just, Strategy, prop_oneof},
    proptest,
    test_runner::Config,
};

use super::{
    IMAGE, OTHER_IMAGE, claim, kernel, order, order_by, ordered, pxe,
    server::{Runs, Server},
    world::{ITSELF, Mishap, World},
};
use crate::{
    failure::Kind,
    host::{
        Author, Boot, Claim, Deletion, Detachment, Disks, Gate, Goal, HeldOff, Lasting, Maintenance, Manner, Milestone,
        NetworkProtocol, Newcomer, Payload, Phase, Presence, Probe, Proof, Recipe, Restart, Road, Starts,
    },
};

#[derive(Debug, Clone)]
enum Op {
    Run {
        seconds: i64,
        mishap: Option<(u32, Mishap)>,
    },
    Pass(i64),
    Claim(&'static str),
    Announce(&'static str),
    Unclaim,
    Order(Recipe),
    Gate(Option<bool>),
    Unorder,
    Online(Option<bool>),
    AskPower(bool),
    ClaimableWhileRunning(bool),
    Reboot,
    Inspect,
    Road(Road),
    ClaimItself,
    HeldOff(Option<HeldOff>),
    ClaimWaits(bool),
    RestartBy(Restart),
    NeverOff(bool),
    WithoutInventory(bool),
    Newcomer(Newcomer),
    Maintenance(Maintenance),
    Probe(Option<Probe>),
    SilentProbe(bool),
    GentleRelease(bool),
    Disks(Disks),
    External(bool),
    Quarantine(bool),
    Release(Option<&'static str>),
    Provision(Option<&'static str>),
    Consumer(Presence),
    Sign(bool),
    Claimer(Presence),
    Crash,
    LoseStatus,
    LoseAnnotation,
    OldAnnotation,
    GarbleAnnotation,
    LoseBoth,
    /// The same, but it can be seen that somebody has looked after the host.
    Vanish,
    /// Another operator has looked after the host meanwhile, and says truthfully how it stands.
    HandOver,
    Blind(Option<Kind>),
    Refuse(Option<Kind>),
    Lie(i64),
    Slow(i64),
    SlowMedia(i64),
    Ignore(u32),
    Stick(bool),
    Deafen(bool),
    Continuous(bool),
    /// The server asks the network at every start before it boots its disk.
    NetworkFirst(bool),
    SilentBoot(bool),
    SilentProgress(bool),
    ShowsUsedOverride(bool),
    OddNames(bool),
    Mute(Option<Kind>),
    BlindAfterAct(i64),
    Press(bool),
    Brake(bool),
    Rival(bool),
    Readdress(bool),
    Swap(bool),
    NewInputs,
}

fn mishap() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        Just(Mishap::AnchorConflict),
        Just(Mishap::CrashBeforeStatus),
        Just(Mishap::StatusConflict),
        (0..3_usize).prop_map(Mishap::CrashAfterActs),
        Just(Mishap::CrashBeforeLook),
        Just(Mishap::LateSight),
    ]
}

fn failing() -> impl Strategy<Value = Option<Kind>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(Kind::Unreachable)),
        1 => Just(Some(Kind::Busy)),
        1 => Just(Some(Kind::AuthenticationFailed)),
        1 => Just(Some(Kind::Refused)),
        1 => Just(Some(Kind::Unsupported)),
    ]
}

fn maintenance() -> impl Strategy<Value = Maintenance> {
    let boot = (recipe(), proptest::bool::ANY)
        .prop_map(|(recipe, open)| Boot { gate: Gate { keeper: "the boot provider".into(), open }, recipe });
    let online = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    (online, proptest::option::of(boot)).prop_map(|(online, boot)| Maintenance { online, boot })
}

fn probe() -> impl Strategy<Value = Probe> {
    let id = prop_oneof![Just("first"), Just("second")];
    (id, proptest::bool::weighted(0.8)).prop_map(|(id, open)| super::probe(id, open))
}

fn wish() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop_oneof![Just("a"), Just("b")].prop_map(Op::Claim),
        3 => prop_oneof![Just("a"), Just("b")].prop_map(Op::Announce),
        2 => Just(Op::Unclaim),
        4 => recipe().prop_map(Op::Order),
        1 => proptest::option::of(proptest::bool::ANY).prop_map(Op::Gate),
        1 => Just(Op::Unorder),
        3 => prop_oneof![Just(None), Just(Some(true)), Just(Some(false))].prop_map(Op::Online),
        2 => proptest::bool::ANY.prop_map(Op::AskPower),
        1 => proptest::bool::ANY.prop_map(Op::ClaimableWhileRunning),
        2 => Just(Op::Reboot),
        1 => Just(Op::Inspect),
        2 => prop_oneof![2 => Just(Road::Manage), 1 => Just(Road::Park), 1 => Just(Road::ParkOff), 1 => Just(Road::Lend), 1 => Just(Road::Detach(Detachment::AtOnce)), 1 => Just(Road::Detach(Detachment::AtRest))].prop_map(Op::Road),
        2 => other_wish(),
        1 => prop_oneof![Just(None), Just(Some("a")), Just(Some("true"))].prop_map(Op::Release),
        1 => prop_oneof![Just(None), Just(Some("a")), Just(Some("machine-b")), Just(Some("true"))].prop_map(Op::Provision),
        3 => presence().prop_map(Op::Consumer),
        2 => proptest::bool::ANY.prop_map(Op::Sign),
        2 => presence().prop_map(Op::Claimer),
    ]
}

/// What other dialects ask for.
fn other_wish() -> impl Strategy<Value = Op> {
    let manner = || prop_oneof![Just(Manner::Soft), Just(Manner::Hard)];
    prop_oneof![
        2 => Just(Op::ClaimItself),
        2 => proptest::option::of(held_off()).prop_map(Op::HeldOff),
        1 => proptest::bool::weighted(0.3).prop_map(Op::ClaimWaits),
        1 => Just(Op::RestartBy(Restart::Reset)),
        2 => manner().prop_map(|manner| Op::RestartBy(Restart::OffThenOn(manner))),
        1 => proptest::bool::weighted(0.3).prop_map(Op::NeverOff),
        1 => proptest::bool::ANY.prop_map(Op::WithoutInventory),
        1 => prop_oneof![Just(Newcomer::Register), Just(Newcomer::AwaitOff), Just(Newcomer::SwitchOff)].prop_map(Op::Newcomer),
        1 => proptest::bool::ANY.prop_map(Op::GentleRelease),
        1 => maintenance().prop_map(Op::Maintenance),
        2 => proptest::option::weighted(0.8, probe()).prop_map(Op::Probe),
        1 => proptest::bool::ANY.prop_map(Op::SilentProbe),
        1 => prop_oneof![2 => Just(Disks::Kept), 1 => Just(Disks::MustBeWiped), 1 => Just(Disks::Wiped)].prop_map(Op::Disks),
        2 => proptest::bool::ANY.prop_map(Op::External),
        1 => proptest::bool::ANY.prop_map(Op::Quarantine),
    ]
}

fn held_off() -> impl Strategy<Value = HeldOff> {
    let manner = prop_oneof![Just(Manner::Soft), Just(Manner::Hard)];
    let any = || proptest::bool::ANY;
    (manner, any(), any(), any())
        .prop_filter("it asks for something", |(_, lasts, once, _)| *lasts || *once)
        .prop_map(|(manner, lasts, once, also_free)| HeldOff { manner, lasts, once, also_free })
}

fn lasting() -> impl Strategy<Value = Lasting> {
    prop_oneof![2 => Just(Lasting::UntilClaim), 2 => Just(Lasting::UntilRelease), 1 => Just(Lasting::Always)]
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let iso = |url: &str, starts| Recipe::Iso { url: url.into(), starts };
    prop_oneof![
        Just(iso(IMAGE, Starts::First)),
        Just(iso(OTHER_IMAGE, Starts::First)),
        Just(iso(IMAGE, Starts::EveryByUs)),
        Just(pxe(Starts::First)),
        Just(pxe(Starts::EveryByUs)),
        Just(kernel(Starts::First)),
        Just(kernel(Starts::EveryByUs)),
        Just(Recipe::Network {
            protocol: NetworkProtocol::Http { uri: None },
            payload: Payload::Site,
            starts: Starts::First
        }),
    ]
}

fn presence() -> impl Strategy<Value = Presence> {
    prop_oneof![
        Just(Presence::Exists),
        Just(Presence::Gone),
        Just(Presence::Leaving),
        Just(Presence::Unknown("forbidden".into())),
    ]
}

fn trouble() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => Just(Op::Crash),
        2 => Just(Op::LoseStatus),
        1 => Just(Op::LoseAnnotation),
        1 => Just(Op::OldAnnotation),
        1 => Just(Op::GarbleAnnotation),
        1 => Just(Op::LoseBoth),
        1 => Just(Op::Vanish),
        1 => Just(Op::HandOver),
        3 => failing().prop_map(Op::Blind),
        3 => failing().prop_map(Op::Refuse),
        2 => (0..30_i64).prop_map(Op::Lie),
        1 => (0..120_i64).prop_map(Op::Slow),
        2 => (0..59_i64).prop_map(Op::SlowMedia),
        2 => (0..5_u32).prop_map(Op::Ignore),
        1 => proptest::bool::ANY.prop_map(Op::Stick),
        1 => proptest::bool::ANY.prop_map(Op::Deafen),
        1 => proptest::bool::ANY.prop_map(Op::Continuous),
        1 => proptest::bool::ANY.prop_map(Op::NetworkFirst),
        1 => proptest::bool::ANY.prop_map(Op::SilentBoot),
        1 => proptest::bool::ANY.prop_map(Op::SilentProgress),
        1 => proptest::bool::ANY.prop_map(Op::ShowsUsedOverride),
        1 => proptest::bool::ANY.prop_map(Op::OddNames),
        1 => prop_oneof![Just(None), Just(Some(Kind::Busy)), Just(Some(Kind::TaskFailed)), Just(Some(Kind::Unreachable))]
            .prop_map(Op::Mute),
        1 => (0..120_i64).prop_map(Op::BlindAfterAct),
        2 => proptest::bool::ANY.prop_map(Op::Press),
        1 => proptest::bool::ANY.prop_map(Op::Brake),
        1 => Just(Op::NewInputs),
        1 => proptest::bool::ANY.prop_map(Op::Rival),
        1 => proptest::bool::ANY.prop_map(Op::Readdress),
        1 => proptest::bool::ANY.prop_map(Op::Swap),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![3 => 1..5_i64, 3 => 5..120_i64, 1 => 120..4000_i64];
    let run =
        (length, proptest::option::of((0..8_u32, mishap()))).prop_map(|(seconds, mishap)| Op::Run { seconds, mishap });
    prop_oneof![
        5 => run,
        1 => (1..3600_i64).prop_map(Op::Pass),
        4 => wish(),
        3 => trouble(),
    ]
}

/// How a history begins.
#[derive(Debug, Clone, Copy)]
enum Start {
    Unknown,
    UnknownAndRunning,
    Probing,
    CreatedInUse,
    Available,
    /// A machine claims a server that somebody has just switched on.
    ClaimedWhileRunning,
    Provisioning,
    Provisioned,
}

fn start() -> impl Strategy<Value = Start> {
    prop_oneof![
        Just(Start::Unknown),
        Just(Start::UnknownAndRunning),
        Just(Start::Probing),
        Just(Start::CreatedInUse),
        Just(Start::Available),
        Just(Start::ClaimedWhileRunning),
        Just(Start::Provisioning),
        Just(Start::Provisioned),
    ]
}

impl Start {
    fn world(self) -> World {
        match self {
            Self::Unknown => World::new(Goal::default(), Server::off()),
            Self::UnknownAndRunning => World::new(Goal::default(), Server::running()),
            Self::Probing => {
                let mut world = World::new(super::probed("first"), Server::off());
                world.run(60);
                world
            }
            Self::CreatedInUse => World::new(ordered("a", IMAGE), Server::running()),
            Self::Available => World::available(),
            Self::ClaimedWhileRunning => {
                let mut world = World::with(Goal { author: Author::Claimer, ..ordered("a", IMAGE) });
                world.press(true);
                world
            }
            Self::Provisioning => World::with(ordered("a", IMAGE)),
            Self::Provisioned => World::provisioned(),
        }
    }
}

/// How a history ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Nobody claims the host.
    Free,
    /// Somebody new does, with an order.
    NewClaim,
    /// Whoever has claimed it keeps it.
    Keep,
    /// The reference vanished, but the consumer lives.
    Torn,
    Park,
    Detach,
    Delete,
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Free),
        Just(End::NewClaim),
        Just(End::Keep),
        Just(End::Torn),
        Just(End::Park),
        Just(End::Detach),
        Just(End::Delete),
    ]
}

impl World {
    fn apply(&mut self, op: &Op) {
        let goal = &mut self.goal;
        let temper = &mut self.server.temper;
        match op {
            Op::Run { seconds, mishap } => self.run_with(*seconds, *mishap),
            Op::Pass(seconds) => self.pass(*seconds),
            Op::Claim(id) => {
                goal.claim = Some(claim(id));
                self.align_order();
            }
            Op::Unclaim => {
                goal.claim = None;
                goal.order = None;
            }
            Op::Order(recipe) => {
                goal.order = goal.claim.as_ref().map(|claim| order_by(&claim.id, recipe.clone()));
            }
            Op::Gate(open) => {
                let gate = open.map(|open| Gate { keeper: "the boot operator".into(), open });
                if let Some(order) = &mut goal.order {
                    order.gate = gate;
                }
            }
            Op::Announce(id) => self.announce(id),
            Op::Unorder => goal.order = None,
            Op::Online(online) => goal.online = *online,
            Op::AskPower(on) => {
                goal.online = Some(*on);
                goal.power_id = Some(format!("power-{}", self.steps));
            }
            Op::ClaimableWhileRunning(yes) => goal.claimable_while_running = *yes,
            Op::Reboot => goal.reboot = Some(format!("reboot-{}", self.steps)),
            Op::Inspect => goal.inspect = Some(format!("inspect-{}", self.steps)),
            Op::Road(road) => goal.road = *road,
            Op::ClaimItself => {
                goal.claim = Some(Claim { id: ITSELF.into(), consumer: None });
                self.align_order();
            }
            Op::HeldOff(held) => goal.held_off = *held,
            Op::ClaimWaits(yes) => goal.claim_waits = *yes,
            Op::RestartBy(restart) => goal.restart = *restart,
            Op::NeverOff(yes) => goal.never_off = *yes,
            Op::WithoutInventory(yes) => goal.without_inventory = *yes,
            Op::Newcomer(newcomer) => goal.newcomer = *newcomer,
            Op::Maintenance(maintenance) => goal.maintenance.clone_from(maintenance),
            Op::Probe(probe) => goal.probe.clone_from(probe),
            Op::SilentProbe(yes) => self.silent_probe = *yes,
            Op::GentleRelease(yes) => goal.gentle_release = *yes,
            Op::Disks(disks) => goal.disks = *disks,
            Op::External(yes) => goal.external = *yes,
            Op::Quarantine(yes) => goal.quarantine = *yes,
            Op::Release(id) => goal.release = id.map(str::to_owned),
            Op::Provision(id) => goal.provision = id.map(str::to_owned),
            Op::Consumer(presence) => self.consumer = presence.clone(),
            Op::Sign(yes) => goal.author = if *yes { Author::Claimer } else { Author::Hand },
            Op::Claimer(presence) => self.claimer = presence.clone(),
            Op::Crash => self.crash(),
            Op::LoseStatus => {
                if self.is_anchored() {
                    self.status = None;
                }
            }
            Op::LoseAnnotation => {
                if self.status.is_some() {
                    self.annotation = None;
                }
            }
            Op::OldAnnotation => {
                if self.status.is_some() {
                    self.annotation = self.anchors.first().cloned();
                }
            }
            Op::GarbleAnnotation => {
                if self.is_anchored() {
                    self.annotation = Some("{\"v\":99}".into());
                }
            }
            Op::HandOver => {
                let known = self.status.as_ref().map(|record| &record.anchor);
                let proof = known.and_then(|anchor| match anchor.milestone {
                    Milestone::None if anchor.claim.is_none() => Some(Proof::Free),
                    Milestone::Provisioned
                        if !anchor.adopted
                            && anchor.claim == goal.claim
                            && anchor.deployment == goal.order.as_ref().map(|order| order.deployment.clone()) =>
                    {
                        Some(Proof::Deployed)
                    }
                    Milestone::Releasing => Some(Proof::Releasing),
                    _ => None,
                });
                if let Some(proof) = proof.filter(|_| self.is_anchored()) {
                    self.apply(&Op::LoseBoth);
                    self.proof = Some(proof);
                    self.runs_for = self.runs_for.take().filter(|_| proof == Proof::Deployed);
                }
            }
            Op::Vanish => {
                self.apply(&Op::LoseBoth);
                self.proof = Some(Proof::InUse);
            }
            Op::LoseBoth => {
                self.proof = None;
                self.annotation = None;
                self.status = None;
                self.runs_for = goal.claim.as_ref().map(|claim| claim.id.clone());
                self.may_release = false;
                // Its owner may have it provisioned again: nobody knows what it was started for.
                self.started = None;
                self.forget_requests();
            }
            Op::Blind(kind) => temper.blind = *kind,
            Op::Refuse(kind) => temper.refuses = *kind,
            Op::Lie(seconds) => temper.lies = *seconds,
            Op::Slow(seconds) => temper.slow = *seconds,
            Op::SlowMedia(seconds) => temper.slow_media = *seconds,
            Op::Ignore(boots) => temper.ignores = *boots,
            Op::Stick(yes) => temper.stuck = *yes,
            Op::Deafen(yes) => temper.deaf = *yes,
            Op::Continuous(yes) => temper.continuous = *yes,
            Op::NetworkFirst(yes) => temper.network_first = *yes,
            Op::SilentBoot(yes) => temper.silent_boot = *yes,
            Op::SilentProgress(yes) => temper.silent_progress = *yes,
            Op::ShowsUsedOverride(yes) => temper.shows_used_override = *yes,
            Op::OddNames(yes) => temper.odd_names = *yes,
            Op::Mute(kind) => temper.mute = *kind,
            Op::BlindAfterAct(seconds) => temper.blind_after_act = *seconds,
            Op::Press(on) => self.press(*on),
            Op::Brake(yes) => self.braked = *yes,
            Op::Rival(yes) => self.rival = yes.then(|| "default/first".into()),
            Op::Readdress(yes) => self.target = if *yes { "elsewhere" } else { "bmc" }.into(),
            Op::Swap(yes) => self.server.uuid = Some(if *yes { "u-2" } else { "u-1" }.into()),
            Op::NewInputs => self.inputs = format!("inputs-{}", self.steps),
        }
    }

    /// An order belongs to its claim.
    fn align_order(&mut self) {
        let Some(claim) = &self.goal.claim else { return };
        let Some(Ok(recipe)) = self.goal.order.as_ref().map(|old| &old.recipe) else { return };
        self.goal.order = Some(order_by(&claim.id, recipe.clone()));
    }

    /// Whether the annotation says at least what the status says: one of the two may be lost then.
    fn is_anchored(&self) -> bool {
        let (Ok(Some(anchor)), Some(record)) = (self.remembered().anchor, self.remembered().record) else {
            return false;
        };
        anchor.seq >= record.anchor.seq
    }

    fn conclude(&mut self, end: End) {
        self.heal();
        // Until nobody relies on an old look.
        self.pass(60);
        let probe = self.goal.probe.as_ref().map(|probe| super::probe(&probe.id, true));
        self.goal = Goal {
            road: Road::Manage,
            held_off: None,
            claim_waits: false,
            never_off: false,
            external: false,
            quarantine: false,
            newcomer: Newcomer::Register,
            disks: Disks::Kept,
            probe: None,
            ..self.goal.clone()
        };
        self.silent_probe = false;
        self.claimer = Presence::Exists;
        // Somebody has looked what runs there.
        self.proof.take_if(|proof| *proof == Proof::InUse);
        let free = |goal: &Goal| Goal { claim: None, order: None, ..goal.clone() };
        match end {
            End::Free => {
                self.goal = free(&self.goal);
                // Whoever has switched the server on may be looked into, too.
                self.goal.newcomer = probe.as_ref().map_or(Newcomer::Register, |_| Newcomer::SwitchOff);
                self.goal.probe = probe;
                self.consumer = Presence::Gone;
                self.run_until(30 * 3600, Self::is_free);
            }
            End::NewClaim => {
                // A claim on a host of which nothing at all is known would be an adoption.
                self.goal = free(&self.goal);
                self.consumer = Presence::Gone;
                self.run_to(Phase::Available);
                self.goal = Goal {
                    order: Some(order("new", IMAGE)),
                    claim: Some(claim("new")),
                    reboot: None,
                    ..self.goal.clone()
                };
                self.run_unless_refused(|world| world.has_claim("new"));
                self.run_until(30 * 3600, |world| world.has_claim("new"));
                // Whatever was asked of the power before the claim.
                self.run_until(3600, |world| world.server.runs == Runs::Image(IMAGE.into()));
            }
            End::Keep => {
                if self.goal.claim.is_none() {
                    self.goal.claim = Some(claim("a"));
                }
                self.consumer = Presence::Gone;
                self.goal.provision = None;
                let id = self.goal.claim.as_ref().unwrap().id.clone();
                self.goal.order = Some(order(&id, IMAGE));
                let is_ignored = |world: &Self| world.fault() == Some(Kind::BootIgnored);
                let is_done = |world: &Self| world.status.is_some() && world.phase() == Phase::Provisioned;
                self.run_unless_refused(|world| is_done(world) || is_ignored(world));
                self.run_until(24 * 3600, |world| is_done(world) || is_ignored(world));
                if is_ignored(self) {
                    // Nobody but its owner may restart a server that was started.
                    self.goal.reboot = Some("by its owner".into());
                }
                self.run_to(Phase::Provisioned);
            }
            End::Torn => {
                self.goal = Goal { release: None, ..free(&self.goal) };
                self.consumer = Presence::Exists;
                self.run_until(30 * 3600, |world| {
                    let Some(record) = world.remembered().record else { return false };
                    let torn = |fault: &crate::host::Fault| fault.failure.kind == Kind::ConsumerMismatch;
                    record.fault.as_ref().is_some_and(torn) || world.is_free()
                });
            }
            End::Park => {
                self.goal.road = Road::Park;
                self.run_to(Phase::Parked);
            }
            End::Detach => {
                self.goal.road = Road::Detach(Detachment::AtOnce);
                self.run_to(Phase::Detached);
            }
            End::Delete => {
                self.goal = Goal { road: Road::Delete(Deletion::CleanUp), ..free(&self.goal) };
                self.consumer = Presence::Gone;
                // A farewell does not wait for the end of a hold on refused credentials.
                self.inputs = "corrected".into();
                let tidies = self
                    .remembered()
                    .record
                    .is_some_and(|record| record.anchor.milestone != Milestone::None && !record.anchor.adopted);
                self.run(30 * 3600);
                assert!(self.finished, "never finished: {:#?}", self.last);
                assert!(!tidies || self.server.is_tidy(), "left untidy: {:#?} {:#?}", self.last, self.server);
            }
        }
    }

    /// Runs until that holds, or until a machine was refused because the server runs: then its owner says that it may be taken.
    fn run_unless_refused(&mut self, done: impl Fn(&Self) -> bool) {
        let is_refused = |world: &Self| world.fault() == Some(Kind::ServerRunning);
        self.run_until(30 * 3600, |world| done(world) || is_refused(world));
        if is_refused(self) {
            assert_eq!(self.record().anchor.milestone, Milestone::None, "refused a deployment that had begun");
            self.goal.claimable_while_running = true;
        }
    }

    fn is_free(&self) -> bool {
        let Some(record) = self.remembered().record else { return false };
        let power = self.asked_power().is_none_or(|online| online == self.server.on);
        record.phase == Phase::Available && power && record.fault.is_none() && record.doing.is_none()
    }

    fn has_claim(&self, id: &str) -> bool {
        self.phase() == Phase::Provisioned && self.anchor().claim.is_some_and(|claim| claim.id == id)
    }
}

/// Enough for every commit; set `PROPTEST_CASES` for a long night.
pub(super) fn cases(usual: u32) -> u32 {
    if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { usual }
}

proptest! {
    #![proptest_config(Config { cases: cases(250), failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_history_hurts_a_node_and_every_goal_is_reached(
        start in start(),
        lasting in lasting(),
        ops in proptest::collection::vec(op(), 1..40),
        end in end(),
    ) {
        let mut world = start.world();
        world.goal.power_lasts = lasting;
        for op in &ops {
            world.apply(op);
        }
        world.conclude(end);
    }
}
