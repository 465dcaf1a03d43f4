//! Which hosts a machine may get, by their labels: the words of a Kubernetes LabelSelector.
#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The key of a label, in CEL: an optional domain, and a name of up to 63 characters.
pub(super) const KEY: &str = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// The value of a label, in CEL: up to 63 characters, also none.
const VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

/// Labels that an object must have; all that is given must hold.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct HostSelector {
    /// Labels with the values that they must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "match_labels")]
    #[x_kube(validation = Rule::new(format!("self.all(key, key.matches('{KEY}') && self[key].matches('{VALUE}'))"))
        .message("hostSelector.matchLabels must consist of keys and values that a label can have"))]
    pub match_labels: BTreeMap<String, String>,

    /// What else must be true of the labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// Something that must be true of one label.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)")
        .message("the operators In and NotIn need values")
        .reason(Reason::FieldValueRequired)
        .field_path(".values"),
    validation = Rule::new("self.operator in ['In', 'NotIn'] || !has(self.values) || size(self.values) == 0")
        .message("the operators Exists and DoesNotExist take no values: remove them, or use In or NotIn")
        .reason(Reason::FieldValueForbidden)
        .field_path(".values")
)]
pub struct SelectorRequirement {
    /// Key of the label.
    #[schemars(length(max = 317))]
    #[x_kube(validation = Rule::new(format!("self.matches('{KEY}')"))
        .message("key must be one that a label can have, such as topology.kubernetes.io/zone"))]
    pub key: String,

    /// In or NotIn (one of the values), Exists or DoesNotExist (whatever the value).
    pub operator: SelectorOperator,

    /// The values, for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = Rule::new(format!("self.all(value, value.matches('{VALUE}'))"))
        .message("values must be ones that a label can have"))]
    pub values: Vec<String>,
}

/// How a label is compared. As in Kubernetes, NotIn holds also for an object without the label.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// The label is there and has one of the values.
    In,
    /// The label is not there, or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

fn match_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    })
}
