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
