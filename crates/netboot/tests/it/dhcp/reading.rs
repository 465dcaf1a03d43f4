//! What is read from a request, and what is not.

use dhcproto::{Decodable, v4, v6};
use netboot::client::{Mac, Uuid};
use netboot::dhcp::{Architecture, Asker, Feature, Features, Ignored, Kind, Request};

use super::packets::{REQUESTS, changed, golden, with_option, without};
use super::rack::{BROADCAST, ITS_ADDRESS, WE, read};

const UUID: Uuid = Uuid([0x44, 0x45, 0x4c, 0x4c, 0x51, 0, 0x10, 0x30, 0x80, 0x52, 0xb4, 0xc0, 0x4f, 0x56, 0x42, 0x31]);

fn ignored(packet: &[u8]) -> Ignored {
    Request::read(packet, BROADCAST).unwrap_err()
}

fn read_changed(code: u8, value: &[u8]) -> Request {
    read(&changed(&golden("bios-request"), code, value), BROADCAST)
}

#[test]
fn a_bios_rom_is_read_whole() {
    let request = read(&golden("bios-request"), BROADCAST);
    assert_eq!((request.kind, request.xid, request.secs, request.broadcast), (Kind::Request, 0x1a2b_3c4d, 8, true));
    assert_eq!((request.ciaddr, request.giaddr), (None, None));
    assert_eq!(request.mac, Mac([0x52, 0x54, 0, 0x77, 0, 1]));
    assert_eq!(request.uuid, Some(UUID));
    assert_eq!((request.architecture(), request.undi), (Some(Architecture::Bios), Some((2, 1))));
    assert_eq!(request.asker, Asker::PxeFirmware);
    assert_eq!(request.vendor(), "PXEClient:Arch:00000:UNDI:002001");
    assert_eq!((request.requested, request.server_id), (Some(ITS_ADDRESS), Some(WE)));
    assert_eq!((request.max_size, request.wanted.len()), (Some(1260), 24));
    assert_eq!((request.client_id, request.relay_information, request.vendor_options), (None, None, None));
}

#[test]
fn a_relay_and_ipxe_are_read() {
    let relayed = read(&golden("relayed-discover"), BROADCAST);
    assert_eq!(relayed.giaddr, Some([10, 88, 0, 1].into()));
    assert_eq!(relayed.relay_information.as_deref().map(<[u8]>::len), Some(14));

    let ipxe = read(&golden("ipxe-discover"), BROADCAST);
    let Asker::Ipxe(features) = ipxe.asker else { panic!("{:?}", ipxe.asker) };
    assert_eq!(features.names(), ["http", "https", "tftp", "dns", "bzImage", "vlan"]);
    assert!(features.has(Feature::Https) && !features.has(Feature::Efi));
    assert_eq!(ipxe.client_id.as_deref(), Some([1, 0x52, 0x54, 0, 0x77, 0, 1].as_slice()));
}

#[test]
fn dhcproto_reads_the_same() {
    for name in REQUESTS {
        let packet = golden(name);
        let (request, second) = (read(&packet, BROADCAST), v4::Message::from_bytes(&packet).unwrap());
        let address = |code| match second.opts().get(code) {
            Some(v4::DhcpOption::RequestedIpAddress(address) | v4::DhcpOption::ServerIdentifier(address)) => {
                Some(*address)
            }
            _ => None,
        };
        let kind = match request.kind {
            Kind::Discover => v4::MessageType::Discover,
            Kind::Request => v4::MessageType::Request,
            Kind::Decline => v4::MessageType::Decline,
            Kind::Release => v4::MessageType::Release,
            Kind::Inform => v4::MessageType::Inform,
        };
        assert_eq!((second.xid(), second.opts().msg_type()), (request.xid, Some(kind)), "{name}");
        assert_eq!((second.secs(), second.flags().broadcast()), (request.secs, request.broadcast), "{name}");
        assert_eq!(second.chaddr(), request.mac.0, "{name}");
        assert_eq!(second.ciaddr(), request.ciaddr.unwrap_or([0; 4].into()), "{name}");
        assert_eq!(second.giaddr(), request.giaddr.unwrap_or([0; 4].into()), "{name}");
        assert_eq!(address(v4::OptionCode::RequestedIpAddress), request.requested, "{name}");
        assert_eq!(address(v4::OptionCode::ServerIdentifier), request.server_id, "{name}");
        let architecture = match second.opts().get(v4::OptionCode::ClientSystemArchitecture) {
            Some(v4::DhcpOption::ClientSystemArchitecture(code)) => Some(u16::from(*code)),
            _ => None,
        };
        assert_eq!(architecture, request.architecture().map(Architecture::code), "{name}");
    }
}

#[test]
fn what_is_no_request_to_us_says_why() {
    let packet = golden("bios-discover");
    let patched = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        ignored(&packet).to_string()
    };
    assert_eq!(patched(0, 2), "it is the reply of a server, not a request");
    assert_eq!(patched(0, 7), "operation 7 is neither a request nor a reply");
    assert_eq!(patched(1, 32), "its hardware address is not of Ethernet: type 32, 6 bytes");
    assert_eq!(patched(2, 16), "its hardware address is not of Ethernet: type 1, 16 bytes");
    assert_eq!(patched(2, 0), "its hardware address is not of Ethernet: type 1, 0 bytes");
    assert_eq!(patched(28, 0x53), "no network card can have its hardware address 53:54:00:77:00:01");
    assert_eq!(patched(236, 0), "it has no DHCP options (the magic cookie is missing)");
    assert_eq!(patched(242, 2), "message type 2 is none of a client");
    assert_eq!(ignored(&packet[..239]).to_string(), "a datagram of 239 bytes is no DHCP message");
    assert_eq!(ignored(&[packet.as_slice(), &[0; 4000]].concat()), Ignored::Length(4548));
    assert_eq!(ignored(&packet[..250]), Ignored::Cut(55));
    assert_eq!(ignored(&packet[..244]), Ignored::Cut(55));
    assert_eq!(ignored(&without(&packet, 53)), Ignored::NoType);
    assert_eq!(ignored(&[]), Ignored::Length(0));
}

#[test]
fn the_end_may_be_missing() {
    let packet = without(&golden("bios-discover"), 200);
    assert_eq!(packet.last(), Some(&255));
    assert_eq!(read(&packet[..packet.len() - 1], BROADCAST), read(&packet, BROADCAST));
}

#[test]
fn options_of_a_wrong_length_count_as_absent() {
    assert_eq!(ignored(&changed(&golden("bios-request"), 53, &[3, 0])), Ignored::NoType);
    assert_eq!(ignored(&changed(&golden("bios-request"), 53, &[])), Ignored::NoType);
    for wrong in [&[10_u8, 77, 0][..], &[10, 77, 0, 50, 0], &[], &[10]] {
        assert_eq!(read_changed(50, wrong).requested, None);
        assert_eq!(read_changed(54, wrong).server_id, None);
        assert_eq!(read_changed(57, wrong).max_size, None);
    }
    for length in [0, 1, 15, 16, 18, 33] {
        assert_eq!(read_changed(97, &vec![0; length]).uuid, None, "{length}");
    }
    assert_eq!(read_changed(97, &[[1_u8].as_slice(), &UUID.0].concat()).uuid, None, "only type 0 is a UUID");
    assert_eq!(read_changed(61, &[1]).client_id, None);
    assert_eq!(read_changed(94, &[1, 2]).undi, None);
    // Option 60 says it as well.
    assert_eq!(read_changed(93, &[0, 7, 0]).architectures, [Architecture::Bios]);
    assert_eq!(read_changed(93, &[7]).architectures, [Architecture::Bios]);
}

#[test]
fn an_option_that_comes_twice_is_put_together() {
    let packet = golden("bios-request");
    assert_eq!(ignored(&with_option(&packet, 53, &[1])), Ignored::NoType);
    assert_eq!(read(&with_option(&packet, 54, &[10, 0, 0, 9]), BROADCAST).server_id, None);
    let halves = with_option(&changed(&packet, 60, b"ent:Arch:00007"), 60, b"PXECli");
    assert_eq!(read(&halves, BROADCAST).vendor(), "PXEClient:Arch:00007");
}

#[test]
fn the_fields_of_the_names_hold_options_if_the_packet_says_so() {
    let mut packet = changed(&without(&golden("bios-request"), 50), 52, &[3]);
    packet[44..51].copy_from_slice(&[50, 4, 10, 77, 0, 50, 255]);
    packet[108..111].copy_from_slice(&[77, 1, b'i']);
    packet[111..117].copy_from_slice(&[77, 3, b'P', b'X', b'E', 255]);
    let request = read(&packet, BROADCAST);
    assert_eq!((request.requested, request.asker), (Some(ITS_ADDRESS), Asker::Ipxe(Features::default())));

    assert_eq!(read(&changed(&packet, 52, &[1]), BROADCAST).requested, None, "only the file field");
    assert_eq!(read(&changed(&packet, 52, &[4]), BROADCAST).requested, None, "no such value");
    assert_eq!(read(&without(&packet, 52), BROADCAST).requested, None);
    packet[45] = 200;
    assert_eq!(ignored(&packet), Ignored::Cut(50));
}

#[test]
fn several_architectures_are_kept_and_the_served_one_is_chosen() {
    let request = read_changed(93, &[0, 11, 0, 16, 1, 0]);
    assert_eq!(request.architectures, [Architecture::UefiArm64, Architecture::HttpX64, Architecture::Unknown(256)]);
    assert_eq!(request.architecture(), Some(Architecture::HttpX64));
    let none_served = read_changed(93, &[0, 11, 0, 6]);
    assert_eq!(none_served.architecture(), Some(Architecture::UefiArm64));
}

#[test]
fn the_architecture_is_else_read_from_the_vendor_class() {
    let architecture = |class: &str| {
        read(&without(&changed(&golden("uefi-discover"), 60, class.as_bytes()), 93), BROADCAST).architecture()
    };
    assert_eq!(architecture("PXEClient:Arch:00007:UNDI:003016"), Some(Architecture::UefiX64));
    assert_eq!(architecture("HTTPClient:Arch:00016"), Some(Architecture::HttpX64));
    for nothing in ["PXEClient", "PXEClient:Arch:", "PXEClient:Arch:7", "PXEClient:Arch:+0007", "PXEClient:Arch:99999"]
    {
        assert_eq!(architecture(nothing), None, "{nothing}");
    }
}

#[test]
fn architectures_have_names() {
    for (code, name, served) in [
        (0, "BIOS x86 (0)", true),
        (6, "UEFI x86 (32 bit) (6)", false),
        (7, "UEFI x86-64 (7)", true),
        (9, "UEFI x86-64 (9)", true),
        (10, "UEFI ARM (32 bit) (10)", false),
        (11, "UEFI arm64 (11)", false),
        (15, "UEFI HTTP x86 (32 bit) (15)", false),
        (16, "UEFI HTTP x86-64 (16)", true),
        (18, "UEFI HTTP ARM (32 bit) (18)", false),
        (19, "UEFI HTTP arm64 (19)", false),
        (20, "BIOS x86 over HTTP (20)", false),
        (27, "UEFI riscv64 (27)", false),
        (28, "UEFI HTTP riscv64 (28)", false),
        (4711, "unknown architecture (4711)", false),
    ] {
        let architecture = Architecture::from(code);
        assert_eq!((architecture.to_string().as_str(), architecture.is_served()), (name, served));
        assert_eq!(architecture.code(), code);
    }
}

#[test]
fn ipxe_is_recognised_however_it_says_so() {
    let asker = |user: &[u8]| {
        let packet = without(&golden("ipxe-discover"), 175);
        read(&changed(&packet, 77, user), BROADCAST).asker
    };
    let ipxe = Asker::Ipxe(Features::default());
    assert_eq!(asker(b"iPXE"), ipxe);
    assert_eq!(asker(b"\x04iPXE"), ipxe);
    assert_eq!(asker(b"\x04rack\x04iPXE"), ipxe);
    for other in [&b"iPXE2"[..], b"\x05iPXE", b"xiPXE", b"\x04iPXE\x09", b"ipxe", b""] {
        assert_eq!(asker(other), Asker::PxeFirmware, "{}", other.escape_ascii());
    }
    // A script has set another user class.
    let renamed = changed(&golden("ipxe-discover"), 77, b"our-site");
    assert!(matches!(read(&renamed, BROADCAST).asker, Asker::Ipxe(_)));
    assert!(ipxe.boots() && !read(&golden("linux-renew"), BROADCAST).asker.boots());
    // Features that are not inside their option are none.
    let broken = changed(&without(&golden("ipxe-discover"), 77), 175, &[0x13, 9, 1]);
    assert_eq!(read(&broken, BROADCAST).asker, Asker::PxeFirmware);
}

#[test]
fn text_of_the_client_is_cleaned() {
    let request = read_changed(60, b"PXEClient\x1b]0;owned\x07\xff");
    assert_eq!(request.vendor(), "PXEClient\\x1b]0;owned\\x07\\xff");
    assert_eq!(read_changed(60, &[b'x'; 255]).vendor().len(), 64);
}

/// Not answered, but its bytes are kept here for whoever adds it.
#[test]
fn a_dhcpv6_solicitation_is_no_request() {
    let packet = golden("dhcpv6-solicit");
    assert_eq!(ignored(&packet), Ignored::Length(packet.len()));
    let solicit = v6::Message::from_bytes(&packet).unwrap();
    assert_eq!(solicit.msg_type(), v6::MessageType::Solicit);
    assert_eq!(
        solicit.opts().get(v6::OptionCode::ClientArchType),
        Some(&v6::DhcpOption::ClientArchType(vec![v4::Architecture::from(16)]))
    );
}
