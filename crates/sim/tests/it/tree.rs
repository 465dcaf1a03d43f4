use std::collections::HashSet;

use http::Method;
use serde_json::{Value, json};
use sim::{Bmc, BmcSpec, Personality, personality};

use crate::client::Client;

fn links(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, child) in fields {
                match child.as_str() {
                    Some(link) if name == "@odata.id" => found.push(link.to_owned()),
                    _ => links(child, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| links(item, found)),
        _ => {}
    }
}

/// Everything that can be reached from the root, with the status of each.
pub(crate) async fn walk(client: &Client) -> Vec<(String, u16)> {
    let mut todo = vec!["/redfish/v1".to_owned()];
    let mut seen = HashSet::new();
    let mut statuses = Vec::new();
    while let Some(link) = todo.pop() {
        let path = link.split('#').next().unwrap().trim_end_matches('/').to_owned();
        if !path.starts_with('/') || !seen.insert(path.clone()) {
            continue;
        }
        let answer = client.get(&path).await;
        links(&answer.body, &mut todo);
        statuses.push((path, answer.status.as_u16()));
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn every_link_of_every_personality_leads_somewhere() {
    for personality in Personality::all() {
        let name = personality.name;
        let client = Client::of(personality).await;
        let all = walk(&client).await;
        let broken: Vec<_> = all.iter().filter(|(_, status)| *status != 200).collect();
        assert!(broken.is_empty(), "{name}: {broken:?}");
        assert!(all.len() > 30, "{name}: {}", all.len());
    }
}

#[tokio::test(start_paused = true)]
async fn inventory_adds_up() {
    for personality in Personality::all() {
        let name = personality.name;
        let client = Client::of(personality).await;
        let system = client.read(&client.system().await).await;
        let mut sum = 0;
        let memory = client.read(system["Memory"]["@odata.id"].as_str().unwrap()).await;
        for module in memory["Members"].as_array().unwrap() {
            sum += client.read(module["@odata.id"].as_str().unwrap()).await["CapacityMiB"].as_u64().unwrap();
        }
        assert_eq!(system["MemorySummary"]["TotalSystemMemoryGiB"], sum / 1024, "{name}");
        let processors = client.read(system["Processors"]["@odata.id"].as_str().unwrap()).await;
        assert_eq!(processors["Members@odata.count"], system["ProcessorSummary"]["Count"], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn vendors_introduce_themselves_as_they_do() {
    let root = |client: Client| async move { client.read("/redfish/v1/").await };
    let dell = root(Client::of(personality::dell_idrac9()).await).await;
    assert_eq!((&dell["Vendor"], &dell["Oem"]["Dell"]), (&json!("Dell"), &json!({})));
    let supermicro = root(Client::of(personality::supermicro_x13()).await).await;
    assert_eq!((supermicro.get("Vendor"), &supermicro["Oem"]["Supermicro"]), (None, &json!({})));
    let openbmc = root(Client::of(personality::openbmc()).await).await;
    assert_eq!(openbmc["ProtocolFeaturesSupported"]["ExpandQuery"]["NoLinks"], false);
}

#[tokio::test(start_paused = true)]
async fn the_service_tag_is_the_sku_on_dell_only() {
    let client = Client::of(personality::dell_idrac9()).await;
    let system = client.read(&client.system().await).await;
    assert_eq!(system["SKU"].as_str().unwrap().len(), 7);
    assert_ne!(system["SKU"], system["SerialNumber"]);
    let client = Client::of(personality::generic()).await;
    assert!(client.read(&client.system().await).await["SKU"].is_null());
}

#[tokio::test(start_paused = true)]
async fn ilo_links_end_in_slashes_and_case_does_not_matter() {
    let client = Client::of(personality::hpe_ilo5()).await;
    let system = client.read("/redfish/v1/systems/1").await;
    assert_eq!(system["@odata.id"], "/redfish/v1/Systems/1/");
    assert_eq!(system["Bios"]["@odata.id"], "/redfish/v1/systems/1/bios/");
    let storage = client.read("/redfish/v1/Systems/1/Storage/").await;
    assert!(storage["Members@odata.count"].as_u64().unwrap() > 1);
    Client::of(personality::generic()).await.get("/redfish/v1/systems/1").await.refused(404, "ResourceMissingAtURI");
}

#[tokio::test(start_paused = true)]
async fn expand_saves_requests_where_it_is_announced() {
    let client = Client::of(personality::dell_idrac9()).await;
    let system = client.system().await;
    let memory = client.read(&format!("{system}/Memory?$expand=.($levels=1)")).await;
    assert!(memory["Members"][0]["CapacityMiB"].is_u64());
    client.get(&format!("{system}/Memory?$expand=.($levels=2)")).await.refused(400, "QueryParameterOutOfRange");
    let storage = client.read(&format!("{system}/Storage/RAID.Integrated.1-1?$expand=.($levels=1)")).await;
    assert!(storage["Drives"][0]["CapacityBytes"].is_u64());

    let client = Client::of(personality::hpe_ilo5()).await;
    let storage = client.read("/redfish/v1/Systems/1/Storage?$expand=.").await;
    let first = storage["Members"][0]["@odata.id"].as_str().unwrap();
    let one = client.read(&format!("{first}?$expand=.")).await;
    assert!(one["Drives"][0].get("CapacityBytes").is_none(), "collections only");

    let client = Client::of(personality::openbmc()).await;
    let memory = client.read("/redfish/v1/Systems/system/Memory?$expand=.($levels=1)").await;
    assert!(memory["Members"][0].get("CapacityMiB").is_none());
    assert_eq!(client.read("/redfish/v1/Systems?only").await["Id"], "system");
}

#[tokio::test(start_paused = true)]
async fn collections_can_come_in_pages() {
    let mut personality = personality::generic();
    personality.query.page_size = Some(3);
    let client = Client::of(personality).await;
    let mut next = Some("/redfish/v1/Systems/1/Memory".to_owned());
    let mut members = HashSet::new();
    let mut count = 0;
    while let Some(path) = next {
        let page = client.read(&path).await;
        count = page["Members@odata.count"].as_u64().unwrap();
        assert!(page["Members"].as_array().unwrap().len() <= 3);
        members.extend(page["Members"].as_array().unwrap().iter().map(ToString::to_string));
        next = page["Members@odata.nextLink"].as_str().map(str::to_owned);
    }
    assert_eq!(members.len() as u64, count);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_can_have_several_systems() {
    let client = Client::new(Bmc::new(BmcSpec::new(personality::generic()).systems(3))).await;
    let systems = client.read("/redfish/v1/Systems").await;
    assert_eq!(systems["Members@odata.count"], 3);
    let target = "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset";
    client.post(target, json!({ "ResetType": "On" })).await.worked();
    let resets: Vec<_> = client.bmc.servers().iter().map(|s| s.resets).collect();
    assert_eq!(resets, [0, 1, 0]);
    let first = client.read("/redfish/v1/Systems/1").await;
    let second = client.read("/redfish/v1/Systems/2").await;
    assert_ne!(first["UUID"], second["UUID"]);
    assert_eq!(client.bmc.server("2").unwrap().resets, 1);
}

#[tokio::test(start_paused = true)]
async fn systems_are_pulled_out_put_back_and_listed_in_another_order() {
    let client = Client::new(Bmc::new(BmcSpec::new(personality::generic()).systems(3))).await;
    client.bmc.set_present(&[2, 0]);
    let listed = client.read("/redfish/v1/Systems").await;
    let links: Vec<_> =
        listed["Members"].as_array().unwrap().iter().map(|member| member["@odata.id"].clone()).collect();
    assert_eq!(links, ["/redfish/v1/Systems/3", "/redfish/v1/Systems/1"]);
    assert_eq!(listed["Members@odata.count"], 2);
    for path in ["/redfish/v1/Systems/2", "/redfish/v1/Systems/2/Memory"] {
        client.get(path).await.refused(404, "ResourceMissingAtURI");
    }
    let target = "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset";
    client.post(target, json!({ "ResetType": "On" })).await.refused(404, "ResourceMissingAtURI");
    assert_eq!(client.bmc.server("2").unwrap().resets, 0);
    client.bmc.set_present(&[0, 1, 2]);
    assert_eq!(client.read("/redfish/v1/Systems/2").await["Id"], "2");
}

#[tokio::test(start_paused = true)]
async fn head_has_no_body_and_wrong_methods_are_405() {
    let client = Client::of(personality::generic()).await;
    let head = client.try_send(Method::HEAD, "/redfish/v1/Systems/1", &[], None).await.unwrap();
    assert_eq!((head.status.as_u16(), head.raw.len()), (200, 0));
    assert!(!head.header("etag").is_empty());
    let answer = client.try_send(Method::DELETE, "/redfish/v1/Systems/1", &[], None).await.unwrap();
    answer.refused(405, "OperationNotAllowed");
    assert_eq!(answer.header("allow"), "GET, HEAD, PATCH");
    client.get("/redfish/v1/Nowhere").await.refused(404, "ResourceMissingAtURI");
}

#[tokio::test(start_paused = true)]
async fn what_did_not_change_need_not_be_sent_again() {
    let client = Client::of(personality::openbmc()).await;
    let path = client.system().await;
    let etag = client.get(&path).await.header("etag").to_owned();
    let again = client.try_send(Method::GET, &path, &[("if-none-match", &etag)], None).await.unwrap();
    assert_eq!((again.status.as_u16(), again.raw.len()), (304, 0));
    client.reset("On").await.worked();
    let again = client.try_send(Method::GET, &path, &[("if-none-match", &etag)], None).await.unwrap();
    assert_eq!(again.status, 200);
}
