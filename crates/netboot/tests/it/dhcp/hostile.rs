//! Broken and malicious packets. The seed comes from `PROPTEST_RNG_SEED`.

use std::cell::Cell;
use std::net::Ipv4Addr;

use dhcproto::{Decodable, v4};
use netboot::client::Mac;
use netboot::dhcp::{Answer, Client, Kind, Mode, Port, Reply, ReplyKind, Request, Server, Silence};
use proptest::prelude::*;

use super::packets::{REQUESTS, golden, option, options};
use super::rack::{BROADCAST, ITS_ADDRESS, ON_4011, RESERVATION, WE, deployed};

const MODES: [Mode; 3] = [Mode::Proxy, Mode::ProxyOnSameMachine, Mode::Reservation];
/// The options that decide something.
const CODES: [u8; 18] = [50, 52, 53, 54, 55, 57, 60, 61, 77, 82, 93, 94, 97, 43, 175, 0, 255, 121];

/// Reads it as if it came in every way, and checks every reply. Returns how many there were.
fn check(packet: &[u8]) -> usize {
    let Ok(request) = Request::read(packet, BROADCAST) else { return 0 };
    check_request(&request) + check_request(&Request { arrival: ON_4011, ..request })
}

fn check_request(request: &Request) -> usize {
    assert!(request.vendor().bytes().all(|byte| (b' '..=b'~').contains(&byte)) && request.vendor().len() <= 64);
    let client = deployed();
    let replies = MODES.into_iter().filter_map(|mode| {
        let server = Server { address: WE, mode };
        assert_eq!(request.answer(server, None), Answer::Silent(Silence::Unknown));
        let Answer::Send(reply) = request.answer(server, Some(&client)) else { return None };
        check_reply(request, server, &client, &reply);
        Some(reply)
    });
    replies.count()
}

fn check_reply(request: &Request, server: Server, client: &Client, reply: &Reply) {
    let accepted = usize::from(request.max_size.unwrap_or(0)).clamp(576, 1500) - 28;
    assert!((300..=accepted).contains(&reply.bytes.len()), "{} of {accepted}", reply.bytes.len());

    let message = v4::Message::from_bytes(&reply.bytes).unwrap();
    let kind = match reply.kind {
        ReplyKind::Offer => v4::MessageType::Offer,
        ReplyKind::Ack => v4::MessageType::Ack,
        ReplyKind::Nak => v4::MessageType::Nak,
    };
    assert_eq!(message.opcode(), v4::Opcode::BootReply);
    assert_eq!(message.opts().msg_type(), Some(kind));
    assert_eq!((message.xid(), message.chaddr()), (request.xid, request.mac.0.as_slice()));
    assert_eq!(message.opts().get(v4::OptionCode::ServerIdentifier), Some(&v4::DhcpOption::ServerIdentifier(WE)));
    let reserves = server.mode == Mode::Reservation && request.arrival.port == Port::Dhcp;
    let gives = reserves && reply.kind != ReplyKind::Nak && request.kind != Kind::Inform;
    assert_eq!(message.yiaddr(), if gives { ITS_ADDRESS } else { Ipv4Addr::UNSPECIFIED });

    let file = option(&reply.bytes, 67).map(|name| String::from_utf8(name).unwrap());
    let files = client.boot.as_ref().unwrap();
    assert_eq!(reply.boot.is_ok(), file.is_some());
    if let (Ok(boot), Some(file)) = (&reply.boot, file) {
        assert!(boot.to_string().starts_with(&file));
        assert_eq!(files.for_client(request).as_ref(), Ok(boot));
        assert_eq!(message.fname().map(|name| name.strip_suffix(&[0]).unwrap_or(name)), Some(file.as_bytes()));
    }
    let relay = request.relay_information.clone().filter(|value| !value.is_empty());
    assert_eq!(option(&reply.bytes, 82), relay);
    if relay.is_some() {
        assert_eq!(options(&reply.bytes).last().map(|(code, _)| *code), Some(82));
    }
}

/// splitmix64: cheap, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(sides.max(1)).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.roll(256)).unwrap()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.roll(choices.len())]
    }

    /// One change that a broken or malicious client could make.
    fn mutate(&mut self, packet: &mut Vec<u8>) {
        let length = packet.len();
        match self.roll(9) {
            0 => packet[self.roll(length)] = self.byte(),
            1 => packet.truncate(self.roll(length + 1)),
            2 if length > 241 => packet[240 + self.roll(length - 240)] = self.one_of(&CODES),
            3 if length > 241 => {
                packet[240 + self.roll(length - 240)] = self.one_of(&[0, 1, 2, 3, 4, 5, 16, 17, 254, 255]);
            }
            4 | 5 => self.insert(packet),
            6 => packet.truncate(length - self.roll(length.min(4))),
            7 => packet[self.roll(length.min(44))] = self.one_of(&[0, 1, 2, 6, 16, 127, 128, 255]),
            8 => self.overload(packet),
            _ => {}
        }
        if packet.is_empty() {
            packet.push(self.byte());
        }
    }

    fn insert(&mut self, packet: &mut Vec<u8>) {
        let length = self.one_of(&[0, 1, 2, 3, 4, 5, 7, 16, 17, 18, 60, 255]);
        let said = if self.roll(8) == 0 { self.roll(256) } else { length };
        let mut option = vec![self.one_of(&CODES), u8::try_from(said).unwrap()];
        option.extend((0..length).map(|_| self.one_of(&[0, 1, 2, 3, 4, 5, 8, 10, 16, 19, 77, 255])));
        let at = 240.min(packet.len());
        packet.splice(at..at, option);
    }

    fn overload(&mut self, packet: &mut Vec<u8>) {
        let at = 240.min(packet.len());
        packet.splice(at..at, [52, 1, self.one_of(&[1, 2, 3, 4])]);
        for index in 44..236.min(packet.len()) {
            packet[index] = self.one_of(&[0, 1, 4, 50, 53, 54, 60, 82, 93, 97, 255]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_ignored(packet in prop::collection::vec(any::<u8>(), 0..700)) {
        check(&packet);
    }

    #[test]
    fn any_options_are_read_or_ignored(
        name in prop::sample::select(&REQUESTS[..]),
        options in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        check(&[&golden(name)[..243], &options].concat());
    }

    /// What we say is what is meant, whoever asks from wherever.
    #[test]
    fn every_good_request_gets_a_good_reply(
        name in prop::sample::select(&REQUESTS[..]),
        (xid, flags, last) in (any::<[u8; 4]>(), any::<[u8; 2]>(), any::<[u8; 4]>()),
        size in any::<u16>(),
    ) {
        let mut packet = golden(name);
        packet[4..8].copy_from_slice(&xid);
        packet[10..12].copy_from_slice(&flags);
        packet[30..34].copy_from_slice(&last);
        let mut request = Request::read(&packet, BROADCAST).unwrap();
        request.max_size = Some(size);
        prop_assert_eq!(request.mac, Mac([0x52, 0x54, last[0], last[1], last[2], last[3]]));
        let silent = ["linux-decline", "linux-release"].contains(&name);
        prop_assert_eq!(check_request(&request) > 0, !silent);
        let again = || request.answer(RESERVATION, Some(&deployed()));
        prop_assert_eq!(again(), again());
    }
}

/// 64,000 packets that are nearly right.
#[test]
fn mutated_packets_are_read_or_ignored() {
    let packets: Vec<_> = REQUESTS.iter().map(|name| golden(name)).collect();
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let answered = Cell::new(0);
    proptest::test_runner::TestRunner::new(config)
        .run(&any::<u64>(), |seed| {
            let mut dice = Dice(seed);
            for _ in 0..1000 {
                let mut packet = packets[dice.roll(packets.len())].clone();
                for _ in 0..=dice.roll(3) {
                    dice.mutate(&mut packet);
                }
                answered.set(answered.get() + check(&packet));
            }
            Ok(())
        })
        .unwrap();
    // Else the mutations are too wild to find anything.
    assert!(answered.get() > 10_000, "{} replies", answered.get());
}

#[test]
fn every_truncation_is_read_or_ignored() {
    for name in REQUESTS {
        let packet = golden(name);
        for length in 0..packet.len() {
            check(&packet[..length]);
        }
    }
}
