//! What baremetal-operator has written down of a host: in its status, or in the annotation that carries a status to another cluster.

use api::metal3::{BareMetalHost, BareMetalHostStatus, names, states};
use engine::host::Proof;
use kube::ResourceExt;

use crate::dialect::ANCHOR_ANNOTATION;

/// How it stands with the server of a host that we know nothing of, or only that it is in use.
pub(super) fn proof(host: &BareMetalHost) -> Proof {
    let is_kept = host.finalizers().iter().any(|finalizer| finalizer == names::HOST_FINALIZER);
    let annotated = |name: &str| host.annotations().contains_key(name);
    let is_known = annotated(ANCHOR_ANNOTATION) || annotated(names::STATUS) || host.status.is_some();
    match told(host) {
        Some(status) => of_status(host, &status),
        // Whoever puts the finalizer there looks after the host, and has written down nothing, or nothing that can be read.
        None if is_kept || is_known => Proof::InUse,
        None => Proof::Free,
    }
}

/// The status that another operator has left, if there is one. Ours proves nothing: we wrote it without knowing.
pub(super) fn told(host: &BareMetalHost) -> Option<BareMetalHostStatus> {
    let written = host.status.as_ref().filter(|status| status.record.is_none() && status.last_updated.is_some());
    written.cloned().or_else(|| annotated(host))
}

/// Whether the annotation bears a status that cannot be believed.
pub(super) fn is_annotation_odd(host: &BareMetalHost) -> bool {
    host.annotations().contains_key(names::STATUS) && annotated(host).is_none()
}

/// The status in the annotation. One that says what nobody knows is not believed.
fn annotated(host: &BareMetalHost) -> Option<BareMetalHostStatus> {
    let text = host.annotations().get(names::STATUS)?;
    let status: BareMetalHostStatus = serde_json::from_str(text).ok()?;
    let said: serde_json::Value = serde_json::from_str(text).ok()?;
    let known = serde_json::to_value(&status).ok()?;
    is_within(&said, &known).then_some(status)
}

/// Whether everything that one value says is in the other. What is empty says nothing.
fn is_within(said: &serde_json::Value, known: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (said, known) {
        (Value::Object(said), Value::Object(known)) => said.iter().all(|(key, said)| match known.get(key) {
            Some(known) => is_within(said, known),
            None => is_empty(said),
        }),
        (Value::Array(said), Value::Array(known)) => {
            said.len() == known.len() && said.iter().zip(known).all(|(said, known)| is_within(said, known))
        }
        // Times may be written in other ways.
        (Value::String(_), Value::String(_)) => true,
        _ => said == known || is_empty(said),
    }
}

fn is_empty(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) => false,
    }
}

fn of_status(host: &BareMetalHost, status: &BareMetalHostStatus) -> Proof {
    match status.provisioning.state.as_str() {
        states::PROVISIONED if is_deployed(host, status) => Proof::Deployed,
        states::EXTERNALLY_PROVISIONED if host.spec.externally_provisioned => Proof::Free,
        states::DEPROVISIONING | states::POWERING_OFF_BEFORE_DELETE => Proof::Releasing,
        states::PROVISIONED | states::EXTERNALLY_PROVISIONED => Proof::InUse,
        _ => Proof::Free,
    }
}

/// Whether the server runs what is ordered now.
fn is_deployed(host: &BareMetalHost, status: &BareMetalHostStatus) -> bool {
    let method = |deploy: &api::metal3::CustomDeploy| deploy.method.clone();
    let custom = status.provisioning.custom_deploy.as_ref().map(method).filter(|method| !method.is_empty());
    if let Some(custom) = custom {
        return host.spec.custom_deploy.as_ref().map(method) == Some(custom);
    }
    let url = host.spec.image.as_ref().map(|image| image.url.as_str());
    url.is_some_and(|url| !url.is_empty() && url == status.provisioning.image.url)
}
