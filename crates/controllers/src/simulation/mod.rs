//! Random histories of a small fleet, exactly repeatable: the real loop, hands and Redfish client, simulated BMCs, and a
//! model of the API server. Everything that happens follows from a seed; time is paused and costs nothing.
//!
//! `BESKAR7_SEED=n` plays one history and tells it; `BESKAR7_SEEDS=n` plays that many, and `BESKAR7_FIRST_SEED=n` begins with
//! another seed than 1: `make soak` draws one, so that each run plays histories that nobody has seen.
#![allow(
    clippy::large_futures,
    clippy::similar_names,
    reason = "one future at a time; path and patch are the words for it"
)]

mod fate;
mod fleet;
mod model;
mod play;
mod probing;
mod scene;
mod whole;

pub(crate) use self::scene::blades::{Blades, Consoles};

use std::sync::atomic::{AtomicU64, Ordering};

use play::{Outcome, play};

/// As many as fit into half a minute of a build machine; `make soak` plays the rest.
const SEEDS: u64 = 1_500;

#[test]
fn random_histories_hurt_nobody_and_converge() {
    play_all("random_histories", SEEDS, play);
}

/// Plays histories, and tells how to play those again that went wrong.
fn play_all(test: &str, seeds: u64, play: fn(u64, bool) -> Outcome) {
    if let Some(seed) = number("BESKAR7_SEED") {
        let Outcome { trace, verdict, .. } = play(seed, true);
        println!("{}", trace.join("\n"));
        return verdict.unwrap();
    }
    let (first, count) = (number("BESKAR7_FIRST_SEED").unwrap_or(1), number("BESKAR7_SEEDS").unwrap_or(seeds));
    let (next, last) = (AtomicU64::new(first), first.saturating_add(count.saturating_sub(1)));
    let spent = AtomicU64::new(0);
    let worker = || {
        let mut failures = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last || failures.len() > 2 {
                return failures;
            }
            let Outcome { verdict, spent: history, .. } = play(seed, false);
            spent.fetch_add(history.as_secs(), Ordering::Relaxed);
            if let Err(why) = verdict {
                failures.push((seed, why));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let failures: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    println!("{} hours went by in {count} histories, from seed {first} on", spent.into_inner() / 3600);
    for (seed, why) in &failures {
        println!(
            "seed {seed}: {why}\n  play it again: BESKAR7_SEED={seed} cargo test -p beskar7-controllers {test} -- --nocapture"
        );
    }
    assert!(failures.is_empty(), "{} histories went wrong", failures.len());
}

#[test]
fn a_seed_tells_the_same_history_every_time() {
    for seed in 1..=20 {
        let (one, other) = (play(seed, true), play(seed, true));
        let differs = one.trace.iter().zip(&other.trace).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(one.trace.len(), other.trace.len(), "seed {seed}");
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
