//! Machines and their templates on a real API server: what applies, what is refused, what a user sees.

use api::beskar7::{Beskar7Machine, Beskar7MachineStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::crds::{schema_of, specimen};
use crate::statuses::machine_statuses;
use crate::{accepts, change, cluster, manifest, read, refuses};

const ISO: &str = "http://192.0.2.1/os.iso";
const CONFIG: &str = "https://192.0.2.1/config.yaml";

/// A spec of the first way with more fields.
fn iso(fields: &Value) -> Value {
    with(json!({"osFamily": "kairos", "imageURL": ISO}), fields)
}

/// A spec of the second way with more fields.
fn disk(fields: &Value) -> Value {
    with(json!({"inspectionImageURL": "http://192.0.2.1/boot", "targetImageURL": "http://192.0.2.1/os.raw"}), fields)
}

fn with(mut spec: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn selector(requirement: &Value) -> Value {
    iso(&json!({"hostSelector": {"matchExpressions": [requirement]}}))
}

#[tokio::test]
async fn manifests_of_all_generations_apply_unchanged() {
    let cluster = cluster().await;
    // The first generation's name their namespace.
    let file = manifest("machines-first-generation.yaml");
    let applied = cluster.kubectl(&["apply", "-f", &file.display().to_string()]).await;
    assert_eq!(applied.stderr, "");
    assert_eq!(applied.ok().lines().count(), 2);

    let namespace = cluster.namespace("machines").await;
    for (file, objects) in [("machines-v0.3.yaml", 8), ("machines-v0.4.yaml", 3), ("machines-successor.yaml", 2)] {
        let path = manifest(file).display().to_string();
        let applied = cluster.kubectl(&["apply", "-n", &namespace, "-f", &path]).await;
        assert_eq!(applied.stderr, "", "{file}");
        assert_eq!(applied.ok().lines().count(), objects, "{file}");
        let again = cluster.kubectl(&["apply", "-n", &namespace, "-f", &path]).await.ok();
        assert!(again.lines().all(|line| line.ends_with("unchanged")), "{file}: {again}");
    }
}

#[tokio::test]
async fn every_way_to_provision_is_accepted() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let mut accepted = vec![
        json!({"imageURL": ISO}),
        iso(&json!({})),
        iso(&json!({"configURL": ""})),
        iso(&json!({"configURL": CONFIG})),
        iso(&json!({"provisioningMode": "RemoteConfig"})),
        iso(&json!({"provisioningMode": "RemoteConfig", "configURL": ""})),
        iso(&json!({"provisioningMode": "RemoteConfig", "configURL": "http://192.0.2.1:8080"})),
        iso(&json!({"provisioningMode": "PreBakedISO", "configURL": "", "bootMode": "Legacy"})),
        iso(&json!({"provisioningMode": "PXE", "configURL": "http://h/a.ign", "osFamily": "ubuntu"})),
        iso(&json!({"provisioningMode": "iPXE", "imageURL": "http://h/boot.ipxe"})),
        iso(&json!({"imageURL": "https://[2001:db8::1]:8080/os?version=1", "bootMode": "UEFI"})),
        iso(&json!({"staticIP": "192.0.2.20::192.0.2.1:24"})),
        disk(&json!({})),
        json!({"targetImageURL": "https://h/os.raw.gz", "osFamily": "kairos"}),
        disk(
            &json!({"configurationURL": CONFIG, "targetImageDigest": digest, "targetDisk": "/dev/disk/by-id/wwn-0x5"}),
        ),
        disk(&json!({"staticIP": "192.0.2.20:::255.255.255.0:192.0.2.53"})),
        disk(&json!({"hardwareRequirements": {"minCPUCores": 1, "minMemoryGB": 2, "minDiskGB": 3}})),
        iso(&json!({"hardwareRequirements": {}, "hostSelector": {}, "releasePolicy": "PowerOff"})),
        iso(&json!({"releasePolicy": "Quarantine", "providerID": "b7://default/server-01"})),
        iso(
            &json!({"hostSelector": {"matchLabels": {"example.com/rack": "r1", "spare": "", "a.b/C_d.e-f": "G_h.i-j"}}}),
        ),
    ];
    for family in ["kairos", "talos", "flatcar", "LeapMicro"] {
        accepted.push(iso(&json!({"osFamily": family, "provisioningMode": "RemoteConfig"})));
    }
    for family in ["ubuntu", "rhel", "centos", "fedora", "debian", "opensuse"] {
        accepted.push(iso(&json!({"osFamily": family, "provisioningMode": "PreBakedISO"})));
    }
    for image in ["https://h/a", "ftp://h/os.iso", "nfs://h/share/os.iso", "cifs://h/s/os.iso", "smb://h/s/os.iso"] {
        accepted.push(json!({"imageURL": image, "provisioningMode": "PreBakedISO"}));
    }
    for requirement in [
        json!({"key": "rack", "operator": "In", "values": ["r1", ""]}),
        json!({"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["r1"]}),
        json!({"key": "spare", "operator": "Exists"}),
        json!({"key": "spare", "operator": "DoesNotExist", "values": []}),
    ] {
        accepted.push(selector(&requirement));
    }
    accepts("Beskar7Machine", &accepted).await;
    let templates: Vec<_> = accepted
        .into_iter()
        .filter(|spec| spec["providerID"].is_null())
        .map(|spec| json!({"template": {"spec": spec}}))
        .collect();
    accepts("Beskar7MachineTemplate", &templates).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_sentence() {
    let two_ways = "spec.imageURL: Forbidden: which of the two ways? imageURL boots an ISO, inspectionImageURL and targetImageURL write an image to the disk: keep one and remove the other";
    let family = "spec.osFamily: Invalid value: \"object\": RemoteConfig, which a configURL implies, hands the configuration over by a kernel parameter of kairos, talos, flatcar or LeapMicro: set osFamily to one of them, or use PreBakedISO without configURL";
    let image =
        "imageURL must be the URL of an image, such as http://192.0.2.1/os.iso (http, https, ftp, nfs, cifs or smb)";
    let ours = "providerID is written by the operator and has the form b7://namespace/host: leave it out";
    let table = [
        (
            json!({}),
            "spec.imageURL: Required value: say what the machine is to run: imageURL (an ISO that is booted) or targetImageURL (an image that is written to its disk)",
        ),
        (json!({"inspectionImageURL": "http://h/boot"}), "say what the machine is to run"),
        (iso(&json!({"targetImageURL": "http://h/os.raw"})), two_ways),
        (iso(&json!({"inspectionImageURL": "http://h/boot"})), two_ways),
        (
            iso(&json!({"targetDisk": "sda"})),
            "configurationURL, targetImageDigest and targetDisk belong to targetImageURL and would have no effect with imageURL: remove them; the configuration for imageURL is configURL",
        ),
        (iso(&json!({"configurationURL": CONFIG})), "the configuration for imageURL is configURL"),
        (
            disk(&json!({"configURL": CONFIG})),
            "provisioningMode and configURL belong to imageURL and would have no effect with targetImageURL: remove them; the configuration for targetImageURL is configurationURL",
        ),
        (disk(&json!({"provisioningMode": "PXE"})), "provisioningMode and configURL belong to imageURL"),
        (iso(&json!({"osFamily": "ubuntu", "provisioningMode": "RemoteConfig"})), family),
        (iso(&json!({"osFamily": "rhel", "configURL": CONFIG})), family),
        (json!({"imageURL": ISO, "provisioningMode": "RemoteConfig"}), family),
        (json!({"imageURL": ISO, "configURL": CONFIG}), family),
        (
            iso(&json!({"provisioningMode": "PreBakedISO", "configURL": CONFIG})),
            "spec.configURL: Forbidden: a PreBakedISO brings its configuration with it: remove configURL, or use provisioningMode RemoteConfig",
        ),
        (
            iso(&json!({"imageURL": "nfs://h/share/os.iso", "configURL": CONFIG})),
            "spec.imageURL: Invalid value: \"object\": RemoteConfig, which a configURL implies, changes the ISO on its way to the server: imageURL must then be an http or https URL",
        ),
        (iso(&json!({"imageURL": "ftp://h/os.iso", "provisioningMode": "RemoteConfig"})), "changes the ISO on its way"),
        (iso(&json!({"imageURL": ""})), image),
        (iso(&json!({"imageURL": "os.iso"})), image),
        (iso(&json!({"imageURL": "file:///os.iso"})), image),
        (iso(&json!({"imageURL": "http:///os.iso"})), image),
        (iso(&json!({"imageURL": "http://h/my os.iso"})), image),
        (
            iso(&json!({"configURL": "file:///config.yaml"})),
            "configURL must be an http or https URL, such as https://192.0.2.1/config.yaml",
        ),
        (
            disk(&json!({"inspectionImageURL": "tftp://h/boot"})),
            "inspectionImageURL must be an http or https URL, such as http://192.0.2.1/inspector",
        ),
        (
            json!({"targetImageURL": "os.raw"}),
            "targetImageURL must be an http or https URL, such as http://192.0.2.1/os.raw",
        ),
        (
            disk(&json!({"configurationURL": "ftp://h/config"})),
            "configurationURL must be an http or https URL, such as https://192.0.2.1/config.yaml",
        ),
        (
            disk(&json!({"targetImageDigest": "ab".repeat(32)})),
            "targetImageDigest must be sha256: and 64 hex digits in lower case",
        ),
        (
            disk(&json!({"targetDisk": "first disk"})),
            "targetDisk must be the name or path of a disk, such as nvme0n1 or /dev/disk/by-id/wwn-0x5000c500a1b2c3d4",
        ),
        (
            disk(&json!({"staticIP": "192.0.2.20/24"})),
            "staticIP must have the form address::gateway:netmask:dns, such as 192.0.2.20::192.0.2.1:24 (gateway and dns may be left out)",
        ),
        (iso(&json!({"hardwareRequirements": {"minDiskGB": 0}})), "should be greater than or equal to 1"),
        (iso(&json!({"osFamily": "Kairos"})), "Unsupported value: \"Kairos\": supported values: \"kairos\", \"talos\""),
        (iso(&json!({"provisioningMode": "pxe"})), "Unsupported value: \"pxe\": supported values: \"RemoteConfig\""),
        (iso(&json!({"bootMode": "BIOS"})), "supported values: \"UEFI\", \"Legacy\""),
        (iso(&json!({"releasePolicy": "Wipe"})), "supported values: \"PowerOff\", \"Quarantine\""),
        (iso(&json!({"providerID": ""})), ours),
        (iso(&json!({"providerID": "b7://server-01"})), ours),
        (iso(&json!({"providerID": "metal3://default/server-01"})), ours),
        (
            iso(&json!({"hostSelector": {"matchLabels": {"a b": "c"}}})),
            "hostSelector.matchLabels must consist of keys and values that a label can have",
        ),
        (iso(&json!({"hostSelector": {"matchLabels": {"a": "b c"}}})), "hostSelector.matchLabels must consist of keys"),
        (iso(&json!({"hostSelector": {"matchLabels": {"": "c"}}})), "hostSelector.matchLabels must consist of keys"),
        (
            selector(&json!({"key": "a/b/c", "operator": "Exists"})),
            "key must be one that a label can have, such as topology.kubernetes.io/zone",
        ),
        (selector(&json!({"key": "a", "operator": "Equals"})), "\"In\", \"NotIn\", \"Exists\", \"DoesNotExist\""),
        (
            selector(&json!({"key": "a", "operator": "In"})),
            "values: Required value: the operators In and NotIn need values",
        ),
        (selector(&json!({"key": "a", "operator": "NotIn", "values": []})), "the operators In and NotIn need values"),
        (
            selector(&json!({"key": "a", "operator": "Exists", "values": ["b"]})),
            "values: Forbidden: the operators Exists and DoesNotExist take no values: remove them, or use In or NotIn",
        ),
        (
            selector(&json!({"key": "a", "operator": "In", "values": ["b", "c d"]})),
            "values must be ones that a label can have",
        ),
    ];
    refuses("Beskar7Machine", &table).await;
    // A template holds the same spec; one that refuses what a machine would refuse spares a machine that never comes.
    let templates: Vec<_> =
        table.iter().map(|(spec, _)| (json!({"template": {"spec": spec}}), "spec.template")).collect();
    refuses("Beskar7MachineTemplate", &templates).await;
    refuses(
        "Beskar7MachineTemplate",
        &[(
            json!({"template": {"spec": iso(&json!({"providerID": "b7://default/server-01"}))}}),
            "spec.template.spec.providerID: Forbidden: providerID names one server, so a template cannot have it: remove it",
        )],
    )
    .await;
}

#[tokio::test]
async fn the_provider_id_is_set_once() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("provider").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("machines-v0.4.yaml"))).await;
    let set =
        async |id: Value| change(&namespace, "Beskar7Machine", "worker-01", &json!({"spec": {"providerID": id}})).await;
    set(json!("b7://default/server-01")).await.unwrap();
    set(json!("b7://default/server-01")).await.unwrap();
    for other in [json!("b7://default/server-02"), Value::Null] {
        let said = set(other).await.unwrap_err();
        let sentence = "spec.providerID: Forbidden: providerID names the server that the node runs on and cannot change: delete the machine and create another one";
        assert!(said.contains(sentence), "{said}");
    }
    let more = json!({"spec": {"releasePolicy": "Quarantine"}});
    change(&namespace, "Beskar7Machine", "worker-01", &more).await.expect("the rest may change");
}

#[tokio::test]
async fn templates_keep_their_metadata_and_may_be_changed() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("templates").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("machines-successor.yaml"))).await;
    let patch = json!({"spec": {"template": {
        "metadata": {"labels": {"pool": "a"}, "annotations": {"note": "b"}},
        "spec": {"releasePolicy": "Quarantine"},
    }}});
    change(&namespace, "Beskar7MachineTemplate", "workers", &patch).await.unwrap();
    let get = ["get", "b7mt", "-n", &namespace, "workers", "-o", "json"];
    let stored: Value = serde_json::from_str(&cluster.kubectl(&get).await.ok()).unwrap();
    assert_eq!(stored["spec"]["template"]["metadata"], patch["spec"]["template"]["metadata"]);
}

#[tokio::test]
async fn no_field_of_any_status_is_lost() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("machine-statuses").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("machines-v0.4.yaml"))).await;
    let machines: Api<Beskar7Machine> = Api::namespaced(cluster.admin(), &namespace);
    let all_fields = ("all fields", specimen(&schema_of("Beskar7Machine")["properties"]["status"]));
    for (generation, status) in machine_statuses().into_iter().chain([all_fields]) {
        let patch = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "status": status,
        });
        let params = PatchParams::apply("beskar7").force().validation_strict();
        let machine = machines.patch_status("worker-01", &params, &Patch::Apply(patch)).await.unwrap();
        let stored: Beskar7MachineStatus = machine.status.unwrap();
        assert_eq!(serde_json::to_value(stored).unwrap(), status, "{generation}");
    }
}

#[tokio::test]
async fn the_table_shows_whose_machine_it_is_and_where() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("machine-table").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("machines-v0.4.yaml"))).await;
    let owned = json!({
        "metadata": {
            "labels": {"cluster.x-k8s.io/cluster-name": "my-cluster"},
            "ownerReferences": [
                {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineSet", "name": "set", "uid": "1"},
                {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "worker-x", "uid": "2"},
            ],
        },
        "spec": {"providerID": "b7://default/server-01"},
    });
    change(&namespace, "Beskar7Machine", "worker-01", &owned).await.unwrap();
    let machines: Api<Beskar7Machine> = Api::namespaced(cluster.admin(), &namespace);
    let time = "2026-11-15T12:00:00Z";
    let status = json!({"status": {
        "phase": "Provisioning", "ready": false, "hostRef": {"name": "server-01"},
        "conditions": [
            {"type": "Paused", "status": "False", "lastTransitionTime": time},
            {"type": "Ready", "status": "False", "message": "The server boots.", "lastTransitionTime": time},
        ],
    }});
    machines.patch_status("worker-01", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    let table = cluster.kubectl(&["get", "b7m", "-n", &namespace, "-o", "wide"]).await.ok();
    let rows: Vec<Vec<_>> =
        table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(
        rows[0],
        ["NAME", "CLUSTER", "MACHINE", "PHASE", "READY", "HOST", "AGE", "PROVIDERID", "MESSAGE"],
        "\n{table}"
    );
    assert_eq!(
        rows[1][..6],
        ["worker-01", "my-cluster", "worker-x", "Provisioning", "False", "server-01"],
        "\n{table}"
    );
    assert_eq!(rows[1][7..], ["b7://default/server-01", "The server boots."], "\n{table}");
    let everything = cluster.kubectl(&["get", "cluster-api", "-n", &namespace, "-o", "name"]).await.ok();
    assert_eq!(everything.lines().count(), 3, "{everything}");
}
