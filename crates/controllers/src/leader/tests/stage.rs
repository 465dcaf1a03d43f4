//! Those who want to lead, and the stage that holds one of them.

use std::sync::Mutex;

use super::super::*;
use super::server::{Link, Server};
use crate::clock::TokioClock;

#[derive(Clone, Default)]
pub(super) struct Stage(Arc<Mutex<StageInner>>);

#[derive(Default)]
struct StageInner {
    now: Option<String>,
    entered: Vec<(String, Instant)>,
    left: Vec<(String, Instant)>,
}

struct OnStage(Stage, String);

impl Stage {
    fn enter(&self, who: &str) -> OnStage {
        let mut inner = self.0.lock().unwrap();
        assert_eq!(inner.now, None, "{who} leads while another still does");
        inner.now = Some(who.to_owned());
        inner.entered.push((who.to_owned(), Instant::now()));
        OnStage(self.clone(), who.to_owned())
    }

    pub(super) fn now(&self) -> Option<String> {
        self.0.lock().unwrap().now.clone()
    }

    pub(super) fn entered(&self, who: &str) -> Instant {
        self.0.lock().unwrap().entered.iter().find(|(name, _)| name == who).expect("never led").1
    }

    pub(super) fn left(&self, who: &str) -> Instant {
        self.0.lock().unwrap().left.iter().find(|(name, _)| name == who).expect("still leads").1
    }

    pub(super) fn terms(&self) -> usize {
        self.0.lock().unwrap().entered.len()
    }

    pub(super) async fn until_led_by(&self, who: &str) {
        let start = Instant::now();
        while self.now().as_deref() != Some(who) {
            assert!(start.elapsed() < Duration::from_mins(10), "{who} never leads");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for OnStage {
    fn drop(&mut self) {
        // A failed assertion elsewhere has already poisoned it.
        if let Ok(mut inner) = self.0.0.lock() {
            inner.now = None;
            inner.left.push((self.1.clone(), Instant::now()));
        }
    }
}

pub(super) fn elector(server: &Server, link: &Link, identity: &str, clock: &str) -> Elector {
    let clock = TokioClock::starting_at(clock.parse().unwrap());
    Elector::new(server.client(link), "beskar7-system", "beskar7", identity, Timing::default(), Arc::new(clock))
        .unwrap()
}

pub(super) const NOON: &str = "2026-11-15T12:00:00Z";

/// A replica that leads, does nothing, and takes `stop_takes` to stop.
pub(super) struct Replica {
    pub(super) link: Link,
    pub(super) elector: Arc<Elector>,
    pub(super) shutdown: CancellationToken,
    pub(super) term: JoinSet<Outcome<()>>,
}

impl Replica {
    pub(super) fn start(server: &Server, stage: &Stage, identity: &str, stop_takes: Duration) -> Self {
        Self::start_at(server, stage, identity, stop_takes, NOON)
    }

    pub(super) fn start_at(server: &Server, stage: &Stage, identity: &str, stop_takes: Duration, clock: &str) -> Self {
        let link = Link::fair();
        let elector = Arc::new(elector(server, &link, identity, clock));
        let shutdown = CancellationToken::new();
        let mut term = JoinSet::new();
        let (candidate, stage, token) = (Arc::clone(&elector), stage.clone(), shutdown.clone());
        let identity = identity.to_owned();
        term.spawn(
            async move { candidate.lead(token, |term| perform(stage, identity, term, stop_takes)).await.unwrap() },
        );
        Self { link, elector, shutdown, term }
    }

    pub(super) async fn outcome(&mut self) -> Outcome<()> {
        self.term.join_next().await.unwrap().unwrap()
    }
}

pub(super) async fn perform(stage: Stage, identity: String, term: CancellationToken, stop_takes: Duration) {
    let _on_stage = stage.enter(&identity);
    term.cancelled().await;
    tokio::time::sleep(stop_takes).await;
}

pub(super) const NEVER: Duration = Duration::from_secs(1 << 30);
