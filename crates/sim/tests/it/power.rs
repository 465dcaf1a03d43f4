use http::Method;
use serde_json::json;
use sim::{BootSource, Guest, Kind, PowerState, ResetType, Verb, personality};

use crate::client::{Client, pass};

#[tokio::test(start_paused = true)]
async fn a_server_is_powered_on_and_off() {
    let client = Client::of(personality::generic()).await;
    assert_eq!(client.power().await, "Off");
    client.reset("On").await.worked();
    assert_eq!(client.power().await, "PoweringOn");
    pass(2).await;
    assert_eq!(client.power().await, "On");
    assert!(client.bmc.first().in_post());
    pass(60).await;
    assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::Hdd);
    client.reset("ForceOff").await.worked();
    assert_eq!(client.power().await, "PoweringOff");
    pass(3).await;
    assert_eq!(client.power().await, "Off");
    assert_eq!(client.bmc.first().resets, 2);
}

#[tokio::test(start_paused = true)]
async fn wrong_resets_are_refused_with_a_reason() {
    let client = Client::of(personality::generic()).await;
    let target = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
    client.post(target, json!({})).await.refused(400, "ActionParameterMissing");
    client.post(target, json!({ "ResetType": "Explode" })).await.refused(400, "ActionParameterValueNotInList");
    client.post(target, json!({ "ResetType": "On", "Force": 1 })).await.refused(400, "ActionParameterUnknown");
    client.post(target, json!([])).await.refused(400, "MalformedJSON");
    client.get(target).await.refused(405, "OperationNotAllowed");
    assert_eq!(client.bmc.first().resets, 0);
}

#[tokio::test(start_paused = true)]
async fn a_guest_may_ignore_a_polite_request() {
    let client = Client::on(personality::generic()).await;
    client.bmc.set_guest(Guest::Ignores);
    client.reset("GracefulShutdown").await.worked();
    pass(600).await;
    assert_eq!(client.power().await, "On");
    client.bmc.set_guest(Guest::Obeys);
    client.reset("GracefulShutdown").await.worked();
    pass(20).await;
    assert_eq!(client.power().await, "Off");
}

#[tokio::test(start_paused = true)]
async fn somebody_presses_the_button() {
    let client = Client::of(personality::generic()).await;
    assert!(client.bmc.by_hand("1", ResetType::PushPowerButton));
    assert!(!client.bmc.by_hand("2", ResetType::PushPowerButton));
    pass(2).await;
    assert_eq!(client.power().await, "On");
    assert!(client.bmc.journal().is_empty());
}

#[tokio::test(start_paused = true)]
async fn mutations_are_in_the_journal_in_order() {
    let client = Client::of(personality::generic()).await;
    client.boot(json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" })).await.worked();
    pass(5).await;
    client.reset("On").await.worked();
    let journal = client.bmc.journal();
    let kinds: Vec<_> = journal.iter().map(|m| (m.verb, m.kind)).collect();
    assert_eq!(kinds, [(Verb::Patch, Kind::System), (Verb::Post, Kind::Reset)]);
    assert_eq!((journal[1].at - journal[0].at).as_secs(), 5);
    assert_eq!(journal[1].body, r#"{"ResetType":"On"}"#);
}

#[tokio::test(start_paused = true)]
async fn idrac_conflicts_when_power_is_already_so() {
    let client = Client::on(personality::dell_idrac9()).await;
    client.reset("On").await.refused(409, "PSU501");
    client.reset("ForceOff").await.worked();
    pass(3).await;
    client.reset("ForceOff").await.refused(409, "PSU501");
    client.reset("ForceRestart").await.refused(409, "PSU501");
    assert_eq!(client.bmc.first().power(), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn xcc_accepts_when_power_is_already_so() {
    let client = Client::on(personality::lenovo_xcc()).await;
    assert_eq!(client.reset("On").await.status, 204);
    assert_eq!(client.bmc.first().resets, 0);
}

#[tokio::test(start_paused = true)]
async fn idrac_loses_its_data_sources_after_a_reset() {
    let client = Client::on(personality::dell_idrac9()).await;
    let system = client.system().await;
    client.reset("ForceRestart").await.worked();
    client.get(&format!("{system}/Processors")).await.refused(503, "SYS518");
    client.get(&system).await.worked();
    pass(10).await;
    client.get(&format!("{system}/Processors")).await.worked();
}

#[tokio::test(start_paused = true)]
async fn ilo_refuses_a_power_command_right_after_another() {
    let client = Client::on(personality::hpe_ilo5()).await;
    client.reset("ForceOff").await.worked();
    client.reset("On").await.refused(400, "InvalidOperationForSystemState");
    pass(3).await;
    client.reset("ForceOff").await.refused(400, "InvalidOperationForSystemState");
    client.reset("On").await.worked();
}

#[tokio::test(start_paused = true)]
async fn ilo_tells_its_post_state_and_hides_transitions() {
    let client = Client::of(personality::hpe_ilo5()).await;
    client.reset("On").await.worked();
    assert_eq!(client.power().await, "Off");
    pass(3).await;
    let system = client.read(&client.system().await).await;
    assert_eq!(system["Oem"]["Hpe"]["PostState"], "InPost");
    assert_eq!(system.get("BootProgress"), None);
    pass(60).await;
    assert_eq!(client.read(&client.system().await).await["Oem"]["Hpe"]["PostState"], "FinishedPost");
}

#[tokio::test(start_paused = true)]
async fn reset_types_may_be_in_an_action_info() {
    for personality in [personality::openbmc(), personality::supermicro_x13()] {
        let client = Client::of(personality).await;
        let system = client.read(&client.system().await).await;
        let reset = &system["Actions"]["#ComputerSystem.Reset"];
        assert_eq!(reset.get("ResetType@Redfish.AllowableValues"), None);
        let info = client.read(reset["@Redfish.ActionInfo"].as_str().unwrap()).await;
        assert_eq!(info["Parameters"][0]["Name"], "ResetType");
        assert!(info["Parameters"][0]["AllowableValues"].as_array().unwrap().contains(&json!("PowerCycle")));
    }
}

#[tokio::test(start_paused = true)]
async fn some_need_a_rest_after_power_went_off() {
    let mut idrac10 = personality::dell_idrac9();
    idrac10.power.rest_after_off = Some(std::time::Duration::from_mins(1));
    idrac10.etags.refused_on_actions = true;
    let client = Client::on(idrac10).await;
    client.reset("ForceOff").await.worked();
    pass(3).await;
    client.reset("On").await.refused(409, "ActionParameterValueConflict");
    pass(60).await;
    let target = "/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset";
    let body = json!({ "ResetType": "On" });
    let answer = client.try_send(Method::POST, target, &[("if-match", "*")], Some(&body)).await.unwrap();
    answer.refused(412, "PreconditionFailed");
    client.reset("On").await.worked();
}

#[tokio::test(start_paused = true)]
async fn a_reset_can_be_a_task() {
    let mut personality = personality::generic();
    personality.tasks.power = Some(std::time::Duration::from_secs(5));
    let client = Client::of(personality).await;
    let answer = client.reset("On").await;
    assert_eq!(answer.status, 202);
    let monitor = answer.header("location").to_owned();
    assert_eq!(client.get(&monitor).await.status, 202);
    pass(5).await;
    let done = client.get(&monitor).await;
    assert_eq!((done.status.as_u16(), &done.body["TaskState"]), (200, &json!("Completed")));
    let tasks = client.read("/redfish/v1/TaskService/Tasks").await;
    assert_eq!(tasks["Members@odata.count"], 1);
}
