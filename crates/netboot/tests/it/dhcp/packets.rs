//! Packets as text: bytes in hexadecimal, `00*64` for many, and what they mean after a `#`.

use std::path::{Path, PathBuf};

/// A packet in the folder `golden`.
pub(super) fn golden(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).flat_map(bytes).collect()
}

/// All requests for DHCP in the folder.
pub(super) const REQUESTS: [&str; 14] = [
    "bios-discover",
    "bios-request",
    "relayed-discover",
    "uefi-discover",
    "uefi-4011-request",
    "uefi-http-discover",
    "arm64-discover",
    "arm64-http-discover",
    "ipxe-discover",
    "linux-renew",
    "linux-reboot",
    "linux-decline",
    "linux-release",
    "linux-inform",
];

fn bytes(word: &str) -> Vec<u8> {
    let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
    vec![u8::from_str_radix(byte, 16).unwrap(); times.parse().unwrap()]
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/dhcp/golden/{name}.txt"))
}

/// That these bytes are the packet in the folder.
#[track_caller]
pub(super) fn assert_golden(name: &str, title: &str, reply: &[u8]) {
    let text = format!("# {title}\n{}", dump(reply));
    if std::env::var_os("BESKAR7_BLESS").is_some() {
        std::fs::write(file(name), &text).unwrap();
    }
    let known = std::fs::read_to_string(file(name)).unwrap_or_default();
    assert!(text == known, "{name} changed; run with BESKAR7_BLESS=1 if it should\n{text}");
    assert_eq!(golden(name), reply, "{name} does not say what it was made from");
}

/// The options in the order in which they are sent. Any that reaches beyond the end fails the test.
pub(super) fn options(packet: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let (mut options, mut at) = (Vec::new(), 240);
    while packet[at] != 255 {
        if packet[at] == 0 {
            at += 1;
            continue;
        }
        let end = at + 2 + usize::from(packet[at + 1]);
        options.push((packet[at], packet[at + 2..end].to_vec()));
        at = end;
    }
    assert!(packet[at + 1..].iter().all(|byte| *byte == 0), "something follows the end");
    options
}

/// The value of an option of a packet.
pub(super) fn option(packet: &[u8], code: u8) -> Option<Vec<u8>> {
    let pieces: Vec<_> = options(packet).into_iter().filter(|(other, _)| *other == code).collect();
    (!pieces.is_empty()).then(|| pieces.into_iter().flat_map(|(_, value)| value).collect())
}

/// A request with another option in front of all others.
pub(super) fn with_option(packet: &[u8], code: u8, value: &[u8]) -> Vec<u8> {
    let option = [&[code, u8::try_from(value.len()).unwrap()], value].concat();
    [&packet[..240], &option, &packet[240..]].concat()
}

/// A request without an option.
pub(super) fn without(packet: &[u8], code: u8) -> Vec<u8> {
    let kept = options(packet).into_iter().filter(|(other, _)| *other != code);
    let options = kept.flat_map(|(code, value)| [vec![code, u8::try_from(value.len()).unwrap()], value].concat());
    packet[..240].iter().copied().chain(options).chain([255]).collect()
}

/// A request with an option changed.
pub(super) fn changed(packet: &[u8], code: u8, value: &[u8]) -> Vec<u8> {
    with_option(&without(packet, code), code, value)
}

fn dump(packet: &[u8]) -> String {
    let name = packet[108..236].iter().position(|byte| *byte == 0).unwrap();
    let mut lines = vec![
        format!("{}  # reply, Ethernet, 6 bytes, 0 hops", hex(&packet[..4])),
        format!("{}  # xid", hex(&packet[4..8])),
        format!("{}  # secs, flags", hex(&packet[8..12])),
    ];
    for (at, name) in [(12, "ciaddr"), (16, "yiaddr"), (20, "siaddr"), (24, "giaddr")] {
        let address = &packet[at..at + 4];
        lines.push(format!("{}  # {name} {}", hex(address), dotted(address)));
    }
    lines.push(format!("{}  # chaddr", hex(&packet[28..34])));
    lines.extend(["00*10".to_owned(), "00*64  # sname".to_owned()]);
    if name > 0 {
        let name = &packet[108..108 + name];
        lines.push(format!("{}  # file \"{}\"", hex(name), name.escape_ascii()));
    }
    lines.extend([format!("00*{}", 128 - name), "63 82 53 63".to_owned()]);
    let options = options(packet);
    for (code, value) in &options {
        let bytes = [&[*code, u8::try_from(value.len()).unwrap()], value.as_slice()].concat();
        lines.push(format!("{}  # {code} {}", hex(&bytes), meaning(*code, value)));
    }
    lines.push("ff".to_owned());
    let length = 241 + options.iter().map(|(_, value)| 2 + value.len()).sum::<usize>();
    if packet.len() > length {
        lines.push(format!("00*{}", packet.len() - length));
    }
    lines.join("\n") + "\n"
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn meaning(code: u8, value: &[u8]) -> String {
    match code {
        1 => format!("mask {}", dotted(value)),
        3 => format!("router {}", dotted(value)),
        6 => format!("DNS {}", value.chunks(4).map(dotted).collect::<Vec<_>>().join(" ")),
        42 => format!("NTP {}", dotted(value)),
        43 => "discovery control: boot from the file name".to_owned(),
        51 => format!("lease {} s", u32::from_be_bytes(value.try_into().unwrap())),
        53 => ["", "", "OFFER", "", "", "ACK", "NAK"][usize::from(value[0])].to_owned(),
        54 => format!("server {}", dotted(value)),
        58 => format!("renew after {} s", u32::from_be_bytes(value.try_into().unwrap())),
        59 => format!("rebind after {} s", u32::from_be_bytes(value.try_into().unwrap())),
        61 => "client id".to_owned(),
        82 => "relay information".to_owned(),
        97 => "UUID".to_owned(),
        175 => "no-pxedhcp".to_owned(),
        _ => format!("\"{}\"", value.escape_ascii()),
    }
}

fn dotted(octets: &[u8]) -> String {
    octets.iter().map(u8::to_string).collect::<Vec<_>>().join(".")
}
