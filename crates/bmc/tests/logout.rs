//! The end of a process that has no time left. It concerns every client of the process, so it has one of its own, and one test.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::time::Duration;

use bmc::{
    Address, Bmc as _, Client, Credentials, Endpoint, InProcess, Options, RedfishSystem, SystemChoice,
    close_all_sessions,
};
use engine::server::Scope;
use sim::{Bmc, Effect, Kind, Verb};
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(2);

fn client(bmc: &Bmc) -> Arc<Client> {
    let address = Address::parse("https://bmc.test").unwrap();
    let endpoint = Endpoint { address, credentials: Credentials::new("admin", "password"), family: None };
    Client::new(endpoint, Arc::new(InProcess::new(bmc.clone())), Options::default())
}

async fn logged_in(bmc: &Bmc) -> RedfishSystem {
    let system = RedfishSystem::new(client(bmc), SystemChoice::Only);
    system.look(Scope::Power).await.unwrap();
    assert_eq!(bmc.sessions_open(), 1);
    system
}

#[tokio::test(start_paused = true)]
async fn closing_ends_all_sessions_and_waits_for_no_bmc_longer_than_its_limit() {
    // All answer: it takes no longer than the slowest of them.
    let (quick, slow) = (Bmc::instant(), Bmc::instant());
    let systems = [logged_in(&quick).await, logged_in(&slow).await];
    slow.set_latency(Duration::from_secs(1));
    let begun = Instant::now();
    close_all_sessions(LIMIT).await;
    assert_eq!(begun.elapsed().as_millis() / 100, 10, "{:?}", begun.elapsed());
    assert_eq!((quick.sessions_open(), slow.sessions_open()), (0, 0));
    for system in &systems {
        system.look(Scope::Power).await.unwrap_err();
    }
    assert_eq!((quick.sessions_open(), slow.sessions_open()), (0, 0), "nobody logs in any more");

    // One hangs, one is in the middle of a login, and one was just dropped.
    let (quick, hung, late, dropped) = (Bmc::instant(), Bmc::instant(), Bmc::instant(), Bmc::instant());
    let _systems = [logged_in(&quick).await, logged_in(&hung).await];
    hung.faults().add(Effect::Hang.always());
    late.faults().add(Effect::Latency(Duration::from_secs(1)).always().kind(Kind::Sessions).method(Verb::Post));
    let system = RedfishSystem::new(client(&late), SystemChoice::Only);
    let goodbye = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let system = logged_in(&dropped).await;
        dropped.set_latency(Duration::from_secs(1));
        drop(system);
        let begun = Instant::now();
        close_all_sessions(LIMIT).await;
        begun.elapsed()
    };
    let (look, took) = futures::join!(system.look(Scope::Power), goodbye);
    look.unwrap_err();
    assert_eq!(took.as_millis() / 100, LIMIT.as_millis() / 100, "{took:?}");
    assert_eq!((quick.sessions_open(), late.sessions_open(), dropped.sessions_open()), (0, 0, 0));
    assert_eq!(late.counters().of(Verb::Post, Kind::Sessions), 1);
    assert_eq!(hung.sessions_open(), 1, "it will time it out");
}
