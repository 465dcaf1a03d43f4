//! The commands with two dialects at once, on an API server in this process.

use clap::Args;
use controllers::dialects::Dialect;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::{Fleet, FleetSpec};

use super::foreign::{self, Servers};
use super::{HostKind, kind};
use crate::access::Access;
use crate::standalone::{Site, register};
use crate::{hosts, power, show};

fn both() -> [&'static dyn HostKind; 2] {
    [kind(Dialect::Beskar7), &Servers]
}

fn parsed<A: Args>(arguments: &[&str]) -> A {
    let command = A::augment_args(clap::Command::new("test"));
    let matches = command.try_get_matches_from([&["test"], arguments].concat()).unwrap();
    A::from_arg_matches(&matches).unwrap()
}

/// An API server with hosts of two kinds: those of the whole cluster, and those of a namespace.
async fn site() -> (Site, Access) {
    let site = Site::in_memory().await.unwrap();
    site.install_crds(&[kind(Dialect::Beskar7)]).await.unwrap();
    for definition in foreign::Servers.definitions() {
        site.install(definition).await.unwrap();
    }
    let access = Access::to(site.client.clone());
    // In turn: sim-000 and sim-002 are PhysicalHosts, sim-001 and sim-003 are Servers.
    let fleet = Fleet::new(&FleetSpec { count: 4, ..FleetSpec::default() });
    register(&access.client, &both(), &fleet).await.unwrap();
    put_status(&access, both()[0], "sim-000", &json!({"state": "Available", "observedPowerState": "Off"})).await;
    put_status(&access, both()[1], "sim-001", &json!({"state": "Available", "powerState": "Off"})).await;
    put_status(&access, both()[1], "sim-003", &json!({"state": "Error", "error": "No answer."})).await;
    (site, access)
}

fn api(access: &Access, kind: &'static dyn HostKind) -> Api<DynamicObject> {
    access.hosts(kind, Some("default")).api
}

async fn put_status(access: &Access, kind: &'static dyn HostKind, name: &str, status: &Value) {
    let patch = Patch::Merge(json!({"status": status}));
    api(access, kind).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn patch(access: &Access, name: &str, patch: &Value) {
    api(access, &Servers).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn list(access: &Access, kinds: &[&'static dyn HostKind], arguments: &[&str]) -> String {
    parsed::<hosts::Args>(arguments).look(access, kinds).await.unwrap()
}

/// Columns are two or more spaces apart.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[tokio::test]
async fn hosts_of_several_dialects_are_listed_with_their_kinds() {
    let (_site, access) = site().await;
    let said = list(&access, &both(), &[]).await;
    let lines: Vec<_> = said.lines().map(cells).collect();
    assert_eq!(lines[0][..4], ["KIND", "NAMESPACE", "NAME", "STATE"], "\n{said}");
    assert_eq!(lines[1][..3], ["Server", "sim-003", "Error"], "trouble comes first\n{said}");
    assert_eq!(lines[1].last(), Some(&"Failed: No answer."), "\n{said}");
    assert!(lines.iter().any(|line| line.starts_with(&["Server", "sim-001", "Available", "Off"])), "\n{said}");
    assert!(lines.iter().any(|line| line.starts_with(&["PhysicalHost", "default", "sim-000"])), "\n{said}");
    let summary = "4 hosts: 2 Available, 1 Error, 1 not seen yet; 1 with a fault (beskar7 hosts --fault)";
    assert_eq!(said.lines().last(), Some(summary));

    let names = list(&access, &both(), &["-o", "name"]).await;
    assert_eq!(names, "physicalhost/default/sim-000\nphysicalhost/default/sim-002\nserver/sim-001\nserver/sim-003\n");
    let json: Value = serde_json::from_str(&list(&access, &both(), &["-o", "json", "--fault"]).await).unwrap();
    assert_eq!(
        (&json["items"][0]["kind"], &json["items"][0]["status"]["error"]),
        (&json!("Server"), &json!("No answer."))
    );
    assert_eq!(json["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn hosts_of_one_dialect_are_listed_without_its_kind_and_those_of_no_other() {
    let (_site, access) = site().await;
    let [beskar7, servers] = both();
    assert_eq!(list(&access, &[beskar7], &["-o", "name"]).await, "default/sim-000\ndefault/sim-002\n");
    assert_eq!(list(&access, &[servers], &["-o", "name"]).await, "sim-001\nsim-003\n");
    let said = list(&access, &[servers], &[]).await;
    assert_eq!(cells(said.lines().next().unwrap())[..2], ["NAME", "STATE"], "\n{said}");
}

#[tokio::test]
async fn hosts_without_a_namespace_are_in_none() {
    let (_site, access) = site().await;
    let names = list(&access, &both(), &["-n", "default", "-o", "name"]).await;
    assert_eq!(names, "physicalhost/default/sim-000\nphysicalhost/default/sim-002\n");
    for arguments in [&["sim-001", "-n", "default"][..], &["default/sim-001"], &["server/default/sim-001"]] {
        let error = parsed::<show::Args>(arguments).look(&access, &both()).await.unwrap_err().to_string();
        assert!(error.starts_with("there is no host "), "{arguments:?}: {error}");
    }
}

#[tokio::test]
async fn a_host_is_found_by_every_name_that_fits_and_shown() {
    let (_site, access) = site().await;
    for name in ["sim-001", "server/sim-001", "Server/sim-001"] {
        let said = parsed::<show::Args>(&[name]).look(&access, &both()).await.unwrap();
        let lines: Vec<String> =
            said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            ["sim-001", "Kind: Server", "State: Available", "Power: Off", "Claimed by: nobody", "BMC: https://sim-001"]
        );
    }
    for name in ["sim-000", "default/sim-000", "physicalhost/sim-000", "physicalhost/default/sim-000"] {
        let said = parsed::<show::Args>(&[name, "-o", "json"]).look(&access, &both()).await.unwrap();
        let object: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("PhysicalHost"), &json!("sim-000")));
    }
}

#[tokio::test]
async fn a_name_that_two_hosts_have_is_not_guessed() {
    let (_site, access) = site().await;
    let fleet = Fleet::new(&FleetSpec { count: 1, ..FleetSpec::default() });
    register(&access.client, &[&Servers], &fleet).await.unwrap();
    let error = parsed::<power::Args>(&["on", "sim-000"]).power(&access, &both()).await.unwrap_err().to_string();
    assert_eq!(error, "sim-000 can be any of physicalhost/default/sim-000, server/sim-000: name it with its kind");
    parsed::<power::Args>(&["on", "server/sim-000", "--wait=false"]).power(&access, &both()).await.unwrap();
    assert_eq!(api(&access, &Servers).get("sim-000").await.unwrap().data["spec"]["power"], "On");
    let host = api(&access, both()[0]).get("sim-000").await.unwrap();
    assert!(host.data["spec"].get("online").is_none(), "{host:?}");
}

#[tokio::test]
async fn hosts_of_two_dialects_are_powered_in_one_go_each_in_its_own_words() {
    let (_site, access) = site().await;
    let args = parsed::<power::Args>(&["on", "sim-000", "sim-001", "--timeout", "30s"]);
    let operator = async {
        testkit::wait_for("both requests", std::time::Duration::from_secs(20), || async {
            let host = api(&access, both()[0]).get("sim-000").await.unwrap();
            let server = api(&access, &Servers).get("sim-001").await.unwrap();
            (host.data["spec"]["online"] == true && server.data["spec"]["power"] == "On").then_some(())
        })
        .await;
        put_status(&access, &Servers, "sim-001", &json!({"powerState": "On"})).await;
        let generation = api(&access, both()[0]).get("sim-000").await.unwrap().metadata.generation;
        let status = json!({"observedPowerState": "On", "observedGeneration": generation});
        put_status(&access, both()[0], "sim-000", &status).await;
    };
    let kinds = both();
    let (done, ()) = tokio::join!(args.power(&access, &kinds), operator);
    done.unwrap();
}

#[tokio::test]
async fn a_restart_is_done_when_the_dialect_says_that_it_was_heeded() {
    let (_site, access) = site().await;
    put_status(&access, &Servers, "sim-001", &json!({"powerState": "On"})).await;
    let args = parsed::<power::Args>(&["cycle", "sim-001", "--timeout", "30s"]);
    let operator = async {
        testkit::wait_for("the request", std::time::Duration::from_secs(20), || async {
            let server = api(&access, &Servers).get("sim-001").await.unwrap();
            server.annotations().contains_key(foreign::OPERATION).then_some(())
        })
        .await;
        patch(&access, "sim-001", &json!({"metadata": {"annotations": {foreign::OPERATION: null}}})).await;
    };
    let (done, ()) = tokio::join!(args.power(&access, &[&Servers]), operator);
    done.unwrap();
}

#[tokio::test]
async fn a_fault_an_obstacle_and_a_claim_of_any_dialect_count() {
    let (_site, access) = site().await;
    let power = async |arguments: &[&str]| {
        parsed::<power::Args>(arguments).power(&access, &both()).await.unwrap_err().to_string()
    };
    assert_eq!(power(&["on", "sim-003"]).await, "1 of 1 host did not reach the requested state");
    let error = power(&["auto", "sim-001"]).await;
    assert!(error.starts_with("server/sim-001 cannot be left alone: spec.power is always On or Off"), "{error}");
    patch(&access, "sim-001", &json!({"spec": {"claim": "node-01"}})).await;
    let error = power(&["off", "sim-001"]).await;
    assert!(error.starts_with("server/sim-001 (Available) is held by ServerClaim node-01"), "{error}");
    assert_eq!(
        api(&access, &Servers).get("sim-001").await.unwrap().data["spec"]["power"],
        "Off",
        "as it was registered"
    );
}
