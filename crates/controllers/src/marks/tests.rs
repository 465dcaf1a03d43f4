use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::response::IntoResponse as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector;
use kube::runtime::watcher::Event;

use super::*;

const MARK: Mark = Mark { labels: &[("used", "yes")], finalizer: "example.com/kept" };

fn owner(uid: &str) -> OwnerReference {
    OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() }
}

fn user(uid: &str) -> ObjectId {
    ObjectId { uid: Some(uid.to_owned()), ..ObjectId::named::<Secret>(Some("lab"), uid) }
}

fn seen(labels: &[(&str, &str)], owners: &[&str], finalizers: &[&str]) -> ObjectMeta {
    ObjectMeta {
        labels: Some(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()),
        owner_references: Some(owners.iter().map(|uid| owner(uid)).collect()),
        finalizers: Some(finalizers.iter().map(ToString::to_string).collect()),
        ..ObjectMeta::default()
    }
}

/// What a patch says: labels, owners and finalizers.
fn told(patch: Option<Value>) -> String {
    let Some(patch) = patch else { return "nothing".to_owned() };
    let metadata = &patch["metadata"];
    let owners = metadata["ownerReferences"].as_array().map(|all| {
        let uids: Vec<_> = all.iter().map(|owner| owner["uid"].as_str().unwrap()).collect();
        uids.join("+")
    });
    let finalizers = metadata["finalizers"].as_array().map(|all| {
        let names: Vec<_> = all.iter().map(|name| name.as_str().unwrap().rsplit('/').next().unwrap()).collect();
        names.join("+")
    });
    format!("{} {} {}", metadata["labels"], owners.as_deref().unwrap_or("-"), finalizers.as_deref().unwrap_or("-"))
}

#[test]
fn what_is_missing_of_a_mark_is_added_and_nothing_of_others_is_lost() {
    let table = [
        ("bare", ObjectMeta::default(), r#"{"used":"yes"} a kept"#),
        ("of others", seen(&[("team", "x")], &["b"], &["x/other"]), r#"{"used":"yes"} b+a other+kept"#),
        ("marked", seen(&[("used", "yes")], &["a"], &["example.com/kept"]), "nothing"),
        ("labelled by somebody", seen(&[("used", "no")], &["a"], &["example.com/kept"]), "nothing"),
        ("for another host", seen(&[("used", "yes")], &["b"], &["example.com/kept"]), "null b+a -"),
        ("released", seen(&[("used", "yes")], &["a"], &[]), "null - kept"),
    ];
    for (what, seen, expected) in table {
        assert_eq!(told(missing(&seen, &MARK, &owner("a"))), expected, "{what}");
    }
    let deleted = serde_json::from_value(json!({ "deletionTimestamp": "2026-11-18T08:00:00Z" })).unwrap();
    assert_eq!(missing(&deleted, &MARK, &owner("a")), None, "it is being deleted");
}

#[test]
fn an_object_is_let_go_of_when_the_last_host_goes_that_it_is_kept_for() {
    let kept = "example.com/kept";
    let table = [
        ("for it alone", seen(&[], &["a"], &["x/other", kept]), vec![], "null - other"),
        ("for another one, too", seen(&[], &["a", "b"], &[kept]), vec!["b"], "null b -"),
        ("for another one that is gone", seen(&[], &["a", "b"], &[kept]), vec![], "null - "),
        ("another one needs it, but has not marked it yet", seen(&[], &["a"], &[kept]), vec!["b"], "null  "),
        ("it was released before", seen(&[], &["a"], &[]), vec![], "nothing"),
        ("marked by nobody", seen(&[], &[], &[kept]), vec![], "null - "),
    ];
    for (what, seen, users, expected) in table {
        let users: Vec<_> = users.into_iter().map(user).collect();
        assert_eq!(told(surplus(&seen, &MARK, Some("a"), &users)), expected, "{what}");
    }
}

#[test]
fn no_host_is_made_the_owner_of_what_is_in_another_namespace() {
    let at = |namespace| ObjectId::named::<Secret>(namespace, "a");
    assert!(may_own(&at(Some("lab")), &at(Some("lab"))) && may_own(&at(None), &at(Some("lab"))));
    assert!(!may_own(&at(Some("lab")), &at(Some("other"))) && !may_own(&at(Some("lab")), &at(None)));
}

#[tokio::test]
async fn our_own_mark_is_not_taken_for_a_new_password_and_costs_no_read() {
    let reads = Arc::new(AtomicU32::new(0));
    let counted = reads.clone();
    let router = Router::new().fallback(move |request: axum::extract::Request| {
        let is_read = request.method() == http::Method::GET;
        counted.fetch_add(u32::from(is_read), Ordering::Relaxed);
        let version = if is_read { "5" } else { "6" };
        let metadata = json!({ "name": "bmc", "namespace": "lab", "uid": "u", "resourceVersion": version });
        async move {
            axum::Json(json!({ "metadata": metadata, "data": { "username": "YQ==", "password": "YQ==" } }))
                .into_response()
        }
    });
    let (store, mut writer) = reflector::store::<PartialObjectMeta<Secret>>();
    let shown = json!({ "metadata": { "name": "bmc", "namespace": "lab", "uid": "u", "resourceVersion": "5" } });
    writer.apply_watcher_event(&Event::Apply(serde_json::from_value(shown).unwrap()));
    let mut vault = Vault::new(Client::new(router, "lab"));
    vault.keep(store);
    let id = ObjectId::named::<Secret>(Some("lab"), "bmc");
    vault.credentials(&id, "field").await.unwrap();
    let (before, seen) = (vault.version(&id), vault.metadata(&id).unwrap());
    let patched = vault.patch(&id, &seen, json!({ "metadata": { "labels": { "used": "yes" } } })).await.unwrap();
    assert!(!vault.is_news(&id, &patched).await);
    assert_eq!((vault.version(&id), reads.load(Ordering::Relaxed)), (before, 1));
}
