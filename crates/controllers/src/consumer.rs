//! Whether the consumer of a host still lives.

use api::beskar7::names::CLAIM_ID;
use engine::host::{Claim, Consumer, Whereabouts};
use kube::core::DynamicObject;
use kube::discovery::{self, Scope};
use kube::{Api, Client, ResourceExt};

use crate::vault::digest;

/// The id of a claim whose maker gave it none: the words of its reference.
pub fn id_by_words(consumer: &Consumer) -> String {
    let group = consumer.api_version.split_once('/').map_or("", |(group, _)| group);
    digest(&format!("{group} {} {} {}", consumer.kind, consumer.namespace, consumer.name))
}

/// Looks up who claimed. Whatever is not certain is [`Whereabouts::Unknown`]: nobody's server is released on a guess.
pub async fn whereabouts(client: &Client, claim: &Claim, host_namespace: &str) -> Whereabouts {
    let consumer = &claim.consumer;
    if consumer.kind.is_empty() || consumer.api_version.is_empty() {
        // A claim made by hand that refers to nothing: there is nobody to ask.
        return Whereabouts::Gone;
    }
    let group = consumer.api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = match find_kind(client, group, &consumer.kind).await {
        Ok(Some(kind)) => kind,
        Ok(None) => return Whereabouts::Gone,
        Err(error) => return Whereabouts::Unknown(format!("its kind cannot be looked up: {error}")),
    };
    let namespace = if consumer.namespace.is_empty() { host_namespace } else { &consumer.namespace };
    let api: Api<DynamicObject> = match kind.1.scope {
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &kind.0),
        Scope::Cluster => Api::all_with(client.clone(), &kind.0),
    };
    match api.get_metadata_opt(&consumer.name).await {
        Ok(Some(object)) if is_namesake(&object, claim) => Whereabouts::Gone,
        Ok(Some(object)) if object.metadata.deletion_timestamp.is_some() => Whereabouts::Leaving,
        Ok(Some(_)) => Whereabouts::Alive,
        Ok(None) => Whereabouts::Gone,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Whereabouts::Unknown(format!("the operator may not get {}.{}; grant it", kind.0.plural, kind.0.group))
        }
        Err(error) => Whereabouts::Unknown(error.to_string()),
    }
}

/// Whether an object claims under another id than the claimer that we know, and so only bears its name.
fn is_namesake(object: &impl ResourceExt, claim: &Claim) -> bool {
    let given = claim.id != id_by_words(&claim.consumer);
    given && object.annotations().get(CLAIM_ID).is_some_and(|id| *id != claim.id)
}

type Kind = (discovery::ApiResource, discovery::ApiCapabilities);

/// The kind in whichever version is served: the claim may have been written in an older one.
async fn find_kind(client: &Client, group: &str, kind: &str) -> Result<Option<Kind>, kube::Error> {
    match discovery::group(client, group).await {
        Ok(group) => Ok(group.recommended_kind(kind)),
        Err(kube::Error::Discovery(kube::error::DiscoveryError::MissingApiGroup(_))) => Ok(None),
        Err(error) => Err(error),
    }
}
