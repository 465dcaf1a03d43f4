use proptest::prelude::*;

use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(60 * minute).unwrap()
}

fn goal() -> Goal {
    Goal {
        road: Road::Keep,
        unservable: None,
        blocked: None,
        needs_bootstrap: None,
        needs_image: false,
        quarantine: false,
        binds: Binds::WhenBooted,
        order: "order".to_owned(),
    }
}

fn leaving(leave: Leave) -> Goal {
    Goal { road: Road::Leave(leave), ..goal() }
}

fn memory() -> Memory {
    Memory { id: Some("id".to_owned()), ..Memory::default() }
}

fn named() -> Memory {
    Memory { provider: Some("b7://lab/a".to_owned()), ..memory() }
}

fn machine() -> Machine {
    Machine { cluster_ready: true, bootstrap: Bootstrap::Ready }
}

fn sight() -> Sight {
    Sight {
        owner: Owner::Machine(machine()),
        host: None,
        doubles: Vec::new(),
        image: Image::Unknown,
        refusal: None,
        now: at(0),
    }
}

fn owned(machine: Machine) -> Sight {
    Sight { owner: Owner::Machine(machine), ..sight() }
}

fn host() -> Host {
    Host {
        name: "a".to_owned(),
        provider: "b7://lab/a".to_owned(),
        claimed: true,
        bound: true,
        phase: Phase::Provisioned,
        milestone: Milestone::Provisioned,
        ordered: true,
        fault: None,
        refusal: None,
        wait: None,
        power: PowerState::On,
    }
}

fn on(host: Host) -> Sight {
    Sight { host: Some(host), ..sight() }
}

fn preparing() -> Host {
    Host { phase: Phase::Preparing, milestone: Milestone::Armed, ..host() }
}

fn why() -> Refused {
    Refused { reason: "Why".to_owned(), message: "Because.".to_owned() }
}

fn release(quarantine: bool) -> impl Fn(&Act) -> bool {
    move |act| matches!(act, Act::Release { host, quarantine: reason } if host == "a" && reason.is_some() == quarantine)
}

fn rests(standing: Standing) -> Step {
    Step { standing, acts: Vec::new(), refusals: Vec::new() }
}

#[test]
fn on_the_way_to_a_host() {
    let asks = |standing: Standing, act: Act| Step { standing, acts: vec![act], refusals: Vec::new() };
    let imaged = Goal { needs_image: true, ..goal() };
    let fed = Goal { needs_bootstrap: Some(why()), ..goal() };
    let refused = Some("None fits.".to_owned());
    let cases = [
        (goal(), memory(), Sight { owner: Owner::Awaited, ..sight() }, rests(Standing::AwaitsOwner)),
        (goal(), memory(), Sight { owner: Owner::NoClusterApi, ..sight() }, rests(Standing::NoClusterApi)),
        (goal(), Memory::default(), Sight { owner: Owner::NoClusterApi, ..sight() }, rests(Standing::NoClusterApi)),
        (goal(), Memory::default(), sight(), asks(Standing::AwaitsHost(None), Act::Protect)),
        (goal(), memory(), owned(Machine { cluster_ready: false, ..machine() }), rests(Standing::AwaitsCluster)),
        (
            goal(),
            memory(),
            owned(Machine { bootstrap: Bootstrap::Awaited, ..machine() }),
            rests(Standing::AwaitsBootstrap(Bootstrap::Awaited)),
        ),
        (
            goal(),
            memory(),
            owned(Machine { bootstrap: Bootstrap::Missing, ..machine() }),
            asks(Standing::AwaitsHost(None), Act::Place),
        ),
        (
            fed.clone(),
            memory(),
            owned(Machine { bootstrap: Bootstrap::Missing, ..machine() }),
            rests(Standing::AwaitsBootstrap(Bootstrap::Missing)),
        ),
        (
            fed.clone(),
            memory(),
            owned(Machine { bootstrap: Bootstrap::None, ..machine() }),
            rests(Standing::Blocked(why())),
        ),
        (fed, memory(), Sight { owner: Owner::Nobody, ..sight() }, rests(Standing::Blocked(why()))),
        (
            goal(),
            memory(),
            owned(Machine { bootstrap: Bootstrap::None, ..machine() }),
            asks(Standing::AwaitsHost(None), Act::Place),
        ),
        (goal(), memory(), Sight { owner: Owner::Nobody, ..sight() }, asks(Standing::AwaitsHost(None), Act::Place)),
        (
            goal(),
            memory(),
            Sight { refusal: refused.clone(), ..sight() },
            asks(Standing::AwaitsHost(refused), Act::Place),
        ),
        (imaged.clone(), memory(), sight(), asks(Standing::AwaitsImage(None), Act::CheckImage)),
        (
            imaged.clone(),
            memory(),
            Sight { image: Image::Unreachable(why()), ..sight() },
            asks(Standing::AwaitsImage(Some(why())), Act::CheckImage),
        ),
        (
            imaged.clone(),
            memory(),
            Sight { image: Image::Bad(why()), ..sight() },
            asks(Standing::Blocked(why()), Act::CheckImage),
        ),
        (imaged, memory(), Sight { image: Image::Good, ..sight() }, asks(Standing::AwaitsHost(None), Act::Place)),
        (Goal { unservable: Some(why()), ..goal() }, memory(), sight(), rests(Standing::Unservable(why()))),
        (Goal { blocked: Some(why()), ..goal() }, memory(), sight(), rests(Standing::Blocked(why()))),
    ];
    for (goal, memory, sight, expected) in cases {
        assert_eq!(step(&goal, &memory, &sight), expected, "{goal:?} {memory:?} {sight:?}");
    }
}

#[test]
fn a_machine_is_named_after_its_host_when_that_has_booted_and_not_before() {
    let waits = Host { wait: Some(why()), ..preparing() };
    let step_before = step(&goal(), &memory(), &on(waits));
    let standing = Standing::Provisioning { host: "a".to_owned(), wait: Some(why()), fault: None };
    assert_eq!(step_before, rests(standing));

    let unbound = Host { bound: false, ..host() };
    assert_eq!(step(&goal(), &memory(), &on(unbound)).acts, [], "the host still shows what an earlier claim left");

    let named_now = step(&goal(), &memory(), &on(host()));
    assert_eq!(named_now.acts, [Act::NameProvider("b7://lab/a".to_owned())]);
    let at_rest = step(&goal(), &named(), &on(host()));
    assert_eq!(at_rest.acts, []);
    assert!(matches!(at_rest.standing, Standing::Provisioned { is_off: false, .. }));
}

#[test]
fn a_provisioned_machine_stays_so_whatever_its_host_shows() {
    for phase in [Phase::Registering, Phase::Preparing, Phase::Provisioning, Phase::Parked] {
        let host = Host { phase, fault: Some(why()), ..host() };
        let after = step(&goal(), &named(), &on(host));
        assert!(matches!(after.standing, Standing::Provisioned { is_off: false, .. }), "{phase:?}: {after:?}");
        assert_eq!(after.acts, []);
    }
    let off = step(&goal(), &named(), &on(Host { power: PowerState::Off, ..host() }));
    assert!(matches!(off.standing, Standing::Provisioned { is_off: true, .. }));
}

#[test]
fn a_machine_that_lost_its_host_gets_no_other() {
    let lost = Standing::Lost { provider: "b7://lab/a".to_owned() };
    for sight in [
        sight(),
        on(Host { claimed: false, ..host() }),
        on(Host { name: "b".to_owned(), provider: "b7://lab/b".to_owned(), ..host() }),
    ] {
        assert_eq!(step(&goal(), &named(), &sight), rests(lost.clone()), "{sight:?}");
    }
}

#[test]
fn an_image_that_turns_out_bad_frees_the_host_unless_it_already_ran() {
    let goal = Goal { needs_image: true, ..goal() };
    let bad = |host: Host| Sight { image: Image::Bad(why()), ..on(host) };
    let early = step(&goal, &memory(), &bad(preparing()));
    assert_eq!(early.standing, Standing::Blocked(why()));
    assert!(early.acts.iter().all(release(false)) && early.acts.len() == 1, "{early:?}");
    let late = Host { phase: Phase::Provisioning, milestone: Milestone::Written, ..host() };
    assert_eq!(step(&goal, &memory(), &bad(late)).acts, []);
    assert_eq!(step(&goal, &named(), &bad(host())).acts, []);
}

#[test]
fn a_machine_goes_when_its_host_is_free_again() {
    let leave = |sight: &Sight| step(&leaving(Leave::Release), &named(), sight);
    let first = leave(&on(host()));
    assert!(first.acts.len() == 1 && first.acts.iter().all(release(false)), "{first:?}");
    let cleaning = Host { claimed: false, phase: Phase::Deprovisioning, fault: Some(why()), ..host() };
    let then = leave(&on(cleaning.clone()));
    assert_eq!(then.standing, Standing::Releasing { host: "a".to_owned(), wait: None, fault: Some(why()) });
    assert_eq!(then.acts, [], "a dead BMC keeps it");
    assert_eq!(leave(&sight()), Step { acts: vec![Act::LetGo], ..rests(Standing::Left) });

    for seen in [on(host()), on(cleaning)] {
        let forced = step(&leaving(Leave::Force), &named(), &seen);
        assert!(forced.acts.len() == 2 && release(true)(&forced.acts[0]) && forced.acts[1] == Act::LetGo, "{forced:?}");
    }
    let policy = Goal { quarantine: true, ..leaving(Leave::Release) };
    assert!(step(&policy, &named(), &on(host())).acts.iter().all(release(true)));
    for owner in [Owner::Gone, Owner::Awaited, Owner::Nobody] {
        let alone = Sight { owner, ..sight() };
        assert_eq!(leave(&alone).acts, [Act::LetGo], "whoever has no host may go: {alone:?}");
    }
}

fn any_sight() -> impl Strategy<Value = Sight> {
    let bootstrap = prop_oneof![Just(Bootstrap::None), Just(Bootstrap::Awaited), Just(Bootstrap::Ready)];
    let machine = (any::<bool>(), bootstrap)
        .prop_map(|(cluster_ready, bootstrap)| Owner::Machine(Machine { cluster_ready, bootstrap }));
    let owner = prop_oneof![
        Just(Owner::Nobody),
        Just(Owner::Awaited),
        Just(Owner::NoClusterApi),
        Just(Owner::Gone),
        Just(Owner::Paused("?".to_owned())),
        machine,
    ];
    let phase = prop_oneof![
        Just(Phase::Available),
        Just(Phase::Preparing),
        Just(Phase::Provisioning),
        Just(Phase::Provisioned),
        Just(Phase::Deprovisioning),
    ];
    let milestone = prop_oneof![
        Just(Milestone::None),
        Just(Milestone::Armed),
        Just(Milestone::Written),
        Just(Milestone::Provisioned),
        Just(Milestone::Releasing),
    ];
    let host = (any::<[bool; 5]>(), phase, milestone).prop_map(
        |([claimed, bound, ordered, faulted, refuses], phase, milestone)| Host {
            claimed,
            bound,
            phase,
            milestone,
            ordered,
            fault: faulted.then(why),
            refusal: (faulted && refuses).then(why),
            ..host()
        },
    );
    let image =
        prop_oneof![Just(Image::Unknown), Just(Image::Good), Just(Image::Unreachable(why())), Just(Image::Bad(why()))];
    let double = host.clone().prop_map(|host| Host { name: "b".to_owned(), ..host });
    let doubles = proptest::collection::vec(double, 0..2);
    (owner, proptest::option::of(host), doubles, image).prop_map(|(owner, host, doubles, image)| Sight {
        owner,
        host,
        doubles,
        image,
        ..sight()
    })
}

fn any_goal() -> impl Strategy<Value = Goal> {
    let road = prop_oneof![
        Just(Road::Keep),
        Just(Road::Leave(Leave::Release)),
        Just(Road::Leave(Leave::Force)),
        Just(Road::Leave(Leave::Move)),
    ];
    (road, any::<[bool; 5]>()).prop_map(|(road, [unservable, blocked, fed, needs_image, quarantine])| Goal {
        road,
        unservable: unservable.then(why),
        blocked: blocked.then(why),
        needs_bootstrap: fed.then(why),
        needs_image,
        quarantine,
        ..goal()
    })
}

#[test]
fn an_image_that_goes_bad_costs_no_machine_its_server_once_something_may_run_there() {
    let goal = Goal { needs_image: true, ..goal() };
    let forgetful = Host { milestone: Milestone::None, ..host() };
    for (memory, host) in [
        (named(), host()),
        (named(), forgetful.clone()),
        (named(), Host { phase: Phase::Registering, ..forgetful.clone() }),
        (memory(), forgetful),
    ] {
        let after = step(&goal, &memory, &Sight { image: Image::Bad(why()), ..on(host) });
        assert!(!after.acts.iter().any(release(false)), "{after:?}");
    }
}

#[test]
fn a_second_host_is_given_back_unless_something_may_run_there() {
    let accepted = Host { milestone: Milestone::None, ..preparing() };
    for (host, wanted) in [
        (accepted, true),
        (preparing(), true),
        (Host { claimed: false, ..preparing() }, false),
        (Host { phase: Phase::Provisioning, milestone: Milestone::Written, ..host() }, false),
        (host(), false),
        // Its anchor was lost, but its phase tells.
        (Host { milestone: Milestone::None, ..host() }, false),
        // What runs or is cleaned up there is somebody else's.
        (Host { bound: false, ..host() }, true),
        (Host { bound: false, phase: Phase::Deprovisioning, milestone: Milestone::Releasing, ..host() }, true),
    ] {
        let double = Host { name: "b".to_owned(), ..host };
        let given_back = Act::GiveBack { host: "b".to_owned() };
        let with = |first: Host| Sight { doubles: vec![double.clone()], ..on(first) };
        for first in [preparing(), self::host()] {
            let after = step(&goal(), &memory(), &with(first));
            assert_eq!(after.acts.contains(&given_back), wanted, "{double:?}: {after:?}");
        }
        let awaited = Sight { owner: Owner::Awaited, ..with(preparing()) };
        for after in [step(&goal(), &memory(), &awaited), step(&goal(), &named(), &with(self::host()))] {
            assert!(!after.acts.contains(&given_back), "{double:?}: {after:?}");
        }
    }
    let after = step(&goal(), &memory(), &Sight { doubles: vec![preparing()], ..on(host()) });
    assert!(matches!(after.acts[..], [Act::GiveBack { .. }, Act::NameProvider(_)]), "while it can be told: {after:?}");
}

fn refusing() -> Host {
    Host { fault: Some(why()), refusal: Some(why()), ..preparing() }
}

fn refusal(host: &str, order: &str, until: i64) -> Refusal {
    Refusal { host: host.to_owned(), order: order.to_owned(), why: why(), count: 1, until: at(until) }
}

#[test]
fn a_host_that_refuses_before_it_was_started_is_remembered_and_then_given_back() {
    for host in [
        refusing(),
        Host { milestone: Milestone::None, ..refusing() },
        Host { bound: false, phase: Phase::Available, milestone: Milestone::None, ..refusing() },
    ] {
        let first = step(&goal(), &memory(), &on(host.clone()));
        assert_eq!(first.standing, Standing::Refused { host: "a".to_owned(), why: why() }, "{host:?}");
        assert_eq!((first.acts, first.refusals.clone()), (vec![Act::Remember], vec![refusal("a", "order", 10)]));
        let then = step(&goal(), &Memory { refusals: first.refusals.clone(), ..memory() }, &on(host));
        assert_eq!((then.acts, then.refusals), (vec![Act::GiveBack { host: "a".to_owned() }], first.refusals));
    }
    // What may run is not given back, nor what only fails for a while.
    for host in [
        Host { refusal: None, ..refusing() },
        Host { phase: Phase::Provisioning, milestone: Milestone::Written, ..refusing() },
        Host { phase: Phase::Provisioned, milestone: Milestone::None, ..refusing() },
        Host { phase: Phase::Registering, milestone: Milestone::None, ..refusing() },
        Host { claimed: false, ..refusing() },
    ] {
        let after = step(&goal(), &memory(), &on(host));
        assert!(!after.acts.iter().any(|act| matches!(act, Act::GiveBack { .. } | Act::Remember)), "{after:?}");
    }
    assert_eq!(step(&goal(), &named(), &on(refusing())).acts, [], "what was provisioned once stays so");
}

#[test]
fn a_host_that_refused_is_left_alone_for_longer_each_time_and_only_for_that_order() {
    let mut memory = memory();
    let mut now = 0;
    for minutes in [10, 20, 40, 80, 160, 240, 240] {
        let after = step(&goal(), &memory, &Sight { now: at(now), ..on(refusing()) });
        assert_eq!((after.refusals.len(), after.refusals[0].until), (1, at(now + minutes)));
        memory.refusals = after.refusals;
        assert!(memory.refusals[0].holds(at(now + minutes - 1)) && !memory.refusals[0].holds(at(now + minutes)));
        now += minutes;
    }
    let elsewhere = Goal { order: "another".to_owned(), ..goal() };
    assert_eq!(step(&elsewhere, &memory, &sight()).refusals, [], "forgotten with the order that it was about");
    assert_eq!(step(&goal(), &memory, &sight()).refusals, memory.refusals);
    assert_eq!(step(&goal(), &memory, &on(host())).refusals, [], "of no interest once it runs");

    memory.refusals = (0..16).map(|number| refusal(&format!("h{number}"), "order", 10)).collect();
    let after = step(&goal(), &memory, &on(refusing()));
    assert_eq!((after.refusals.len(), after.refusals[15].host.as_str()), (16, "a"), "the oldest is forgotten");
}

#[test]
fn while_a_host_that_refused_is_cleaned_up_that_is_said() {
    let memory = Memory { refusals: vec![refusal("a", "order", 10)], ..memory() };
    let cleaning = Host { claimed: false, phase: Phase::Deprovisioning, milestone: Milestone::Releasing, ..host() };
    let after = step(&goal(), &memory, &on(cleaning));
    assert_eq!((after.standing, after.acts), (Standing::Refused { host: "a".to_owned(), why: why() }, vec![]));
}

#[test]
fn a_corrected_order_is_written_on_the_host_unless_it_was_started() {
    let outdated = |host: Host| Host { ordered: false, ..host };
    let reorder = [Act::Reorder { host: "a".to_owned() }];
    for host in [preparing(), refusing(), Host { bound: false, phase: Phase::Available, ..preparing() }] {
        let after = step(&goal(), &memory(), &on(outdated(host)));
        assert_eq!((after.acts.as_slice(), after.refusals), (reorder.as_slice(), vec![]), "nothing is held against it");
    }
    let running = [host(), Host { phase: Phase::Provisioning, milestone: Milestone::Written, ..host() }];
    for host in running.map(outdated) {
        assert!(host.ignores_order());
        assert!(!step(&goal(), &memory(), &on(host)).acts.contains(&reorder[0]));
    }
    assert!(!step(&goal(), &named(), &on(outdated(preparing()))).acts.contains(&reorder[0]));

    // An image that somebody has to look at is looked at first.
    let imaged = Goal { needs_image: true, ..goal() };
    let seen = |image: Image| step(&imaged, &memory(), &Sight { image, ..on(outdated(preparing())) });
    assert_eq!(seen(Image::Unknown).acts, [Act::CheckImage]);
    assert_eq!(seen(Image::Good).acts, reorder);
    assert!(seen(Image::Bad(why())).acts.iter().all(release(false)));
    let impossible = Goal { unservable: Some(why()), ..goal() };
    assert_eq!(step(&impossible, &memory(), &on(outdated(preparing()))).acts, []);
}

proptest! {
    #[test]
    fn nothing_is_done_to_a_host_without_good_reason(
        goal in any_goal(),
        has_id in any::<bool>(),
        has_provider in any::<bool>(),
        remembers in any::<bool>(),
        sight in any_sight(),
    ) {
        let memory = Memory {
            id: has_id.then(|| "id".to_owned()),
            provider: (has_id && has_provider).then(|| "b7://lab/a".to_owned()),
            refusals: if remembers { vec![refusal("a", "order", 10)] } else { Vec::new() },
        };
        let Step { acts, .. } = step(&goal, &memory, &sight);
        if matches!(sight.owner, Owner::Paused(_)) || goal.road == Road::Leave(Leave::Move) {
            prop_assert!(acts.is_empty(), "paused or moved: {:?}", acts);
        }
        for act in &acts {
            match act {
                Act::Release { .. } => {
                    let runs = [Phase::Provisioning, Phase::Provisioned];
                    let ran = sight
                        .host
                        .as_ref()
                        .is_some_and(|host| host.milestone >= Milestone::Written || runs.contains(&host.phase));
                    let ran = ran || memory.provider.is_some();
                    prop_assert!(goal.road != Road::Keep || !ran, "a machine that is wanted loses its server");
                }
                Act::Remember => prop_assert!(sight.host.as_ref().is_some_and(|host| host.refusal.is_some() && host.claimed)),
                Act::Reorder { host } => {
                    let host = sight.host.as_ref().filter(|seen| seen.name == *host);
                    let ran = |host: &Host| host.milestone >= Milestone::Written || host.phase == Phase::Provisioned;
                    prop_assert!(host.is_some_and(|host| host.claimed && !ran(host)));
                    prop_assert!(goal.road == Road::Keep && memory.provider.is_none());
                    prop_assert!(matches!(sight.owner, Owner::Nobody | Owner::Machine(_)));
                }
                Act::GiveBack { host } => {
                    let is_own = sight.host.as_ref().is_some_and(|seen| seen.name == *host);
                    let double = sight.host.iter().chain(&sight.doubles).find(|double| double.name == *host);
                    let runs = |double: &Host| double.bound && double.milestone >= Milestone::Written;
                    prop_assert!(double.is_some_and(|double| double.claimed && !runs(double)));
                    prop_assert!(!is_own || remembers && double.is_some_and(|own| own.refusal.is_some()), "one that serves");
                    prop_assert!(goal.road == Road::Keep && memory.provider.is_none());
                    prop_assert!(matches!(sight.owner, Owner::Nobody | Owner::Machine(_)));
                }
                Act::Place => {
                    prop_assert!(memory.id.is_some() && memory.provider.is_none() && sight.host.is_none());
                    prop_assert!(goal.road == Road::Keep && goal.unservable.is_none() && goal.blocked.is_none());
                }
                Act::LetGo => prop_assert!(
                    goal.road == Road::Leave(Leave::Force)
                        || goal.road == Road::Leave(Leave::Release) && sight.host.is_none()
                ),
                Act::NameProvider(provider) => {
                    prop_assert!(memory.provider.is_none());
                    prop_assert!(sight.host.as_ref().is_some_and(|host| host.provider == *provider && host.bound));
                }
                Act::Protect => prop_assert!(memory.id.is_none() && goal.road == Road::Keep),
                Act::CheckImage => {
                    let ran = sight.host.as_ref().is_some_and(|host| host.milestone >= Milestone::Written);
                    prop_assert!(goal.needs_image && !ran);
                }
            }
        }
    }
}

#[test]
fn a_claim_is_bound_when_its_host_has_booted_or_when_it_was_accepted() {
    let accepted = Host { phase: Phase::Preparing, milestone: Milestone::None, ..host() };
    let claimed = Host { bound: false, ..accepted.clone() };
    let table = [
        (Binds::WhenBooted, &claimed, false),
        (Binds::WhenBooted, &accepted, false),
        (Binds::WhenBooted, &host(), true),
        (Binds::WhenAccepted, &claimed, false),
        (Binds::WhenAccepted, &accepted, true),
    ];
    for (binds, host, is_bound) in table {
        let goal = Goal { binds, ..goal() };
        let step = step(&goal, &memory(), &on(host.clone()));
        let names = step.acts.contains(&Act::NameProvider(host.provider.clone()));
        assert_eq!(
            (names, matches!(step.standing, Standing::Provisioned { .. })),
            (is_bound, is_bound),
            "{binds:?} {host:?}"
        );
    }
}
