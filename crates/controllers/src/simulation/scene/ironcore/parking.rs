//! Servers that somebody else takes over for a while, and operations that are asked for meanwhile.

use sim::ResetType;

use super::*;

fn operation(value: &str) -> Value {
    json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": value}}})
}

impl Scene {
    async fn park(&self, server: &str) {
        self.edit::<Server>(server, operation("park")).await;
        self.until_of::<Server>(server, "/metadata/annotations/metal.ironcore.dev~1parked", "true").await;
        self.until_server(server, "Parked").await;
    }

    /// Waits until the annotation that asks for an operation was taken off.
    async fn until_operation_is_over(&self, server: &str) {
        self.until("the operation is over", |scene| {
            scene.object::<Server>(server)["metadata"]["annotations"]["metal.ironcore.dev/operation"].is_null()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_server_is_parked_and_not_claimed_and_available_again_afterwards() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.park(&server).await;
    scene.claim("node", json!({})).await;
    let told = scene.until_ready::<ServerClaim>("node", "NoServer").await;
    assert!(told.contains("is Parked"), "{told}");
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(scene.power("server-0"), PowerState::On, "whoever took it over has switched it on");
    scene.drop_object::<ServerClaim>("node").await;
    scene.edit::<Server>(&server, operation("unpark")).await;
    scene.until_server(&server, "Available").await;
    scene.until_power("server-0", PowerState::Off).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_claim_ends_while_it_is_parked_is_cleaned_up_and_available_afterwards() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;
    scene.park(&server).await;
    scene.drop_object::<ServerClaim>("node").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Parked");
    scene.edit::<Server>(&server, operation("unpark")).await;
    scene.until_server(&server, "Available").await;
    scene.until("the claim is gone", |scene| scene.object::<ServerClaim>("node").is_null()).await;
    assert_eq!(scene.object::<Server>(&server)["spec"]["serverClaimRef"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_deleted_while_it_is_parked_goes() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.park(&server).await;
    scene.drop_object::<Server>(&server).await;
    scene
        .until("another one is made of the system", |scene| {
            scene.object::<Server>(&server)["metadata"]["annotations"]["metal.ironcore.dev/parked"].is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_to_park_waits_until_the_server_is_available() {
    let scene = site(&["server-0"]).await;
    let server = of("server-0");
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.add_bmc("server-0").await;
    scene.until_ready::<Server>(&server, "WaitingForServerOff").await;
    scene.edit::<Server>(&server, operation("park")).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let shown = scene.object::<Server>(&server);
    assert_eq!(shown["status"]["state"], "Initial");
    assert_eq!(shown["metadata"]["annotations"]["metal.ironcore.dev/operation"], "park", "it stays until it is done");
    scene.servers.press("server-0", ResetType::ForceOff);
    scene.until_server(&server, "Parked").await;
    scene.until_operation_is_over(&server).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_the_power_of_a_parked_server_is_dropped_with_an_event() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.park(&server).await;
    let acts = scene.done("server-0");
    for asked in ["hard-restart-server", "force-off-server", "dance"] {
        scene.edit::<Server>(&server, operation(asked)).await;
        scene.until_operation_is_over(&server).await;
    }
    assert_eq!((scene.done("server-0"), scene.power("server-0")), (acts, PowerState::Off));
    assert_eq!(scene.events_of("ParkedOperationDropped").await.len(), 2);
    assert_eq!(scene.events_of("UnsupportedOperation").await.len(), 1);
    assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Parked");
}

#[tokio::test(start_paused = true)]
async fn restarts_are_done_once_each_and_power_that_was_cut_comes_back() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;
    let all = ["graceful-restart-server", "hard-restart-server", "power-cycle-server", "force-off-server"];
    // The same once more is another request.
    for asked in all.into_iter().flat_map(|asked| [asked, asked]) {
        let acts = scene.done("server-0").len();
        scene.edit::<Server>(&server, operation(asked)).await;
        scene.until_operation_is_over(&server).await;
        scene.until_power("server-0", PowerState::On).await;
        scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
        let done = scene.done("server-0").len();
        assert!(done > acts, "{asked} was done");
        tokio::time::sleep(Duration::from_mins(30)).await;
        assert_eq!(scene.done("server-0").len(), done, "{asked} was done once");
    }
    scene.edit::<Server>(&server, operation("force-on-server")).await;
    scene.until_operation_is_over(&server).await;
    let told = scene.events_of("UnsupportedOperation").await;
    assert!(told.iter().any(|message| message.contains("follows spec.power of its ServerClaim")), "{told:?}");
}
