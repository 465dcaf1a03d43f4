//! Which host a client is.

use netboot::client::{By, Clients, Host, Mac, Match, NotAnId, Reason, Uuid};
use netboot::strangers::Strangers;
use proptest::prelude::*;

const A: Mac = Mac([0x52, 0x54, 0, 0, 0, 0xa]);
const B: Mac = Mac([0x52, 0x54, 0, 0, 0, 0xb]);
const SHARED: Mac = Mac([0x52, 0x54, 0, 0, 0, 0xff]);
const STRANGE: Mac = Mac([0x52, 0x54, 0, 0, 0, 0xee]);

fn uuid(text: &str) -> Uuid {
    text.parse().unwrap()
}

fn a_uuid() -> Uuid {
    uuid("4c4c4544-0051-3010-8052-b4c04f564231")
}

fn b_uuid() -> Uuid {
    uuid("2f9a0001-1111-2222-3333-444455556666")
}

fn host(key: &'static str, macs: &[Mac], uuid: Option<Uuid>) -> Host<&'static str> {
    Host { key, macs: macs.to_vec(), uuid }
}

fn rack() -> Clients<&'static str> {
    Clients::new([host("a", &[A, SHARED, A], Some(a_uuid())), host("b", &[B, SHARED], Some(b_uuid()))])
}

fn by_mac(key: &'static str) -> Match<&'static str> {
    Match::Host { key, by: By::Mac, disagreeing: None }
}

fn by_uuid(key: &'static str) -> Match<&'static str> {
    Match::Host { key, by: By::Uuid, disagreeing: None }
}

#[track_caller]
fn nobody(found: Match<&'static str>) -> Reason<&'static str> {
    match found {
        Match::Nobody(reason) => reason,
        Match::Host { key, .. } => panic!("matched {key}"),
    }
}

#[test]
fn the_mac_address_decides() {
    assert_eq!(rack().who(A, None), by_mac("a"));
    assert_eq!(rack().who(B, Some(b_uuid())), by_mac("b"));
    assert_eq!(rack().who(A, Some(uuid("99999999-0000-0000-0000-000000000001"))), by_mac("a"));
    assert_eq!(rack().who(A, Some(Uuid([0; 16]))), by_mac("a"));
}

#[test]
fn else_the_uuid_decides_in_either_byte_order() {
    assert_eq!(a_uuid().swapped().to_string(), "44454c4c-5100-1030-8052-b4c04f564231");
    assert_eq!(rack().who(STRANGE, Some(a_uuid())), by_uuid("a"));
    assert_eq!(rack().who(STRANGE, Some(a_uuid().swapped())), by_uuid("a"));
    let told_swapped = Clients::new([host("a", &[], Some(a_uuid().swapped()))]);
    assert_eq!(told_swapped.who(STRANGE, Some(a_uuid())), by_uuid("a"));
}

#[test]
fn a_mac_address_and_a_uuid_of_two_hosts_are_told() {
    assert_eq!(rack().who(A, Some(b_uuid())), Match::Host { key: "a", by: By::Mac, disagreeing: Some("b") });
    assert_eq!(rack().who(B, Some(a_uuid().swapped())), Match::Host { key: "b", by: By::Mac, disagreeing: Some("a") });
}

#[test]
fn a_mac_address_of_two_hosts_matches_neither() {
    for uuid in [None, Some(a_uuid())] {
        let reason = nobody(rack().who(SHARED, uuid));
        assert_eq!(
            reason.to_string(),
            "the MAC address 52:54:00:00:00:ff is listed for two hosts, a and b: remove it from one of them"
        );
    }
}

#[test]
fn a_uuid_of_two_hosts_matches_neither() {
    for second in [a_uuid(), a_uuid().swapped()] {
        let twins = Clients::new([host("a", &[A], Some(a_uuid())), host("b", &[B], Some(second))]);
        for sent in [a_uuid(), a_uuid().swapped()] {
            assert!(
                nobody(twins.who(STRANGE, Some(sent))).to_string().starts_with(
                    "no host has the MAC address 52:54:00:00:00:ee, and two hosts, a and b, have the UUID "
                )
            );
            assert_eq!(twins.who(B, Some(sent)), by_mac("b"));
        }
    }
}

#[test]
fn placeholders_match_nothing() {
    for text in [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "fefefefe-fefe-fefe-fefe-fefefefefefe",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "12345678-1234-5678-90ab-cddeefaabbcc",
    ] {
        let clients = Clients::new([host("a", &[A], Some(uuid(text)))]);
        let reason = nobody(clients.who(STRANGE, Some(uuid(text))));
        assert_eq!(reason, Reason::PlaceholderUuid(STRANGE, uuid(text)));
    }
}

#[test]
fn strangers_are_told_why() {
    assert_eq!(
        nobody(rack().who(STRANGE, None)).to_string(),
        "no host has the MAC address 52:54:00:00:00:ee, and the client sent no UUID"
    );
    let other = uuid("99999999-0000-0000-0000-000000000001");
    assert_eq!(
        nobody(rack().who(STRANGE, Some(other))).to_string(),
        "no host has the MAC address 52:54:00:00:00:ee or the UUID 99999999-0000-0000-0000-000000000001"
    );
}

#[test]
fn addresses_and_uuids_are_read_as_bmcs_write_them() {
    for text in ["52:54:00:00:00:0a", "52-54-00-00-00-0A", "5254.0000.000a", "52540000000A"] {
        assert_eq!(text.parse(), Ok(A), "{text}");
    }
    for text in ["", "52:54:00:00:00", "52:54:00:00:00:0a:0b", "52:54:00:00:00:0g", "52:54:00:00:00:+a", "ü"] {
        assert_eq!(text.parse::<Mac>(), Err(NotAnId::Mac), "{text}");
    }
    assert_eq!("4C4C454400513010 8052B4C04F564231".replace(' ', "").parse(), Ok(a_uuid()));
    assert_eq!("4c4c4544".parse::<Uuid>(), Err(NotAnId::Uuid));
    assert_eq!(a_uuid().to_string().parse(), Ok(a_uuid()));
}

#[test]
fn strangers_are_counted_and_cleaned() {
    let mut strangers = Strangers::new();
    strangers.saw(STRANGE, None, "BIOS x86 (0)", "unknown", 10);
    strangers.saw(STRANGE, Some(a_uuid()), "\x1b[31mred", &"r".repeat(500), 20);
    strangers.saw(A, None, "UEFI", "unknown", 15);
    let list = strangers.list();
    assert_eq!(list.iter().map(|stranger| stranger.mac).collect::<Vec<_>>(), [STRANGE, A]);
    assert_eq!((list[0].first, list[0].last, list[0].count), (10, 20, 2));
    assert_eq!((list[0].uuid, list[0].architecture.as_str()), (Some(a_uuid()), "\\x1b[31mred"));
    assert_eq!(list[0].reason.len(), 200);
    strangers.forget(STRANGE);
    assert_eq!(strangers.list().len(), 1);
}

#[test]
fn the_least_recently_seen_stranger_makes_room() {
    let mut strangers = Strangers::default();
    for number in 0..100 {
        strangers.saw(Mac([2, 0, 0, 0, 0, number]), None, "", "", u64::from(number));
    }
    strangers.saw(Mac([2, 0, 0, 0, 0, 0]), None, "", "", 100);
    strangers.saw(STRANGE, None, "", "", 101);
    let kept: Vec<_> = strangers.list().iter().map(|stranger| stranger.mac).collect();
    assert_eq!(kept.len(), Strangers::<u64>::LIMIT);
    assert_eq!(kept[..2], [STRANGE, Mac([2, 0, 0, 0, 0, 0])]);
    assert!(!kept.contains(&Mac([2, 0, 0, 0, 0, 1])), "the oldest");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// By the definition, host by host.
    #[test]
    fn a_match_is_never_a_guess(
        hosts in prop::collection::vec((prop::collection::vec(0_u8..6, 0..3), prop::option::of(0_u8..6)), 0..5),
        mac in 0_u8..6,
        sent in prop::option::of(0_u8..6),
        (swap_host, swap_client) in (any::<bool>(), any::<bool>()),
    ) {
        let mac_of = |number| Mac([2, 0, 0, 0, 0, number]);
        let uuid_of = |number: u8, swap| {
            let uuid = Uuid([number, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
            if swap { uuid.swapped() } else { uuid }
        };
        let clients = Clients::new(hosts.iter().enumerate().map(|(key, (macs, uuid))| Host {
            key,
            macs: macs.iter().copied().map(mac_of).collect(),
            uuid: uuid.map(|number| uuid_of(number, swap_host)),
        }));
        let numbered = || hosts.iter().enumerate();
        let same_mac: Vec<_> = numbered().filter(|(_, (macs, _))| macs.contains(&mac)).map(|(key, _)| key).collect();
        let same_uuid: Vec<_> =
            numbered().filter(|(_, (_, uuid))| sent.is_some() && *uuid == sent).map(|(key, _)| key).collect();
        let expected = match (same_mac.as_slice(), same_uuid.as_slice()) {
            ([key], _) | ([], [key]) => Some(*key),
            _ => None,
        };
        let found = match clients.who(mac_of(mac), sent.map(|number| uuid_of(number, swap_client))) {
            Match::Host { key, .. } => Some(key),
            Match::Nobody(_) => None,
        };
        prop_assert_eq!(found, expected);
    }
}
