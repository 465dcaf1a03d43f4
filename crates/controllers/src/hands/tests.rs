use bmc::{Credentials, InProcess};
use futures::FutureExt as _;
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::clock::TokioClock;

const INPUTS: &str = "inputs";

fn key() -> HostKey {
    HostKey { namespace: "default".into(), name: "host".into(), uid: "1".into() }
}

fn line() -> Line {
    let address = Address::parse("https://10.0.0.1").unwrap();
    let credentials = Credentials::new("admin", "password");
    Line {
        key: "line".into(),
        endpoint: Endpoint { address, credentials, family: None },
        trust: Trust::Anything,
        system: SystemChoice::Only,
    }
}

fn hands(bmc: &sim::Bmc, term: &CancellationToken) -> (Arc<Hands>, UnboundedReceiver<HostKey>) {
    let (wake, woken) = mpsc::unbounded_channel();
    let bmc = bmc.clone();
    let dial: Dial = Arc::new(move |_, _| Ok(Arc::new(InProcess::new(bmc.clone())) as Arc<dyn Transport>));
    let metrics = Metrics::default();
    let clock = Arc::new(TokioClock::starting_at("2026-11-17T08:00:00Z".parse().unwrap()));
    (Hands::new(dial, Arc::new(metrics.clone()), metrics, clock, 4, wake, term), woken)
}

fn connect(hands: &Hands) {
    hands.welcome(&key());
    hands.connect(&key(), INPUTS, line()).unwrap();
}

fn look() -> Job {
    Job { number: 0, acts: Vec::new(), look: Scope::Power }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(1));
    for _ in 0..20 {
        let term = CancellationToken::new();
        let (hands, mut woken) = hands(&bmc, &term);
        connect(&hands);
        hands.submit(&key(), look());
        woken.recv().await.unwrap();
        assert_eq!(bmc.sessions_open(), 1);
        term.cancel();
        // Somebody else leads already: the work is dropped where it stands.
        assert!(hands.stop().now_or_never().is_none());
        drop(hands);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bmc.sessions_open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_during_a_login_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(2));
    for after in 0..8 {
        let term = CancellationToken::new();
        let (hands, _woken) = hands(&bmc, &term);
        connect(&hands);
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_secs(after)).await;
        term.cancel();
        drop(hands);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(bmc.sessions_open(), 0, "lost after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_let_go_of_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
    connect(&hands);
    hands.submit(&key(), look());
    woken.recv().await.unwrap();
    hands.forget(&key());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bmc.sessions_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_let_go_of_is_not_spoken_to_by_what_was_begun_before() {
    let bmc = sim::Bmc::instant();
    let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
    connect(&hands);
    hands.submit(&key(), look());
    woken.recv().await.unwrap();
    hands.forget(&key());
    // A reconcile that had begun before.
    hands.connect(&key(), INPUTS, line()).unwrap();
    hands.refuse(&key(), INPUTS, 0, Failure::new(Kind::Unreachable, "nobody is there"));
    hands.submit(&key(), look());
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!((bmc.sessions_open(), hands.sight(&key())), (0, None));
    assert_eq!(bmc.counters().of(sim::Verb::Post, sim::Kind::Sessions), 1);

    // It is back, say because its label says again that it is ours.
    connect(&hands);
    hands.submit(&key(), look());
    woken.recv().await.unwrap();
    assert_eq!(bmc.sessions_open(), 1);
    hands.stop().await;
    hands.welcome(&key());
    assert!(!hands.knows(&key()), "nobody is spoken to after the end");
    assert_eq!(bmc.sessions_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_goes_at_any_moment_of_a_look_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(7));
    for after in 0..40 {
        let (hands, _woken) = hands(&bmc, &CancellationToken::new());
        connect(&hands);
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_secs(after)).await;
        hands.forget(&key());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(bmc.sessions_open(), 0, "gone after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn other_credentials_at_any_moment_of_a_look_leave_only_the_session_of_the_new_ones() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(7));
    for after in 0..40 {
        let (hands, _woken) = hands(&bmc, &CancellationToken::new());
        connect(&hands);
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_secs(after)).await;
        hands.connect(&key(), "other inputs", Line { key: "other line".into(), ..line() }).unwrap();
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(bmc.sessions_open(), 1, "changed after {after} s");
        hands.forget(&key());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(bmc.sessions_open(), 0, "changed after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_a_host_is_seen_within_a_minute_and_nobody_hears_of_the_tries() {
    for minutes in [1, 5, 60] {
        for effect in [sim::Effect::Refuse, sim::Effect::Drop, sim::Effect::Hang] {
            let bmc = sim::Bmc::instant();
            let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
            connect(&hands);
            bmc.faults().add(effect.clone().always());
            hands.submit(&key(), look());
            woken.recv().await.unwrap();
            tokio::time::sleep(Duration::from_mins(minutes)).await;
            assert!(woken.try_recv().is_err(), "{effect:?}: nothing new in {minutes} min");
            bmc.faults().clear();
            // What hangs since before the end of the outage is given up first.
            let limit = Duration::from_secs(if effect == sim::Effect::Hang { 100 } else { 60 });
            tokio::time::timeout(limit, woken.recv()).await.unwrap().unwrap();
            assert!(hands.sight(&key()).unwrap().seen.is_ok(), "{effect:?}");
            hands.stop().await;
        }
    }
}
