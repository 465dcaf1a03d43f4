//! What the API server refuses, and with which sentence.

use api::beskar7::PhysicalHost;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{cluster, try_create};

/// A host that nobody could object to, with a merge patch laid over its spec.
fn host(spec: &Value) -> Value {
    let mut host = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "PhysicalHost",
        "metadata": {"name": "host"},
        "spec": {"redfishConnection": {"address": "https://192.0.2.10", "credentialsSecretRef": "bmc"}},
    });
    merge(&mut host["spec"], spec);
    host
}

fn merge(into: &mut Value, patch: &Value) {
    match (into.as_object_mut(), patch.as_object()) {
        (Some(into), Some(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        _ => *into = patch.clone(),
    }
}

fn connection(fields: &Value) -> Value {
    json!({ "redfishConnection": fields })
}

/// `Ok`, or what the API server says.
async fn create(spec: &Value) -> Result<(), String> {
    try_create("PhysicalHost", &host(spec)["spec"]).await
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_sentence() {
    let consumer = json!({"kind": "Beskar7Machine", "name": "node-01"});
    let fingerprint = "ab".repeat(32);
    let table = [
        (connection(&json!({"address": ""})), "address must be the URL of the BMC, such as https://192.0.2.10"),
        (connection(&json!({"address": "   "})), "address must be the URL of the BMC"),
        (connection(&json!({"address": "https://192.0.2.10 "})), "address must be the URL of the BMC"),
        (connection(&json!({"address": "https://root:calvin@192.0.2.10"})), "must not carry a user name or password"),
        (connection(&json!({"address": "root@192.0.2.10"})), "must not carry a user name or password"),
        (connection(&json!({"credentialsSecretRef": ""})), "must be the name of a Secret in the host's namespace"),
        (
            connection(&json!({"credentialsSecretRef": "default/bmc"})),
            "must be the name of a Secret in the host's namespace",
        ),
        (
            connection(&json!({"insecureSkipVerify": true, "caBundleSecretRef": {"name": "ca"}})),
            "caBundleSecretRef would have no effect",
        ),
        (
            connection(&json!({"insecureSkipVerify": true, "certificateFingerprint": fingerprint})),
            "certificateFingerprint would have no effect",
        ),
        (
            connection(&json!({"insecureSkipVerify": true, "trustOnFirstUse": true})),
            "trustOnFirstUse would have no effect",
        ),
        (
            connection(&json!({"caBundleSecretRef": {}})),
            "spec.redfishConnection.caBundleSecretRef.name: Required value",
        ),
        (connection(&json!({"certificateFingerprint": "ab:cd"})), "64 hex digits, with or without colons"),
        (connection(&json!({"systemID": ""})), "systemID must be a Redfish id or a UUID"),
        (connection(&json!({"vendor": "Dell Inc."})), "vendor must be one word"),
        (json!({"bootIsoSource": "http://192.0.2.1/os.iso"}), "set consumerRef with it, or remove both"),
        (
            json!({"bootIsoSource": "os.iso", "consumerRef": consumer}),
            "must be the URL of an image that the BMC can fetch",
        ),
        (json!({"bootIsoSource": "file:///os.iso", "consumerRef": consumer}), "must be the URL of an image"),
        (json!({"bootIsoSource": "", "consumerRef": consumer}), "must be the URL of an image"),
        (json!({"consumerRef": {}}), "consumerRef needs the name of the object that holds the host"),
        (json!({"consumerRef": {"kind": "Beskar7Machine", "name": ""}}), "consumerRef needs the name"),
        (json!({"userDataSecretRef": {}}), "userDataSecretRef needs the name of a Secret"),
        (json!({"bootMacAddress": "52:54:00:12:34"}), "six pairs of hex digits, such as 52:54:00:12:34:56"),
        (
            json!({"remoteConfig": {"osFamily": "kairos"}}),
            "spec.remoteConfig: Forbidden: remoteConfig is written into the ISO on its way to the server: set bootIsoSource with it, to an http or https URL, or remove both",
        ),
        (
            json!({"consumerRef": consumer, "bootIsoSource": "nfs://192.0.2.1/os.iso", "remoteConfig": {"osFamily": "kairos"}}),
            "remoteConfig is written into the ISO on its way to the server",
        ),
        (
            json!({"consumerRef": consumer, "bootIsoSource": "http://192.0.2.1/os.iso", "remoteConfig": {"osFamily": "ubuntu"}}),
            "osFamily must be one whose kernel parameter is known: kairos, talos, flatcar or LeapMicro",
        ),
        (
            json!({"consumerRef": consumer, "bootIsoSource": "http://192.0.2.1/os.iso", "remoteConfig": {"osFamily": "kairos", "configURL": "config.yaml"}}),
            "configURL must be an http or https URL",
        ),
        (
            json!({"consumerRef": consumer, "bootIsoSource": "http://192.0.2.1/os.iso", "remoteConfig": {}}),
            "spec.remoteConfig.osFamily: Required value",
        ),
        (json!({"bootMode": "uefi"}), "Unsupported value: \"uefi\": supported values: \"UEFI\", \"Legacy\""),
    ];
    for (spec, sentence) in table {
        let said = create(&spec).await.expect_err(&format!("{spec} was accepted"));
        assert!(said.contains(sentence), "for {spec} the API server says\n{said}\nand not\n{sentence}");
    }
}

#[tokio::test]
async fn what_the_operator_can_explain_better_is_accepted() {
    let consumer = json!({"name": "node-01"});
    let colons = vec!["AB"; 32].join(":");
    let mut accepted = vec![
        json!({}),
        connection(&json!({"insecureSkipVerify": true, "trustOnFirstUse": false})),
        connection(&json!({"insecureSkipVerify": false, "caBundleSecretRef": {"name": "ca"}})),
        connection(&json!({"certificateFingerprint": "ab".repeat(32), "trustOnFirstUse": true})),
        connection(&json!({"certificateFingerprint": format!("sha256:{colons}")})),
        connection(&json!({"systemID": "4c4c4544-0047-5010-8037-b2c04f4d4c32", "vendor": "dell"})),
        json!({"consumerRef": consumer}),
        json!({"userDataSecretRef": {"name": "user-data"}}),
        json!({"bootMacAddress": "52-54-00-AB-CD-EF", "bootMode": "Legacy", "online": false}),
        json!({"maintenance": {}}),
        json!({"maintenance": {"reason": "new memory"}}),
    ];
    for address in [
        "192.0.2.10",
        "192.0.2.10:8443",
        "bmc-1.example.com",
        "2001:db8::10",
        "[2001:db8::10]:443",
        "https://[2001:db8::10]:8443/redfish/v1",
        "http://192.0.2.10",
        "HTTPS://192.0.2.10/redfish/v1/Systems/System.Embedded.1",
        "https://192.0.2.10/?next=@home",
        "ipmi://192.0.2.10:623",
        "redfish+https://192.0.2.10",
        "https://",
    ] {
        accepted.push(connection(&json!({ "address": address })));
    }
    for image in
        ["http://h/os.iso", "https://[2001:db8::1]:8080/a/os.iso?x=1", "ftp://h/os.iso", "nfs://h/share/os.iso"]
    {
        accepted.push(json!({"consumerRef": consumer, "bootIsoSource": image}));
    }
    for family in ["kairos", "talos", "flatcar", "LeapMicro"] {
        accepted.push(json!({
            "consumerRef": consumer, "bootIsoSource": "https://h/os.iso", "userDataSecretRef": {"name": "data"},
            "remoteConfig": {"osFamily": family},
        }));
    }
    accepted.push(json!({
        "consumerRef": consumer, "bootIsoSource": "http://h/os.iso",
        "remoteConfig": {"osFamily": "flatcar", "configURL": "https://h/config.ign"},
    }));
    for spec in accepted {
        create(&spec).await.unwrap_or_else(|said| panic!("{spec} was refused: {said}"));
    }
}

#[tokio::test]
async fn a_claimed_host_stays_the_server_that_it_is() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("transitions").await;
    let hosts: Api<PhysicalHost> = Api::namespaced(cluster.admin(), &namespace);
    let spec = connection(&json!({"systemID": "1"}));
    hosts.create(&PostParams::default(), &serde_json::from_value(host(&spec)).unwrap()).await.unwrap();
    let change = |spec: Value| {
        let hosts = hosts.clone();
        async move {
            let patch = Patch::Merge(json!({ "spec": spec }));
            let changed = hosts.patch("host", &PatchParams::default(), &patch).await;
            changed.map(drop).map_err(|error| error.to_string())
        }
    };
    let elsewhere = connection(&json!({"address": "https://192.0.2.99"}));
    let back = connection(&json!({"address": "https://192.0.2.10"}));

    change(elsewhere.clone()).await.expect("a free host may be pointed at another BMC");
    change(back).await.unwrap();
    change(connection(&json!({"systemID": "2"}))).await.expect("and at another system");

    change(json!({"consumerRef": {"name": "node-01"}, "bootIsoSource": "http://192.0.2.1/os.iso"})).await.unwrap();
    let said = change(elsewhere).await.unwrap_err();
    assert!(
        said.contains("spec.redfishConnection.address: Forbidden: redfishConnection.address cannot change"),
        "{said}"
    );
    for system in [json!("1"), Value::Null] {
        let said = change(connection(&json!({ "systemID": system }))).await.unwrap_err();
        assert!(said.contains("redfishConnection.systemID cannot change while the host is claimed"), "{said}");
    }
    change(connection(&json!({"credentialsSecretRef": "rotated"}))).await.expect("credentials may always be rotated");
    change(connection(&json!({"trustOnFirstUse": true}))).await.expect("and trust be put right");

    let said = change(json!({"consumerRef": null})).await.unwrap_err();
    assert!(said.contains("set consumerRef with it, or remove both"), "{said}");
    change(json!({"consumerRef": null, "bootIsoSource": null})).await.expect("a release is always possible");
    change(connection(&json!({"address": "192.0.2.10"}))).await.expect("and then all is open again");
}

#[tokio::test]
async fn a_claim_may_lose_its_order_or_both_be_removed() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("release").await;
    let hosts: Api<PhysicalHost> = Api::namespaced(cluster.admin(), &namespace);
    let claimed = host(&json!({"consumerRef": {"name": "node-01"}, "bootIsoSource": "http://192.0.2.1/os.iso"}));
    hosts.create(&PostParams::default(), &serde_json::from_value(claimed).unwrap()).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"bootIsoSource": null}}));
    hosts.patch("host", &PatchParams::default(), &patch).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"consumerRef": null}}));
    hosts.patch("host", &PatchParams::default(), &patch).await.unwrap();
}
