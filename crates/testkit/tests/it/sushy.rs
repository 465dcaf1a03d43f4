use http::{Method, StatusCode};
use serde_json::json;
use testkit::{FakeSystem, Sushy, WebServer};

use crate::redfish::call;

#[tokio::test]
async fn a_fake_service_answers_over_tls_to_those_who_know_the_password() {
    let sushy = Sushy::fake(&[FakeSystem::numbered(1), FakeSystem::numbered(2)]).await;

    let (status, systems) = call(&sushy, Sushy::PASSWORD, Method::GET, "/redfish/v1/Systems", None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(systems["Members@odata.count"], json!(2));
    let (status, _) = call(&sushy, "wrong", Method::GET, "/redfish/v1/Systems", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);

    let path = format!("/redfish/v1/Systems/{}", FakeSystem::numbered(2).uuid);
    let (_, system) = call(&sushy, Sushy::PASSWORD, Method::GET, &path, None).await;
    assert_eq!(system["PowerState"], json!("Off"));
    assert_eq!(sushy.fingerprint().len(), 64);
}

#[tokio::test]
async fn a_fake_service_fetches_virtual_media_from_the_depot() {
    let sushy = Sushy::fake(&[FakeSystem::numbered(1)]).await;
    let depot = WebServer::start();
    let image = depot.put("some.iso", "not really an image");

    let device = format!("/redfish/v1/Systems/{}/VirtualMedia/Cd", FakeSystem::numbered(1).uuid);
    let insert = format!("{device}/Actions/VirtualMedia.InsertMedia");
    let (status, answer) = call(&sushy, Sushy::PASSWORD, Method::POST, &insert, Some(json!({"Image": image}))).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    assert_eq!(depot.fetched(), ["some.iso"]);
    let (_, media) = call(&sushy, Sushy::PASSWORD, Method::GET, &device, None).await;
    assert_eq!(media["Inserted"], json!(true));
}
