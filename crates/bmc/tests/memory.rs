//! What a BMC at rest costs in memory. The simulator runs in a process of its own, so that this one holds nothing but clients.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bmc::{Address, Bmc as _, Client, Credentials, Endpoint, Https, Options, RedfishSystem, SystemChoice, Trust};
use engine::server::Scope;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const ROLE: &str = "BESKAR7_TEST_SIMULATES";
const BMCS: usize = 150;
/// The first ones pay for what all share: code that is paged in, roots, the heap itself.
const FIRST: usize = 30;
/// A thousand hosts in 64 MB leave this much for a client with its session and one connection. It is about 24 KiB: 15 that are
/// in use, 7 of them for TLS, and the rest holes in the heap. A connection with the buffers of hyper takes 40 KiB more.
const LIMIT: usize = 32 * 1024;

#[test]
fn a_bmc_at_rest_costs_less_than_32_kib() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::var_os(ROLE).is_some() {
        return runtime.block_on(simulate());
    }
    let mut simulator = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "a_bmc_at_rest_costs_less_than_32_kib"])
        .env(ROLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(simulator.stdout.take().unwrap()).lines().map(Result::unwrap);
    let addresses = said.by_ref().filter_map(|line| line.split_once("BMC ").map(|(_, url)| url.to_owned()));
    let cost = runtime.block_on(cost(addresses.take(BMCS).collect()));
    // It ends with its input.
    drop(simulator.stdin.take());
    simulator.wait().unwrap();
    assert!(cost < LIMIT, "{cost} bytes for each");
}

/// The memory that one more BMC takes, once it is known and nobody speaks to it.
async fn cost(addresses: Vec<String>) -> usize {
    assert_eq!(addresses.len(), BMCS, "the simulator has ended");
    let mut systems = Vec::with_capacity(addresses.len());
    let mut before = 0;
    for (index, address) in addresses.iter().enumerate() {
        if index == FIRST {
            tokio::time::sleep(Duration::from_secs(3)).await;
            before = resident();
        }
        let system = system(address);
        system.look(Scope::Inventory).await.unwrap();
        systems.push(system);
    }
    // The spare connections have gone by then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    resident().saturating_sub(before) / (BMCS - FIRST)
}

fn system(address: &str) -> RedfishSystem {
    let address = Address::parse(address).unwrap();
    let transport = Https::new(&address, &Trust::FirstUse).unwrap();
    let endpoint = Endpoint { address, credentials: Credentials::new("admin", "password"), family: None };
    RedfishSystem::new(Client::new(endpoint, Arc::new(transport), Options::default()), SystemChoice::Only)
}

/// The bytes of this process that are in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// Opens BMCs and tells where they are; stays until its input ends.
async fn simulate() {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let mut endpoints = Vec::new();
    for _ in 0..BMCS {
        let loopback = "127.0.0.1:0".parse().unwrap();
        let endpoint = sim::Endpoint::open(sim::Bmc::instant(), loopback, true, &tasks, &stop).await.unwrap();
        println!("BMC {}", endpoint.url());
        endpoints.push(endpoint);
    }
    std::io::stdout().flush().unwrap();
    let input = tasks.spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    input.await.unwrap().unwrap();
}
