//! A thousand BMCs in one process. Alone in its binary, because it looks at the memory of the process.

use std::collections::HashSet;

use bytes::Bytes;
use http::Request;
use serde_json::Value;
use sim::{Bmc, Fleet, FleetSpec, Kind, Personality, Verb};

async fn read(bmc: &Bmc, path: &str) -> Value {
    let request = Request::get(path).header("authorization", "Basic YWRtaW46cGFzc3dvcmQ=").body(Bytes::new());
    let response = bmc.call(request.unwrap_or_default()).await;
    let body = response.map(http::Response::into_body).unwrap_or_default();
    serde_json::from_slice(&body).unwrap_or_default()
}

/// What a registration reads, with `$expand` where it works. Returns the UUID.
async fn register(bmc: &Bmc) -> String {
    let systems = read(bmc, "/redfish/v1/Systems").await;
    let system = read(bmc, systems["Members"][0]["@odata.id"].as_str().unwrap_or_default()).await;
    for part in ["Processors", "Memory", "Storage", "EthernetInterfaces"] {
        let link = system[part]["@odata.id"].as_str().unwrap_or_default();
        let found = read(bmc, &format!("{link}?$expand=.($levels=1)")).await;
        assert!(found["Members@odata.count"].as_u64().is_some_and(|n| n > 0), "{} {link}", bmc.name());
    }
    system["UUID"].as_str().unwrap_or_default().to_owned()
}

/// Resident memory, in KiB; 0 where there is no /proc.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_bmcs_are_walked_and_stay_small() {
    let mix = Personality::all().into_iter().map(|p| (p, 1)).collect();
    let before = resident();
    let fleet = Fleet::new(&FleetSpec { count: 1000, mix, ..FleetSpec::default() });
    let mut uuids = HashSet::new();
    for bmc in fleet.bmcs() {
        assert!(uuids.insert(register(bmc).await), "{}", bmc.name());
        assert_eq!(bmc.counters().of(Verb::Get, Kind::System), 1);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 20 * 1000, "{grown} KiB for a thousand BMCs");
}
