//! The bytes of a reply.

use std::net::Ipv4Addr;

use super::options::{CLIENT_ID, COOKIE, END, FILE, MACHINE_ID, MESSAGE_TYPE, OPTIONS, RELAY_INFORMATION, SERVER_ID};
use super::request::Request;

/// A reply that is being written. What is added keeps its order, and always leaves room for the end.
#[derive(Debug, Clone)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    /// Option 82, which relays want to find last.
    last: Vec<u8>,
    limit: usize,
}

/// The fields of the header that replies do not just repeat.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) broadcast: bool,
    pub(super) ciaddr: Option<Ipv4Addr>,
    pub(super) yiaddr: Option<Ipv4Addr>,
}

/// It does not fit into what the client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl Packet {
    /// BOOTP clients and some relays drop anything shorter.
    const SHORTEST: usize = 300;
    /// Every client accepts IP packets of this size (RFC 2131), and none needs more than an Ethernet frame.
    const IP_PACKET: std::ops::RangeInclusive<u16> = 576..=1500;
    /// The headers of IP and UDP. Whether option 57 counts them is read both ways, so we do.
    const IP_AND_UDP: usize = 28;
    /// Where siaddr is in the header.
    const SIADDR: std::ops::Range<usize> = 20..24;

    /// The largest reply that this client accepts.
    pub(super) fn limit(request: &Request) -> usize {
        let (least, most) = (*Self::IP_PACKET.start(), *Self::IP_PACKET.end());
        usize::from(request.max_size.unwrap_or(least).clamp(least, most)) - Self::IP_AND_UDP
    }

    /// The header, and what every reply has to have or to repeat.
    pub(super) fn reply(request: &Request, header: Header, kind: u8, server: Ipv4Addr) -> Result<Self, Full> {
        let mut bytes = vec![2, 1, 6, 0];
        bytes.extend(request.xid.to_be_bytes());
        bytes.extend([0, 0, if header.broadcast { 0x80 } else { 0 }, 0]);
        for address in [header.ciaddr, header.yiaddr, None, request.giaddr] {
            bytes.extend(address.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        }
        bytes.extend(request.mac.0);
        bytes.resize(OPTIONS - COOKIE.len(), 0);
        bytes.extend(COOKIE);

        let last = request.relay_information.as_deref().map_or(Vec::new(), |value| encoded(RELAY_INFORMATION, value));
        let mut packet = Self { bytes, last, limit: Self::limit(request) };
        packet.add(MESSAGE_TYPE, &[kind])?;
        packet.add(SERVER_ID, &server.octets())?;
        if let Some(id) = &request.client_id {
            packet.add(CLIENT_ID, id)?;
        }
        if let Some(uuid) = request.uuid {
            packet.add(MACHINE_ID, &[&[0], uuid.0.as_slice()].concat())?;
        }
        Ok(packet)
    }

    /// An option without which the reply is not worth sending. An empty value is none.
    pub(super) fn add(&mut self, code: u8, value: &[u8]) -> Result<(), Full> {
        let option = encoded(code, value);
        if self.bytes.len() + option.len() + self.last.len() + 1 > self.limit {
            return Err(Full);
        }
        self.bytes.extend(option);
        Ok(())
    }

    /// An option that is left out if there is no room for it.
    pub(super) fn add_if_it_fits(&mut self, code: u8, value: &[u8]) {
        // Nothing was added if it does not fit.
        let (Ok(()) | Err(Full)) = self.add(code, value);
    }

    /// The server of the boot file, and its name where that fits into the header.
    pub(super) fn name_file(&mut self, server: Ipv4Addr, name: &str) {
        if let Some(field) = self.bytes.get_mut(Self::SIADDR) {
            field.copy_from_slice(&server.octets());
        }
        // One less, for the zero byte that ends it.
        if name.len() < FILE.len()
            && let Some(field) = self.bytes.get_mut(FILE)
        {
            field.iter_mut().zip(name.as_bytes()).for_each(|(field, byte)| *field = *byte);
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.append(&mut self.last);
        self.bytes.push(END);
        let length = self.bytes.len().max(Self::SHORTEST);
        self.bytes.resize(length, 0);
        self.bytes
    }
}

/// In pieces of 255 bytes where it is longer (RFC 3396).
fn encoded(code: u8, value: &[u8]) -> Vec<u8> {
    let pieces = value.chunks(usize::from(u8::MAX));
    pieces
        .flat_map(|piece| [code, u8::try_from(piece.len()).unwrap_or(u8::MAX)].into_iter().chain(piece.iter().copied()))
        .collect()
}
