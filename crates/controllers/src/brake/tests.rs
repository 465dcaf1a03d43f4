use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

fn core(disruptions_per_minute: u32, concurrent_deployments: usize) -> Core {
    Core::new(BrakeConfig { disruptions_per_minute, concurrent_deployments, freeze: false })
}

/// A host that is shown by its name.
fn id(name: &str) -> ObjectId {
    ObjectId::named::<k8s_openapi::api::core::v1::Node>(None, name)
}

fn message(answer: &Answer) -> String {
    match answer {
        Answer::Go => "Go".to_owned(),
        Answer::NotNow { limit, .. } => limit.tell(),
    }
}

fn pause(answer: &Answer) -> Duration {
    match answer {
        Answer::Go => Duration::ZERO,
        Answer::NotNow { again_in, .. } => *again_in,
    }
}

#[test]
fn a_tenth_of_a_minutes_worth_goes_at_once_and_then_one_by_one() {
    for (per_minute, at_once, seconds_to_next) in [(1, 1, 60), (5, 1, 12), (10, 1, 6), (20, 2, 3), (60, 6, 1)] {
        let (mut core, start) = (core(per_minute, 1), Instant::now());
        let went = (0..100).filter(|n| core.ask(start, &id(&format!("h{n}")), Ask::Disrupt) == Answer::Go).count();
        assert_eq!(went, at_once, "{per_minute} per minute");
        let next = format!("h{at_once}");
        let due = start + Duration::from_secs(seconds_to_next);
        assert_ne!(
            core.ask(due - Duration::from_millis(1), &id(&next), Ask::Disrupt),
            Answer::Go,
            "{per_minute} per minute"
        );
        assert_eq!(core.ask(due, &id(&next), Ask::Disrupt), Answer::Go, "{per_minute} per minute");
    }
}

#[test]
fn who_waits_is_told_why_and_for_how_long() {
    let (mut core, now) = (core(10, 2), Instant::now());
    assert_eq!(core.ask(now, &id("a"), Ask::Disrupt), Answer::Go);
    let said = |n: usize, core: &mut Core| {
        let answer = core.ask(now, &id(&format!("w{n}")), Ask::Disrupt);
        (message(&answer), pause(&answer).as_secs())
    };
    let sentences: Vec<_> = (0..14).map(|n| said(n, &mut core)).collect();
    let sentence = |who: &str| {
        format!(
            "Waiting for the fleet brake: {who}; 10 power-offs per minute are allowed (--max-disruptions-per-minute)."
        )
    };
    assert_eq!(sentences[0], (sentence("next in queue"), 6));
    assert_eq!(sentences[1], (sentence("1 host is ahead"), 12));
    assert_eq!(sentences[3], (sentence("3 hosts are ahead"), 24));
    assert_eq!(sentences[13], (sentence("about 10 hosts are ahead"), 60));

    core.ask(now, &id("a"), Ask::Deploy);
    core.ask(now, &id("b"), Ask::Deploy);
    let answer = core.ask(now, &id("c"), Ask::Deploy);
    assert_eq!(
        message(&answer),
        "Waiting for the fleet brake: next in queue; 2 of 2 deployment slots used: a, b (--max-deployments)."
    );
    assert_eq!(core.load().waits, [14, 1]);
}

#[test]
fn the_next_in_the_queue_is_told_who_has_the_slots_and_which_of_them_are_faulted() {
    let (mut core, now) = (core(10, 5), Instant::now());
    for host in ["a", "b", "c", "d", "e"] {
        assert_eq!(core.ask(now, &id(host), Ask::Deploy), Answer::Go);
    }
    let slots = |told: &str| {
        format!("Waiting for the fleet brake: next in queue; 5 of 5 deployment slots used{told} (--max-deployments).")
    };
    assert_eq!(message(&core.ask(now, &id("f"), Ask::Deploy)), slots(": a, b, c and 2 more"));
    core.mark(&id("e"), true);
    core.mark(&id("nobody"), true);
    assert_eq!(message(&core.ask(now, &id("f"), Ask::Deploy)), slots(", 1 by a faulted host: e, a, b and 2 more"));
    core.mark(&id("d"), true);
    assert_eq!(message(&core.ask(now, &id("f"), Ask::Deploy)), slots(", 2 by faulted hosts: d, e, a and 2 more"));
    let behind =
        "Waiting for the fleet brake: 1 host is ahead; 5 deployments at a time are allowed (--max-deployments).";
    assert_eq!(message(&core.ask(now, &id("g"), Ask::Deploy)), behind);
}

#[test]
fn a_host_far_back_in_the_queue_is_not_told_anew_at_each_step_forward() {
    let (mut core, now) = (core(1, 1), Instant::now());
    let limits: Vec<_> = (0..200)
        .filter_map(|n| match core.ask(now, &id(&format!("h{n:03}")), Ask::Disrupt) {
            Answer::Go => None,
            Answer::NotNow { limit, .. } => Some(limit),
        })
        .collect();
    let ahead = |ahead| BrakeLimit::Disruptions { ahead, per_minute: 1 };
    assert_eq!(limits[10], ahead(Ahead::Exactly(10)));
    assert!(limits[11..20].iter().all(|limit| *limit == ahead(Ahead::About(10))));
    assert!(limits[101..198].iter().all(|limit| *limit == ahead(Ahead::About(100))));
}

#[test]
fn a_deployment_that_rests_lets_others_have_its_slot_and_asks_again() {
    let (mut core, start) = (core(10, 1), Instant::now());
    assert_eq!(core.ask(start, &id("faulted"), Ask::Deploy), Answer::Go);
    assert_ne!(core.ask(start, &id("other"), Ask::Deploy), Answer::Go);
    core.rest(&id("faulted"));
    assert_eq!(core.ask(start, &id("other"), Ask::Deploy), Answer::Go);
    assert_ne!(core.ask(start, &id("faulted"), Ask::Deploy), Answer::Go, "it asks again like everybody");
    core.rest(&id("faulted"));
    assert_ne!(core.ask(start, &id("third"), Ask::Deploy), Answer::Go);
    assert!(
        message(&core.ask(start, &id("third"), Ask::Deploy)).contains("1 host is ahead"),
        "its place in the queue stays"
    );
    core.done(&id("other"));
    assert_eq!(core.ask(start, &id("faulted"), Ask::Deploy), Answer::Go);
}

#[test]
fn nothing_is_allowed_when_nothing_is_allowed() {
    let (mut core, now) = (core(0, 0), Instant::now());
    assert!(message(&core.ask(now, &id("a"), Ask::Disrupt)).contains("no power-offs are allowed"));
    assert!(message(&core.ask(now, &id("a"), Ask::Deploy)).contains("no deployments are allowed"));
}

#[test]
fn a_deployment_keeps_its_place_until_it_is_done() {
    let (mut core, now) = (core(10, 1), Instant::now());
    for _ in 0..3 {
        assert_eq!(core.ask(now, &id("a"), Ask::Deploy), Answer::Go);
    }
    assert_ne!(core.ask(now, &id("b"), Ask::Deploy), Answer::Go);
    core.done(&id("a"));
    assert_eq!(core.ask(now, &id("b"), Ask::Deploy), Answer::Go);
    assert_eq!(core.load().deploying, 1);
}

#[test]
fn the_end_of_a_deployment_does_not_cost_the_place_in_the_line_for_a_power_off() {
    let (mut core, now) = (core(1, 1), Instant::now());
    assert_eq!(core.ask(now, &id("other"), Ask::Disrupt), Answer::Go);
    core.ask(now, &id("a"), Ask::Disrupt);
    core.ask(now, &id("b"), Ask::Disrupt);
    core.done(&id("a"));
    assert!(message(&core.ask(now, &id("b"), Ask::Disrupt)).contains("1 host is ahead"));
    core.forget(&id("a"));
    assert!(message(&core.ask(now, &id("b"), Ask::Disrupt)).contains("next in queue"));
}

#[test]
fn a_new_leader_takes_every_deployment_back_that_is_under_way() {
    let (mut core, now) = (core(10, 2), Instant::now());
    for host in ["a", "b", "c"] {
        core.resume(&id(host));
        assert_eq!(core.ask(now, &id(host), Ask::Deploy), Answer::Go);
    }
    core.done(&id("a"));
    assert_ne!(core.ask(now, &id("d"), Ask::Deploy), Answer::Go, "still as many as are allowed");
    core.done(&id("b"));
    assert_eq!(core.ask(now, &id("d"), Ask::Deploy), Answer::Go);
}

#[test]
fn a_frozen_fleet_is_left_alone_also_by_deployments_that_have_a_place() {
    let mut core = Core::new(BrakeConfig { freeze: true, ..BrakeConfig::default() });
    core.resume(&id("a"));
    for ask in [Ask::Disrupt, Ask::Deploy] {
        let answer = core.ask(Instant::now(), &id("a"), ask);
        assert_eq!(answer, Answer::NotNow { limit: BrakeLimit::Frozen, again_in: LONGEST_PAUSE });
    }
    assert_eq!(core.load(), Load { deploying: 1, frozen: true, ..Load::default() });
}

#[test]
fn who_does_not_come_is_passed_but_keeps_its_place_for_a_while() {
    let (mut core, start) = (core(1, 1), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(core.ask(at(0), &id("first"), Ask::Disrupt), Answer::Go);
    core.ask(at(0), &id("sleeper"), Ask::Disrupt);
    core.ask(at(0), &id("punctual"), Ask::Disrupt);
    assert_ne!(core.ask(at(60), &id("punctual"), Ask::Disrupt), Answer::Go, "the sleeper is due, not late");
    assert_eq!(core.ask(at(71), &id("punctual"), Ask::Disrupt), Answer::Go);

    core.ask(at(72), &id("newcomer"), Ask::Disrupt);
    assert_ne!(core.ask(at(90), &id("sleeper"), Ask::Disrupt), Answer::Go);
    assert!(
        message(&core.ask(at(90), &id("newcomer"), Ask::Disrupt)).contains("1 host is ahead"),
        "the sleeper is back"
    );

    core.ask(at(2_000), &id("newcomer"), Ask::Disrupt);
    assert_eq!(core.load().waiting_to_disrupt, 0, "who does not come back at all is forgotten");
}

#[test]
fn the_line_is_not_longer_than_memory_allows() {
    let (mut core, now) = (core(1, 1), Instant::now());
    for n in 0..LONGEST_LINE {
        core.disruptions.wait(now, &id(&n.to_string()), MINUTE);
    }
    core.disruptions.wait(now, &id("one more"), MINUTE);
    assert_eq!(core.disruptions.tickets.len(), LONGEST_LINE);
    assert_eq!(core.disruptions.numbers.len(), LONGEST_LINE);
}

#[tokio::test(start_paused = true)]
async fn the_brake_reads_the_time_itself() {
    let brake = Brake::new(BrakeConfig { disruptions_per_minute: 1, ..BrakeConfig::default() });
    assert_eq!(brake.ask(&id("a"), Ask::Disrupt), Answer::Go);
    assert_ne!(brake.ask(&id("a"), Ask::Disrupt), Answer::Go);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(brake.ask(&id("a"), Ask::Disrupt), Answer::Go);
}

/// One host of a simulated fleet.
#[derive(Debug, Clone)]
struct Wish {
    comes_at: u64,
    ask: Ask,
    /// How late it is each time it asks, in milliseconds.
    lateness: u64,
    /// How long its deployment takes, in seconds.
    takes: u64,
    /// Asks once and never again.
    vanishes: bool,
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let ask = prop_oneof![Just(Ask::Disrupt), Just(Ask::Deploy)];
    let wish = (0_u64..300, ask, 0_u64..2_000, 1_u64..400, prop::bool::weighted(0.1));
    let wish =
        wish.prop_map(|(comes_at, ask, lateness, takes, vanishes)| Wish { comes_at, ask, lateness, takes, vanishes });
    prop::collection::vec(wish, 1..80)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Event {
    Ends(usize),
    Asks(usize),
}

/// Runs the fleet until nothing happens any more; says when each host went.
fn run(core: &mut Core, start: Instant, wishes: &[Wish]) -> Vec<Option<Instant>> {
    let mut agenda = BinaryHeap::new();
    for (n, wish) in wishes.iter().enumerate() {
        agenda.push(std::cmp::Reverse((start + Duration::from_secs(wish.comes_at), Event::Asks(n))));
    }
    let mut went = vec![None; wishes.len()];
    while let Some(std::cmp::Reverse((now, event))) = agenda.pop() {
        assert!(now < start + Duration::from_hours(24), "somebody starves: {went:?}");
        match event {
            Event::Ends(n) => core.done(&id(&n.to_string())),
            Event::Asks(n) => match core.ask(now, &id(&n.to_string()), wishes[n].ask) {
                Answer::Go => {
                    went[n] = Some(now);
                    let end = now + Duration::from_secs(wishes[n].takes);
                    agenda.push(std::cmp::Reverse((end, Event::Ends(n))));
                }
                Answer::NotNow { again_in, limit } => {
                    assert!(again_in >= SHORTEST_PAUSE && again_in <= LONGEST_PAUSE);
                    let message = limit.tell();
                    assert!(message.ends_with(").") && message.len() < 240);
                    if !wishes[n].vanishes {
                        let next = now + again_in + Duration::from_millis(wishes[n].lateness);
                        agenda.push(std::cmp::Reverse((next, Event::Asks(n))));
                    }
                }
            },
        }
        assert!(core.deploying.len() <= core.config.concurrent_deployments);
    }
    went
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_more_than_the_rate_in_any_minute_and_nobody_starves(
        wishes in wishes(), rate in 1_u32..80, places in 1_usize..10,
    ) {
        let (mut core, start) = (core(rate, places), Instant::now());
        let went = run(&mut core, start, &wishes);

        let mut disruptions: Vec<_> =
            wishes.iter().zip(&went).filter(|(wish, _)| wish.ask == Ask::Disrupt).filter_map(|(_, at)| *at).collect();
        disruptions.sort();
        for window in disruptions.windows(rate as usize + 1) {
            prop_assert!(window[rate as usize] - window[0] >= MINUTE);
        }
        for (wish, at) in wishes.iter().zip(&went) {
            prop_assert!(at.is_some() || wish.vanishes, "{wish:?} never went");
        }
        // Everything is used up or forgotten: a slow trickle of hosts cannot fill the memory.
        let late = start + Duration::from_hours(48);
        core.ask(late, &id("x"), Ask::Disrupt);
        core.ask(late, &id("x"), Ask::Deploy);
        prop_assert_eq!(core.load().waiting_to_disrupt + core.load().waiting_to_deploy, 0);
        prop_assert_eq!(core.load().deploying, 1);
    }

    #[test]
    fn nobody_waits_much_longer_than_its_fair_share(count in 2_usize..60, rate in 1_u32..80) {
        let wish = Wish { comes_at: 0, ask: Ask::Disrupt, lateness: 0, takes: 1, vanishes: false };
        let wishes: Vec<_> = (0..count as u64).map(|comes_at| Wish { comes_at, ..wish.clone() }).collect();
        let went = run(&mut core(rate, 1), Instant::now(), &wishes);
        // The rate is used, not only kept.
        let first = went[0].unwrap();
        for (n, at) in went.iter().enumerate() {
            let n = u32::try_from(n).unwrap();
            let fair = (MINUTE / rate * (n + 1)).max(Duration::from_secs(n.into()));
            prop_assert!(at.unwrap() - first <= fair + 2 * MINUTE, "{n} waited {:?}, not {fair:?}", at.unwrap() - first);
        }
    }
}

#[test]
fn a_new_leader_keeps_slots_and_places_of_the_deployments_that_it_finds() {
    let (mut core, now) = (core(0, 1), Instant::now());
    let time = |second: i64| Timestamp::from_second(second).unwrap();
    core.resume(&id("a"));
    core.recall(&id("b"), time(20));
    core.recall(&id("c"), time(10));
    core.recall(&id("d"), time(5));
    core.done(&id("d"));
    for waits in ["new", "b", "c"] {
        assert_ne!(core.ask(now, &id(waits), Ask::Deploy), Answer::Go, "a has the only slot");
    }
    core.recall(&id("late"), time(1));
    assert_eq!(core.load().waiting_to_deploy, 3, "nobody is recalled once somebody has asked");
    core.done(&id("a"));
    for (waits, next) in [("new", "c"), ("b", "c"), ("new", "b")] {
        assert_ne!(core.ask(now, &id(waits), Ask::Deploy), Answer::Go, "{next} came before {waits}");
        if (waits, next) != ("new", "c") {
            assert_eq!(core.ask(now, &id(next), Ask::Deploy), Answer::Go);
            core.done(&id(next));
        }
    }
}
