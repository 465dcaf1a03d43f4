use std::sync::atomic::{AtomicUsize, Ordering};

use bmc::{Credentials, Fingerprint, TransportError};
use bytes::Bytes;
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

#[tokio::test(start_paused = true)]
async fn a_look_that_panics_is_told_and_the_next_one_is_taken() {
    let (wake, mut woken) = mpsc::unbounded_channel();
    let metrics = Metrics::new();
    let clock = Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
    let dial: Dial = Arc::new(|_, _| Ok(Arc::new(Trap { panics: AtomicUsize::new(1) })));
    let stop = CancellationToken::new();
    let hands = Hands::new(dial, Arc::new(metrics.clone()), metrics, clock, 4, wake, &stop);
    let key = HostKey { namespace: "lab".into(), name: "server".into(), uid: "1".into() };
    let endpoint = Endpoint {
        address: Address::parse("https://192.0.2.1").unwrap(),
        credentials: Credentials::new("admin", "password"),
        family: None,
    };
    let line = Line { key: "line".into(), endpoint, trust: Trust::SystemRoots, system: SystemChoice::Only };
    hands.welcome(&key);
    hands.connect(&key, "inputs", line).unwrap();

    let job = || Job { number: 3, acts: Vec::new(), look: Scope::Power };
    hands.submit(&key, job());
    assert_eq!(woken.recv().await.as_ref(), Some(&key));
    let sight = hands.sight(&key).unwrap();
    assert_eq!((sight.after, sight.seen.unwrap_err().kind), (3, Kind::Internal));

    // It is not taken to be under way any more.
    hands.submit(&key, job());
    woken.recv().await.unwrap();
    assert_eq!(hands.sight(&key).unwrap().seen.unwrap_err().kind, Kind::Unreachable);
    hands.stop().await;
}
