//! Terms: who leads when, and who stops before another begins.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::*;
use super::server::{Fate, Fault, Link, Server};
use super::stage::{NEVER, NOON, Replica, Stage};
use crate::clock::TokioClock;

const RETRY_AT_MOST: Duration = Duration::from_millis(4_400);

#[tokio::test(start_paused = true)]
async fn the_first_one_leads_at_once_and_renews_every_two_seconds_with_one_request() {
    let (server, stage) = (Server::default(), Stage::default());
    let start = Instant::now();
    let replica = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    assert!(start.elapsed() < Duration::from_millis(100));
    assert!(replica.elector.is_leader());

    let before = server.writes();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(server.writes() - before, 10);
    assert_eq!(server.spec().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn when_the_holder_vanishes_the_next_one_waits_for_the_whole_lease() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    let b = Replica::start(&server, &stage, "b", Duration::ZERO);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!b.elector.is_leader());

    a.term.shutdown().await;
    assert!(!a.elector.is_leader(), "a dropped term is over for everybody who watches");
    let died = Instant::now();
    stage.until_led_by("b").await;
    let waited = stage.entered("b") - died;
    // The last renewal may be two seconds old when the holder dies; the change is seen within one retry.
    assert!(waited >= Duration::from_secs(13), "{waited:?}");
    assert!(waited <= Duration::from_secs(15) + 2 * RETRY_AT_MOST, "{waited:?}");
    assert_eq!(server.spec().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_hands_over_without_waiting_for_the_lease() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    a.shutdown.cancel();
    assert_eq!(a.outcome().await, Outcome::Done(()));
    assert_eq!(server.spec().holder_identity.as_deref(), Some(""));
    assert_eq!(server.spec().lease_duration_seconds, Some(1));

    let start = Instant::now();
    let b = Replica::start(&server, &stage, "b", Duration::ZERO);
    stage.until_led_by("b").await;
    assert!(start.elapsed() < Duration::from_millis(100));
    assert!(b.elector.is_leader());
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_minutes_to_stop_keeps_the_lease_until_it_has() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", Duration::from_mins(5));
    stage.until_led_by("a").await;
    let b = Replica::start(&server, &stage, "b", Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(30)).await;

    a.shutdown.cancel();
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert!(a.elector.is_leader() && !b.elector.is_leader());
    assert_eq!(a.outcome().await, Outcome::Done(()));
    stage.until_led_by("b").await;
    assert!(stage.entered("b") - stage.left("a") <= RETRY_AT_MOST + Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn an_outage_stops_the_work_before_another_can_take_over() {
    for fault in [Fault::Unavailable, Fault::Swallowed, Fault::AnswerLost] {
        let (server, stage) = (Server::default(), Stage::default());
        let mut a = Replica::start(&server, &stage, "a", Duration::from_secs(2));
        stage.until_led_by("a").await;
        let _b = Replica::start(&server, &stage, "b", Duration::ZERO);
        tokio::time::sleep(Duration::from_mins(1)).await;

        a.link.breaks(fault);
        let broken = Instant::now();
        let mut leading = a.elector.leading();
        leading.wait_for(|leads| !leads).await.unwrap();
        let told = broken.elapsed();
        assert!(told <= Duration::from_secs(10), "{fault:?}: {told:?}");
        assert_eq!(a.outcome().await, Outcome::Lost { loss: Loss::NotRenewed, output: Some(()) });
        assert_eq!(stage.now(), None);
        stage.until_led_by("b").await;
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_listen_is_dropped_before_another_can_take_over() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", NEVER);
    stage.until_led_by("a").await;
    let _b = Replica::start(&server, &stage, "b", Duration::ZERO);
    tokio::time::sleep(Duration::from_mins(1)).await;

    a.link.breaks(Fault::Unavailable);
    let broken = Instant::now();
    assert_eq!(a.outcome().await, Outcome::Lost { loss: Loss::NotRenewed, output: None });
    assert!(broken.elapsed() < Duration::from_secs(15));
    stage.until_led_by("b").await;
}

#[tokio::test(start_paused = true)]
async fn the_holder_counts_from_when_it_asked_not_from_when_it_was_answered() {
    for offset in 0..20 {
        let (server, stage) = (Server::default(), Stage::default());
        let mut a = Replica::start(&server, &stage, "a", NEVER);
        stage.until_led_by("a").await;
        let _b = Replica::start(&server, &stage, "b", Duration::ZERO);
        a.link.becomes(Fate { after: Duration::from_millis(4_900), ..Fate::default() });
        tokio::time::sleep(Duration::from_mins(1) + Duration::from_millis(450 * offset)).await;
        assert_eq!(stage.now().as_deref(), Some("a"), "slow answers are answers");
        a.link.breaks(Fault::Swallowed);
        assert_eq!(a.outcome().await, Outcome::Lost { loss: Loss::NotRenewed, output: None });
        stage.until_led_by("b").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_deadline_is_not_noticed_by_the_work() {
    let (server, stage) = (Server::default(), Stage::default());
    let a = Replica::start(&server, &stage, "a", Duration::ZERO);
    let b = Replica::start(&server, &stage, "b", Duration::ZERO);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let leader = stage.now();

    for link in [&a.link, &b.link] {
        link.breaks(Fault::Unavailable);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for link in [&a.link, &b.link] {
        link.becomes(Fate::default());
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(stage.now(), leader);
    assert_eq!(stage.terms(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_same_replica_may_lead_again() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    a.link.breaks(Fault::Unavailable);
    assert!(matches!(a.outcome().await, Outcome::Lost { .. }));
    tokio::time::sleep(Duration::from_mins(2)).await;
    a.link.becomes(Fate::default());

    let shutdown = CancellationToken::new();
    let (elector, token) = (Arc::clone(&a.elector), shutdown.clone());
    let outcome = elector.lead(shutdown, |_| async move { token.cancel() }).await;
    assert_eq!(outcome, Ok(Outcome::Done(())));
}

#[tokio::test(start_paused = true)]
async fn clocks_that_disagree_by_hours_do_no_harm() {
    for clock in ["2026-11-15T06:00:00Z", "2026-11-15T18:00:00Z"] {
        let (server, stage) = (Server::default(), Stage::default());
        let mut a = Replica::start(&server, &stage, "a", Duration::ZERO);
        stage.until_led_by("a").await;
        let b = Replica::start_at(&server, &stage, "b", Duration::ZERO, clock);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(stage.terms(), 1);

        a.link.breaks(Fault::Swallowed);
        assert!(matches!(a.outcome().await, Outcome::Lost { .. }));
        stage.until_led_by("b").await;
        assert!(b.elector.is_leader());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_the_work_at_the_next_renewal() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", NEVER);
    stage.until_led_by("a").await;
    server.edit(|lease| lease.spec.as_mut().unwrap().holder_identity = Some("thief".into()));
    let stolen = Instant::now();
    assert_eq!(a.outcome().await, Outcome::Lost { loss: Loss::TakenBy("thief".into()), output: None });
    assert!(stolen.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn somebody_who_labels_the_lease_neither_ends_nor_prolongs_it() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    let _b = Replica::start(&server, &stage, "b", Duration::ZERO);
    let labels = AtomicU64::new(0);
    let label = || {
        let n = labels.fetch_add(1, Ordering::Relaxed).to_string();
        server.edit(|lease| lease.metadata.labels = Some([("touched".to_owned(), n)].into()));
    };
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        label();
    }
    assert_eq!(stage.terms(), 1, "the holder reads again and renews");

    a.term.shutdown().await;
    let died = Instant::now();
    while stage.now().is_none() {
        tokio::time::sleep(Duration::from_millis(700)).await;
        label();
    }
    // It may be overtaken now and then, but the labels are no sign of life.
    assert!(died.elapsed() < Duration::from_secs(40), "{:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let (server, stage) = (Server::default(), Stage::default());
    let _a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    server.forget();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(stage.terms(), 1);
    assert_eq!(server.spec().holder_identity.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_told_to_stop_stops_at_once_and_leaves_the_lease_alone() {
    let (server, stage) = (Server::default(), Stage::default());
    let _a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    let mut b = Replica::start(&server, &stage, "b", Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(7)).await;
    b.link.breaks(Fault::Swallowed);
    tokio::time::sleep(Duration::from_secs(3)).await;
    b.shutdown.cancel();
    let asked = Instant::now();
    assert_eq!(b.outcome().await, Outcome::NeverLed);
    assert!(asked.elapsed() < Duration::from_millis(10));
    assert_eq!(server.spec().holder_identity.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_told_to_stop_while_it_takes_the_lease_gives_it_back() {
    let (server, stage) = (Server::default(), Stage::default());
    let mut a = Replica::start(&server, &stage, "a", Duration::ZERO);
    a.link.becomes(Fate { after: Duration::from_secs(1), ..Fate::default() });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(server.spec().holder_identity.as_deref(), Some("a"), "written, but the answer is still on its way");
    a.shutdown.cancel();
    assert_eq!(a.outcome().await, Outcome::NeverLed);
    assert_eq!(server.spec().holder_identity.as_deref(), Some(""));
    assert_eq!(stage.terms(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_elector_does_not_stand_twice() {
    let (server, stage) = (Server::default(), Stage::default());
    let a = Replica::start(&server, &stage, "a", Duration::ZERO);
    stage.until_led_by("a").await;
    let again = a.elector.lead(CancellationToken::new(), |_| async {}).await;
    assert!(matches!(again, Err(LeaderError::AlreadyElecting { .. })));
    let nobody = Elector::new(
        server.client(&Link::fair()),
        "ns",
        "name",
        "",
        Timing::default(),
        Arc::new(TokioClock::starting_at(NOON.parse().unwrap())),
    );
    assert_eq!(nobody.err(), Some(LeaderError::NoIdentity));
}
