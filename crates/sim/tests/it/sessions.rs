use http::Method;
use serde_json::json;
use sim::{Bmc, BmcSpec, Credentials, Kind, Outcome, Verb, personality};

use crate::client::{Client, SESSIONS, login, pass, send};

#[tokio::test(start_paused = true)]
async fn the_root_is_open_and_the_rest_is_not() {
    let bmc = Bmc::instant();
    for path in ["/redfish", "/redfish/", "/redfish/v1", "/redfish/v1/"] {
        send(&bmc, Method::GET, path, &[], None).await.unwrap().worked();
    }
    let answer = send(&bmc, Method::GET, "/redfish/v1/Systems", &[], None).await.unwrap();
    answer.refused(401, "NoValidSession");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_listed_used_and_deleted() {
    let bmc = Bmc::instant();
    let answer = send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap();
    assert_eq!(answer.status, 201);
    let (token, location) = (answer.header("x-auth-token"), answer.header("location"));
    assert_eq!(answer.body["@odata.id"], location);
    let auth = [("x-auth-token", token)];
    let list = send(&bmc, Method::GET, SESSIONS, &auth, None).await.unwrap().body;
    assert_eq!(list["Members"][0]["@odata.id"], location);
    assert_eq!(bmc.sessions_open(), 1);
    assert_eq!(send(&bmc, Method::DELETE, location, &auth, None).await.unwrap().status, 204);
    assert_eq!(bmc.sessions_open(), 0);
    send(&bmc, Method::GET, SESSIONS, &auth, None).await.unwrap().refused(401, "NoValidSession");
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_when_it_is_not_used() {
    let client = Client::of(personality::generic()).await;
    for _ in 0..4 {
        pass(1700).await;
        client.read("/redfish/v1/Systems").await;
    }
    pass(1800).await;
    client.get("/redfish/v1/Systems").await.refused(401, "NoValidSession");
    assert_eq!(client.bmc.sessions_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn basic_works_where_it_is_allowed() {
    let bmc = Bmc::instant();
    let basic = [("authorization", "Basic YWRtaW46cGFzc3dvcmQ=")];
    send(&bmc, Method::GET, "/redfish/v1/Systems", &basic, None).await.unwrap().worked();
    let mut without = personality::generic();
    without.login.basic = false;
    let bmc = Bmc::new(BmcSpec::new(without));
    send(&bmc, Method::GET, "/redfish/v1/Systems", &basic, None).await.unwrap().refused(401, "NoValidSession");
}

#[tokio::test(start_paused = true)]
async fn a_changed_password_is_noticed_at_the_next_login() {
    let client = Client::of(personality::generic()).await;
    client.bmc.set_credentials(Credentials::new("admin", "other"));
    client.read("/redfish/v1/Systems").await;
    let answer = send(&client.bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap();
    answer.refused(401, "ResourceAtUriUnauthorized");
    let counters = client.bmc.counters();
    assert_eq!(counters.of(Verb::Post, Kind::Sessions), 2);
    assert_eq!(counters.ended(Verb::Post, Kind::Sessions, Outcome::Status(401)), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_wrong_passwords_lock_the_account() {
    let bmc = Bmc::new(BmcSpec::new(personality::supermicro_x13()));
    let wrong = json!({ "UserName": "admin", "Password": "guess" });
    for _ in 0..3 {
        assert_eq!(send(&bmc, Method::POST, SESSIONS, &[], Some(&wrong)).await.unwrap().status, 401);
    }
    assert_eq!(send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap().status, 401);
    pass(30).await;
    send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap().worked();
}

#[tokio::test(start_paused = true)]
async fn an_old_token_spoils_a_login() {
    let client = Client::of(personality::generic()).await;
    client.bmc.drop_sessions();
    let answer = client.post(SESSIONS, login()).await;
    answer.refused(401, "NoValidSession");
}

#[tokio::test(start_paused = true)]
async fn idrac_runs_out_of_sessions_with_rac0218() {
    let bmc = Bmc::new(BmcSpec::new(personality::dell_idrac9()));
    for _ in 0..8 {
        send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap().worked();
    }
    send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap().refused(503, "RAC0218");
    pass(1800).await;
    send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap().worked();
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_bmc_ends_its_sessions_and_leaves_the_server_alone() {
    let client = Client::on(personality::generic()).await;
    let before = client.bmc.first();
    client
        .post("/redfish/v1/Managers/BMC/Actions/Manager.Reset", json!({ "ResetType": "GracefulRestart" }))
        .await
        .worked();
    assert!(client.try_send(Method::GET, "/redfish/v1", &[], None).await.is_err());
    pass(60).await;
    send(&client.bmc, Method::GET, "/redfish/v1", &[], None).await.unwrap().worked();
    client.get("/redfish/v1/Systems").await.refused(401, "NoValidSession");
    assert_eq!(client.bmc.first().boots, before.boots);
    assert_eq!(client.bmc.first().resets, 0);
}
