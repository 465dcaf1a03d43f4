//! Firmware that fetches boot files over TFTP, on loopback.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use boot::tftp::{Event, Files, Limits, Sockets, What, serve};
use bytes::Bytes;
use futures::future::join_all;
use netboot::tftp::packet::{Mode, Request};
use netboot::tftp::{Options, Packet, Refusal, Settings};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_mins(1);
/// When a client asks again, for a flood overflows the server's socket.
const AGAIN: Duration = Duration::from_millis(200);
const PLAIN: Options = Options { blksize: None, timeout: None, tsize: None, windowsize: None };

type Said = (SocketAddr, String, What);

struct Shelf {
    files: HashMap<&'static str, Bytes>,
    events: UnboundedSender<Said>,
}

impl Files for Shelf {
    fn open(&self, name: &str, _: SocketAddr) -> Option<Bytes> {
        self.files.get(name).cloned()
    }

    fn report(&self, event: Event<'_>) {
        let _ = self.events.send((event.client, event.name.to_owned(), event.what));
    }
}

struct Stage {
    address: SocketAddr,
    events: UnboundedReceiver<Said>,
    stop: CancellationToken,
    serving: JoinSet<io::Result<()>>,
}

impl Stage {
    fn new(limits: Limits) -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (sender, events) = unbounded_channel();
        let sizes =
            [("empty", 0), ("one", 1), ("block", 512), ("odd", 513), ("ipxe.efi", 300_000), ("dir/big", 4_000_000)];
        let files = sizes.map(|(name, size)| (name, content(size)));
        let shelf = Shelf { files: files.into(), events: sender };
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(Sockets::at(socket).unwrap(), Arc::new(shelf), limits, stop.clone()));
        Self { address, events, stop, serving }
    }

    async fn next_event(&mut self) -> Said {
        timeout(LONG, self.events.recv()).await.expect("an event in time").unwrap()
    }

    /// The next event about this client.
    async fn event_of(&mut self, client: SocketAddr) -> What {
        loop {
            let (from, _, what) = self.next_event().await;
            if from == client {
                return what;
            }
        }
    }
}

fn content(size: usize) -> Bytes {
    (0..size).map(|at| u8::try_from(at * 31 / 7 % 251).unwrap()).collect()
}

fn written(packet: Packet<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    packet.write(&mut datagram);
    datagram
}

fn read_request(name: &str, options: Options) -> Vec<u8> {
    written(Packet::Read(Request { name: name.as_bytes(), mode: Mode::Octet, options }))
}

/// A client, and the last packet that it received.
struct Client {
    socket: UdpSocket,
    server: SocketAddr,
    buffer: [u8; 2048],
    length: usize,
}

impl Client {
    async fn new(server: SocketAddr) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, server).await
    }

    async fn at(address: Ipv4Addr, server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((address, 0)).await.unwrap();
        Self { socket, server, buffer: [0; 2048], length: 0 }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    async fn send(&self, datagram: &[u8], to: SocketAddr) {
        self.socket.send_to(datagram, to).await.unwrap();
    }

    async fn acknowledge(&self, block: u64, peer: SocketAddr) {
        self.send(&written(Packet::Ack(u16::try_from(block % 65_536).unwrap())), peer).await;
    }

    fn packet(&self) -> Packet<'_> {
        Packet::read(&self.buffer[..self.length]).unwrap()
    }

    /// Waits for a packet and says where it came from.
    async fn receive(&mut self) -> SocketAddr {
        let received = timeout(LONG, self.socket.recv_from(&mut self.buffer)).await.expect("a packet").unwrap();
        self.length = received.0;
        received.1
    }

    /// Asks until there is an answer, and says where it came from.
    async fn ask(&mut self, name: &str, options: Options) -> SocketAddr {
        let request = read_request(name, options);
        let answer = async {
            loop {
                self.send(&request, self.server).await;
                if let Ok(received) = timeout(AGAIN, self.socket.recv_from(&mut self.buffer)).await {
                    return received.unwrap();
                }
            }
        };
        let (length, from) = timeout(LONG, answer).await.expect("an answer");
        self.length = length;
        from
    }

    async fn fetch(&mut self, name: &str, options: Options) -> Vec<u8> {
        let peer = self.ask(name, options).await;
        self.finish(peer).await
    }

    /// Takes a file, of which the first packet was received.
    async fn finish(&mut self, peer: SocketAddr) -> Vec<u8> {
        let (mut file, mut blksize, mut windowsize, mut blocks, mut acknowledged) = (Vec::new(), 512, 1, 0_u64, 0);
        loop {
            match self.packet() {
                Packet::OptionAck(granted) => {
                    blksize = granted.blksize.map_or(512, usize::from);
                    windowsize = granted.windowsize.map_or(1, u64::from);
                    self.acknowledge(0, peer).await;
                }
                Packet::Data { block, content } => {
                    let expected = u64::from(block) == (blocks + 1) % 65_536;
                    let is_last = expected && content.len() < blksize;
                    if expected {
                        file.extend_from_slice(content);
                        blocks += 1;
                    }
                    if !expected || is_last || blocks - acknowledged == windowsize {
                        acknowledged = blocks;
                        self.acknowledge(blocks, peer).await;
                    }
                    if is_last {
                        return file;
                    }
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(self.receive().await, peer);
        }
    }
}

#[tokio::test]
async fn files_of_all_sizes_arrive_with_and_without_options() {
    let mut stage = Stage::new(Limits::default());
    let negotiated = Options { blksize: Some(1468), tsize: Some(0), windowsize: Some(1), timeout: Some(3) };
    for options in [PLAIN, negotiated, Options { windowsize: Some(16), ..negotiated }] {
        for (name, size) in [("empty", 0), ("/one", 1), ("block", 512), ("odd", 513), ("/dir/big", 4_000_000)] {
            let mut client = Client::new(stage.address).await;
            let peer = client.ask(name, options).await;
            assert_ne!(peer, stage.address, "a transfer has a port of its own");
            if options != PLAIN {
                let granted = Options { tsize: Some(size), ..options };
                assert_eq!(client.packet(), Packet::OptionAck(granted));
            }
            assert!(client.finish(peer).await == content(usize::try_from(size).unwrap()), "{name} {options:?}");
            let (who, name, started) = stage.next_event().await;
            assert_eq!((who, started), (client.address(), What::Started { size }), "{name}");
            let (.., finished) = stage.next_event().await;
            assert!(matches!(finished, What::Finished { size: all, .. } if all == size), "{finished:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_are_served_at_once() {
    let stage = Stage::new(Limits { per_address: 50, ..Limits::default() });
    let fetched = join_all((1..=50_u16).map(|number| async move {
        let options = Options { blksize: Some(1468), windowsize: Some(number % 16 + 1), ..PLAIN };
        Client::new(stage.address).await.fetch("ipxe.efi", options).await
    }));
    let expected = content(300_000);
    assert!(fetched.await.into_iter().all(|file| file == expected));
}

#[tokio::test]
async fn another_port_learns_that_it_has_no_part_in_a_transfer_and_does_not_disturb_it() {
    let mut stage = Stage::new(Limits::default());
    let mut client = Client::new(stage.address).await;
    let mut stranger = Client::new(stage.address).await;
    let peer = client.ask("odd", PLAIN).await;

    stranger.send(&written(Packet::Error { code: 0, message: b"stop" }), peer).await;
    stranger.send(b"nonsense", peer).await;
    stranger.acknowledge(1, peer).await;
    assert_eq!(stranger.receive().await, peer);
    assert!(matches!(stranger.packet(), Packet::Error { code: 5, .. }), "{:?}", stranger.packet());
    let more = timeout(Duration::ZERO, stranger.socket.recv_from(&mut [0; 9])).await;
    assert!(more.is_err(), "one answer to three packets");

    assert_eq!(client.finish(peer).await, content(513));
    assert_eq!(stage.event_of(client.address()).await, What::Started { size: 513 });
    assert!(matches!(stage.event_of(client.address()).await, What::Finished { .. }));
}

#[tokio::test]
async fn what_is_not_served_is_refused_with_the_reason() {
    let mut stage = Stage::new(Limits::default());
    let mut client = Client::new(stage.address).await;
    let request = |mode, name| Request { name, mode, options: PLAIN };
    let octet = |name| written(Packet::Read(request(Mode::Octet, name)));
    let not_found = |name: &str| Refusal::NotFound(name.to_owned());
    for (datagram, code, message, name) in [
        (octet(b"no.efi"), 1, "file not found: no.efi", "no.efi"),
        (octet(b"../ipxe.efi"), 1, "file not found: ../ipxe.efi", "../ipxe.efi"),
        (octet(b"dir/../ipxe.efi"), 1, "file not found: dir/../ipxe.efi", "dir/../ipxe.efi"),
        (octet(b"\\ipxe.efi"), 1, "file not found: \\ipxe.efi", "\\ipxe.efi"),
        (octet(b"/etc/passwd"), 1, "file not found: etc/passwd", "etc/passwd"),
        (octet(b"\x1b[31mred"), 1, "file not found: ?[31mred", "?[31mred"),
        (
            written(Packet::Read(request(Mode::Netascii, b"one"))),
            4,
            "transfer mode netascii is not supported: use octet",
            "one",
        ),
        (written(Packet::Write(request(Mode::Octet, b"one"))), 2, "access violation: this server is read-only", "one"),
        (b"\0\x09".to_vec(), 4, "illegal request: unknown operation 9", ""),
    ] {
        client.send(&datagram, stage.address).await;
        assert_eq!(client.receive().await, stage.address);
        assert_eq!(client.packet(), Packet::Error { code, message: message.as_bytes() });
        let (who, asked, What::Refused(refusal)) = stage.next_event().await else {
            panic!("{message} was not refused")
        };
        assert_eq!((who, asked.as_str(), refusal.code()), (client.address(), name, code));
        if code == 1 {
            assert_eq!(refusal, not_found(name));
        }
    }
    // Without an answer, so that the answer to the last is the first.
    for silent in [&b"\0\x05\0\0no\0"[..], b"\0\x04\0\x01", b"\0\x03\0\x01abc", b"\0"] {
        client.send(silent, stage.address).await;
    }
    client.send(&octet(b"last"), stage.address).await;
    client.receive().await;
    assert_eq!(client.packet(), Packet::Error { code: 1, message: b"file not found: last" });
}

#[tokio::test]
async fn a_flood_of_requests_that_nobody_answers_is_bounded_and_others_are_served() {
    const ADDRESSES: u8 = 40;
    let limits = Limits { transfers: 50, per_address: 4, ..Limits::default() };
    let mut stage = Stage::new(limits);
    let mut sockets = Vec::new();
    for address in 0..ADDRESSES {
        for _ in 0..10 {
            sockets.push(Client::at(Ipv4Addr::new(127, 0, 1, address), stage.address).await);
        }
    }
    let options = Options { blksize: Some(1468), windowsize: Some(64), ..PLAIN };
    for name in ["empty", "one", "block", "odd", "ipxe.efi"] {
        for socket in &sockets {
            socket.send(&read_request(name, options), stage.address).await;
        }
        let mut client = Client::new(stage.address).await;
        assert!(client.fetch("ipxe.efi", options).await == content(300_000), "during {name}");
    }
    // What was read and is not among the last was dropped to make room.
    let (mut started, mut open) = (0, 0);
    loop {
        let event = match stage.events.try_recv() {
            Ok(event) => event,
            Err(_) if open > limits.transfers => stage.next_event().await,
            Err(_) => break,
        };
        match event.2 {
            What::Started { .. } => (started, open) = (started + 1, open + 1),
            What::Dropped { acknowledged: 0 } | What::GaveUp { acknowledged: 0, .. } | What::Finished { .. } => {
                open -= 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(started > 500, "{started} requests were read");
}

#[tokio::test]
async fn a_repeated_request_starts_no_second_transfer_and_another_one_replaces_the_first() {
    let mut stage = Stage::new(Limits::default());
    let mut client = Client::new(stage.address).await;
    for _ in 0..3 {
        client.send(&read_request("ipxe.efi", PLAIN), stage.address).await;
    }
    let peer = client.receive().await;
    // Requests are read in their order.
    Client::new(stage.address).await.fetch("one", PLAIN).await;
    assert_eq!(stage.next_event().await.2, What::Started { size: 300_000 });
    assert_eq!(stage.next_event().await.2, What::Started { size: 1 });
    assert!(matches!(stage.next_event().await.2, What::Finished { size: 1, .. }));

    // Firmware asks for the size first, and then for the file from the same port.
    let size = Options { tsize: Some(0), ..PLAIN };
    client.send(&read_request("odd", size), stage.address).await;
    let other = loop {
        let from = client.receive().await;
        if from != peer {
            break from;
        }
    };
    assert_eq!(client.packet(), Packet::OptionAck(Options { tsize: Some(513), ..PLAIN }));
    client.send(&written(Packet::Error { code: 8, message: b"User aborted the transfer" }), other).await;
    let mut said = [stage.next_event().await.2, stage.next_event().await.2, stage.next_event().await.2];
    said.sort_by_key(|what| matches!(what, What::Aborted { .. }));
    let message = "User aborted the transfer".to_owned();
    assert_eq!(said[2], What::Aborted { code: 8, message, acknowledged: 0 });
    assert!(said.contains(&What::Dropped { acknowledged: 0 }) && said.contains(&What::Started { size: 513 }));
    assert_eq!(client.fetch("odd", PLAIN).await, content(513));
}

/// Waits for nothing with a time limit: with time that stands still, that would be over at once.
#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_is_given_up() {
    let mut stage = Stage::new(Limits::default());
    let client = Client::new(stage.address).await;
    client.send(&read_request("odd", PLAIN), stage.address).await;
    assert_eq!(stage.events.recv().await.unwrap().2, What::Started { size: 513 });
    let (from, name, what) = stage.events.recv().await.unwrap();
    assert_eq!((from, name.as_str()), (client.address(), "odd"));
    let What::GaveUp { acknowledged: 0, took } = what else { panic!("{what:?}") };
    assert_eq!(took.as_secs(), 11);
    let block = written(Packet::Data { block: 1, content: &content(512) });
    for _ in 0..=Settings::default().opening_retries {
        let mut buffer = [0; 1024];
        let (length, _) = client.socket.try_recv_from(&mut buffer).expect("it was sent again");
        assert_eq!(buffer[..length], block);
    }
}

#[tokio::test]
async fn transfers_in_flight_end_before_the_service_does() {
    let mut stage = Stage::new(Limits::default());
    let mut half_open = Client::new(stage.address).await;
    half_open.ask("odd", PLAIN).await;
    let mut active = Client::new(stage.address).await;
    let options = Options { blksize: Some(1468), ..PLAIN };
    let peer = active.ask("ipxe.efi", options).await;
    active.acknowledge(0, peer).await;
    assert_eq!(active.receive().await, peer);
    active.acknowledge(1, peer).await;
    active.receive().await;

    stage.stop.cancel();
    assert_eq!(stage.event_of(half_open.address()).await, What::Started { size: 513 });
    assert_eq!(stage.event_of(half_open.address()).await, What::Dropped { acknowledged: 0 });
    let rest = 300_000_usize.div_ceil(1468);
    for block in 2..=rest {
        assert!(matches!(active.packet(), Packet::Data { .. }));
        active.acknowledge(block as u64, peer).await;
        if block < rest {
            active.receive().await;
        }
    }
    assert!(matches!(stage.event_of(active.address()).await, What::Finished { size: 300_000, .. }));
    timeout(LONG, stage.serving.join_next()).await.expect("ends").unwrap().unwrap().unwrap();
}
