use std::collections::HashSet;

use sim::{Bmc, Fleet, FleetSpec, Kind, Personality, Verb};

use crate::client::Client;

/// What a registration reads, with `$expand` where it works.
async fn register(bmc: &Bmc) -> String {
    let client = Client::new(bmc.clone()).await;
    let system = client.read(&client.system().await).await;
    for part in ["Processors", "Memory", "Storage", "EthernetInterfaces"] {
        let link = system[part]["@odata.id"].as_str().unwrap();
        client.read(&format!("{link}?$expand=.($levels=1)")).await;
    }
    system["UUID"].as_str().unwrap().to_owned()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or_default();
    pages * 4
}

#[tokio::test(start_paused = true)]
async fn a_thousand_bmcs_are_walked_and_stay_small() {
    let mix = Personality::all().into_iter().map(|p| (p, 1)).collect();
    let before = resident_kib();
    let fleet = Fleet::new(&FleetSpec { count: 1000, mix, ..FleetSpec::default() });
    let mut uuids = HashSet::new();
    for bmc in fleet.bmcs() {
        assert!(uuids.insert(register(bmc).await), "{}", bmc.name());
        assert_eq!(bmc.counters().of(Verb::Get, Kind::System), 1);
    }
    let grown = resident_kib().saturating_sub(before);
    // Other tests of this process grow at the same time, hence the margin over the 20 KB that each may take.
    assert!(grown < 64 << 10, "{grown} KiB");
    assert_eq!(fleet.get("sim-999").unwrap().name(), "sim-999");
}

#[tokio::test(start_paused = true)]
async fn a_fleet_is_mixed_by_weight_and_the_same_every_time() {
    let mix = vec![(sim::personality::generic(), 3), (sim::personality::dell_idrac9(), 1)];
    let spec = FleetSpec { count: 40, mix, prefix: "rack".into(), ..FleetSpec::default() };
    let fleet = Fleet::new(&spec);
    let dells = fleet.bmcs().iter().filter(|b| b.personality().name == "dell-idrac9").count();
    assert_eq!(dells, 10);
    assert_eq!(fleet.bmcs()[7].name(), "rack-007");
    let again = Fleet::new(&spec);
    assert_eq!(register(&fleet.bmcs()[7]).await, register(&again.bmcs()[7]).await);
}
