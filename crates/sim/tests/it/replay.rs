//! Recorded trees. They are not part of the project; without `BESKAR7_CAPTURES` these tests only say so.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use http::Method;
use serde_json::json;
use sim::{Bmc, BmcSpec, BootSource, Kind, PowerState, Tree, Verb};

use crate::client::{Client, pass};
use crate::tree::walk;

fn captures() -> Option<PathBuf> {
    let found = std::env::var_os("BESKAR7_CAPTURES").map(PathBuf::from);
    if found.is_none() {
        // Not by a macro: the test harness would keep those to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: BESKAR7_CAPTURES is not set, no recorded tree was replayed");
    }
    found
}

fn load(name: &str) -> Option<Arc<Tree>> {
    Some(Arc::new(Tree::open(captures()?.join(format!("{name}.tar.gz"))).unwrap()))
}

async fn client(tree: &Arc<Tree>) -> Client {
    Client::new(Bmc::replay(tree.clone(), BmcSpec::new(tree.personality()))).await
}

const ALL: &[(&str, &str, usize)] =
    &[("dell-r750-idrac9", "dell-idrac9", 46), ("hpe-dl385-ilo5", "hpe-ilo5", 15), ("openbmc-stock", "openbmc", 9)];

#[tokio::test(start_paused = true)]
async fn every_recorded_resource_answers_and_only_what_was_left_out_is_missing() {
    for (name, personality, missing) in ALL {
        let Some(tree) = load(name) else { return };
        assert_eq!(tree.personality().name, *personality);
        assert!(tree.broken().is_empty(), "{name}: {:?}", tree.broken());
        let client = client(&tree).await;
        let all = walk(&client).await;
        for (path, status) in &all {
            let expected = if tree.get(path).is_some() { 200 } else { 404 };
            // The sessions of the recording are over, ours is open.
            if Kind::of(path) != Kind::Session {
                assert_eq!(*status, expected, "{name} {path}");
            }
        }
        assert_eq!(all.iter().filter(|(_, status)| *status == 404).count(), *missing, "{name}");
        for path in tree.paths().filter(|path| !matches!(Kind::of(path), Kind::Session | Kind::Task)) {
            assert_eq!(client.get(path).await.status, 200, "{name} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn expand_brings_recorded_members_where_it_was_announced() {
    let Some(tree) = load("dell-r750-idrac9") else { return };
    let client = client(&tree).await;
    let system = client.system().await;
    let memory = client.read(&format!("{system}/Memory?$expand=.($levels=1)")).await;
    let members = memory["Members"].as_array().unwrap();
    assert_eq!(members.len(), 16);
    assert!(members.iter().all(|m| m["CapacityMiB"].as_u64() == Some(32768)));
    let storage = client.read(&format!("{system}/Storage/CPU.1?$expand=.($levels=1)")).await;
    assert!(storage["Drives"].as_array().unwrap().iter().all(|d| d["CapacityBytes"].is_u64()));
    let systems = client.read("/redfish/v1/Systems?$expand=.($levels=1)").await;
    assert_eq!(systems["Members"][0]["PowerState"], "On");

    let Some(tree) = load("openbmc-stock") else { return };
    let client = self::client(&tree).await;
    let systems = client.read("/redfish/v1/Systems?$expand=.($levels=1)").await;
    assert_eq!(systems["Members"][0], json!({ "@odata.id": "/redfish/v1/Systems/system" }));
    assert_eq!(client.read("/redfish/v1/Systems?only").await["Id"], "system");
}

#[tokio::test(start_paused = true)]
async fn recorded_dell_and_hpe_servers_boot_an_iso() {
    for name in ["dell-r750-idrac9", "hpe-dl385-ilo5"] {
        let Some(tree) = load(name) else { return };
        let client = client(&tree).await;
        assert_eq!(client.power().await, "On", "{name}");
        client.reset("ForceOff").await.worked();
        pass(20).await;
        assert_eq!(client.power().await, "Off", "{name}");
        client.insert("http://a/os.iso").await.worked();
        let drive = client.read(&client.cd().await).await;
        assert_eq!((&drive["Image"], &drive["Inserted"]), (&json!("http://a/os.iso"), &json!(true)), "{name}");
        client.boot(json!({ "BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once" })).await.worked();
        client.reset("On").await.worked();
        pass(70).await;
        assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::Cd("http://a/os.iso".into()), "{name}");
        client.eject().await.worked();
        pass(10).await;
        assert_eq!(client.read(&client.cd().await).await["Inserted"], false, "{name}");
        assert_eq!(client.bmc.counters().of(Verb::Post, Kind::Reset), 2, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_recorded_openbmc_has_power_and_boot_but_no_media() {
    let Some(tree) = load("openbmc-stock") else { return };
    let client = client(&tree).await;
    assert_eq!(client.power().await, "Off");
    client.boot(json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" })).await.worked();
    client.reset("FullPowerCycle").await.refused(400, "ActionParameterValueNotInList");
    client.reset("On").await.worked();
    pass(70).await;
    let server = client.bmc.first();
    assert_eq!((server.booted.unwrap().from, server.slots.len()), (BootSource::Pxe, 0));
    let system = client.read(&client.system().await).await;
    assert_eq!(system["BootProgress"]["LastState"], "OSBootStarted");
}

#[tokio::test(start_paused = true)]
async fn recorded_etags_stay_and_follow_what_lives() {
    let Some(tree) = load("hpe-dl385-ilo5") else { return };
    let client = client(&tree).await;
    let manager = client.get("/redfish/v1/Managers/1/").await;
    assert_eq!(manager.header("etag"), manager.body["@odata.etag"]);
    let system = client.system().await;
    let before = client.get(&system).await;
    assert_eq!(before.header("etag"), before.body["@odata.etag"]);
    assert!(before.header("etag").starts_with("W/"));
    let body = json!({ "Boot": { "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" } });
    let etag = [("if-match", before.header("etag"))];
    client.try_send(Method::PATCH, &system, &etag, Some(&body)).await.unwrap().worked();
    client.try_send(Method::PATCH, &system, &etag, Some(&body)).await.unwrap().refused(412, "PreconditionFailed");
}

#[tokio::test(start_paused = true)]
async fn a_tree_of_ones_own_is_replayed_from_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, body: serde_json::Value| {
        let folder = folder.path().join("mine").join(path);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("index.json"), body.to_string()).unwrap();
    };
    let link = |path: &str| json!({ "@odata.id": format!("/redfish/v1/{path}") });
    write("", json!({ "@odata.type": "#ServiceRoot.v1_0_0.ServiceRoot", "Systems": link("Systems") }));
    write("Systems", json!({ "Members": [link("Systems/a"), link("Systems/board"), link("Systems/gone")] }));
    write(
        "Systems/a",
        json!({ "Id": "a", "VirtualMedia": link("Systems/a/VirtualMedia"), "PowerState": "PoweringOn", "Boot": { "BootSourceOverrideTarget": null,
            "BootSourceOverrideEnabled": "Disabled" },
            "Actions": { "#ComputerSystem.Reset": { "target": "/redfish/v1/Systems/a/Reset/" } } }),
    );
    write("Systems/a/VirtualMedia", json!({ "Members": [link("Systems/a/VirtualMedia/1")] }));
    // Recorded while it was empty.
    write(
        "Systems/a/VirtualMedia/1",
        json!({ "Id": "1", "MediaTypes": ["CD"], "Inserted": false, "Actions": { "#VirtualMedia.InsertMedia": {
            "target": "/redfish/v1/Systems/a/VirtualMedia/1/Actions/VirtualMedia.InsertMedia" } } }),
    );
    // A baseboard: no reset, no boot, no power.
    write("Systems/board", json!({ "Id": "board" }));
    std::fs::create_dir_all(folder.path().join("mine/broken")).unwrap();
    std::fs::write(folder.path().join("mine/broken/index.json"), "<html>").unwrap();

    let tree = Arc::new(Tree::open(folder.path()).unwrap());
    assert_eq!(tree.len(), 6);
    assert_eq!(tree.broken().len(), 1);
    let client = client(&tree).await;
    assert_eq!(client.bmc.servers().len(), 2);
    client.post("/redfish/v1/Systems/a/Reset", json!({ "ResetType": "ForceOff" })).await.worked();
    pass(5).await;
    assert_eq!(client.bmc.server("a").unwrap().power(), PowerState::Off);
    let pxe = json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" });
    client.boot(pxe.clone()).await.worked();
    client.patch("/redfish/v1/Systems/board", json!({ "Boot": pxe })).await.refused(400, "PropertyUnknown");
    assert!(client.read("/redfish/v1/Systems/board").await.get("PowerState").is_none());
    client.insert("http://a/os.iso").await.worked();
    let drive = client.read(&client.cd().await).await;
    assert!(drive["Actions"]["#VirtualMedia.EjectMedia"]["target"].is_string());
    client.eject().await.worked();
    assert_eq!(client.bmc.server("a").unwrap().media(), None);
}

#[test]
fn a_folder_without_a_service_root_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let error = Tree::open(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("no Redfish service root among the 0 resources"), "{error}");
    let error = Tree::open(folder.path().join("gone.tar.gz")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the recording"), "{error}");
}
