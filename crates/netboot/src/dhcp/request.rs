//! What a client asks.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::architecture::Architecture;
use super::asker::Asker;
use super::options::{
    ARCHITECTURES, CLIENT_ID, COOKIE, MACHINE_ID, MAX_SIZE, MESSAGE_TYPE, NETWORK_INTERFACE, OPTIONS, Options,
    RELAY_INFORMATION, REQUESTED_ADDRESS, SERVER_ID, VENDOR_CLASS, VENDOR_OPTIONS, WANTED,
};
use crate::client::{Mac, Uuid};
use crate::text::printable;

/// How a datagram came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The port of ours that it came to.
    pub port: Port,
    /// The address and port that it came from.
    pub from: SocketAddrV4,
}

/// A port of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// 67, where DHCP servers listen.
    Dhcp,
    /// 4011, where PXE clients ask for the name of their boot file once they have an address.
    Pxe,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// How it came.
    pub arrival: Arrival,
    /// What it asks for (option 53).
    pub kind: Kind,
    /// The number that replies have to repeat.
    pub xid: u32,
    /// For how many seconds the client has been trying. Many clients send nonsense.
    pub secs: u16,
    /// Whether the client can only receive broadcasts.
    pub broadcast: bool,
    /// The address that the client has.
    pub ciaddr: Option<Ipv4Addr>,
    /// The relay that passed it on.
    pub giaddr: Option<Ipv4Addr>,
    /// The client's network card.
    pub mac: Mac,
    /// The UUID of the machine, as sent (option 97).
    pub uuid: Option<Uuid>,
    /// What the client is, best first (option 93, or else option 60).
    pub architectures: Vec<Architecture>,
    /// The version of the firmware's network interface, major and minor (option 94).
    pub undi: Option<(u8, u8)>,
    /// The program that asks (options 60, 77 and 175).
    pub asker: Asker,
    /// The vendor class as sent (option 60). For people there is [`Request::vendor`].
    pub vendor_class: Vec<u8>,
    /// The vendor options as sent (option 43).
    pub vendor_options: Option<Vec<u8>>,
    /// The client's own name for itself (option 61), which replies repeat.
    pub client_id: Option<Vec<u8>>,
    /// The address that it would like (option 50).
    pub requested: Option<Ipv4Addr>,
    /// The server that it speaks to (option 54).
    pub server_id: Option<Ipv4Addr>,
    /// The options that it would like (option 55).
    pub wanted: Vec<u8>,
    /// The largest message that it accepts (option 57).
    pub max_size: Option<u16>,
    /// What the relay wants to have back (option 82).
    pub relay_information: Option<Vec<u8>>,
}

/// The types of message that clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Is there a server?
    Discover,
    /// May I have, or keep, this address?
    Request,
    /// This address is taken by another machine.
    Decline,
    /// I no longer need this address.
    Release,
    /// I have an address, tell me the rest.
    Inform,
}

/// Why a datagram is no request to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// Cut, or something else altogether.
    #[error("a datagram of {0} bytes is no DHCP message")]
    Length(usize),
    /// Other servers answer, and relays of other networks.
    #[error("it is the reply of a server, not a request")]
    Reply,
    /// Neither request nor reply.
    #[error("operation {0} is neither a request nor a reply")]
    Operation(u8),
    /// InfiniBand, or a UUID in place of the hardware address.
    #[error("its hardware address is not of Ethernet: type {kind}, {length} bytes")]
    NotEthernet {
        /// The type.
        kind: u8,
        /// The length.
        length: u8,
    },
    /// Zero, or the address of a group.
    #[error("no network card can have its hardware address {0}")]
    NotACard(Mac),
    /// Plain BOOTP.
    #[error("it has no DHCP options (the magic cookie is missing)")]
    NoCookie,
    /// Cut, or made to make us read beyond the end.
    #[error("option {0} reaches beyond the end of the message")]
    Cut(u8),
    /// There is none, or several.
    #[error("it does not say its message type (option 53)")]
    NoType,
    /// A server's, or of an extension.
    #[error("message type {0} is none of a client")]
    Type(u8),
}

impl Request {
    /// Larger than any client's, relay information included.
    const LONGEST: usize = 4096;
    const VENDOR_TEXT: usize = 64;

    /// A datagram that came.
    pub fn read(bytes: &[u8], arrival: Arrival) -> Result<Self, Ignored> {
        let header: &[u8; OPTIONS] =
            bytes.first_chunk().filter(|_| bytes.len() <= Self::LONGEST).ok_or(Ignored::Length(bytes.len()))?;
        let [operation, htype, hlen, _hops, after_hops @ ..] = header;
        match operation {
            1 => {}
            2 => return Err(Ignored::Reply),
            other => return Err(Ignored::Operation(*other)),
        }
        if (*htype, *hlen) != (1, 6) {
            return Err(Ignored::NotEthernet { kind: *htype, length: *hlen });
        }
        let [x0, x1, x2, x3, s0, s1, flags, _, after_flags @ ..] = after_hops;
        let [c0, c1, c2, c3, _, _, _, _, _, _, _, _, g0, g1, g2, g3, m0, m1, m2, m3, m4, m5, ..] = after_flags;
        let mac = Mac([*m0, *m1, *m2, *m3, *m4, *m5]);
        if !mac.is_of_a_card() {
            return Err(Ignored::NotACard(mac));
        }
        if !header.ends_with(&COOKIE) {
            return Err(Ignored::NoCookie);
        }
        let options = Options::of(bytes)?;
        let owned = |code| options.bytes(code).map(<[u8]>::to_vec);
        Ok(Self {
            arrival,
            kind: Kind::of(&options)?,
            xid: u32::from_be_bytes([*x0, *x1, *x2, *x3]),
            secs: u16::from_be_bytes([*s0, *s1]),
            broadcast: flags & 0x80 != 0,
            ciaddr: given([*c0, *c1, *c2, *c3]),
            giaddr: given([*g0, *g1, *g2, *g3]),
            mac,
            uuid: uuid(&options),
            architectures: architectures(&options),
            undi: options.exactly(NETWORK_INTERFACE).and_then(undi),
            asker: Asker::of(&options),
            vendor_class: owned(VENDOR_CLASS).unwrap_or_default(),
            vendor_options: owned(VENDOR_OPTIONS),
            // A type and at least one byte (RFC 2132).
            client_id: owned(CLIENT_ID).filter(|id| id.len() >= 2),
            requested: options.address(REQUESTED_ADDRESS),
            server_id: options.address(SERVER_ID),
            wanted: owned(WANTED).unwrap_or_default(),
            max_size: options.exactly(MAX_SIZE).map(u16::from_be_bytes),
            relay_information: owned(RELAY_INFORMATION),
        })
    }

    /// What to boot it as: the first architecture that is served, or else the first.
    pub fn architecture(&self) -> Option<Architecture> {
        let served = self.architectures.iter().find(|architecture| architecture.is_served());
        served.or(self.architectures.first()).copied()
    }

    /// The vendor class, fit for people and terminals.
    pub fn vendor(&self) -> String {
        printable(&self.vendor_class, Self::VENDOR_TEXT)
    }
}

impl Kind {
    fn of(options: &Options) -> Result<Self, Ignored> {
        match options.byte(MESSAGE_TYPE).ok_or(Ignored::NoType)? {
            1 => Ok(Self::Discover),
            3 => Ok(Self::Request),
            4 => Ok(Self::Decline),
            7 => Ok(Self::Release),
            8 => Ok(Self::Inform),
            other => Err(Ignored::Type(other)),
        }
    }
}

fn given(octets: [u8; 4]) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(octets)).filter(|address| !address.is_unspecified())
}

/// 17 bytes: the type, which is 0, and the UUID.
fn uuid(options: &Options) -> Option<Uuid> {
    let [kind, uuid @ ..]: [u8; 17] = options.exactly(MACHINE_ID)?;
    (kind == 0).then_some(Uuid(uuid))
}

/// Type 1 is UNDI, the only one there is.
fn undi([kind, major, minor]: [u8; 3]) -> Option<(u8, u8)> {
    (kind == 1).then_some((major, minor))
}

/// Two bytes each. Clients without option 93 say it in option 60: `PXEClient:Arch:00007:UNDI:003016`.
fn architectures(options: &Options) -> Vec<Architecture> {
    let codes = options.bytes(ARCHITECTURES).unwrap_or_default();
    let (pairs, odd) = codes.as_chunks::<2>();
    if !pairs.is_empty() && odd.is_empty() {
        return pairs.iter().map(|pair| Architecture::from(u16::from_be_bytes(*pair))).collect();
    }
    let class = options.bytes(VENDOR_CLASS).and_then(|class| std::str::from_utf8(class).ok()).unwrap_or_default();
    let mut words = class.split(':').skip_while(|word| *word != "Arch").skip(1);
    let digits = words.next().filter(|word| word.len() == 5 && word.bytes().all(|digit| digit.is_ascii_digit()));
    digits.and_then(|digits| digits.parse::<u16>().ok()).map(Architecture::from).into_iter().collect()
}
