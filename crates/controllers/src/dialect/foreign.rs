//! A dialect for tests whose hosts have no namespace: Nodes that name their BMC in an annotation.

use bmc::{Address, SystemChoice};
use engine::failure::Failure;
use engine::host::{Anchor, Goal, Neutral, Record, Words};
use engine::server::Seen;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt as _;
use serde_json::Value;

use super::{Attention, Connection, HostDialect, Outcome, TrustWish, View, Writes};
use crate::depot::{Depot, Shipment};
use crate::object::ObjectId;
use crate::roster::{Free, Offer};
use crate::writer::Ownership;

pub(crate) struct ForeignHosts;

/// A host with this BMC.
pub(crate) fn foreign_host(name: &str, address: &str) -> Node {
    let metadata = serde_json::json!({ "name": name, "uid": name, "annotations": { "address": address } });
    serde_json::from_value(serde_json::json!({ "metadata": metadata })).unwrap()
}

impl HostDialect for ForeignHosts {
    type Host = Node;

    const NAME: &'static str = "foreign";
    const STATES: &'static [&'static str] = &["Unknown"];
    const FINALIZER: &'static str = "example.com/host";
    const OURS: Ownership = Ownership { manager: "foreign", conditions: &[], left_behind: &[] };
    const RECORD: &'static [&'static str] = &["status", "record"];
    const CREDENTIALS_FIELD: &'static str = "";
    const CA_BUNDLE_FIELD: &'static str = "";
    const BOOTSTRAP_FIELD: &'static str = "";

    fn attention(_: &View<'_, Node>) -> Attention {
        Attention::Full
    }

    fn goal(_: &View<'_, Node>) -> Goal {
        Goal::default()
    }

    fn served(_: &crate::dialect::Settings) -> Option<&'static str> {
        Some("")
    }

    fn shipment(_: &Node, _: &Depot) -> Option<Shipment> {
        None
    }

    fn provider_word(_: &Node) -> Option<(&'static str, String)> {
        None
    }

    fn connection(view: &View<'_, Node>, _: Option<&Anchor>) -> Result<Connection, Failure> {
        Ok(Connection {
            address: Address::parse(view.object.annotations().get("address").map(String::as_str).unwrap_or_default())?,
            system: SystemChoice::Only,
            credentials: ObjectId::named::<Secret>(Some("elsewhere"), "bmc").into(),
            trust: TrustWish::SystemRoots,
            family: None,
        })
    }

    fn state(_: &Node) -> &'static str {
        "Unknown"
    }

    fn record(_: &Node) -> Option<Record> {
        None
    }

    fn server_identity(_: &Node) -> Option<String> {
        None
    }

    fn offer(host: &Node) -> Offer {
        crate::claims::foreign::offer(host)
    }

    fn announced(_: &ObjectId, _: &Free, _: &Value) -> Option<Anchor> {
        None
    }

    fn without_claim() -> Value {
        Value::Null
    }

    fn render(outcome: &Outcome<'_, Node>) -> Writes {
        let phase = outcome.step.record.phase.as_str();
        let shown = outcome.host.status.as_ref().and_then(|status| status.phase.as_deref());
        let status = (shown != Some(phase)).then(|| serde_json::json!({ "phase": phase }));
        Writes { status, ..Writes::default() }
    }

    fn paused_status(_: &View<'_, Node>, _: &str, _: Option<&Seen>) -> Option<Value> {
        None
    }

    fn shows_pause(_: &Node) -> bool {
        false
    }

    fn words() -> &'static dyn Words {
        &Neutral
    }

    const CLAIM_ID: &'static str = "example.com/claim-id";
    const CLUSTER_API: bool = false;
}
