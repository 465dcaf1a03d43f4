use super::*;
use crate::Family;
use crate::quirks::of_family;

fn slot(id: &str, kinds: &[&str], actions: Value) -> Resource {
    let mut body = json!({"Id": id, "MediaTypes": kinds});
    if !actions.is_null() {
        body["Actions"] = actions;
    }
    Resource { uri: format!("/vm/{id}"), etag: None, body }
}

fn chosen(slots: &[Resource], family: Family) -> Vec<String> {
    let quirks = of_family(family);
    let mut usable: Vec<&Resource> = slots.iter().filter(|slot| is_usable(slot, quirks)).collect();
    usable.sort_by_key(|slot| rank(slot, quirks));
    usable.iter().map(|slot| slot.id()).collect()
}

fn both() -> Value {
    json!({"#VirtualMedia.InsertMedia": {"target": "/i"}, "#VirtualMedia.EjectMedia": {"target": "/e"}})
}

#[test]
fn lenovo_prefers_ext_over_remote_and_has_no_actions() {
    let slots = ["Remote1", "RDOC1", "EXT2", "EXT1"].map(|id| slot(id, &["CD", "DVD"], Value::Null));
    assert_eq!(chosen(&slots, Family::LenovoXcc), ["EXT2", "EXT1", "Remote1", "RDOC1"]);
}

#[test]
fn idrac10_only_takes_an_image_in_slot_1() {
    let slots = ["2", "1"].map(|id| slot(id, &["CD", "DVD", "USBStick"], both()));
    assert_eq!(chosen(&slots, Family::DellIdrac10), ["1"]);
}

#[test]
fn cisco_blades_offer_dvd_only_and_openbmc_lists_drives_without_insertion() {
    let proxy = slot("Slot_0", &["CD"], json!({"#VirtualMedia.EjectMedia": {"target": "/e"}}));
    let slots = [proxy, slot("3", &["DVD"], both()), slot("F", &["Floppy", "USBStick"], both())];
    assert_eq!(chosen(&slots, Family::Generic), ["3"]);
}

#[test]
fn openbmc_takes_https_only_and_says_so() {
    assert!(hint("http://h/a.iso", &[], of_family(Family::OpenBmc)).unwrap().contains("https"));
    assert_eq!(hint("https://h/a.iso", &[], of_family(Family::OpenBmc)), None);
    assert!(hint("http://h/a.iso?x=1", &[], of_family(Family::Generic)).unwrap().contains("query"));
}

#[test]
fn a_bmc_that_lists_how_it_takes_images_is_believed_when_it_refuses_one() {
    let listed = json!({"#VirtualMedia.InsertMedia": {
        "target": "/i", "TransferProtocolType@Redfish.AllowableValues": ["NFS", "CIFS"],
    }});
    let drive = Drive::read(&slot("1", &["CD"], listed));
    let quirks = of_family(Family::Generic);
    let told = hint("http://h/a.iso", &drive.protocols, quirks).unwrap();
    assert_eq!(told, "This BMC takes images by NFS, CIFS only, and this one is offered by HTTP");
    assert_eq!(hint("nfs://h/a.iso", &drive.protocols, quirks), None);
    assert_eq!(hint("smb://h/a.iso", &drive.protocols, quirks), None);
}

#[test]
fn the_protocol_comes_from_the_scheme() {
    assert_eq!(protocol_of("https://h/a.iso"), "HTTPS");
    assert_eq!(protocol_of("smb://h/a.iso"), "CIFS");
}
