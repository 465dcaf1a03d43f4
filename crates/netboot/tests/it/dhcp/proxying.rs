//! Beside the DHCP server of the site.

use netboot::dhcp::{Arrival, BootFile, Client, Files, Mode, NoBoot, Port, Server, Silence};

use super::packets::{changed, golden, option};
use super::rack::{BROADCAST, ON_4011, PROXY, answer, deployed, files, read, sent, silent};

const SAME_MACHINE: Server = Server { mode: Mode::ProxyOnSameMachine, ..PROXY };

#[test]
fn only_discovery_is_answered_on_port_67() {
    for name in ["bios-request", "linux-renew", "linux-reboot", "linux-decline", "linux-release", "linux-inform"] {
        assert_eq!(silent(answer(PROXY, name)), Silence::ForTheSite, "{name}");
    }
}

#[test]
fn who_does_not_boot_from_the_network_hears_nothing() {
    let packet = changed(&golden("linux-renew"), 53, &[1]);
    let silence = silent(read(&packet, BROADCAST).answer(PROXY, Some(&deployed())));
    assert_eq!(silence, Silence::NoBoot(NoBoot::NotNetworkBoot));
}

#[test]
fn a_host_with_nothing_to_boot_hears_nothing() {
    let idle = Client { boot: None, ..deployed() };
    let silence = silent(read(&golden("bios-discover"), BROADCAST).answer(PROXY, Some(&idle)));
    assert_eq!(silence.to_string(), "there is nothing for this host to boot");
    let silence = silent(read(&golden("uefi-4011-request"), ON_4011).answer(PROXY, Some(&idle)));
    assert_eq!(silence, Silence::NoBoot(NoBoot::NothingToBoot));
}

#[test]
fn machines_that_are_not_served_hear_nothing() {
    for name in ["arm64-discover", "arm64-http-discover"] {
        assert!(matches!(silent(answer(PROXY, name)), Silence::NoBoot(NoBoot::NotServed(_))), "{name}");
    }
}

#[test]
fn beside_a_site_dhcp_on_the_same_machine_only_port_4011_answers() {
    assert_eq!(silent(answer(SAME_MACHINE, "bios-discover")), Silence::SiteHasThePort);
    let request = read(&golden("uefi-4011-request"), ON_4011);
    assert_eq!(request.answer(SAME_MACHINE, Some(&deployed())), request.answer(PROXY, Some(&deployed())));
    // A BIOS comes to port 4011 too, if the site's offer says PXEClient.
    let bios = read(&changed(&golden("bios-request"), 54, &[10, 77, 0, 1]), ON_4011);
    let reply = sent(bios.answer(SAME_MACHINE, Some(&deployed())));
    assert_eq!(option(&reply.bytes, 43), Some(vec![6, 1, 8, 255]));
}

#[test]
fn port_4011_answers_requests_for_a_boot_file_only() {
    for (kind, answered) in [(1, false), (3, true), (4, false), (7, false), (8, true)] {
        let request = read(&changed(&golden("uefi-4011-request"), 53, &[kind]), ON_4011);
        let answer = request.answer(PROXY, Some(&deployed()));
        if answered {
            assert_eq!(sent(answer).to.address(), ON_4011.from);
        } else {
            assert_eq!(silent(answer), Silence::NotForABootFile);
        }
    }
    let elsewhere = read(&changed(&golden("uefi-4011-request"), 54, &[10, 77, 0, 9]), ON_4011);
    assert_eq!(silent(elsewhere.answer(PROXY, Some(&deployed()))), Silence::OtherServer([10, 77, 0, 9].into()));
}

#[test]
fn a_tftp_server_elsewhere_is_named_once_the_client_has_asked_us() {
    let client = Client { boot: Some(Files { tftp: [10, 77, 0, 8].into(), ..files() }), lease: None };
    let (we, tftp) = ([10, 77, 0, 1], [10, 77, 0, 8]);
    for (name, arrival, siaddr) in [
        ("bios-discover", BROADCAST, tftp),
        // Its request for port 4011 goes to siaddr.
        ("uefi-discover", BROADCAST, we),
        ("uefi-4011-request", ON_4011, tftp),
        ("ipxe-discover", BROADCAST, we),
        ("uefi-http-discover", BROADCAST, we),
    ] {
        let reply = sent(read(&golden(name), arrival).answer(PROXY, Some(&client)));
        assert_eq!(reply.bytes[20..24], siaddr, "{name}");
    }
}

#[test]
fn a_forged_sender_gets_nothing_to_a_group() {
    for from in ["0.0.0.0:68", "255.255.255.255:4011", "224.0.0.1:4011", "10.77.0.9:0"] {
        let request = read(&golden("uefi-4011-request"), Arrival { port: Port::Pxe, from: from.parse().unwrap() });
        let silence = silent(request.answer(PROXY, Some(&deployed())));
        assert!(matches!(silence, Silence::NoWayBack(_)), "{from}: {silence}");
    }
    let mut packet = golden("relayed-discover");
    packet[24..28].copy_from_slice(&[255; 4]);
    let silence = silent(read(&packet, BROADCAST).answer(PROXY, Some(&deployed())));
    assert_eq!(silence.to_string(), "no reply can be sent to 255.255.255.255");
}

#[test]
fn the_script_fits_or_the_proxy_is_silent() {
    let long = Client { boot: Some(Files { script: Some("s".repeat(255)), ..files() }), lease: None };
    let request = |size: u16| read(&changed(&golden("ipxe-discover"), 57, &size.to_be_bytes()), BROADCAST);
    let reply = sent(request(1500).answer(PROXY, Some(&long)));
    assert_eq!(reply.boot, Ok(BootFile::Url("s".repeat(255))));
    assert_eq!(option(&reply.bytes, 67), Some(vec![b's'; 255]));
    assert!(reply.bytes[108..236].iter().all(|byte| *byte == 0), "a part of it would be another file");
    // Exactly, and one byte less.
    let used = u16::try_from(reply.bytes.len() + 28).unwrap();
    assert_eq!(sent(request(used).answer(PROXY, Some(&long))).bytes, reply.bytes);
    let silence = silent(request(used - 1).answer(PROXY, Some(&long)));
    assert_eq!(silence, Silence::NoBoot(NoBoot::NoRoom(reply.bytes.len() - 1)));
}
