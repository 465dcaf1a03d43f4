//! What a client is answered.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::contents::{add_network, add_times};
use super::files::{BootFile, Files, NoBoot};
use super::options::MESSAGE;
use super::packet::{Full, Header, Packet};
use super::request::{Kind, Port, Request};

/// We, on the network that the request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Our address there.
    pub address: Ipv4Addr,
    /// What we do there.
    pub mode: Mode,
}

/// Who gives addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The DHCP server of the site does, on another machine. We add what to boot.
    Proxy,
    /// The DHCP server of the site does, on our own machine, where it has port 67. It has to say `PXEClient` (option 60),
    /// with which firmware comes to our port 4011.
    ProxyOnSameMachine,
    /// We do, to known hosts only.
    Reservation,
}

/// What the caller has decided for the known host that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// What it may boot now.
    pub boot: Option<Files>,
    /// Its address, stored before it is offered. Only reservations use it.
    pub lease: Option<Lease>,
}

/// An address and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// The mask of its network.
    pub mask: Ipv4Addr,
    /// The routers, best first.
    pub routers: Vec<Ipv4Addr>,
    /// The DNS servers, best first.
    pub dns: Vec<Ipv4Addr>,
    /// The time servers, best first.
    pub ntp: Vec<Ipv4Addr>,
    /// The DNS domain.
    pub domain: Option<String>,
    /// For how long.
    pub seconds: u32,
}

/// What to do with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Send this.
    Send(Reply),
    /// Send nothing.
    Silent(Silence),
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The datagram.
    pub bytes: Vec<u8>,
    /// Where it goes.
    pub to: Destination,
    /// What it is.
    pub kind: ReplyKind,
    /// What it tells the client to boot, or why nothing.
    pub boot: Result<BootFile, NoBoot>,
}

/// The types of message that servers send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// This is what you would get.
    Offer,
    /// This is what you have.
    Ack,
    /// You cannot have that address.
    Nak,
}

/// Where a reply goes, from the port that the request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To the relay that passed the request on.
    Relay(Ipv4Addr),
    /// To the client, which has this address already.
    Client(Ipv4Addr),
    /// To everybody on the network: clients without an address hear nothing else.
    Broadcast,
    /// To where the request came from.
    Source(SocketAddrV4),
}

/// Why nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// Whoever it is, it is not ours.
    #[error("it is no known host")]
    Unknown,
    /// Site DHCP on our own machine.
    #[error("the DHCP server of the site, on this machine, answers on port 67")]
    SiteHasThePort,
    /// For the DHCP server of the site.
    #[error("only the DHCP server of the site answers this")]
    ForTheSite,
    /// Clients that come to port 4011 have an address.
    #[error("port 4011 only answers requests for a boot file")]
    NotForABootFile,
    /// A proxy has nothing else to say.
    #[error(transparent)]
    NoBoot(#[from] NoBoot),
    /// The caller has no address for it.
    #[error("no address is reserved for this host")]
    NoLease,
    /// Another DHCP server is on the network.
    #[error("it takes the offer of another DHCP server, {0}")]
    OtherServer(Ipv4Addr),
    /// The client has found another machine with the address. The caller should look into it.
    #[error("it declined {0}: another machine uses that address")]
    Declined(Ipv4Addr),
    /// The client no longer uses its address. It stays reserved.
    #[error("it gave {0} back")]
    Released(Ipv4Addr),
    /// It neither has an address nor asks for one, or not for its own.
    #[error("it does not say which address it means")]
    Incomplete,
    /// The address of its sender or relay is none of a machine.
    #[error("no reply can be sent to {0}")]
    NoWayBack(Ipv4Addr),
    /// Only with absurdly long identifiers.
    #[error("the reply would not fit into the {0} bytes that the client accepts")]
    TooLong(usize),
}

impl Request {
    /// What to send back. `client` is what the caller decided for this host, or nothing if it is no known one.
    pub fn answer(&self, server: Server, client: Option<&Client>) -> Answer {
        let Some(client) = client else { return Answer::Silent(Silence::Unknown) };
        let answer = match (self.arrival.port, server.mode) {
            (Port::Pxe, _) => self.name_boot_file(server, client),
            (Port::Dhcp, Mode::ProxyOnSameMachine) => Err(Silence::SiteHasThePort),
            (Port::Dhcp, Mode::Proxy) => self.offer_beside_the_site(server, client),
            (Port::Dhcp, Mode::Reservation) => self.lease_address(server, client),
        };
        answer.map_or_else(Answer::Silent, Answer::Send)
    }

    /// On port 4011: the client has an address, and asks what to boot.
    fn name_boot_file(&self, server: Server, client: &Client) -> Result<Reply, Silence> {
        if !matches!(self.kind, Kind::Request | Kind::Inform) {
            return Err(Silence::NotForABootFile);
        }
        self.check_server(server)?;
        let header = Header { broadcast: self.broadcast, ciaddr: self.ciaddr, yiaddr: None };
        let packet = self.start(header, ReplyKind::Ack, server)?;
        let (packet, boot) = self.add_boot(packet, server, client, ReplyKind::Ack);
        let to = Destination::Source(self.arrival.from);
        send(packet, to, ReplyKind::Ack, Ok(boot?))
    }

    /// On port 67, as a proxy: an offer without an address.
    fn offer_beside_the_site(&self, server: Server, client: &Client) -> Result<Reply, Silence> {
        if self.kind != Kind::Discover {
            return Err(Silence::ForTheSite);
        }
        // Relays cannot send to yiaddr, as there is none.
        let broadcast = self.broadcast || self.giaddr.is_some();
        let packet = self.start(Header { broadcast, ciaddr: None, yiaddr: None }, ReplyKind::Offer, server)?;
        let (packet, boot) = self.add_boot(packet, server, client, ReplyKind::Offer);
        send(packet, self.relay().unwrap_or(Destination::Broadcast), ReplyKind::Offer, Ok(boot?))
    }

    /// On port 67, with reservations (RFC 2131, 4.3).
    fn lease_address(&self, server: Server, client: &Client) -> Result<Reply, Silence> {
        let lease = client.lease.as_ref();
        let is_reserved = |address: &Ipv4Addr| lease.is_some_and(|lease| lease.address == *address);
        match self.kind {
            Kind::Discover => {
                let lease = lease.ok_or(Silence::NoLease)?;
                self.grant(server, client, lease, ReplyKind::Offer)
            }
            Kind::Request => {
                self.check_server(server)?;
                let asked = self.requested.or(self.ciaddr).ok_or(Silence::Incomplete)?;
                match lease {
                    Some(lease) if lease.address == asked => self.grant(server, client, lease, ReplyKind::Ack),
                    Some(_) => self.refuse(server),
                    // It has taken our offer, and the reservation is gone since: it should not have to wait.
                    None if self.server_id.is_some() => self.refuse(server),
                    None => Err(Silence::NoLease),
                }
            }
            Kind::Inform => {
                lease.ok_or(Silence::NoLease)?;
                self.inform(server, client)
            }
            Kind::Decline => {
                self.check_server(server)?;
                Err(self.requested.filter(is_reserved).map_or(Silence::Incomplete, Silence::Declined))
            }
            Kind::Release => {
                self.check_server(server)?;
                Err(self.ciaddr.filter(is_reserved).map_or(Silence::Incomplete, Silence::Released))
            }
        }
    }

    fn grant(&self, server: Server, client: &Client, lease: &Lease, kind: ReplyKind) -> Result<Reply, Silence> {
        let ciaddr = self.ciaddr.filter(|address| kind == ReplyKind::Ack && *address == lease.address);
        let header = Header { broadcast: self.broadcast, ciaddr, yiaddr: Some(lease.address) };
        let mut packet = self.start(header, kind, server)?;
        add_times(&mut packet, lease).map_err(|Full| self.too_long())?;
        add_network(&mut packet, lease).map_err(|Full| self.too_long())?;
        let (mut packet, boot) = self.add_boot(packet, server, client, kind);
        self.add_extras(&mut packet, lease);
        let to = self.relay().or(ciaddr.map(Destination::Client)).unwrap_or(Destination::Broadcast);
        send(packet, to, kind, boot)
    }

    /// Everything but an address: the client has one, which need not be ours.
    fn inform(&self, server: Server, client: &Client) -> Result<Reply, Silence> {
        let ciaddr = self.ciaddr.ok_or(Silence::Incomplete)?;
        let header = Header { broadcast: self.broadcast, ciaddr: Some(ciaddr), yiaddr: None };
        let mut packet = self.start(header, ReplyKind::Ack, server)?;
        if let Some(lease) = &client.lease {
            add_network(&mut packet, lease).map_err(|Full| self.too_long())?;
        }
        let (mut packet, boot) = self.add_boot(packet, server, client, ReplyKind::Ack);
        if let Some(lease) = &client.lease {
            self.add_extras(&mut packet, lease);
        }
        send(packet, self.relay().unwrap_or(Destination::Client(ciaddr)), ReplyKind::Ack, boot)
    }

    fn refuse(&self, server: Server) -> Result<Reply, Silence> {
        let broadcast = self.broadcast || self.giaddr.is_some();
        let mut packet = self.start(Header { broadcast, ciaddr: None, yiaddr: None }, ReplyKind::Nak, server)?;
        packet.add_if_it_fits(MESSAGE, b"this address is not reserved for you");
        let to = self.relay().unwrap_or(Destination::Broadcast);
        send(packet, to, ReplyKind::Nak, Err(NoBoot::AddressRefused))
    }

    /// The server that the client names, if it names one, has to be us.
    fn check_server(&self, server: Server) -> Result<(), Silence> {
        self.server_id.filter(|id| *id != server.address).map_or(Ok(()), |other| Err(Silence::OtherServer(other)))
    }

    fn relay(&self) -> Option<Destination> {
        self.giaddr.map(Destination::Relay)
    }

    fn start(&self, header: Header, kind: ReplyKind, server: Server) -> Result<Packet, Silence> {
        Packet::reply(self, header, kind.code(), server.address).map_err(|Full| self.too_long())
    }

    fn too_long(&self) -> Silence {
        Silence::TooLong(Packet::limit(self))
    }
}

fn send(packet: Packet, to: Destination, kind: ReplyKind, boot: Result<BootFile, NoBoot>) -> Result<Reply, Silence> {
    to.check()?;
    Ok(Reply { bytes: packet.finish(), to, kind, boot })
}

impl ReplyKind {
    fn code(self) -> u8 {
        match self {
            Self::Offer => 2,
            Self::Ack => 5,
            Self::Nak => 6,
        }
    }
}

impl Destination {
    /// Address and port.
    pub fn address(self) -> SocketAddrV4 {
        match self {
            Self::Relay(relay) => SocketAddrV4::new(relay, 67),
            Self::Client(client) => SocketAddrV4::new(client, 68),
            Self::Broadcast => SocketAddrV4::new(Ipv4Addr::BROADCAST, 68),
            Self::Source(source) => source,
        }
    }

    /// Requests choose some of these addresses: no forged one may make us send to a group.
    fn check(self) -> Result<(), Silence> {
        let to = self.address();
        let ip = *to.ip();
        let no_machine = ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast() || to.port() == 0;
        if no_machine && self != Self::Broadcast { Err(Silence::NoWayBack(ip)) } else { Ok(()) }
    }
}
