//! Our CRDs beside those of metal-operator.

use api::ironcore::{
    BmcSpec, BmcStatus, EndpointSpec, EndpointStatus, ServerBootConfigurationSpec, ServerBootConfigurationStatus,
    ServerClaimSpec, ServerClaimStatus, ServerMaintenanceSpec, ServerMaintenanceStatus, ServerReadinessRuleSpec,
    ServerReadinessRuleStatus, ServerSpec, ServerStatus,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{KINDS, crd, schema};
use crate::compared::{differences, facts, is_explained};
use crate::crds::specimen;
use crate::read;

fn upstream(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let file = testkit::part("metal-operator").join(format!("crds/metal.ironcore.dev_{plural}.yaml"));
    serde_saphyr::from_str(&read(file)).unwrap()
}

/// What `differences` finds where there are conditions and upstream has none.
fn new_conditions() -> Vec<(String, Value, Value)> {
    let of_bmcs = facts(&upstream("BMC")).into_iter().filter(|(fact, _)| fact.starts_with("object.status.conditions"));
    of_bmcs.map(|(fact, promised)| (fact, Value::Null, promised)).chain(keyed_conditions()).collect()
}

/// Conditions of several writers are kept apart by their types.
fn keyed_conditions() -> Vec<(String, Value, Value)> {
    let fact = |key: &str, ours: Value| (format!("object.status.conditions {key}"), Value::Null, ours);
    vec![fact("x-kubernetes-list-type", json!("map")), fact("x-kubernetes-list-map-keys", json!(["type"]))]
}

fn record() -> (String, Value, Value) {
    ("object.status.record type".to_owned(), Value::Null, json!("string"))
}

#[test]
fn the_crds_are_upstreams_but_for_what_is_listed_here() {
    let mut compared = 0;
    for kind in KINDS {
        let ours = crd(kind);
        let mut expected = match kind {
            // Upstream's statuses have none.
            "Endpoint" | "ServerClaim" => {
                let mut fields = new_conditions();
                fields.push(record());
                fields
            }
            "BMC" | "Server" => {
                let mut fields = keyed_conditions();
                fields.push(record());
                fields
            }
            "ServerBootConfiguration" => keyed_conditions(),
            // In place of upstream's webhook.
            "BMCSecret" => {
                vec![("object rules".to_owned(), Value::Null, schema(&ours)["x-kubernetes-validations"].clone())]
            }
            _ => Vec::new(),
        };
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(differences(&upstream(kind), &ours), expected, "{kind}");
        compared += facts(&upstream(kind)).len();
    }
    assert!(compared > 400, "only {compared} facts were compared");
}

#[test]
fn every_field_of_upstream_is_in_the_types() {
    kept::<EndpointSpec, EndpointStatus>("Endpoint");
    kept::<BmcSpec, BmcStatus>("BMC");
    kept::<ServerSpec, ServerStatus>("Server");
    kept::<ServerClaimSpec, ServerClaimStatus>("ServerClaim");
    kept::<ServerBootConfigurationSpec, ServerBootConfigurationStatus>("ServerBootConfiguration");
    kept::<ServerMaintenanceSpec, ServerMaintenanceStatus>("ServerMaintenance");
    kept::<ServerReadinessRuleSpec, ServerReadinessRuleStatus>("ServerReadinessRule");
    let mut secret = specimen(schema(&upstream("BMCSecret")));
    secret["apiVersion"] = json!("metal.ironcore.dev/v1alpha1");
    secret["kind"] = json!("BMCSecret");
    secret["metadata"] = json!({"name": "bmc"});
    let typed: api::ironcore::BmcSecret = serde_json::from_value(secret.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), secret);
}

/// A value with every field of the schemas, theirs and ours, is read, and written as it was.
fn kept<Spec: DeserializeOwned + Serialize, Status: DeserializeOwned + Serialize>(kind: &str) {
    fn same<T: DeserializeOwned + Serialize>(full: &Value) {
        let typed: T = serde_json::from_value(full.clone()).unwrap();
        assert_eq!(&serde_json::to_value(typed).unwrap(), full);
    }
    for crd in [upstream(kind), crd(kind)] {
        let properties = &schema(&crd)["properties"];
        same::<Spec>(&specimen(&properties["spec"]));
        if properties["status"]["properties"].is_object() {
            same::<Status>(&specimen(&properties["status"]));
        }
    }
}

#[test]
fn every_field_of_ours_is_explained() {
    for kind in KINDS {
        is_explained(&crd(kind));
    }
}
