//! A dialect that is as unlike PhysicalHosts as can be: hosts without namespaces, no generation in the status, a restart that is asked
//! for by an annotation that the operator removes, and power that somebody must always want.

use api::beskar7::Fault;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use super::{Action, Claimant, Host, HostKind, Life, Manifest, Progress, Request, Simulated, rule};

/// Servers.
pub(crate) struct Servers;

pub(crate) const GROUP: &str = "foreign.example";
pub(crate) const OPERATION: &str = "foreign.example/operation";

fn definition() -> CustomResourceDefinition {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("servers.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Server", "plural": "servers", "singular": "server", "listKind": "ServerList"},
            "scope": "Cluster",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

fn text(object: &DynamicObject, pointer: &str) -> String {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl HostKind for Servers {
    fn resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1", "Server"), "servers")
    }

    fn has_namespaces(&self) -> bool {
        false
    }

    fn states(&self) -> &'static [&'static str] {
        &["Initial", "Available", "Reserved", "Error"]
    }

    fn read(&self, object: &DynamicObject) -> Result<Host, serde_json::Error> {
        let text = |pointer| text(object, pointer);
        let error = Some(text("/status/error")).filter(|error| !error.is_empty());
        let claim = Some(text("/spec/claim")).filter(|claim| !claim.is_empty());
        let state = text("/status/state");
        Ok(Host {
            is_seen: object.data.get("status").is_some(),
            progress: match state.as_str() {
                "Error" => Progress::Failed,
                "Available" | "Reserved" => Progress::Resting,
                _ => Progress::UnderWay,
            },
            state,
            power: text("/status/powerState"),
            claimed_by: claim.map(|name| Claimant { kind: "ServerClaim".to_owned(), name }),
            bmc: text("/spec/bmc"),
            fault: error.map(|message| Fault {
                reason: "Failed".to_owned(),
                message,
                count: None,
                since: None,
                next_try: None,
            }),
            ..Host::default()
        })
    }

    fn obstacle(&self, _: &DynamicObject, action: Action) -> Option<String> {
        (action == Action::Auto).then(|| "cannot be left alone: spec.power is always On or Off".to_owned())
    }

    fn request(&self, action: Action, _: &str) -> Value {
        match action {
            Action::On => json!({"spec": {"power": "On"}}),
            Action::Off => json!({"spec": {"power": "Off"}}),
            Action::Auto => json!({}),
            Action::Cycle => json!({"metadata": {"annotations": {OPERATION: "Restart"}}}),
        }
    }

    fn requested(&self, action: Action) -> &'static str {
        match action {
            Action::On => "power on requested (spec.power: On)",
            Action::Off => "power off requested (spec.power: Off)",
            Action::Auto | Action::Cycle => "restart requested",
        }
    }

    fn has_heeded(&self, object: &DynamicObject, request: &Request) -> bool {
        request.action != Action::Cycle || !object.annotations().contains_key(OPERATION)
    }

    fn register(&self, server: &Simulated<'_>) -> Vec<Manifest> {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Server",
            "metadata": {"name": server.name}, "spec": {"bmc": server.address, "power": "Off"},
        });
        vec![Manifest { resource: self.resource(), object }]
    }

    fn life(&self) -> Life {
        Life {
            registered: "Servers",
            claims: "ServerClaims",
            image: super::ISO,
            way: "by virtual media",
            registration: &["Initial", "Available"],
            deployment: &["Reserved"],
            release: &["Available"],
        }
    }

    fn claim(&self, namespace: &str, name: &str, _: &str) -> Option<Manifest> {
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1", "ServerClaim"), "serverclaims");
        Some(Manifest { resource, object: json!({"metadata": {"name": name, "namespace": namespace}}) })
    }

    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        vec![definition()]
    }

    fn rules(&self) -> Vec<PolicyRule> {
        vec![
            rule(GROUP, &["servers"], &["list", "watch", "patch"]),
            rule("cluster.x-k8s.io", &["clusters", "machines"], &["get", "list", "watch"]),
        ]
    }
}
