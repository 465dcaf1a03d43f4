//! Scenes in which one thing is to be seen, with nothing left to the dice.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::failure::{Failure, Kind as FailureKind};
use engine::server::Scope;

use super::*;
use crate::hands::Job;

/// Plays with one host and one server, whose habits follow from a seed.
fn play_on(scene: impl AsyncFnOnce(&mut Stage)) {
    fastrand::seed(7);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { scene(&mut Stage::new(7, false)).await });
}

async fn provision(stage: &mut Stage, name: &str) {
    stage.run_for(Duration::from_mins(5)).await;
    stage.turn(Turn::Claim, name);
    let state = |stage: &Stage| stage.model.host(name).unwrap()["status"]["state"].as_str().unwrap_or("").to_owned();
    for _ in 0..60 {
        stage.run_for(Duration::from_mins(1)).await;
        if state(stage) == "Provisioned" {
            break;
        }
    }
    assert_eq!(state(stage), "Provisioned");
}

#[test]
fn a_request_that_waits_for_a_paused_machine_costs_no_writes_and_is_carried_out_afterwards() {
    play_on(async |stage| {
        let name = "server-0";
        provision(stage, name).await;
        let is_paused = |stage: &Stage| {
            let host = stage.model.host(name).unwrap();
            let conditions = host["status"]["conditions"].as_array().unwrap();
            conditions.iter().any(|condition| condition["type"] == "Paused" && condition["status"] == "True")
        };
        let consumer = stage.consumer(name).unwrap();
        stage.model.pause_consumer(&consumer, true);
        stage.model.edit_host(name, |host| host["spec"]["online"] = json!(false));
        stage.run_for(Duration::from_mins(2)).await;
        assert!(is_paused(stage), "{}", stage.model.host(name).unwrap()["status"]);
        let writes = stage.model.writes();
        stage.run_for(Duration::from_mins(20)).await;
        assert_eq!(stage.model.writes() - writes, 0, "{}", stage.model.last_write());
        assert!(is_paused(stage));
        assert_eq!(stage.servers.server(name).power(), PowerState::On);

        // It is looked at all the same.
        stage.turn(Turn::ByHand, name);
        stage.run_for(Duration::from_mins(3)).await;
        assert_eq!(stage.model.host(name).unwrap()["status"]["observedPowerState"], "Off");
        stage.turn(Turn::ByHand, name);

        stage.model.pause_consumer(&consumer, false);
        stage.run_for(Duration::from_mins(10)).await;
        assert!(!is_paused(stage));
        assert_eq!(stage.servers.server(name).power(), PowerState::Off, "as was asked meanwhile");
    });
}

#[test]
fn an_inventory_is_stored_although_another_look_ends_while_it_is_decided_on() {
    play_on(async |stage| {
        let name = "server-0";
        let no_memory = Effect::Status { code: 503, body: sim::FaultBody::default() }.always();
        stage.servers.bmc(name).faults().add(no_memory.kind(Kind::MemoryCollection));
        provision(stage, name).await;
        let host = stage.model.host(name).unwrap();
        let acted = record(&host).unwrap().acted;
        assert_eq!((count(&host, "memoryModules"), stage.silent_gap(name)), (0, None));

        stage.servers.bmc(name).faults().clear();
        let hands = stage.process.hosts.hands.clone();
        let key = ObjectId::of(stage.process.read(name, &host).as_ref());
        hands.submit(&key, Job { number: acted, acts: Vec::new(), look: Scope::Inventory });
        let has_inventory = || hands.sight(&key).unwrap().seen.is_ok_and(|seen| seen.hardware.is_some());
        while !has_inventory() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }

        // Before its power is cut, its consumer is looked up; and meanwhile the BMC fails.
        stage.model.edit_host(name, |host| host["spec"]["online"] = json!(false));
        let failed = Arc::new(AtomicBool::new(false));
        let (told, hands, inputs) = (failed.clone(), hands.clone(), hands.sight(&key).unwrap().inputs);
        stage.model.meanwhile(move || {
            hands.refuse(&key, &inputs, acted, Failure::new(FailureKind::Unreachable, "gone"));
            told.store(true, Ordering::Relaxed);
        });
        assert!(stage.process.reconcile(name, &stage.model).await.is_ok());
        assert!(failed.load(Ordering::Relaxed));
        let host = stage.model.host(name).unwrap();
        assert_eq!(record(&host).unwrap().unread, None);
        assert_eq!((count(&host, "memoryModules"), stage.silent_gap(name)), (1, None));
    });
}
