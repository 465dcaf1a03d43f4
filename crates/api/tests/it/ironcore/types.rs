//! The kinds as Rust types: written as Go writes them, and read whatever they say.

use api::ironcore::{
    Bmc, BmcSecret, BmcStatus, Endpoint, EndpointSpec, EndpointStatus, Server, ServerBootConfigurationStatus,
    ServerClaim, ServerClaimStatus, ServerMaintenance, ServerMaintenanceSpec, ServerReadinessRule, ServerSpec,
    ServerStatus,
};
use serde::Serialize;
use serde_json::{Value, json};

fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn what_is_empty_is_left_out_as_go_does() {
    assert_eq!(written(&EndpointStatus::default()), json!({}));
    assert_eq!(written(&BmcStatus::default()), json!({}));
    assert_eq!(written(&ServerStatus::default()), json!({}));
    assert_eq!(written(&ServerClaimStatus::default()), json!({}));
    assert_eq!(written(&ServerBootConfigurationStatus::default()), json!({}));
    assert_eq!(written(&EndpointSpec::default()), json!({"macAddress": ""}));
    assert_eq!(written(&ServerSpec::default()), json!({"systemUUID": ""}));
    assert_eq!(written(&ServerMaintenanceSpec::default()), json!({"serverRef": {}}));
    assert_eq!(
        written(&Bmc::new("b", api::ironcore::BmcSpec::default()))["spec"],
        json!({
            "bmcSecretRef": {},
            "protocol": {"name": "", "port": 0},
        })
    );
}

#[test]
fn the_status_of_go_is_kept() {
    let status = json!({
        "manufacturer": "Contoso",
        "biosVersion": "P79 v1.45",
        "model": "3500",
        "sku": "8675309",
        "serialNumber": "437XR1138R2",
        "powerState": "On",
        "indicatorLED": "Off",
        "state": "Reserved",
        "networkInterfaces": [{
            "name": "eth0",
            "ips": ["192.0.2.5", "fe80::1"],
            "macAddress": "aa:bb:cc:dd:ee:ff",
            "carrierStatus": "up",
            "neighbors": [{"macAddress": "00:11:22:33:44:55", "portID": "Ethernet1", "systemName": "leaf-1"}],
        }],
        "totalSystemMemory": "96Gi",
        "processors": [{"id": "CPU1", "type": "CPU", "instructionSet": "x86-64", "maxSpeedMHz": 3700, "totalCores": 8}],
        "storages": [{
            "name": "Local Storage Controller",
            "state": "Enabled",
            "drives": [{"name": "SATA Bay 1", "mediaType": "HDD", "capacity": "8T", "state": "Enabled"}],
        }],
        "conditions": [{
            "type": "PoweringOn",
            "status": "True",
            "lastTransitionTime": "2026-08-20T10:00:00Z",
            "reason": "ServerPowerOn",
            "message": "Server is being powered on",
        }],
    });
    let typed: ServerStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(written(&typed), status);
}

#[test]
fn no_value_makes_an_object_unreadable() {
    let odd = |kind: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "metal.ironcore.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": "odd"},
            "spec": spec,
            "status": status,
        })
    };
    let server = odd(
        "Server",
        json!({"power": "Maybe", "reclaimPolicy": "Wipe", "uuid": "old", "bootOrder": [{"priority": 5_000_000_000_i64}], "taints": [{}]}),
        json!({
            "state": "Tainted",
            "totalSystemMemory": 7,
            "processors": [{"totalCores": 3_000_000_000_i64}],
            "storages": [{"drives": [{"capacity": 5}], "volumes": [{"capacity": "much"}]}],
            "conditions": [{"type": "Ready", "status": "Maybe", "lastTransitionTime": "2026-08-20"}, {}],
            "networkInterfaces": [{"ips": ["nowhere"]}],
        }),
    );
    let server: Server = serde_json::from_value(server).unwrap();
    assert_eq!(server.spec.reclaim_policy, "Wipe");
    let status = server.status.unwrap();
    assert_eq!((status.state.as_str(), status.conditions.len()), ("Tainted", 2));
    assert_eq!(written(&status)["totalSystemMemory"], "7", "as Go writes it");

    let bmc = odd(
        "BMC",
        json!({"protocol": {"name": "RedfishKube", "port": 3_000_000_000_i64}, "consoleProtocol": {"name": ""}}),
        json!({"state": "Quiesced", "macAddress": "none", "lastResetTime": "yesterday"}),
    );
    let bmc: Bmc = serde_json::from_value(bmc).unwrap();
    assert_eq!(bmc.status.unwrap().last_reset_time, None);

    let claim = odd(
        "ServerClaim",
        json!({"tolerations": [{"operator": "Like"}], "serverSelector": {"matchExpressions": [{"operator": "Like"}]}}),
        json!({"phase": "Lost"}),
    );
    let claim: ServerClaim = serde_json::from_value(claim).unwrap();
    assert_eq!(claim.status.unwrap().phase, "Lost");

    let maintenance =
        odd("ServerMaintenance", json!({"serverBootConfigurationTemplate": {}}), json!({"state": "Done"}));
    serde_json::from_value::<ServerMaintenance>(maintenance).unwrap();
    let rule = odd("ServerReadinessRule", json!({"enforcementMode": "Once", "conditions": [{}]}), json!({}));
    serde_json::from_value::<ServerReadinessRule>(rule).unwrap();
}

#[test]
fn objects_without_a_spec_are_read_as_empty() {
    let bare =
        |kind: &str| json!({"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": kind, "metadata": {"name": "bare"}});
    assert_eq!(serde_json::from_value::<Endpoint>(bare("Endpoint")).unwrap().spec, EndpointSpec::default());
    assert_eq!(serde_json::from_value::<Server>(bare("Server")).unwrap().spec, ServerSpec::default());
    assert!(serde_json::from_value::<BmcSecret>(bare("BMCSecret")).unwrap().data.is_empty());
}

#[test]
fn a_bmc_secret_tells_its_values_to_who_asks_and_not_to_logs() {
    let secret: BmcSecret = serde_json::from_value(json!({
        "apiVersion": "metal.ironcore.dev/v1alpha1",
        "kind": "BMCSecret",
        "metadata": {"name": "bmc"},
        "data": {"username": "Zm9v", "broken": "?"},
        "stringData": {"username": "other", "password": "bar"},
    }))
    .unwrap();
    let value = |key: &str| secret.value(key).map(|value| String::from_utf8(value).unwrap());
    assert_eq!(value("username").as_deref(), Some("foo"), "data comes first");
    assert_eq!(value("password").as_deref(), Some("bar"));
    assert_eq!((value("broken"), value("missing")), (None, None));
    let logged = format!("{secret:?}");
    assert!(logged.contains("password") && logged.contains("bmc"), "{logged}");
    assert!(!logged.contains("bar") && !logged.contains("other") && !logged.contains("Zm9v"), "{logged}");

    let made = written(&BmcSecret::new("bmc", [("username", "foo")]));
    let expected = json!({
        "apiVersion": "metal.ironcore.dev/v1alpha1",
        "kind": "BMCSecret",
        "metadata": {"name": "bmc"},
        "data": {"username": "Zm9v"},
    });
    assert_eq!(made, expected);
}
