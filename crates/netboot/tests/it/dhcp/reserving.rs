//! With an address for each known host.

use netboot::dhcp::{Client, Destination, Files, Lease, NoBoot, Request, Server, Silence};

use super::packets::{changed, golden, option, options, with_option, without};
use super::rack::{BROADCAST, ITS_ADDRESS, ON_4011, RESERVATION, answer, deployed, files, lease, read, sent, silent};

const OFFER: u8 = 2;
const ACK: u8 = 5;
const NAK: u8 = 6;

fn kind(packet: &[u8]) -> u8 {
    option(packet, 53).unwrap()[0]
}

/// A REQUEST of an installed system.
fn request(server: Option<[u8; 4]>, requested: Option<[u8; 4]>, ciaddr: [u8; 4]) -> Request {
    let mut packet = golden("linux-renew");
    packet[12..16].copy_from_slice(&ciaddr);
    for (code, value) in [(54, server), (50, requested)] {
        packet = value.map_or(packet.clone(), |value| with_option(&packet, code, &value));
    }
    read(&packet, BROADCAST)
}

#[test]
fn requests_are_granted_refused_or_left_to_others() {
    let (we, other) = (Some([10, 77, 0, 1]), Some([10, 77, 0, 9]));
    let (its, wrong, none) = ([10, 77, 0, 50], [10, 77, 0, 51], [0; 4]);
    let renews = Destination::Client(ITS_ADDRESS);
    for (state, request, expected) in [
        ("selecting", request(we, Some(its), none), Some((ACK, Destination::Broadcast))),
        ("selecting another address", request(we, Some(wrong), none), Some((NAK, Destination::Broadcast))),
        ("selecting another server", request(other, Some(its), none), None),
        ("rebooting", request(None, Some(its), none), Some((ACK, Destination::Broadcast))),
        ("rebooting elsewhere", request(None, Some(wrong), none), Some((NAK, Destination::Broadcast))),
        ("renewing or rebinding", request(None, None, its), Some((ACK, renews))),
        ("renewing another address", request(None, None, wrong), Some((NAK, Destination::Broadcast))),
        ("renewing by the book of nobody", request(we, Some(its), wrong), Some((ACK, Destination::Broadcast))),
        ("asking for nothing", request(None, None, none), None),
    ] {
        let answer = request.answer(RESERVATION, Some(&deployed()));
        let Some((expected, to)) = expected else {
            silent(answer);
            continue;
        };
        let reply = sent(answer);
        assert_eq!((kind(&reply.bytes), reply.to), (expected, to), "{state}");
        let yiaddr = if expected == ACK { its } else { none };
        assert_eq!(reply.bytes[16..20], yiaddr, "{state}");
    }
}

#[test]
fn a_refusal_says_nothing_else() {
    let nak = sent(answer(RESERVATION, "linux-reboot"));
    let codes: Vec<u8> = options(&nak.bytes).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [53, 54, 61, 56]);
    assert_eq!(nak.boot, Err(NoBoot::AddressRefused));
    let mut relayed = golden("linux-reboot");
    relayed[24..28].copy_from_slice(&[10, 88, 0, 1]);
    let nak = sent(read(&relayed, BROADCAST).answer(RESERVATION, Some(&deployed())));
    assert_eq!((nak.to.address().to_string().as_str(), nak.bytes[10]), ("10.88.0.1:67", 0x80));
}

#[test]
fn a_host_without_a_reservation_is_left_to_others() {
    let client = Client { lease: None, ..deployed() };
    for name in ["bios-discover", "linux-renew", "linux-reboot", "linux-inform"] {
        assert_eq!(
            silent(read(&golden(name), BROADCAST).answer(RESERVATION, Some(&client))),
            Silence::NoLease,
            "{name}"
        );
    }
    // But one that has taken an offer of ours should not wait for an answer.
    let reply = sent(read(&golden("bios-request"), BROADCAST).answer(RESERVATION, Some(&client)));
    assert_eq!(kind(&reply.bytes), NAK);
}

#[test]
fn what_a_client_gives_back_or_declines_is_told() {
    assert_eq!(silent(answer(RESERVATION, "linux-decline")), Silence::Declined(ITS_ADDRESS));
    assert_eq!(silent(answer(RESERVATION, "linux-release")), Silence::Released(ITS_ADDRESS));
    let foreign = read(&changed(&golden("linux-decline"), 50, &[10, 77, 0, 51]), BROADCAST);
    assert_eq!(silent(foreign.answer(RESERVATION, Some(&deployed()))), Silence::Incomplete);
    let to_other = read(&changed(&golden("linux-release"), 54, &[10, 77, 0, 9]), BROADCAST);
    let silence = silent(to_other.answer(RESERVATION, Some(&deployed())));
    assert_eq!(silence, Silence::OtherServer([10, 77, 0, 9].into()));
}

#[test]
fn a_system_with_an_address_of_its_own_gets_no_other() {
    let reply = sent(answer(RESERVATION, "linux-inform"));
    assert_eq!((kind(&reply.bytes), &reply.bytes[16..20]), (ACK, [0; 4].as_slice()));
    for lease_option in [51, 58, 59] {
        assert_eq!(option(&reply.bytes, lease_option), None);
    }
    assert_eq!(reply.to, Destination::Client([10, 77, 0, 9].into()));
}

#[test]
fn a_host_with_nothing_to_boot_only_gets_its_address() {
    let idle = Client { boot: None, ..deployed() };
    let reply = sent(read(&golden("bios-discover"), BROADCAST).answer(RESERVATION, Some(&idle)));
    assert_eq!((kind(&reply.bytes), reply.boot), (OFFER, Err(NoBoot::NothingToBoot)));
    for boot in [43, 60, 66, 67, 175] {
        assert_eq!(option(&reply.bytes, boot), None, "option {boot}");
    }
    assert_eq!((&reply.bytes[20..24], reply.bytes[108]), ([0; 4].as_slice(), 0));
}

#[test]
fn port_4011_is_answered_with_reservations_too() {
    let reply = sent(read(&golden("uefi-4011-request"), ON_4011).answer(RESERVATION, Some(&deployed())));
    assert_eq!((kind(&reply.bytes), &reply.bytes[16..20]), (ACK, [0; 4].as_slice()));
    assert_eq!(reply.to.address(), ON_4011.from);
}

#[test]
fn the_domain_and_time_servers_are_sent_to_who_asks() {
    let reply = sent(answer(RESERVATION, "linux-renew"));
    assert_eq!(option(&reply.bytes, 15), Some(b"rack.example".to_vec()));
    assert_eq!(option(&reply.bytes, 42), Some(vec![10, 77, 0, 4]));
    let quiet = read(&without(&golden("linux-renew"), 55), BROADCAST);
    let reply = sent(quiet.answer(RESERVATION, Some(&deployed())));
    assert_eq!((option(&reply.bytes, 15), option(&reply.bytes, 42)), (None, None));
    assert!(option(&reply.bytes, 3).is_some());
}

#[test]
fn an_address_comes_before_a_boot_file_that_does_not_fit() {
    let client = Client { boot: Some(Files { script: Some("s".repeat(255)), ..files() }), ..deployed() };
    let small = read(&without(&golden("ipxe-discover"), 57), BROADCAST);
    let reply = sent(small.answer(RESERVATION, Some(&client)));
    assert_eq!(
        reply.boot.unwrap_err().to_string(),
        "the file to boot does not fit into the 548 bytes that the client accepts"
    );
    assert_eq!(reply.bytes[16..20], [10, 77, 0, 50]);
    assert_eq!(option(&reply.bytes, 60), None);
}

#[test]
fn times_do_not_overflow_and_empty_lists_are_not_sent() {
    let forever = Lease { seconds: u32::MAX, routers: vec![], dns: vec![], ntp: vec![], domain: None, ..lease() };
    let client = Client { boot: None, lease: Some(forever) };
    let reply = sent(read(&golden("linux-renew"), BROADCAST).answer(RESERVATION, Some(&client)));
    assert_eq!(option(&reply.bytes, 58), Some(vec![0x7f, 0xff, 0xff, 0xff]));
    assert_eq!(option(&reply.bytes, 59), Some(vec![0xe0, 0, 0, 0]));
    assert_eq!((option(&reply.bytes, 3), option(&reply.bytes, 6)), (None, None));
}

#[test]
fn identifiers_that_leave_no_room_get_no_reply() {
    let packet = with_option(&with_option(&golden("bios-request"), 61, &[7; 255]), 61, &[7; 255]);
    let huge = read(&changed(&packet, 57, &576_u16.to_be_bytes()), BROADCAST);
    assert_eq!(silent(huge.answer(RESERVATION, Some(&deployed()))), Silence::TooLong(548));
    // With room, it comes back in pieces.
    let id = [vec![7; 255], vec![7; 45]].concat();
    let long = with_option(&with_option(&golden("bios-request"), 61, &id[..255]), 61, &id[255..]);
    let reply = sent(read(&long, BROADCAST).answer(Server { ..RESERVATION }, Some(&deployed())));
    assert_eq!(option(&reply.bytes, 61), Some(id));
}
