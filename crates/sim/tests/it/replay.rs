//! Trees of one's own.

use std::sync::Arc;

use serde_json::json;
use sim::{Bmc, BmcSpec, PowerState, Tree};

use crate::client::{Client, pass};

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
    let client = Client::new(Bmc::replay(tree.clone(), BmcSpec::new(tree.personality()))).await;
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
