//! The Keys of blades are marked, and let go of.

use axum::Router;
use axum::response::IntoResponse as _;
use http::{Method, StatusCode};
use tower_service::Service as _;

use super::dialect::{FILED, KEPT, LABEL};
use super::*;
use crate::simulation::whole::wire::Wire;

const OTHERS: &str = "other.example/kept";

impl Scene {
    /// Labels, owners and finalizers of a Key.
    fn marks(&self, key: &str) -> [String; 3] {
        let metadata = self.object::<Key>(key)["metadata"].clone();
        let texts = |list: &Value, field: Option<&str>| {
            let text = |item: &Value| field.map_or(item, |field| &item[field]).as_str().unwrap_or_default().to_owned();
            let mut all: Vec<_> = list.as_array().into_iter().flatten().map(text).collect();
            all.sort();
            all.join(" ")
        };
        let owners = &metadata["ownerReferences"];
        assert!(owners.as_array().into_iter().flatten().all(|owner| owner["controller"].is_null()));
        let labels = metadata["labels"].as_object().into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
        [labels.collect::<Vec<_>>().join(" "), texts(owners, Some("name")), texts(&metadata["finalizers"], None)]
    }

    async fn delete_blade(&self, name: &str) {
        api::<Blade>(&self.admin, None).delete(name, &DeleteParams::default()).await.unwrap();
        self.until("the blade is gone", |scene| scene.object::<Blade>(name).is_null()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_blades_need_is_marked_and_kept_until_the_last_of_them_goes() {
    let servers = ["server-0", "server-1"];
    let scene = site(&servers).await;
    let words = json!({"words": {"username": "admin", "password": "password"}});
    let metadata = json!({"name": "all", "labels": {"team": "a"}, "finalizers": [OTHERS]});
    scene.add_as::<Key>(metadata, words.clone()).await;
    for server in servers {
        scene.add_console(server).await;
        scene.until_blade(server, "state", "Available").await;
    }
    let label = format!("{LABEL}=\"blade\" team=\"a\"");
    let both = format!("{OTHERS} {KEPT}");
    scene.until("both are owners", |scene| scene.marks("all")[1] == "server-0 server-1").await;
    assert_eq!(scene.marks("all"), [label.clone(), "server-0 server-1".to_owned(), both.clone()]);
    assert_eq!(scene.object::<Key>("all")["spec"], words);

    // Marked once.
    let version = |scene: &Scene| scene.object::<Key>("all")["metadata"]["resourceVersion"].clone();
    let before = version(&scene);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(version(&scene), before);
    // A label that somebody takes off comes back, within a look or two.
    scene.edit::<Key>("all", json!({"metadata": {"labels": {LABEL: null}}})).await;
    scene.until("the label is back", |scene| scene.marks("all")[0] == label).await;

    // Its owner deletes it: it stays until nobody needs it any more.
    api::<Key>(&scene.admin, None).delete("all", &DeleteParams::default()).await.unwrap();
    scene.delete_blade("server-0").await;
    assert_eq!(scene.marks("all"), [label.clone(), "server-1".to_owned(), both]);
    scene.delete_blade("server-1").await;
    // Their consoles need it, too: it does not go with the blades.
    assert_eq!(scene.marks("all"), [label, String::new(), OTHERS.to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_named_any_more_and_what_another_operator_holds_are_let_go_of_with_the_blade() {
    let scene = site(&["server-0"]).await;
    scene.add_key("password").await;
    scene.add::<Key>("new", json!({"words": {"username": "admin", "password": "password"}})).await;
    scene.add_console("server-0").await;
    scene.until_blade("server-0", "state", "Available").await;
    scene.edit::<Console>("server-0", json!({"spec": {"key": "new"}})).await;
    scene.until("the new key is marked", |scene| scene.marks("new")[2] == KEPT).await;
    assert_eq!(scene.marks("all")[2], KEPT);
    scene.edit::<Report>("server-0", json!({"metadata": {"finalizers": [FILED, OTHERS]}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.delete_blade("server-0").await;
    assert_eq!([scene.marks("all"), scene.marks("new")].map(|[_, _, finalizers]| finalizers), ["", ""]);
    assert_eq!(scene.object::<Report>("server-0")["metadata"]["finalizers"], json!([OTHERS]));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_forbidden_is_told_once_and_stops_nobody() {
    let mut scene = prepared(&["server-0"]).await;
    let others = scene.server.router();
    let forbidden = Router::new().fallback(move |request: axum::extract::Request| {
        let mut others = others.clone();
        async move {
            if request.method() == Method::PATCH && request.uri().path().contains("/keys/") {
                let status = json!({"status": "Failure", "reason": "Forbidden", "message": "no", "code": 403});
                return (StatusCode::FORBIDDEN, axum::Json(status)).into_response();
            }
            others.call(request).await.into_response()
        }
    });
    scene.wire = Wire::new(forbidden);
    start(&mut scene);
    scene.add_key("password").await;
    scene.add_console("server-0").await;
    scene.until_blade("server-0", "state", "Available").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.marks("all"), ["", "", ""]);
    let events = Api::<Event>::all(scene.admin.clone()).list(&ListParams::default()).await.unwrap();
    let told = events.items.iter().filter(|event| event.reason.as_deref() == Some("MetadataNotWritten"));
    let notes: Vec<_> = told.filter_map(|event| event.note.as_deref()).collect();
    assert!(matches!(notes[..], [note] if note.starts_with("Key all: cannot write")), "{notes:?}");
    // It may even bear the mark from before.
    scene.edit::<Key>("all", json!({"metadata": {"finalizers": [KEPT]}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.delete_blade("server-0").await;
}
