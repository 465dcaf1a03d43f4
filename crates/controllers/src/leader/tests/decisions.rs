//! Who may write the Lease, and what is written.

use serde_json::json;

use super::super::*;
use super::server::{Link, Server};
use super::stage::{NOON, elector};

fn record(holder: &str, seconds: u64) -> Record {
    Record {
        holder: holder.into(),
        duration: Duration::from_secs(seconds),
        acquired: None,
        renewed: None,
        transitions: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_write_the_lease() {
    let since = Instant::now();
    let at = |seconds_and_tenths: f64| since + Duration::from_secs_f64(seconds_and_tenths);
    let wait = |seconds| Decision::Wait { holder: "other".into(), remaining: Duration::from_secs(seconds) };
    for (case, record, now, wanted) in [
        ("no lease", None, at(0.0), Decision::Acquire),
        ("ours", Some(record("me", 15)), at(1.0), Decision::Renew),
        ("ours, run out, but nobody took it", Some(record("me", 15)), at(99.0), Decision::Renew),
        ("given back", Some(record("", 1)), at(0.0), Decision::Acquire),
        ("another's, just seen", Some(record("other", 15)), at(0.0), wait(15)),
        ("another's, seen long ago", Some(record("other", 15)), at(14.0), wait(1)),
        ("another's, run out", Some(record("other", 15)), at(15.0), Decision::Acquire),
        ("another's, who is more patient than we are", Some(record("other", 60)), at(15.0), wait(45)),
    ] {
        let observed = record.map(|record| Observed { record, since });
        assert_eq!(decide(observed.as_ref(), now, "me"), wanted, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_keeps_what_others_wrote() {
    let server = Server::default();
    let elector = elector(&server, &Link::fair(), "me", NOON);
    let seat = elector.seat.as_ref();

    let created = proposal(None, &Decision::Acquire, seat);
    assert_eq!(
        serde_json::to_value(&created).unwrap(),
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "beskar7", "namespace": "beskar7-system"},
            "spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": "2026-11-15T12:00:00.000000Z", "renewTime": "2026-11-15T12:00:00.000000Z",
            },
        })
    );

    let theirs: Lease = serde_json::from_value(json!({
        "metadata": {"name": "beskar7", "namespace": "beskar7-system", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {
            "holderIdentity": "other", "leaseDurationSeconds": 30, "leaseTransitions": 4, "strategy": "OldestEmulationVersion",
            "acquireTime": "2026-11-15T10:00:00.000000Z", "renewTime": "2026-11-15T11:00:00.000000Z",
        },
    }))
    .unwrap();
    let taken = proposal(Some(&theirs), &Decision::Acquire, seat);
    assert_eq!(taken.metadata, theirs.metadata);
    assert_eq!(
        serde_json::to_value(&taken.spec).unwrap(),
        json!({
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 5, "strategy": "OldestEmulationVersion",
            "acquireTime": "2026-11-15T12:00:00.000000Z", "renewTime": "2026-11-15T12:00:00.000000Z",
        })
    );

    tokio::time::advance(Duration::from_secs(2)).await;
    let renewed = proposal(Some(&taken), &Decision::Renew, seat).spec.unwrap();
    assert_eq!(renewed.lease_transitions, Some(5));
    assert_eq!(renewed.acquire_time, taken.spec.clone().unwrap().acquire_time);
    assert_eq!(renewed.renew_time.unwrap().0.to_string(), "2026-11-15T12:00:02Z");

    let free = released(taken, seat.clock.now());
    assert_eq!(free.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(
        serde_json::to_value(&free.spec).unwrap(),
        json!({
            "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 5, "strategy": "OldestEmulationVersion",
            "acquireTime": "2026-11-15T12:00:02.000000Z", "renewTime": "2026-11-15T12:00:02.000000Z",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewal_always_changes_the_record_even_when_the_wall_clock_stands_still() {
    let server = Server::default();
    let elector = elector(&server, &Link::fair(), "me", NOON);
    let first = proposal(None, &Decision::Acquire, &elector.seat);
    let second = proposal(Some(&first), &Decision::Renew, &elector.seat);
    assert_ne!(first.spec, second.spec);
}

#[test]
fn times_that_do_not_fit_together_are_refused_with_a_sentence() {
    let seconds = Duration::from_secs;
    let good = Timing::default();
    for (timing, complaint) in [
        (Timing { lease_duration: seconds(10), ..good }, "longer than the renew deadline"),
        (Timing { renew_deadline: seconds(2), ..good }, "longer than the retry period"),
        (Timing { retry_period: seconds(0), ..good }, "longer than nothing"),
        (Timing { jitter: -1.0, ..good }, "not be negative"),
        (Timing { lease_duration: seconds(1 << 40), ..good }, "fit 32 bits"),
    ] {
        let error = timing.check().unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
    assert_eq!(good.check(), Ok(()));
}

#[test]
fn a_broken_second_is_written_as_a_whole_one() {
    let timing = Timing { lease_duration: Duration::from_millis(15_100), ..Timing::default() };
    assert_eq!(timing.lease_seconds(), 16);
}
