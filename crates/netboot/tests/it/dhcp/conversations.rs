//! Whole packets, as they are sent. Read one of these before you change what is in a reply.

use netboot::dhcp::{Destination, ReplyKind, Server};

use super::packets::{assert_golden, golden};
use super::rack::{BROADCAST, ON_4011, PROXY, RESERVATION, answer, deployed, read, sent};

#[track_caller]
fn assert_reply(server: Server, request: &str, name: &str, title: &str, to: Destination) {
    let reply = sent(answer(server, request));
    assert_golden(name, title, &reply.bytes);
    assert_eq!(reply.to, to);
}

#[test]
fn a_proxy_tells_a_bios_to_boot_from_the_file_name() {
    let title = "Proxy: offer for bios-discover.";
    assert_reply(PROXY, "bios-discover", "proxy-bios-offer", title, Destination::Broadcast);
}

#[test]
fn a_proxy_tells_uefi_twice_and_without_discovery_control() {
    let title = "Proxy: offer for uefi-discover. siaddr is where it will send its request for port 4011.";
    assert_reply(PROXY, "uefi-discover", "proxy-uefi-offer", title, Destination::Broadcast);

    let ack = sent(read(&golden("uefi-4011-request"), ON_4011).answer(PROXY, Some(&deployed())));
    assert_golden("proxy-uefi-4011-ack", "Proxy: reply to uefi-4011-request, to 10.77.0.120:4011.", &ack.bytes);
    assert_eq!((ack.to, ack.kind), (Destination::Source(ON_4011.from), ReplyKind::Ack));
}

#[test]
fn a_proxy_gives_uefi_http_a_url_and_its_own_class() {
    let title = "Proxy: offer for uefi-http-discover.";
    assert_reply(PROXY, "uefi-http-discover", "proxy-uefi-http-offer", title, Destination::Broadcast);
}

#[test]
fn a_proxy_gives_ipxe_the_script() {
    let title = "Proxy: offer for ipxe-discover.";
    assert_reply(PROXY, "ipxe-discover", "proxy-ipxe-offer", title, Destination::Broadcast);
}

#[test]
fn a_relay_gets_the_reply_with_its_option_last() {
    let to = Destination::Relay([10, 88, 0, 1].into());
    let title = "Proxy: offer for relayed-discover, to 10.88.0.1:67. To be broadcast: there is no yiaddr to send to.";
    assert_reply(PROXY, "relayed-discover", "proxy-relayed-offer", title, to);
    let title = "Reservation: offer for relayed-discover, to 10.88.0.1:67.";
    assert_reply(RESERVATION, "relayed-discover", "reservation-relayed-offer", title, to);
}

#[test]
fn a_bios_boots_with_a_reserved_address() {
    let title = "Reservation: offer for bios-discover.";
    assert_reply(RESERVATION, "bios-discover", "reservation-bios-offer", title, Destination::Broadcast);
    let title = "Reservation: reply to bios-request.";
    assert_reply(RESERVATION, "bios-request", "reservation-bios-ack", title, Destination::Broadcast);
    let title = "Reservation: offer for ipxe-discover, which then does not wait for a proxy.";
    assert_reply(RESERVATION, "ipxe-discover", "reservation-ipxe-offer", title, Destination::Broadcast);
}

#[test]
fn uefi_boots_with_a_reserved_address() {
    let title = "Reservation: offer for uefi-discover.";
    assert_reply(RESERVATION, "uefi-discover", "reservation-uefi-offer", title, Destination::Broadcast);
    let title = "Reservation: offer for uefi-http-discover.";
    assert_reply(RESERVATION, "uefi-http-discover", "reservation-uefi-http-offer", title, Destination::Broadcast);
}

#[test]
fn an_installed_system_keeps_its_address() {
    let title = "Reservation: reply to linux-renew, to 10.77.0.50:68.";
    let to = Destination::Client([10, 77, 0, 50].into());
    assert_reply(RESERVATION, "linux-renew", "reservation-linux-ack", title, to);
    let title = "Reservation: reply to linux-reboot, which wants the address of another network.";
    assert_reply(RESERVATION, "linux-reboot", "reservation-linux-nak", title, Destination::Broadcast);
    let title = "Reservation: reply to linux-inform, to 10.77.0.9:68.";
    let to = Destination::Client([10, 77, 0, 9].into());
    assert_reply(RESERVATION, "linux-inform", "reservation-linux-inform-ack", title, to);
}

#[test]
fn arm64_gets_an_address_and_nothing_to_boot() {
    let title = "Reservation: offer for arm64-discover.";
    assert_reply(RESERVATION, "arm64-discover", "reservation-arm64-offer", title, Destination::Broadcast);
    let reply = sent(read(&golden("arm64-http-discover"), BROADCAST).answer(RESERVATION, Some(&deployed())));
    assert_eq!(reply.boot.unwrap_err().to_string(), "UEFI HTTP arm64 (19) cannot be booted over the network here");
}
