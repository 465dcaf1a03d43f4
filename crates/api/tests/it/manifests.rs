//! Manifests as types: those of earlier generations, and those that we ship.

use std::path::{Path, PathBuf};

use api::beskar7::{
    Beskar7ClusterSpec, Beskar7MachineSpec, Beskar7MachineTemplateSpec, PhysicalHost, PhysicalHostSpec,
};
use api::ironcore::{
    BmcSpec, EndpointSpec, ServerClaimSpec, ServerMaintenanceSpec, ServerReadinessRuleSpec, ServerSpec,
};
use api::metal3::BareMetalHostSpec;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{config, manifest, read};

#[test]
fn manifests_of_all_generations_are_read() {
    let first = hosts(&manifest("first-generation.yaml"));
    assert_eq!(first[0].spec.redfish_connection.address, "https://192.168.1.123");
    assert_eq!(first[0].spec.redfish_connection.credentials_secret_ref, "my-bmc-credentials");
    assert_eq!(first[0].spec.online, None, "power has no default");

    let second = hosts(&manifest("second-generation.yaml"));
    assert_eq!(second[0].spec.redfish_connection.address, "https://192.168.1.100");

    let claimed = &hosts(&manifest("v0.3-claimed.yaml"))[0];
    assert_eq!(claimed.spec.consumer_ref.as_ref().unwrap().name.as_deref(), Some("node-01"));
    assert_eq!(claimed.spec.boot_iso_source.as_deref(), Some("http://example.com/my-kairos-prebaked.iso"));
    assert_eq!(claimed.status.as_ref().unwrap().state.as_deref(), Some(api::beskar7::states::PROVISIONED));

    let with_ca = &hosts(&manifest("successor-ca-bundle.yaml"))[0];
    assert_eq!(with_ca.spec.redfish_connection.ca_bundle_secret_ref.as_ref().unwrap().name, "bmc-ca");
}

#[test]
fn what_we_ship_is_yaml_and_samples_name_secrets_that_they_bring() {
    let files = yaml_files(&config());
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&read(&file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for document in &documents {
            assert!(document["kind"].is_string() && document["apiVersion"].is_string(), "{}", file.display());
        }
        if !file.starts_with(config().join("samples")) {
            continue;
        }
        let secrets: Vec<_> =
            documents.iter().filter(|d| d["kind"] == "Secret").map(|d| &d["metadata"]["name"]).collect();
        for host in &documents {
            let secret = match host["kind"].as_str() {
                Some("PhysicalHost") => &host["spec"]["redfishConnection"]["credentialsSecretRef"],
                Some("BareMetalHost") => &host["spec"]["bmc"]["credentialsName"],
                _ => continue,
            };
            assert!(secrets.contains(&secret), "{} has no Secret {secret}", file.display());
        }
        documents.iter().for_each(is_kept);
    }
}

#[test]
fn the_shipped_operator_is_reached_at_its_probes_and_its_boot_service_only() {
    let document = |file: &str| -> Value { serde_saphyr::from_str(&read(config().join(file))).unwrap() };
    let names = |ports: &Value, key: &str| -> Vec<String> {
        ports.as_array().unwrap().iter().map(|port| port[key].as_str().unwrap().to_owned()).collect()
    };
    let container = &document("manager/deployment.yaml")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(names(&container["ports"], "name"), ["probes", "boot"]);
    assert!(!container["args"].to_string().contains("metrics"), "metrics stay on loopback");
    let policy = document("manager/network_policy.yaml");
    let ingress = policy["spec"]["ingress"].as_array().unwrap();
    assert_eq!((ingress.len(), names(&ingress[0]["ports"], "port")), (1, vec!["probes".into(), "boot".into()]));
    let metrics = document("metrics/network_policy.yaml");
    assert!(metrics["spec"]["ingress"][0]["from"].is_array(), "metrics are for those who were chosen");
}

#[test]
fn machines_and_clusters_of_all_generations_are_read() {
    for file in
        ["machines-first-generation.yaml", "machines-v0.3.yaml", "machines-v0.4.yaml", "machines-successor.yaml"]
    {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&read(manifest(file))).unwrap();
        documents.iter().for_each(is_kept);
    }
}

/// Strict: a field that the type does not know would be lost silently.
fn is_kept(object: &Value) {
    fn spec<T: DeserializeOwned + Serialize>(spec: &Value) -> Value {
        serde_json::to_value(serde_json::from_value::<T>(spec.clone()).unwrap()).unwrap()
    }
    let given = &object["spec"];
    let kept = match object["kind"].as_str().unwrap() {
        "PhysicalHost" => spec::<PhysicalHostSpec>(given),
        "Beskar7Machine" => spec::<Beskar7MachineSpec>(given),
        "Beskar7MachineTemplate" => spec::<Beskar7MachineTemplateSpec>(given),
        "Beskar7Cluster" => spec::<Beskar7ClusterSpec>(given),
        "BareMetalHost" => given_of(&spec::<BareMetalHostSpec>(given), given),
        "Endpoint" => given_of(&spec::<EndpointSpec>(given), given),
        "BMC" => given_of(&spec::<BmcSpec>(given), given),
        "Server" => given_of(&spec::<ServerSpec>(given), given),
        "ServerClaim" => given_of(&spec::<ServerClaimSpec>(given), given),
        "ServerMaintenance" => given_of(&spec::<ServerMaintenanceSpec>(given), given),
        "ServerReadinessRule" => given_of(&spec::<ServerReadinessRuleSpec>(given), given),
        "Secret" | "BMCSecret" => return,
        other => panic!("nobody checks a {other}"),
    };
    assert_eq!(&kept, given, "{}", object["metadata"]["name"]);
}

/// Those fields that were given: the types write what Go never leaves out, too.
fn given_of(kept: &Value, given: &Value) -> Value {
    let mut kept = kept.clone();
    keep_given(&mut kept, given);
    kept
}

/// Leaves only those fields that were given.
fn keep_given(kept: &mut Value, given: &Value) {
    let (Some(kept), Some(given)) = (kept.as_object_mut(), given.as_object()) else { return };
    kept.retain(|name, _| given.contains_key(name));
    for (name, value) in kept {
        keep_given(value, &given[name]);
    }
}

#[test]
fn the_role_for_one_namespace_allows_what_the_cluster_role_allows_and_leases() {
    let cluster: Value = serde_saphyr::from_str(&read(config().join("rbac/role.yaml"))).unwrap();
    let leader: Value = serde_saphyr::from_str(&read(config().join("rbac/leader_election_role.yaml"))).unwrap();
    let namespaced: Value = serde_saphyr::from_str(&read(config().join("rbac/namespaced/role.yaml"))).unwrap();
    let rules = |role: &Value| role["rules"].as_array().unwrap().clone();
    assert_eq!(rules(&namespaced), [rules(&cluster), rules(&leader)].concat());
}

fn hosts(file: &Path) -> Vec<PhysicalHost> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&read(file)).unwrap();
    documents
        .into_iter()
        .filter(|document| document["kind"] == "PhysicalHost")
        .map(|document| serde_json::from_value(document).unwrap())
        .collect()
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files
}
