use proptest::prelude::*;

use super::*;

fn written(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.write(&mut out);
    out
}

#[test]
fn packets_look_as_the_rfcs_draw_them() {
    let options = Options { blksize: Some(1468), timeout: Some(3), tsize: Some(0), windowsize: Some(16) };
    let plain = Options::default();
    for (packet, bytes) in [
        (
            Packet::Read(Request { name: b"a.efi", mode: Mode::Octet, options }),
            &b"\0\x01a.efi\0octet\0blksize\x001468\0timeout\x003\0tsize\x000\0windowsize\x0016\0"[..],
        ),
        (Packet::Write(Request { name: b"b", mode: Mode::Netascii, options: plain }), b"\0\x02b\0netascii\0"),
        (Packet::Data { block: 0x1234, content: b"xyz" }, b"\0\x03\x12\x34xyz"),
        (Packet::Ack(65535), b"\0\x04\xff\xff"),
        (Packet::Error { code: 1, message: b"no" }, b"\0\x05\0\x01no\0"),
        (Packet::OptionAck(Options { tsize: Some(u64::MAX), ..plain }), b"\0\x06tsize\x0018446744073709551615\0"),
    ] {
        assert_eq!(written(&packet), bytes);
        assert_eq!(Packet::read(bytes), Ok(packet));
    }
}

#[test]
fn options_are_read_in_any_case_and_the_first_that_makes_sense_counts() {
    let none = Options::default();
    for (text, expected) in [
        (&b""[..], none),
        (b"BlkSize\x001024\0", Options { blksize: Some(1024), ..none }),
        (b"WINDOWSIZE\x004\0TSize\x000\0", Options { windowsize: Some(4), tsize: Some(0), ..none }),
        (b"blksize\x001024\0blksize\x00512\0", Options { blksize: Some(1024), ..none }),
        (b"blksize\0many\0blksize\x00512\0", Options { blksize: Some(512), ..none }),
        (b"blksize\x007\0", none),
        (b"blksize\x008\0", Options { blksize: Some(8), ..none }),
        (b"blksize\x00100000\0", Options { blksize: Some(u16::MAX), ..none }),
        (b"blksize\0-8\0tsize\0+1\0timeout\0 3\0windowsize\x000x10\0", none),
        (b"blksize\0\0", none),
        (b"timeout\x000\0", none),
        (b"timeout\x00256\0", none),
        (b"timeout\x00255\0", Options { timeout: Some(255), ..none }),
        (b"windowsize\x000\0", none),
        (b"windowsize\x0099999999999999999999999\0", Options { windowsize: Some(u16::MAX), ..none }),
        (b"tsize\x0099999999999999999999999\0", Options { tsize: Some(u64::MAX), ..none }),
        (b"rollover\x001\0multicast\0\0blksize\x00512\0", Options { blksize: Some(512), ..none }),
        // Padded, and cut.
        (b"blksize\x00512\0\0\0\0\0", Options { blksize: Some(512), ..none }),
        (b"blksize\x00512\0tsize\x000", Options { blksize: Some(512), ..none }),
        (b"blksize\x00512\0tsize", Options { blksize: Some(512), ..none }),
        (b"blksize\x00512", none),
    ] {
        let datagram = [b"\0\x01f\0OCTET\0", text].concat();
        let expected = Request { name: b"f", mode: Mode::Octet, options: expected };
        assert_eq!(Packet::read(&datagram), Ok(Packet::Read(expected)), "{}", text.escape_ascii());
    }
}

#[test]
fn what_is_not_tftp_is_named() {
    for (bytes, expected) in [
        (&b""[..], Malformed::Short),
        (b"\0", Malformed::Short),
        (b"\0\x04\0", Malformed::Short),
        (b"\0\x03\0", Malformed::Short),
        (b"\0\x05\0", Malformed::Short),
        (b"\0\0", Malformed::Operation(0)),
        (b"\0\x07", Malformed::Operation(7)),
        (b"\0\x01", Malformed::Unterminated),
        (b"\0\x01name", Malformed::Unterminated),
        (b"\0\x01name\0octet", Malformed::Unterminated),
        (b"\0\x01name\0\0", Malformed::Mode),
        (b"\0\x02name\0octets\0", Malformed::Mode),
    ] {
        assert_eq!(Packet::read(bytes), Err(expected), "{}", bytes.escape_ascii());
    }
}

#[test]
fn an_error_without_its_last_nul_is_read() {
    assert_eq!(Packet::read(b"\0\x05\0\x08no"), Ok(Packet::Error { code: 8, message: b"no" }));
    assert_eq!(Packet::read(b"\0\x05\0\0"), Ok(Packet::Error { code: 0, message: b"" }));
}

fn options() -> impl Strategy<Value = Options> {
    let some = |range| prop::option::of(range);
    (some(8..=u16::MAX), prop::option::of(1..=u8::MAX), prop::option::of(any::<u64>()), some(1..=u16::MAX))
        .prop_map(|(blksize, timeout, tsize, windowsize)| Options { blksize, timeout, tsize, windowsize })
}

/// Without NUL, like all strings of TFTP.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1..=u8::MAX, 0..40)
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        options in options(),
        text in text(),
        content in prop::collection::vec(any::<u8>(), 0..40),
        number: u16,
        mode in prop::sample::select(vec![Mode::Octet, Mode::Netascii, Mode::Mail]),
    ) {
        let request = Request { name: &text, mode, options };
        for packet in [
            Packet::Read(request),
            Packet::Write(request),
            Packet::Data { block: number, content: &content },
            Packet::Ack(number),
            Packet::Error { code: number, message: &text },
            Packet::OptionAck(options),
        ] {
            let bytes = written(&packet);
            prop_assert_eq!(Packet::read(&bytes), Ok(packet));
        }
    }

    /// And what it reads it writes so that it is read as the same.
    #[test]
    fn any_bytes_are_read_or_refused(
        opcode in 0..8_u8,
        rest in prop::collection::vec(prop_oneof![Just(0), any::<u8>(), b'0'..=b'9'], 0..80),
        options in prop::sample::select(vec!["", "x\0octet\0", "x\0octet\0blksize\0", "x\0octet\0tsize\0"]),
    ) {
        let datagram = [&[0, opcode], options.as_bytes(), &rest].concat();
        if let Ok(packet) = Packet::read(&datagram) {
            let bytes = written(&packet);
            prop_assert_eq!(Packet::read(&bytes), Ok(packet));
        }
        let _ = Packet::read(&rest);
    }
}
