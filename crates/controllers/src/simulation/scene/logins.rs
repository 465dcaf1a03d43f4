//! A refused password is tried again when it was changed, and not because something else was changed that is in the same Secret.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sim::{Kind, Verb};

use super::{NAMESPACE, Scene};

const HOST: &str = "server-0";
/// Shorter than the hold after the second refusal.
const HELD: Duration = Duration::from_mins(8);

impl Scene {
    async fn edit_secret(&self, manager: &str, patch: Value) {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        secrets.patch(HOST, &params, &Patch::Merge(patch)).await.unwrap();
    }

    async fn set_password(&self, password: &str) {
        self.edit_secret("kubectl-edit", json!({"stringData": {"password": password}})).await;
    }

    fn logins(&self) -> u64 {
        self.servers.bmc(HOST).counters().of(Verb::Post, Kind::Sessions)
    }
}

/// A host whose password was refused twice, and the operator is down.
async fn refused() -> Scene {
    let mut scene = Scene::open(&[HOST]).await;
    scene.set_password("guessed").await;
    scene.start(|_| {});
    scene.until("two refusals", |scene| scene.host(HOST)["status"]["fault"]["count"] == 2).await;
    assert_eq!((scene.logins(), &scene.host(HOST)["status"]["fault"]["reason"]), (2, &json!("AuthenticationFailed")));
    scene.stop().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene
}

#[tokio::test(start_paused = true)]
async fn what_others_put_on_a_secret_while_the_operator_is_down_makes_nobody_try_a_refused_password() {
    let mut scene = refused().await;
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": namespace_uid(&scene).await});
    let metadata = json!({"labels": {"a": "b"}, "finalizers": ["example.com/kept"], "ownerReferences": [owner]});
    scene.edit_secret("manager", json!({"metadata": metadata})).await;
    scene.start(|_| {});
    tokio::time::sleep(HELD / 2).await;
    // Nor when the operator runs, which has not read it yet.
    scene.edit_secret("manager", json!({"metadata": {"labels": {"a": "c"}}})).await;
    tokio::time::sleep(HELD / 2).await;
    assert_eq!(scene.logins(), 2);

    scene.set_password("password").await;
    let took = scene.until_state(HOST, "Available").await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(scene.logins(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_password_that_was_changed_while_the_operator_was_down_is_tried_at_once() {
    let mut scene = refused().await;
    scene.edit_secret("manager", json!({"metadata": {"labels": {"a": "b"}}})).await;
    scene.set_password("password").await;
    scene.start(|_| {});
    let took = scene.until_state(HOST, "Available").await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(scene.logins(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_same_password_written_again_is_not_tried_again() {
    let mut scene = refused().await;
    scene.set_password("guessed").await;
    scene.start(|_| {});
    tokio::time::sleep(HELD / 2).await;
    scene.set_password("guessed").await;
    tokio::time::sleep(HELD / 2).await;
    assert_eq!(scene.logins(), 2);
}

async fn namespace_uid(scene: &Scene) -> Option<String> {
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(scene.admin.clone());
    namespaces.get(NAMESPACE).await.unwrap().metadata.uid
}
