//! Recorded trees. They are not part of the project: without `BESKAR7_CAPTURES` these tests are skipped.

use std::path::PathBuf;
use std::sync::Arc;

use http::Method;
use serde_json::json;
use sim::{Bmc, BmcSpec, BootSource, Kind, Tree, Verb};

use crate::client::{Client, pass};
use crate::tree::walk;

fn load(name: &str) -> Arc<Tree> {
    let Some(folder) = std::env::var_os("BESKAR7_CAPTURES") else {
        panic!("BESKAR7_CAPTURES names no folder with recorded trees")
    };
    Arc::new(Tree::open(PathBuf::from(folder).join(format!("{name}.tar.gz"))).unwrap())
}

async fn client(tree: &Arc<Tree>) -> Client {
    Client::new(Bmc::replay(tree.clone(), BmcSpec::new(tree.personality()))).await
}

const ALL: &[(&str, &str, usize)] =
    &[("dell-r750-idrac9", "dell-idrac9", 46), ("hpe-dl385-ilo5", "hpe-ilo5", 15), ("openbmc-stock", "openbmc", 9)];

#[tokio::test(start_paused = true)]
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn every_recorded_resource_answers_and_only_what_was_left_out_is_missing() {
    for (name, personality, missing) in ALL {
        let tree = load(name);
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
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn expand_brings_recorded_members_where_it_was_announced() {
    let tree = load("dell-r750-idrac9");
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

    let tree = load("openbmc-stock");
    let client = self::client(&tree).await;
    let systems = client.read("/redfish/v1/Systems?$expand=.($levels=1)").await;
    assert_eq!(systems["Members"][0], json!({ "@odata.id": "/redfish/v1/Systems/system" }));
    assert_eq!(client.read("/redfish/v1/Systems?only").await["Id"], "system");
}

#[tokio::test(start_paused = true)]
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn recorded_dell_and_hpe_servers_boot_an_iso() {
    for name in ["dell-r750-idrac9", "hpe-dl385-ilo5"] {
        let tree = load(name);
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
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn the_recorded_openbmc_has_power_and_boot_but_no_media() {
    let tree = load("openbmc-stock");
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
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn recorded_etags_stay_and_follow_what_lives() {
    let tree = load("hpe-dl385-ilo5");
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
