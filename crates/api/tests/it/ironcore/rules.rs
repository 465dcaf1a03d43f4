//! What an API server refuses, and what it fills in.

use kube::api::PostParams;
use serde_json::{Value, json};

use super::{Stored, cluster, object, objects, plain};
use crate::merge;

/// `Ok`, or what the API server says to a plain object with that patch. Nothing is stored.
async fn try_create(kind: &str, patch: &Value) -> Result<(), String> {
    let mut fields = plain(kind);
    merge(&mut fields, patch);
    let dry_run = PostParams { dry_run: true, field_manager: None };
    let objects = objects(cluster().await, "default", kind);
    let created = objects.create(&dry_run, &object(kind, "tried", &fields)).await;
    created.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn what_upstream_refuses_is_refused() {
    let endpoint = json!({"name": "endpoint"});
    let one_of = "exactly one of access or endpointRef needs to be set";
    let table = [
        ("BMC", json!({"spec": {"endpointRef": endpoint}}), one_of),
        ("BMC", json!({"spec": {"access": null}}), one_of),
        ("BMC", json!({"spec": {"bmcSecretRef": null}}), "spec.bmcSecretRef: Required value"),
        ("BMC", json!({"spec": {"protocol": {"port": null}}}), "spec.protocol.port: Required value"),
        ("BMC", json!({"spec": {"protocol": {"port": "443"}}}), "spec.protocol.port: Invalid value"),
        (
            "BMC",
            json!({"spec": {"consoleProtocol": {"name": "", "port": 22}}}),
            "spec.consoleProtocol.name: Unsupported",
        ),
        ("BMCSecret", json!({"data": {"username": "foo!"}}), "data.username: Invalid value"),
        ("Server", json!({"spec": {"systemUUID": null}}), "spec.systemUUID: Required value"),
        ("Server", json!({"spec": {"reclaimPolicy": "Wipe"}}), "spec.reclaimPolicy: Unsupported value"),
        ("Server", json!({"spec": {"taints": [{"key": ""}]}}), "spec.taints[0].key: Invalid value"),
        (
            "Server",
            json!({"spec": {"taints": [{"key": "a", "effect": "NoFit"}]}}),
            "spec.taints[0].effect: Unsupported",
        ),
        ("Server", json!({"spec": {"bmc": {"address": "192.0.2.1"}}}), "spec.bmc.protocol: Required value"),
        ("Server", json!({"spec": {"bootOrder": [{"name": "pxe"}]}}), "spec.bootOrder[0].device: Required value"),
        (
            "Server",
            json!({"spec": {"serverClaimRef": {"name": "c", "namespace": "n".repeat(64)}}}),
            "spec.serverClaimRef.namespace: Too long",
        ),
        ("ServerClaim", json!({"spec": {"image": null}}), "spec.image: Required value"),
        ("ServerClaim", json!({"spec": {"power": null}}), "spec.power: Required value"),
        (
            "ServerClaim",
            json!({"spec": {"tolerations": [{"key": "a", "operator": "Like"}]}}),
            "spec.tolerations[0].operator: Unsupported value",
        ),
        ("ServerBootConfiguration", json!({"spec": {"serverRef": null}}), "spec.serverRef: Required value"),
        ("ServerMaintenance", json!({"spec": {"serverRef": null}}), "spec.serverRef: Required value"),
        (
            "ServerMaintenance",
            json!({"spec": {"serverBootConfigurationTemplate": {"name": "boot"}}}),
            "spec.serverBootConfigurationTemplate.spec: Required value",
        ),
        ("ServerReadinessRule", json!({"spec": null}), "spec: Required value"),
        ("ServerReadinessRule", json!({"spec": {"conditions": []}}), "spec.conditions: Invalid value"),
        (
            "ServerReadinessRule",
            json!({"spec": {"enforcementMode": "Once"}}),
            "spec.enforcementMode: Unsupported value",
        ),
        (
            "ServerReadinessRule",
            json!({"spec": {"taint": {"key": "k".repeat(254)}}}),
            "taint key length must be at most 253 characters",
        ),
        (
            "ServerReadinessRule",
            json!({"spec": {"conditions": [
                {"type": "A", "requiredStatus": "True"},
                {"type": "A", "requiredStatus": "False"},
            ]}}),
            "spec.conditions[1]: Duplicate value",
        ),
    ];
    for (kind, patch, sentence) in table {
        let said = try_create(kind, &patch).await.expect_err(&format!("{kind} {patch} was accepted"));
        assert!(said.contains(sentence), "for {kind} {patch} the API server says\n{said}\nand not\n{sentence}");
    }
}

#[tokio::test]
async fn what_upstream_accepts_is_accepted() {
    let table = [
        ("Endpoint", json!({"spec": null})),
        ("Endpoint", json!({"spec": {"macAddress": "none", "ip": "somewhere"}})),
        ("BMC", json!({"spec": null})),
        ("BMC", json!({"spec": {"protocol": {"name": "IPMI", "port": 3_000_000_000_i64, "scheme": "gopher"}}})),
        ("BMC", json!({"spec": {"access": null, "endpointRef": {}}})),
        ("BMCSecret", json!({"data": null, "stringData": {"username": "foo"}, "type": "any", "immutable": true})),
        ("Server", json!({"spec": null})),
        ("Server", json!({"spec": {"systemUUID": "", "power": "Maybe", "indicatorLED": "Green"}})),
        ("Server", json!({"spec": {"bootOrder": [{"name": "", "device": "", "priority": 4_000_000_000_i64}]}})),
        ("ServerClaim", json!({"spec": {"power": "", "image": "", "serverSelector": {}}})),
        ("ServerMaintenance", json!({"spec": {"policy": "Whenever", "priority": -5}})),
        ("ServerReadinessRule", json!({"spec": {"serverSelector": {"matchLabels": null}}})),
    ];
    for (kind, patch) in table {
        try_create(kind, &patch).await.unwrap_or_else(|said| panic!("{kind} {patch} was refused: {said}"));
    }
}

#[tokio::test]
async fn what_upstream_makes_immutable_is_immutable() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let claimed = json!({"spec": {"systemUUID": "1", "serverClaimRef": {"name": "claim", "namespace": "n"}}});
    let by_name =
        json!({"spec": {"power": "On", "image": "i", "serverRef": {"name": "server"}, "serverSelector": selector}});
    let by_endpoint = json!({"spec": {
        "endpointRef": {"name": "endpoint"},
        "bmcSecretRef": {"name": "bmc"},
        "protocol": {"name": "Redfish", "port": 443},
    }});
    let table = [
        ("BMC", plain("BMC"), json!({"access": {"ip": "192.0.2.11"}}), "access is immutable"),
        ("BMC", by_endpoint, json!({"endpointRef": {"name": "other"}}), "endpointRef is immutable"),
        (
            "Server",
            claimed.clone(),
            json!({"serverClaimRef": {"name": "other"}}),
            "spec.serverClaimRef.name: Invalid value",
        ),
        (
            "Server",
            claimed,
            json!({"serverClaimRef": {"namespace": "m"}}),
            "spec.serverClaimRef.namespace: Invalid value",
        ),
        ("ServerClaim", by_name.clone(), json!({"serverRef": {"name": "other"}}), "serverRef is immutable"),
        ("ServerClaim", by_name.clone(), json!({"serverRef": null}), "serverRef is required once set"),
        (
            "ServerClaim",
            by_name.clone(),
            json!({"serverSelector": {"matchLabels": {"a": "c"}}}),
            "serverSelector is immutable",
        ),
        ("ServerClaim", by_name, json!({"serverSelector": null}), "serverSelector is required once set"),
        (
            "ServerReadinessRule",
            plain("ServerReadinessRule"),
            json!({"conditions": [{"type": "Other", "requiredStatus": "True"}]}),
            "conditions is immutable",
        ),
        (
            "ServerReadinessRule",
            plain("ServerReadinessRule"),
            json!({"enforcementMode": "BootstrapOnly"}),
            "enforcementMode is immutable",
        ),
        (
            "ServerReadinessRule",
            plain("ServerReadinessRule"),
            json!({"serverSelector": {"matchLabels": {"rack": "r2"}}}),
            "serverSelector is immutable",
        ),
        ("ServerReadinessRule", plain("ServerReadinessRule"), json!({"taint": {"key": "k"}}), "taint key is immutable"),
        (
            "ServerReadinessRule",
            plain("ServerReadinessRule"),
            json!({"taint": {"effect": "Evict"}}),
            "taint effect is immutable",
        ),
        (
            "ServerReadinessRule",
            plain("ServerReadinessRule"),
            json!({"taint": {"value": "false"}}),
            "taint value is immutable",
        ),
    ];
    for (kind, fields, spec, sentence) in table {
        let stored = Stored::new(kind, &fields).await;
        let patch = json!({ "spec": spec });
        let said = stored.change(&patch).await.expect_err(&format!("{kind} {patch} was accepted"));
        assert!(said.contains(sentence), "for {kind} {patch} the API server says\n{said}\nand not\n{sentence}");
    }
}

#[tokio::test]
async fn references_are_set_and_cleared_as_a_whole() {
    let server = Stored::new("Server", &plain("Server")).await;
    let reference = |name: &str| json!({"spec": {"serverClaimRef": {"name": name, "namespace": "n"}}});
    server.change(&reference("first")).await.unwrap();
    server.change(&json!({"spec": {"serverClaimRef": null}})).await.unwrap();
    server.change(&reference("second")).await.unwrap();

    let claim = Stored::new("ServerClaim", &plain("ServerClaim")).await;
    claim.change(&json!({"spec": {"serverRef": {"name": "server"}, "image": "other", "power": "Off"}})).await.unwrap();

    // As upstream's own tests do: the rules compare only what there was before and after.
    let bmc = Stored::new("BMC", &plain("BMC")).await;
    bmc.change(&json!({"spec": {"access": null, "endpointRef": {"name": "endpoint"}}})).await.unwrap();
}

#[tokio::test]
async fn an_immutable_bmc_secret_keeps_its_values() {
    let stored = Stored::new("BMCSecret", &plain("BMCSecret")).await;
    let password = |encoded: &str| json!({"data": {"password": encoded}});
    stored.change(&password("Zm9v")).await.expect("it is not immutable yet");
    stored.change(&json!({"immutable": false})).await.unwrap();
    stored.change(&json!({"immutable": true, "data": {"password": "YmFy"}})).await.unwrap();
    let data = "data: Forbidden: data of an immutable BMCSecret cannot change: delete it and create it again";
    let string_data = "stringData: Forbidden: stringData of an immutable BMCSecret cannot change";
    let immutable = "immutable: Forbidden: immutable cannot be taken back: delete the BMCSecret and create it again";
    let table = [
        (password("Zm9v"), data),
        (json!({"data": null}), data),
        (json!({"data": {"password": null}}), data),
        (json!({"stringData": {"username": "foo"}}), string_data),
        (json!({"stringData": {}}), string_data),
        (json!({"immutable": false}), immutable),
        (json!({"immutable": null}), immutable),
        (json!({"immutable": null, "data": {"password": "Zm9v"}}), immutable),
    ];
    for (patch, sentence) in table {
        let said = stored.change(&patch).await.expect_err(&format!("{patch} was accepted"));
        assert!(said.contains(sentence), "for {patch} the API server says\n{said}\nand not\n{sentence}");
    }
    stored.change(&json!({"metadata": {"labels": {"a": "b"}}})).await.expect("metadata may always change");
    stored.change(&json!({"type": "any"})).await.expect("upstream does not compare it");
}

#[tokio::test]
async fn what_is_left_out_gets_upstreams_defaults() {
    let server =
        Stored::new("Server", &json!({"spec": {"systemUUID": "1", "taints": [{"key": "a"}], "bmcRef": {}}})).await;
    let server = server.change(&json!({})).await.unwrap();
    assert_eq!(
        server["spec"],
        json!({
            "systemUUID": "1",
            "taints": [{"key": "a", "effect": "NoBind"}],
            "bmcRef": {"name": ""},
            "reclaimPolicy": "Recycle",
            "unclaimable": false,
        })
    );
    let maintenance = Stored::new("ServerMaintenance", &plain("ServerMaintenance")).await;
    assert_eq!(maintenance.change(&json!({})).await.unwrap()["spec"]["priority"], 0);
    let rule = Stored::new("ServerReadinessRule", &plain("ServerReadinessRule")).await;
    assert_eq!(rule.change(&json!({})).await.unwrap()["spec"]["taint"]["effect"], "NoBind");
    let bmc = Stored::new("BMC", &plain("BMC")).await;
    assert_eq!(
        bmc.apply_status("beskar7", "BMC", &json!({"model": "m"})).await,
        json!({"model": "m", "state": "Pending"})
    );
}
