use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use sim::{
    Bmc, BootSource, Dropped, Effect, Fault, FaultBody, ImageName, Kind, Outcome, PowerState, Timing, Verb, personality,
};
use tokio::time::Instant;

use crate::client::{Client, SESSIONS, login, pass, send};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const ISO: &str = "http://images.example/os.iso";

async fn on() -> Client {
    Client::on(personality::generic()).await
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn answers_come_late() {
    let client = on().await;
    client.bmc.faults().add(Effect::Latency(seconds(20)).always().kind(Kind::System));
    let start = Instant::now();
    client.read(SYSTEM).await;
    assert_eq!(start.elapsed(), seconds(20));
    client.read("/redfish/v1/Systems").await;
    assert_eq!(start.elapsed(), seconds(20));
    client.bmc.set_latency(seconds(1));
    client.read(SYSTEM).await;
    assert_eq!(start.elapsed(), seconds(41));
}

#[tokio::test(start_paused = true)]
async fn a_status_comes_with_any_body() {
    let client = on().await;
    for (body, text) in [
        (FaultBody::Html, "<!DOCTYPE html>"),
        (FaultBody::Text("Service Unavailable".into()), "Service Unavailable"),
        (FaultBody::Json("{\"cut".into()), "{\"cut"),
        (FaultBody::Empty, ""),
        (FaultBody::Redfish, "{\"error\""),
    ] {
        client.bmc.faults().add(Effect::Status { code: 503, body }.always().times(1));
        let answer = client.get(SYSTEM).await;
        assert_eq!(answer.status, 503);
        assert!(answer.raw.starts_with(text.as_bytes()), "{:?}", answer.raw);
    }
    client.read(SYSTEM).await;
    assert_eq!(client.bmc.counters().ended(Verb::Get, Kind::System, Outcome::Status(503)), 5);
}

#[tokio::test(start_paused = true)]
async fn a_failing_reset_is_not_carried_out_and_a_lost_answer_is() {
    let client = on().await;
    let target = format!("{SYSTEM}/Actions/ComputerSystem.Reset");
    let off = json!({ "ResetType": "ForceOff" });
    let send = async || client.try_send(Method::POST, &target, &[], Some(&off)).await.map(|_| ());
    client.bmc.faults().add(Effect::Drop.always().kind(Kind::Reset).times(1));
    assert_eq!(send().await, Err(Dropped::Reset));
    assert_eq!(client.bmc.first().resets, 0);
    client.bmc.faults().add(Effect::Refuse.always().method(Verb::Post).times(1));
    assert_eq!(send().await, Err(Dropped::Refused));
    assert_eq!(client.bmc.first().resets, 0);
    client.bmc.faults().add(Effect::DropAnswer.always().path("*/Actions/*").times(1));
    assert_eq!(send().await, Err(Dropped::Reset));
    assert_eq!(client.bmc.first().resets, 1);
    assert_eq!(client.bmc.counters().ended(Verb::Post, Kind::Reset, Outcome::Dropped), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hang_lasts_for_ever() {
    let client = on().await;
    let id = client.bmc.faults().add(Effect::Hang.always());
    let day = seconds(24 * 3600);
    assert!(tokio::time::timeout(day, client.get(SYSTEM)).await.is_err());
    assert!(client.bmc.faults().remove(id));
    assert!(!client.bmc.faults().remove(id));
    // The session is gone by then.
    client.get(SYSTEM).await.refused(401, "NoValidSession");
    assert_eq!(client.bmc.counters().ended(Verb::Get, Kind::System, Outcome::Hung), 1);
}

#[tokio::test(start_paused = true)]
async fn minutes_of_503_pass() {
    let client = on().await;
    client.bmc.faults().add(Effect::Status { code: 503, body: FaultBody::Redfish }.always().lasting(seconds(180)));
    for _ in 0..3 {
        client.get(SYSTEM).await.refused(503, "ServiceTemporarilyUnavailable");
        pass(60).await;
    }
    client.read(SYSTEM).await;
}

#[tokio::test(start_paused = true)]
async fn chance_is_seeded() {
    let flips = async || {
        let client = Client::new(Bmc::instant()).await;
        client.bmc.faults().add(Effect::Status { code: 500, body: FaultBody::Empty }.always().probability(0.3));
        let mut flips = Vec::new();
        for _ in 0..200 {
            flips.push(client.get(SYSTEM).await.status.is_success());
        }
        flips
    };
    let first = flips().await;
    assert_eq!(first, flips().await);
    let failed = first.iter().filter(|ok| !**ok).count();
    assert!((30..=90).contains(&failed), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn power_is_reported_late() {
    let client = on().await;
    client.bmc.set_timing(Timing::INSTANT);
    client.bmc.faults().add(Effect::StalePower(seconds(30)).always());
    client.reset("ForceOff").await.worked();
    assert_eq!(client.bmc.first().power(), PowerState::Off);
    assert_eq!(client.power().await, "On");
    pass(29).await;
    assert_eq!(client.power().await, "On");
    pass(1).await;
    assert_eq!(client.power().await, "Off");
}

#[tokio::test(start_paused = true)]
async fn power_is_reported_wrong_or_not_at_all() {
    let client = on().await;
    client.bmc.faults().add(Effect::LyingPower(PowerState::Off).always().times(1));
    assert_eq!(client.power().await, "Off");
    assert_eq!(client.power().await, "On");
    client.bmc.faults().add(Effect::NoPower.always());
    assert_eq!(client.power().await, Value::Null);
    client.bmc.faults().clear();
    assert_eq!(client.power().await, "On");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_after_power_off_passes() {
    let client = on().await;
    client.bmc.faults().add(Effect::RestAfterOff(seconds(60)).always());
    client.reset("ForceOff").await.worked();
    pass(3).await;
    client.reset("On").await.refused(409, "ActionParameterValueConflict");
    pass(60).await;
    client.reset("On").await.worked();
}

#[tokio::test(start_paused = true)]
async fn power_is_slow() {
    let client = on().await;
    client.bmc.faults().add(Effect::SlowPower(seconds(100)).always());
    client.reset("ForceOff").await.worked();
    pass(102).await;
    assert_eq!(client.power().await, "PoweringOff");
    pass(1).await;
    assert_eq!(client.power().await, "Off");
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_is_not_always_done() {
    let client = on().await;
    let faults = client.bmc.faults();
    faults.add(Effect::IgnoresReset.always());
    faults.add(Effect::IgnoresBootOverride.always());
    faults.add(Effect::IgnoresMedia.always());
    client.reset("ForceOff").await.worked();
    client.boot(json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" })).await.worked();
    client.insert(ISO).await.worked();
    pass(60).await;
    let server = client.bmc.first();
    assert_eq!((server.power(), server.resets), (PowerState::On, 0));
    assert_eq!(server.boot, sim::Override::default());
    assert_eq!(server.media(), None);
}

#[tokio::test(start_paused = true)]
async fn a_one_time_boot_is_ignored_also_when_nobody_looks_until_later() {
    let client = Client::of(personality::generic()).await;
    client.insert(ISO).await.worked();
    let order = json!({ "BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once" });
    client.bmc.faults().add(Effect::IgnoresOneTimeBoot.always().times(1).lasting(seconds(100)));
    client.boot(order.clone()).await.worked();
    client.reset("On").await.worked();
    pass(1000).await;
    assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::Hdd);
    client.boot(order).await.worked();
    client.reset("ForceRestart").await.worked();
    pass(60).await;
    assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::Cd(ISO.into()));
}

#[tokio::test(start_paused = true)]
async fn media_are_refused_with_a_message() {
    let client = on().await;
    client.bmc.faults().add(Effect::RefusesMedia("the server of the image cannot be reached".into()).always());
    let answer = client.insert(ISO).await;
    answer.refused(400, "GeneralError");
    assert!(answer.body.to_string().contains("cannot be reached"));
}

#[tokio::test(start_paused = true)]
async fn tasks_are_lost() {
    let client = Client::of(personality::openbmc()).await;
    client.bmc.faults().add(Effect::LosesTasks.always());
    let monitor = client.insert("https://a/os.iso").await.header("location").to_owned();
    client.get(&monitor).await.refused(404, "ResourceMissingAtURI");
    pass(5).await;
    client.get(&monitor).await.refused(404, "ResourceMissingAtURI");
    assert!(client.bmc.first().media().is_some());
}

#[tokio::test(start_paused = true)]
async fn sessions_run_out_and_nobody_is_let_in() {
    let client = on().await;
    client.bmc.faults().add(Effect::SessionLimit(1).always());
    let answer = send(&client.bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap();
    answer.refused(503, "SessionLimitExceeded");
    client.bmc.faults().clear();
    client.bmc.faults().add(Effect::Unauthorized.always());
    client.get(SYSTEM).await.refused(401, "NoValidSession");
    client.get("/redfish/v1").await.worked();
}

#[tokio::test(start_paused = true)]
async fn faults_are_listed() {
    let bmc = Bmc::instant();
    let fault: Fault = Effect::Drop.always().times(3);
    let id = bmc.faults().add(fault.clone());
    assert_eq!(bmc.faults().list(), [(id, fault)]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_cannot_be_read_for_a_while_after_each_change() {
    let client = on().await;
    client.bmc.faults().add(Effect::Unreadable(seconds(20)).always());
    assert_eq!(client.get(SYSTEM).await.status, 200, "nothing was changed yet");
    client.boot(json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" })).await;
    for waited in [0, 19] {
        pass(waited).await;
        assert_eq!(client.get(SYSTEM).await.status, 503);
        assert_eq!(client.get("/redfish/v1").await.status, 200, "the root is always there");
    }
    pass(1).await;
    assert_eq!(client.read(SYSTEM).await["Boot"]["BootSourceOverrideTarget"], "Pxe", "the change was made");
}

#[tokio::test(start_paused = true)]
async fn an_image_is_shown_by_another_name() {
    let client = on().await;
    client.insert(ISO).await;
    let drive = client.cd().await;
    assert_eq!(client.read(&drive).await["Image"], ISO);
    for (name, shown) in [(ImageName::WithPort, "images.example:80/os.iso"), (ImageName::FileName, "os.iso")] {
        client.bmc.faults().clear();
        client.bmc.faults().add(Effect::ShowsImage(name).always());
        let read = client.read(&drive).await;
        assert_eq!((&read["Image"], &read["Inserted"]), (&json!(shown), &json!(true)));
    }
}
