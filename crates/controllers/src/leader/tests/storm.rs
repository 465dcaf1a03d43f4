//! Random bad days.

use super::super::*;
use super::server::{Fate, Link, Server};
use super::stage::{NEVER, NOON, Stage, elector, perform};

/// More have been run by hand; each takes a third of a second.
const SEEDS: u64 = 20;

/// Three replicas on bad links, killed and restarted at random, with work that stops quickly, slowly or not at all.
/// The stage panics if two ever lead together.
#[test]
fn two_never_lead_together_whatever_the_network_does() {
    let mut terms = 0;
    for seed in 0..SEEDS {
        fastrand::seed(seed);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        terms += runtime.block_on(storm(seed));
    }
    // The storms must be of the kind that changes leaders, or they show nothing.
    assert!(terms > 10 * usize::try_from(SEEDS).unwrap(), "{terms}");
}

async fn storm(seed: u64) -> usize {
    let (server, stage) = (Server::default(), Stage::default());
    let mut replicas = JoinSet::new();
    let calm = Instant::now() + Duration::from_mins(20);
    for number in 0..3_u64 {
        let (server, stage) = (server.clone(), stage.clone());
        replicas.spawn(async move {
            let mut dice = fastrand::Rng::with_seed(seed * 3 + number);
            let link = Link::fair();
            link.stormy(dice.u64(..));
            let mut life = 0;
            while Instant::now() < calm {
                life += 1;
                let clock = format!("2026-11-15T{:02}:00:00Z", dice.u8(..24));
                let elector = elector(&server, &link, &format!("{number}-{life}"), &clock);
                let killed = calm.min(Instant::now() + Duration::from_secs(dice.u64(10..600)));
                let shutdown = CancellationToken::new();
                let stop = tokio::time::sleep(Duration::from_secs(dice.u64(10..600)));
                let lives = async {
                    while !shutdown.is_cancelled() {
                        let takes = [Duration::ZERO, Duration::from_secs(3), Duration::from_secs(30)][dice.usize(..3)];
                        let who = elector.seat.identity.clone();
                        elector.lead(shutdown.clone(), |term| perform(stage.clone(), who, term, takes)).await.unwrap();
                    }
                };
                let stops = async {
                    stop.await;
                    shutdown.cancel();
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = lives => (),
                    () = stops => (),
                    () = tokio::time::sleep_until(killed) => (),
                }
            }
            link.becomes(Fate::default());
            let last = elector(&server, &link, &format!("{number}-last"), NOON);
            let until = calm + Duration::from_mins(2);
            let who = last.seat.identity.clone();
            let term = last.lead(CancellationToken::new(), |term| perform(stage.clone(), who, term, NEVER));
            tokio::time::timeout_at(until, term).await.ok();
        });
    }
    tokio::time::sleep_until(calm + Duration::from_secs(110)).await;
    assert!(stage.now().is_some(), "seed {seed}: in fair weather somebody leads");
    while let Some(done) = replicas.join_next().await {
        done.unwrap();
    }
    stage.terms()
}
