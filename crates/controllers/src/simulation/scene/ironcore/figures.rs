//! What servers cost: writes to the API server, and requests to their BMCs.

use std::collections::BTreeMap;

use sim::{Kind, Timing, Verb};

use super::*;
use crate::simulation::fleet::Servers;

type Writes = BTreeMap<String, u64>;

fn total(writes: &Writes) -> u64 {
    writes.values().sum()
}

/// How often each BMC was asked what.
fn requests(scene: &Scene) -> BTreeMap<(Verb, Kind), u64> {
    let mut all = BTreeMap::new();
    for (verb, kind, _, count) in scene.servers.bmc("server-0").counters().iter() {
        *all.entry((verb, kind)).or_default() += count;
    }
    all
}

/// What a PhysicalHost costs until it is available.
async fn physical_host() -> u64 {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.start(|_| {});
    scene.until_state("server-0", "Available").await;
    scene.servers.bmc("server-0").counters().total()
}

#[tokio::test(start_paused = true)]
async fn from_endpoint_to_available_costs_few_writes_and_hardly_more_requests_than_a_physical_host() {
    let mut scene = prepared(&["server-0"]).await;
    start_with(&mut scene, |settings| {
        let right_at_once = PREFIXES.replace("  - username: root\n    password: calvin\n", "");
        settings.prefixes = MacPrefixes::parse(&right_at_once).unwrap();
    });
    scene.add_endpoint("device", "23:11:8A:33:CF:EA").await;
    scene.until_server("device-system-0", "Available").await;
    let writes = scene.wire.take_writes();
    let expected = [
        ("POST bmcsecrets", 1),
        ("POST bmcs", 1),
        ("PATCH endpoints/status", 1),
        ("PATCH servers", 2), // made; anchor and finalizer
        ("PATCH bmcs/status", 1),
        ("PATCH servers/status", 2), // while it registers; with what was found
    ];
    assert_eq!(writes, expected.map(|(what, count)| (what.to_owned(), count)).into());
    assert!(total(&writes) <= 9);
    let (asked, of_host) = (requests(&scene), physical_host().await);
    assert!(asked.values().sum::<u64>() <= of_host + 4, "{asked:#?}, a PhysicalHost {of_host}");
    assert_eq!(asked[&(Verb::Post, Kind::Sessions)], 1);
}

#[tokio::test(start_paused = true)]
async fn four_servers_behind_a_bmc_share_a_session_and_are_quiet_at_rest() {
    for seed in 1..=12 {
        let names: Vec<_> = (0..4).map(|number| format!("server-{number}")).collect();
        let mut scene = Scene::with(Servers::behind_one(&names, &mut fastrand::Rng::with_seed(seed))).await;
        for definition in ::api::crd::ironcore_crds() {
            scene.define(&definition).await;
        }
        start(&mut scene);
        scene.add_bmc("server-0").await;
        for number in 0..4 {
            scene.until_server(&format!("server-0-system-{number}"), "Available").await;
        }
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert_eq!(requests(&scene)[&(Verb::Post, Kind::Sessions)], 1, "seed {seed}");
        scene.servers.bmc("server-0").reset_counters();
        scene.wire.take_writes();
        tokio::time::sleep(Duration::from_hours(6)).await;
        let asked = requests(&scene);
        assert_eq!(scene.wire.take_writes(), Writes::new(), "seed {seed}");
        assert!(asked.values().sum::<u64>() <= 6 * 60, "seed {seed}: {asked:#?}");
        assert_eq!(asked.get(&(Verb::Post, Kind::Sessions)), None, "seed {seed}: the session goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_costs_few_writes_until_its_server_runs() {
    for answers_within in [Duration::from_secs(1), Duration::from_mins(1)] {
        let scene = available(&["server-0"]).await;
        scene.servers.bmc("server-0").set_timing(Timing::INSTANT);
        tokio::time::sleep(Duration::from_mins(1)).await;
        scene.wire.take_writes();
        scene.claim("node", json!({})).await;
        scene.until_bound("node").await;
        tokio::time::sleep(answers_within).await;
        scene.write_status_of::<ServerBootConfiguration>("node", json!({"state": "Ready"})).await;
        scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
        let is_pending_shown = u64::from(answers_within > Duration::from_secs(2));
        let mut expected = vec![
            ("PATCH serverclaims", 2),        // id and finalizer; spec.serverRef
            ("PATCH servers", 4), // claim and anchor; before the boot is prepared; before the power is on; booted
            ("PATCH servers/status", 4), // Reserved; and after each of these anchors
            ("PATCH serverclaims/status", 2), // Bound; Ready
            ("PATCH serverbootconfigurations", 1),
        ];
        expected.extend((is_pending_shown > 0).then_some(("PATCH serverbootconfigurations/status", 1)));
        let writes = scene.wire.take_writes();
        assert_eq!(writes, expected.into_iter().map(|(what, count)| (what.to_owned(), count)).collect());
        assert!(total(&writes) <= 13 + is_pending_shown);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(scene.wire.take_writes(), Writes::new(), "at rest");
    }
}
