//! Whether the consumer of a host still lives, and whether its cluster is paused.

use api::capi::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};
use engine::host::{Claim, Consumer, Presence};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::discovery::Scope;
use kube::{Api, Client, ResourceExt};

use crate::fingerprint::digest;
use crate::kinds::{self, Kind};

/// Cluster API's group, and what the groups of its providers end with.
const CLUSTER_API: &str = "cluster.x-k8s.io";

/// The id of a claim whose maker gave it none: the words of its reference.
pub fn id_by_words(consumer: &Consumer) -> String {
    digest(&format!("{} {} {} {}", group_of(consumer), consumer.kind, consumer.namespace, consumer.name))
}

/// Looks up who claimed. Whatever is not certain is [`Presence::Unknown`]: nobody's server is released on a guess. A claimer bears its
/// id in the annotation that is named.
pub async fn presence(client: &Client, claim: &Claim, host_namespace: &str, id_annotation: &str) -> Presence {
    let named = |consumer: &&Consumer| !consumer.kind.is_empty() && !consumer.api_version.is_empty();
    let Some(consumer) = claim.consumer.as_ref().filter(named) else {
        // A claim made by hand that refers to nothing: there is nobody to ask.
        return Presence::Gone;
    };
    match find(client, consumer, host_namespace).await {
        Ok(Some(object)) if is_namesake(&object, claim, id_annotation) => Presence::Gone,
        Ok(Some(object)) if object.metadata.deletion_timestamp.is_some() => Presence::Leaving,
        Ok(Some(_)) => Presence::Exists,
        Ok(None) => Presence::Gone,
        Err(why) => Presence::Unknown(why),
    }
}

/// Looks up who claims, before anything is done for it: whoever wrote the claim's id there bears it too.
pub async fn claimer(client: &Client, claim: &Claim, host_namespace: &str, id_annotation: &str) -> Presence {
    let Some(consumer) = &claim.consumer else { return Presence::Gone };
    match find(client, consumer, host_namespace).await {
        Ok(Some(object)) if object.annotations().get(id_annotation) != Some(&claim.id) => Presence::Gone,
        Ok(Some(object)) if object.metadata.deletion_timestamp.is_some() => Presence::Leaving,
        Ok(Some(_)) => Presence::Exists,
        Ok(None) => Presence::Gone,
        Err(why) => Presence::Unknown(why),
    }
}

/// Why nothing may be done for a consumer now: it is a machine that is paused or whose cluster is, or that cannot be told.
/// Only Cluster API's own are asked; anybody else has no cluster, and without Cluster API nobody has.
pub async fn pause(client: &Client, consumer: &Consumer, host_namespace: &str, cluster_api: bool) -> Option<String> {
    if !group_of(consumer).ends_with(CLUSTER_API) {
        return None;
    }
    let unclear = |what: &str, why: String| Some(format!("Whether {what} is paused cannot be told: {why}."));
    let machine = match find(client, consumer, host_namespace).await {
        Ok(machine) => machine?,
        Err(why) => return unclear(&consumer.to_string(), why),
    };
    if machine.annotations().contains_key(PAUSED_ANNOTATION) {
        return Some(format!("{consumer} is paused by its {PAUSED_ANNOTATION} annotation."));
    }
    if !cluster_api {
        return None;
    }
    let namespace = machine.namespace().unwrap_or_default();
    let name = machine.labels().get(CLUSTER_NAME_LABEL)?;
    let what = format!("Cluster {namespace}/{name}");
    let cluster = match kinds::find(client, CLUSTER_API, "Cluster", None).await {
        Ok(Some((kind, _))) => {
            let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &kind);
            if_there(name, clusters.get(name).await)
        }
        Ok(None) => return unclear(&what, "Cluster API is not installed".to_owned()),
        Err(error) => Err(error),
    };
    match cluster {
        // Nobody can pause a cluster that is gone.
        Ok(None) => None,
        Ok(Some(cluster)) => {
            let paused = cluster.data.pointer("/spec/paused").and_then(serde_json::Value::as_bool) == Some(true)
                || cluster.annotations().contains_key(PAUSED_ANNOTATION);
            paused.then(|| format!("{what} is paused."))
        }
        Err(error) => unclear(&what, error.to_string()),
    }
}

fn group_of(consumer: &Consumer) -> &str {
    consumer.api_version.split_once('/').map_or("", |(group, _)| group)
}

fn version_of(consumer: &Consumer) -> &str {
    consumer.api_version.split_once('/').map_or(consumer.api_version.as_str(), |(_, version)| version)
}

/// The consumer's metadata; `None` if it does not exist, for certain. A kind that is not served says nothing about its objects:
/// its definition may come back, and they with it.
async fn find(client: &Client, consumer: &Consumer, host_namespace: &str) -> Result<Option<Found>, String> {
    let kind = kinds::find(client, group_of(consumer), &consumer.kind, Some(version_of(consumer))).await;
    match kind.map_err(|error| format!("its kind cannot be looked up: {error}"))? {
        Some(kind) => get(client, consumer, kind, host_namespace).await,
        None => Err(format!("this cluster serves no {} {}", consumer.api_version, consumer.kind)),
    }
}

async fn get(
    client: &Client,
    consumer: &Consumer,
    (kind, capabilities): Kind,
    host_namespace: &str,
) -> Result<Option<Found>, String> {
    let namespace = if consumer.namespace.is_empty() { host_namespace } else { &consumer.namespace };
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Namespaced if namespace.is_empty() => return Err("its reference names no namespace".to_owned()),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &kind),
        Scope::Cluster => Api::all_with(client.clone(), &kind),
    };
    if_there(&consumer.name, api.get_metadata(&consumer.name).await).map_err(|error| match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("the operator may not get {}.{}; grant it", kind.plural, kind.group)
        }
        error => error.to_string(),
    })
}

/// Whether an object claims under another id than the claimer that we know, and so only bears its name.
fn is_namesake(object: &impl ResourceExt, claim: &Claim, id_annotation: &str) -> bool {
    let given = claim.consumer.as_ref().is_none_or(|consumer| claim.id != id_by_words(consumer));
    given && object.annotations().get(id_annotation).is_some_and(|id| *id != claim.id)
}

type Found = PartialObjectMeta<DynamicObject>;

/// Only an answer about this very object says that it is not there: the same 404 comes from a kind that is served no more.
fn if_there<T>(name: &str, answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status))
            if status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namesake_is_known_by_the_id_that_its_own_dialect_writes() {
        let annotations = json!({ "example.com/claim-id": "new", "example.org/claim-id": "old" });
        let object: Secret = serde_json::from_value(json!({ "metadata": { "annotations": annotations } })).unwrap();
        let claim = Claim { id: "old".to_owned(), consumer: None };
        assert!(is_namesake(&object, &claim, "example.com/claim-id"));
        assert!(!is_namesake(&object, &claim, "example.org/claim-id"));
        assert!(!is_namesake(&object, &claim, "example.net/claim-id"));
    }

    #[tokio::test]
    async fn a_reference_without_a_namespace_from_a_host_without_one_says_nothing_about_its_object() {
        let kinds = Router::new().fallback(async || {
            let secrets = json!({ "name": "secrets", "kind": "Secret", "namespaced": true, "verbs": ["get"] });
            axum::Json(json!({ "groupVersion": "v1", "resources": [secrets] }))
        });
        let consumer =
            Consumer { api_version: "v1".into(), kind: "Secret".into(), name: "a".into(), ..Consumer::default() };
        let claim = Claim { id: "id".to_owned(), consumer: Some(consumer) };
        let found = presence(&Client::new(kinds, "default"), &claim, "", "example.com/claim-id").await;
        assert_eq!(found, Presence::Unknown("its reference names no namespace".to_owned()));
    }
}
