use std::sync::atomic::{AtomicUsize, Ordering};

use api::beskar7::PhysicalHost;
use bmc::{Credentials, Fingerprint, TransportError};
use bytes::Bytes;
use engine::server::BootOverride;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::*;
use crate::clock::TokioClock;

/// A way to a BMC on which the first requests panic and the rest find nobody.
struct Trap {
    panics: AtomicUsize,
}

impl Transport for Trap {
    fn send(&self, _: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        async move {
            let left = self.panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            assert!(left.is_err(), "a bug in the client");
            Err(TransportError::Connect("nobody is there".into()))
        }
        .boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        None
    }
}

/// A BMC that takes a look and forgets about it, which none of ours does.
struct Forgetful {
    looks: AtomicUsize,
}

impl Bmc for Forgetful {
    fn look(&self, _: Scope) -> BoxFuture<'_, Result<Seen, bmc::Error>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        std::future::pending().boxed()
    }

    fn power_on(&self) -> BoxFuture<'_, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn power_off(&self, _: Manner) -> BoxFuture<'_, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn restart(&self, _: Manner) -> BoxFuture<'_, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn insert_media<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn eject_media(&self) -> BoxFuture<'_, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn set_boot<'a>(&'a self, _: &'a BootOverride) -> BoxFuture<'a, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn clear_boot(&self) -> BoxFuture<'_, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }

    fn reset_bmc(&self) -> BoxFuture<'_, Result<(), bmc::Error>> {
        unreachable!("nobody asks for it")
    }
}

fn key() -> ObjectId {
    ObjectId { uid: Some("1".into()), ..ObjectId::named::<PhysicalHost>(Some("lab"), "server") }
}

fn job() -> Job {
    Job { number: 3, acts: Vec::new(), look: Scope::Power }
}

/// Hands with a way to one BMC, on which the first `panics` requests panic.
fn connected(panics: usize) -> (Arc<Hands>, mpsc::UnboundedReceiver<ObjectId>) {
    let (wake, woken) = mpsc::unbounded_channel();
    let metrics = Metrics::new();
    let clock = Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
    let dial: Dial = Arc::new(move |_, _| Ok(Arc::new(Trap { panics: AtomicUsize::new(panics) })));
    let hands = Hands::new(dial, Arc::new(metrics.clone()), metrics, clock, 4, wake, &CancellationToken::new());
    let endpoint = Endpoint {
        address: Address::parse("https://192.0.2.1").unwrap(),
        credentials: Credentials::new("admin", "password"),
        family: None,
    };
    let line = Line { key: "line".into(), endpoint, trust: Trust::SystemRoots, system: SystemChoice::Only };
    hands.welcome(&key());
    hands.connect(&key(), "inputs", line).unwrap();
    (hands, woken)
}

#[tokio::test(start_paused = true)]
async fn a_look_that_panics_is_told_and_the_next_one_is_taken() {
    let (hands, mut woken) = connected(1);
    hands.submit(&key(), job());
    assert_eq!(woken.recv().await, Some(key()));
    let sight = hands.sight(&key()).unwrap();
    assert_eq!((sight.after, sight.seen.unwrap_err().kind), (3, Kind::Internal));

    // It is not taken to be under way any more.
    hands.submit(&key(), job());
    woken.recv().await.unwrap();
    assert_eq!(hands.sight(&key()).unwrap().seen.unwrap_err().kind, Kind::Unreachable);
    hands.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_look_that_never_comes_back_is_given_up_after_15_minutes_and_taken_again() {
    let (hands, mut woken) = connected(0);
    let bmc = Arc::new(Forgetful { looks: AtomicUsize::new(0) });
    hands.desks().hosts.get_mut(&key()).unwrap().bmc = Some(bmc.clone());
    for looks in 1..=3 {
        let begun = Instant::now();
        hands.submit(&key(), job());
        // Whoever asks meanwhile does not begin another one.
        tokio::time::sleep(Duration::from_mins(14)).await;
        hands.submit(&key(), job());
        assert!(woken.try_recv().is_err(), "nothing is told before its time");
        assert_eq!(woken.recv().await, Some(key()));
        assert_eq!(begun.elapsed().as_secs(), 15 * 60);
        let sight = hands.sight(&key()).unwrap();
        assert_eq!((sight.after, sight.seen.unwrap_err().kind), (3, Kind::Internal));
        assert_eq!(bmc.looks.load(Ordering::Relaxed), looks);
    }
    hands.stop().await;
}

#[tokio::test(start_paused = true)]
async fn acts_that_were_asked_for_during_a_lost_look_are_performed_after_it() {
    let (hands, mut woken) = connected(0);
    let works = hands.desks().hosts[&key()].bmc.clone();
    hands.desks().hosts.get_mut(&key()).unwrap().bmc = Some(Arc::new(Forgetful { looks: AtomicUsize::new(0) }));
    hands.submit(&key(), job());
    hands.submit(&key(), Job { number: 4, acts: vec![Act::PowerOn], look: Scope::Power });
    hands.desks().hosts.get_mut(&key()).unwrap().bmc = works;
    woken.recv().await.unwrap();
    assert_eq!(hands.sight(&key()).unwrap().after, 3);
    woken.recv().await.unwrap();
    let sight = hands.sight(&key()).unwrap();
    assert_eq!((sight.after, sight.act.unwrap().number), (4, 4));
    hands.stop().await;
}
