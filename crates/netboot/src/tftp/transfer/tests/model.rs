//! A client, a network that loses, doubles and delays packets, and a server with one transfer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::tftp::packet::{Mode, Options, Packet, Request};
use crate::tftp::transfer::{Ended, Progress, Replies, Reply, Settings, Transfer};

/// How a client takes what it did not expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It says once what it has, as RFC 7440 wants it.
    Once,
    /// It says so for every packet, as clients of RFC 1350 and EDK II do.
    Always,
}

/// What the network does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    pub(super) seed: u64,
    /// In per cent, at most four in a row.
    pub(super) lost: u32,
    pub(super) doubled: u32,
    /// These are overtaken by others.
    pub(super) late: u32,
}

/// What came of a transfer.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) received: Option<Vec<u8>>,
    pub(super) ended: Ended,
    pub(super) data_packets: u64,
    pub(super) resent: u64,
    pub(super) blocks: u64,
    pub(super) took: Duration,
}

const CLIENT_WAITS: Duration = Duration::from_secs(1);
const TRIP: Duration = Duration::from_micros(100);
const LATE: Duration = Duration::from_micros(350);
const LONGEST_BURST: u32 = 4;

struct Client {
    manner: Manner,
    blksize: usize,
    windowsize: u64,
    content: Vec<u8>,
    /// Blocks that it has, and how many of them it has acknowledged.
    has: u64,
    acknowledged: u64,
    /// Whether the server heard what is missing.
    told: bool,
    finished: bool,
    last_said: Vec<u8>,
}

impl Client {
    fn new(asked: Options, manner: Manner) -> Self {
        let mut last_said = Vec::new();
        Packet::Read(Request { name: b"f", mode: Mode::Octet, options: asked }).write(&mut last_said);
        Self {
            manner,
            blksize: 512,
            windowsize: 1,
            content: Vec::new(),
            has: 0,
            acknowledged: 0,
            told: false,
            finished: false,
            last_said,
        }
    }

    /// Answers whether it says something.
    fn on_packet(&mut self, datagram: &[u8]) -> bool {
        match Packet::read(datagram).unwrap() {
            Packet::OptionAck(granted) => {
                self.blksize = granted.blksize.map_or(512, usize::from);
                self.windowsize = granted.windowsize.map_or(1, u64::from);
                self.has == 0 && self.acknowledge()
            }
            Packet::Data { block, content } if block == wire(self.has + 1) && !self.finished => {
                self.content.extend_from_slice(content);
                self.has += 1;
                self.told = false;
                self.finished = content.len() < self.blksize;
                (self.finished || self.has - self.acknowledged == self.windowsize) && self.acknowledge()
            }
            Packet::Data { .. } if self.told && self.manner == Manner::Once => false,
            Packet::Data { .. } => {
                self.told = true;
                self.acknowledge()
            }
            other => panic!("{other:?}"),
        }
    }

    fn acknowledge(&mut self) -> bool {
        self.acknowledged = self.has;
        self.last_said.clear();
        Packet::Ack(wire(self.has)).write(&mut self.last_said);
        true
    }
}

fn wire(block: u64) -> u16 {
    u16::try_from(block % 65_536).unwrap()
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Delivery {
    /// With the number of blocks that it acknowledges.
    ToServer(Vec<u8>, u64),
    ToClient(Vec<u8>),
}

struct Wires {
    random: fastrand::Rng,
    network: Network,
    lost_in_a_row: [u32; 2],
    under_way: BinaryHeap<Reverse<(Duration, u64, Delivery)>>,
    sent: u64,
}

impl Wires {
    fn send(&mut self, now: Duration, delivery: &dyn Fn() -> Delivery) {
        let mut happens = |per_cent: u32| self.random.u32(..100) < per_cent;
        let (lost, doubled, late) =
            (happens(self.network.lost), happens(self.network.doubled), happens(self.network.late));
        let made = delivery();
        let burst = &mut self.lost_in_a_row[usize::from(matches!(made, Delivery::ToClient(_)))];
        if lost && *burst < LONGEST_BURST {
            *burst += 1;
            return;
        }
        *burst = 0;
        if doubled {
            self.deliver(now + TRIP + LATE, delivery());
        }
        self.deliver(now + if late { LATE } else { TRIP }, made);
    }

    fn deliver(&mut self, at: Duration, delivery: Delivery) {
        self.sent += 1;
        self.under_way.push(Reverse((at, self.sent, delivery)));
    }
}

/// Lets a client fetch that content. Checks on the way that nothing is sent outside of the window, and nothing without a cause.
pub(super) fn fetch(content: &[u8], asked: Options, manner: Manner, network: Network) -> Outcome {
    let random = fastrand::Rng::with_seed(network.seed);
    let mut wires = Wires { random, network, lost_in_a_row: [0; 2], under_way: BinaryHeap::new(), sent: 0 };
    let mut client = Client::new(asked, manner);
    let mut transfer: Option<Transfer> = None;
    let (mut now, mut client_due) = (Duration::ZERO, Duration::ZERO);
    // The largest acknowledgement that arrived, and reasons to send a window.
    let (mut arrived, mut causes, mut data_packets) = (0, 0, 0);
    let blksize = asked.blksize.unwrap_or(512).min(1468);
    let windowsize = u64::from(asked.windowsize.unwrap_or(1));
    let size = content.len() as u64;
    let ended = loop {
        let server_due = transfer.as_ref().map_or(Duration::MAX, Transfer::deadline);
        let next = wires.under_way.peek().map_or(Duration::MAX, |Reverse((at, ..))| *at);
        now = now.max(next.min(server_due).min(client_due));
        let progress = if now >= next {
            let Some(Reverse((.., delivery))) = wires.under_way.pop() else { unreachable!() };
            match delivery {
                Delivery::ToClient(datagram) => {
                    if client.on_packet(&datagram) {
                        client_due = now + CLIENT_WAITS;
                        wires.send(now, &|| Delivery::ToServer(client.last_said.clone(), client.acknowledged));
                    }
                    Progress::Wait
                }
                Delivery::ToServer(datagram, blocks) => match (&mut transfer, Packet::read(&datagram).unwrap()) {
                    (None, Packet::Read(request)) => {
                        let (begun, replies) = Transfer::begin(&request.options, size, &Settings::default(), now);
                        transfer = Some(begun);
                        Progress::Send(replies)
                    }
                    (Some(transfer), Packet::Ack(_)) => {
                        arrived = arrived.max(blocks);
                        transfer.on_packet(&datagram, now)
                    }
                    // A repeated request; and acknowledgements do not come before the transfer begins.
                    _ => Progress::Wait,
                },
            }
        } else if now >= server_due {
            transfer.as_mut().map_or(Progress::Wait, |transfer| transfer.on_timeout(now))
        } else {
            client_due = now + CLIENT_WAITS;
            wires.send(now, &|| Delivery::ToServer(client.last_said.clone(), client.acknowledged));
            Progress::Wait
        };
        match progress {
            Progress::Wait => {}
            Progress::Ended(ended) => break ended,
            Progress::Send(replies) => {
                causes += 1;
                data_packets += send(replies, &mut wires, now, content, |index| {
                    (arrived..arrived + windowsize).contains(&(index / u64::from(blksize)))
                });
            }
        }
        assert!(data_packets <= causes * windowsize, "{data_packets} packets for {causes} reasons");
    };
    let blocks = size / u64::from(blksize) + 1;
    let resent = transfer.map_or(0, |transfer| transfer.resent());
    let received = client.finished.then_some(client.content);
    Outcome { received, ended, data_packets, resent, blocks, took: now }
}

/// Answers how many DATA packets there were.
fn send(replies: Replies, wires: &mut Wires, now: Duration, content: &[u8], in_window: impl Fn(u64) -> bool) -> u64 {
    let mut count = 0;
    for reply in replies {
        let mut datagram = Vec::new();
        match reply {
            Reply::OptionAck(options) => Packet::OptionAck(options).write(&mut datagram),
            Reply::Data { block, wants } => {
                assert!(in_window(wants.start), "{wants:?} is outside of the window");
                count += 1;
                let range = usize::try_from(wants.start).unwrap()..usize::try_from(wants.end).unwrap();
                Packet::Data { block, content: &content[range] }.write(&mut datagram);
            }
        }
        wires.send(now, &|| Delivery::ToClient(datagram.clone()));
    }
    count
}
