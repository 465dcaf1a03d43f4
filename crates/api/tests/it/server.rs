//! How a real API server and kubectl take the CRDs and what we ship.

use api::beskar7::{PhysicalHost, PhysicalHostStatus, states};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::crds::{schema, specimen};
use crate::statuses::statuses;
use crate::{cluster, config, manifest, read};

#[tokio::test]
async fn kubectl_applies_the_committed_crds_without_a_warning() {
    let cluster = cluster().await;
    let applied =
        cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &path(config().join("crd"))]).await;
    assert_eq!(applied.stderr, "");
    let resources = cluster.kubectl(&["api-resources", "--api-group=infrastructure.cluster.x-k8s.io"]).await.ok();
    let resources = cells(&resources);
    for (plural, short) in [
        ("physicalhosts", "ph"),
        ("beskar7machines", "b7m"),
        ("beskar7machinetemplates", "b7mt"),
        ("beskar7clusters", "b7c"),
        ("beskar7clustertemplates", "b7ct"),
    ] {
        let get = ["get", "crd", &format!("{plural}.infrastructure.cluster.x-k8s.io"), "-o", "json"];
        let crd: Value = serde_json::from_str(&cluster.kubectl(&get).await.ok()).unwrap();
        for condition in crd["status"]["conditions"].as_array().unwrap() {
            let bad = condition["type"] == "NonStructuralSchema" && condition["status"] == "True";
            assert!(!bad, "{condition}");
        }
        assert!(resources.iter().any(|row| row[..2] == [plural, short]), "{resources:?}");
    }
}

#[tokio::test]
async fn manifests_of_all_generations_apply_unchanged() {
    let cluster = cluster().await;
    // The first generation's names its namespace.
    let applied = cluster.kubectl(&["apply", "-f", &path(manifest("first-generation.yaml"))]).await;
    assert_eq!(applied.stderr, "");
    assert!(applied.ok().contains("physicalhost.infrastructure.cluster.x-k8s.io/server-01 created"));

    let namespace = cluster.namespace("generations").await;
    for file in ["second-generation.yaml", "v0.3-claimed.yaml", "successor-ca-bundle.yaml"] {
        // `validate=strict` is kubectl's default: unknown fields would be refused.
        let applied = cluster.kubectl(&["apply", "-n", &namespace, "-f", &path(manifest(file))]).await;
        // Where an installation was applied before, its admission policy warns of an address without TLS.
        let complaints = applied.stderr.lines().filter(|line| !line.contains("speaks to the BMC without TLS"));
        assert_eq!(complaints.collect::<Vec<_>>(), [""; 0], "{file}");
        applied.ok();
    }
}

#[tokio::test]
async fn a_bmc_without_tls_is_warned_of_at_admission() {
    let cluster = cluster().await;
    if cluster.is_embedded_and_has("no admission policies") {
        return;
    }
    let namespace = cluster.namespace("plain-http").await;
    // Other tests share the cluster: under a name of its own, for one namespace.
    let selected = format!(
        "  matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}}}\n"
    );
    let policy = read(config().join("admission/plain_http.yaml")).replace("beskar7-plain-http", &namespace) + &selected;
    cluster.apply_yaml(&policy).await;
    let host = |address: &str| {
        format!(
            "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: PhysicalHost\nmetadata: {{name: a}}\nspec: {{redfishConnection: {{address: '{address}', credentialsSecretRef: bmc}}}}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    let warning = async |address: &str| {
        std::fs::write(&file, host(address)).unwrap();
        let applied =
            cluster.kubectl(&["apply", "--dry-run=server", "-n", &namespace, "-f", file.to_str().unwrap()]).await;
        let said = applied.stderr.clone();
        applied.ok();
        said
    };
    // A new policy takes effect after a moment.
    testkit::wait_for("the policy to be in effect", std::time::Duration::from_mins(1), async || {
        warning("http://192.0.2.10").await.contains("speaks to the BMC without TLS").then_some(())
    })
    .await;
    assert!(warning("redfish+http://192.0.2.10/redfish/v1/Systems/1").await.contains("without TLS"));
    for fine in ["https://192.0.2.10", "192.0.2.10", "redfish://192.0.2.10", "https://http.example.com"] {
        assert_eq!(warning(fine).await, "", "{fine}");
    }
}

#[tokio::test]
async fn an_object_is_the_same_under_both_versions() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("versions").await;
    let with = |version: &str| {
        read(manifest("v0.3-claimed.yaml"))
            .replace("cluster.x-k8s.io/v1beta1\nkind: P", &format!("cluster.x-k8s.io/{version}\nkind: P"))
    };
    cluster.apply_yaml_in(&namespace, &with("v1alpha1")).await;
    let get = async |version: &str| -> Value {
        let resource = format!("physicalhosts.{version}.infrastructure.cluster.x-k8s.io");
        serde_json::from_str(
            &cluster.kubectl(&["get", "-n", &namespace, &resource, "claimed", "-o", "json"]).await.ok(),
        )
        .unwrap()
    };
    let (old, new) = (get("v1alpha1").await, get("v1beta1").await);
    assert_eq!(old["apiVersion"], "infrastructure.cluster.x-k8s.io/v1alpha1");
    assert_eq!(new["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta1");
    assert_eq!(old["spec"], new["spec"]);
    assert_eq!(old["metadata"]["uid"], new["metadata"]["uid"]);
    let applied = cluster.apply_yaml_in(&namespace, &with("v1beta1")).await;
    assert_eq!(applied[0].metadata.generation, Some(1), "applying it under the other version changes nothing");
}

#[tokio::test]
async fn no_field_of_any_status_is_lost() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("statuses").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("second-generation.yaml"))).await;
    let hosts: Api<PhysicalHost> = Api::namespaced(cluster.admin(), &namespace);

    let all_fields = ("all fields", specimen(&schema()["properties"]["status"]));
    for (generation, status) in statuses().into_iter().chain([all_fields]) {
        let patch = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "PhysicalHost",
            "status": status,
        });
        // The same manager each time, so that what the one before had is gone.
        let params = PatchParams::apply("beskar7").force().validation_strict();
        let host = hosts.patch_status("server-01", &params, &Patch::Apply(patch)).await.unwrap();
        let stored: PhysicalHostStatus = host.status.unwrap();
        assert_eq!(serde_json::to_value(stored).unwrap(), status, "{generation}");
    }
}

#[tokio::test]
async fn the_table_shows_what_an_operator_looks_for() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("table").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("v0.3-claimed.yaml"))).await;
    cluster.apply_yaml_in(&namespace, &read(manifest("second-generation.yaml"))).await;
    let hosts: Api<PhysicalHost> = Api::namespaced(cluster.admin(), &namespace);
    let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "All is well.", "lastTransitionTime": "2026-11-15T08:00:00Z"});
    let status = json!({"status": {
        "state": states::PROVISIONED, "ready": true, "conditions": [condition], "observedPowerState": "On", "health": "Warning",
        "fault": {"reason": "Unreachable", "message": "No answer."},
        "errorMessage": "No answer.",
        "hardwareDetails": {"model": "R640", "serialNumber": "ABC1234", "summary": "64 cores, 512 GiB, 1.9 TB"},
    }});
    hosts.patch_status("claimed", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    let table = cluster.kubectl(&["get", "ph", "-n", &namespace]).await.ok();
    let rows = cells(&table);
    assert_eq!(rows[0], ["NAME", "STATE", "READY", "POWER", "HEALTH", "FAULT", "CONSUMER", "AGE"], "\n{table}");
    assert_eq!(
        rows[1][..7],
        ["claimed", "Provisioned", "True", "On", "Warning", "Unreachable", "node-01"],
        "\n{table}"
    );
    assert_eq!(rows[2].len(), 2, "a new host shows its name and age\n{table}");

    let table = cluster.kubectl(&["get", "ph", "-n", &namespace, "-o", "wide"]).await.ok();
    let rows = cells(&table);
    assert_eq!(rows[0][7..], ["AGE", "ADDRESS", "MODEL", "SERIAL", "HARDWARE", "MESSAGE"], "\n{table}");
    assert_eq!(
        rows[1][8..],
        ["http://10.0.0.5:8000/redfish/v1", "R640", "ABC1234", "64 cores, 512 GiB, 1.9 TB", "No answer."],
        "\n{table}"
    );

    for selector in ["status.state=Provisioned", "status.health=Warning", "spec.consumerRef.name=node-01"] {
        let names =
            cluster.kubectl(&["get", "ph", "-n", &namespace, "-o", "name", "--field-selector", selector]).await.ok();
        assert_eq!(names, "physicalhost.infrastructure.cluster.x-k8s.io/claimed\n", "{selector}");
    }
    let everything = cluster.kubectl(&["get", "cluster-api", "-n", &namespace, "-o", "name"]).await.ok();
    assert_eq!(everything.lines().count(), 2, "{everything}");
}

/// Columns are two or more spaces apart.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect()
}

#[tokio::test]
async fn kubectl_explains_every_part() {
    let cluster = cluster().await;
    for (part, text) in [
        ("physicalhost", "A server, reached through its BMC."),
        ("physicalhost.spec.redfishConnection", "certificateFingerprint"),
        ("physicalhost.spec.redfishConnection", "SHA-256 of the one certificate to accept"),
        ("physicalhost.spec.bootMode", "Left out, the server keeps the mode"),
        ("physicalhost.spec.bootIsoMode", "Which firmware boots bootIsoSource, where that differs from bootMode"),
        ("physicalhost.spec.bootMacAddress", "BootInterfaceFound is false if the server has no such interface"),
        ("physicalhost.spec.online", "the power is left alone"),
        ("physicalhost.spec.maintenance", "parks the host"),
        ("physicalhost.spec.remoteConfig", "How the system on the ISO finds its configuration"),
        ("physicalhost.spec.userDataSecretRef", "served to this server, and to no other"),
        ("beskar7machine", "claims a free PhysicalHost"),
        ("beskar7machine.spec.provisioningMode", "a configURL means RemoteConfig"),
        ("beskar7machine.spec.hostSelector", "any host of the namespace will do"),
        ("beskar7machinetemplate.spec.template.metadata", "Labels and annotations of the machines"),
        ("beskar7cluster.spec.controlPlaneEndpoint", "KubeadmControlPlane needs it from the start"),
        ("physicalhost.status.record", "Do not edit it"),
        ("physicalhost.status.hardwareDetails.drives", "The controller that it hangs on."),
    ] {
        let said = cluster.kubectl(&["explain", part]).await.ok();
        let unwrapped = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(text), "kubectl explain {part} does not say {text:?}:\n{said}");
    }
}

#[tokio::test]
async fn samples_apply() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("samples").await;
    let samples = path(config().join("samples"));
    let applied = cluster.kubectl(&["apply", "--dry-run=server", "-n", &namespace, "-f", &samples]).await;
    assert_eq!(applied.stderr, "");
    let applied = applied.ok();
    for (kind, count) in
        [("physicalhost", 9), ("beskar7machine", 2), ("beskar7machinetemplate", 2), ("beskar7cluster", 1)]
    {
        let kind = format!("{kind}.");
        assert_eq!(applied.lines().filter(|line| line.starts_with(&kind)).count(), count, "{kind}\n{applied}");
    }
}

#[tokio::test]
async fn installations_apply_and_their_pods_are_restricted() {
    let cluster = cluster().await;
    if cluster.is_embedded_and_has("neither Deployments nor roles") {
        return;
    }
    let get = ["get", "deployment", "-n", "beskar7-system", "beskar7-controller-manager", "-o", "json"];
    let installations = [
        ("namespaced", "role/beskar7-manager", json!(["run", "--namespace=$(POD_NAMESPACE)"])),
        ("with-metal3", "clusterrole/beskar7-metal3-manager", json!(["run", "--dialects=beskar7,metal3"])),
        ("with-ironcore", "clusterrole/beskar7-ironcore-manager", json!(["run", "--dialects=beskar7,ironcore"])),
        ("default", "clusterrole/beskar7-manager", json!(["run"])),
    ];
    for (installation, role, args) in installations {
        let folder = path(config().join(installation));
        let applied = cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &folder]).await;
        assert_eq!(applied.stderr, "", "{installation}: also a hint about pod security would show here");
        assert!(applied.ok().contains("deployment.apps/beskar7-controller-manager serverside-applied"));
        cluster.kubectl(&["get", role, "-n", "beskar7-system", "-o", "name"]).await.ok();
        let deployment: Value = serde_json::from_str(&cluster.kubectl(&get).await.ok()).unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"], "manager", "clusterctl looks for this name");
        assert_eq!(container["args"], args, "{installation}");
        assert_eq!(deployment["metadata"]["labels"]["cluster.x-k8s.io/provider"], "infrastructure-beskar7");
    }
}

fn path(path: impl AsRef<std::path::Path>) -> String {
    path.as_ref().display().to_string()
}
