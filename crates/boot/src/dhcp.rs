//! The sockets of the DHCP service. What is answered is decided in [`netboot::dhcp`], and for whom by [`Hosts`].

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use netboot::dhcp::{Answer, Arrival, Client, Ignored, Mode, Port, Reply, Request, Server, Silence};
use socket2::{Domain, Protocol, Socket, Type};
use tokio_util::sync::CancellationToken;

use crate::tftp;

const DHCP_PORT: u16 = 67;
const PXE_PORT: u16 = 4011;
const TFTP_PORT: u16 = 69;
/// More than an Ethernet frame carries.
const DATAGRAM: usize = 2048;

/// Knows the hosts, and what each may boot.
pub trait Hosts: Send + Sync + 'static {
    /// What has been decided for the host that asks; `None` if it is no known host. `address` is ours on that network. Must answer from
    /// memory.
    fn client(&self, request: &Request, address: Ipv4Addr) -> Option<Client>;

    /// A host was answered. Must not wait.
    fn answered(&self, request: &Request, reply: &Reply);

    /// A request of a host, or of a stranger that boots from the network, was not answered. Must not wait.
    fn silent(&self, request: &Request, why: &Silence);
}

/// The sockets on one network interface.
#[derive(Debug)]
pub struct Sockets {
    interface: String,
    address: Ipv4Addr,
    /// Port 67; `None` if another DHCP server of this machine has it.
    dhcp: Option<UdpSocket>,
    pxe: UdpSocket,
}

/// Why DHCP cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// There is no such interface, or it may not be used.
    #[error("cannot open UDP port {port} on network interface {interface}: {why}{advice}")]
    Bind {
        /// The port.
        port: u16,
        /// The interface.
        interface: String,
        /// Why.
        why: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// Servers could not reach us there.
    #[error("network interface {0} has no IPv4 address: give it one, or name another interface")]
    NoAddress(String),
}

impl Sockets {
    /// Opens the ports on an interface. A port 67 that somebody else on this machine has is done without, if that is allowed.
    pub fn open(interface: &str, may_share: bool) -> Result<Self, BindError> {
        let refuse = |port: u16| {
            move |source: io::Error| {
                let advice = match source.kind() {
                    io::ErrorKind::PermissionDenied => "; it needs root, or the capability NET_BIND_SERVICE",
                    io::ErrorKind::AddrInUse if port == DHCP_PORT => {
                        "; another DHCP server of this machine has it: stop that, or run --dhcp proxy, which leaves it the port"
                    }
                    io::ErrorKind::AddrInUse => "; another boot service of this machine has it: stop that",
                    _ => "",
                };
                BindError::Bind { port, interface: interface.to_owned(), why: source, advice }
            }
        };
        let dhcp = match bind(interface, DHCP_PORT) {
            Ok(socket) => Some(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && may_share => None,
            Err(error) => return Err(refuse(DHCP_PORT)(error)),
        };
        let pxe = bind(interface, PXE_PORT).map_err(refuse(PXE_PORT))?;
        let address = address_of(interface).map_err(refuse(PXE_PORT))?;
        let address = address.ok_or_else(|| BindError::NoAddress(interface.to_owned()))?;
        Ok(Self { interface: interface.to_owned(), address, dhcp, pxe })
    }

    /// Our address on the interface.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether another DHCP server of this machine has port 67.
    pub fn shares_machine(&self) -> bool {
        self.dhcp.is_none()
    }

    /// Answers requests until `stop`.
    pub async fn serve(&self, reserves: bool, hosts: Arc<dyn Hosts>, stop: CancellationToken) -> io::Result<()> {
        let mode = match (reserves, &self.dhcp) {
            (true, _) => Mode::Reservation,
            (false, Some(_)) => Mode::Proxy,
            (false, None) => Mode::ProxyOnSameMachine,
        };
        let server = Server { address: self.address, mode };
        let take = |socket: &UdpSocket| tokio::net::UdpSocket::from_std(socket.try_clone()?);
        let dhcp = self.dhcp.as_ref().map(take).transpose()?;
        let pxe = take(&self.pxe)?;
        let on_dhcp = async {
            if let Some(socket) = &dhcp {
                answer_all(socket, Port::Dhcp, server, hosts.as_ref()).await;
            }
        };
        let both = futures::future::join(on_dhcp, answer_all(&pxe, Port::Pxe, server, hosts.as_ref()));
        stop.run_until_cancelled(both).await;
        Ok(())
    }
}

/// Sockets for TFTP at our address on an interface: clients ignore answers from another address than the one that they asked.
pub fn open_tftp(interface: &str) -> Result<tftp::Sockets, BindError> {
    let refuse = |source: io::Error| {
        let advice = match source.kind() {
            io::ErrorKind::PermissionDenied => "; it needs root, or the capability NET_BIND_SERVICE",
            io::ErrorKind::AddrInUse => "; another TFTP server of this machine has it: stop that",
            _ => "",
        };
        BindError::Bind { port: TFTP_PORT, interface: interface.to_owned(), why: source, advice }
    };
    let address = address_of(interface).map_err(refuse)?.ok_or_else(|| BindError::NoAddress(interface.to_owned()))?;
    UdpSocket::bind((address, TFTP_PORT)).and_then(tftp::Sockets::at).map_err(refuse)
}

async fn answer_all(socket: &tokio::net::UdpSocket, port: Port, server: Server, hosts: &dyn Hosts) {
    let mut datagram = [0; DATAGRAM];
    loop {
        let (length, from) = match socket.recv_from(&mut datagram).await {
            Ok((length, SocketAddr::V4(from))) => (length, from),
            Ok(_) => continue,
            // Such as the answer of a host that no longer listens to an earlier reply.
            Err(error) => {
                tracing::debug!(%error, "cannot receive a DHCP request");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
        };
        let bytes = datagram.get(..length).unwrap_or_default();
        let Some((reply, request)) = answer(bytes, Arrival { port, from }, server, hosts) else { continue };
        let to = SocketAddrV4::new(*reply.to.address().ip(), reply.to.address().port());
        match socket.send_to(&reply.bytes, to).await {
            Ok(_) => hosts.answered(&request, &reply),
            Err(error) => tracing::warn!(%to, mac = %request.mac, %error, "cannot send a DHCP reply"),
        }
    }
}

fn answer(bytes: &[u8], arrival: Arrival, server: Server, hosts: &dyn Hosts) -> Option<(Reply, Request)> {
    let request = match Request::read(bytes, arrival) {
        Ok(request) => request,
        Err(ignored) => {
            note_ignored(&ignored, arrival);
            return None;
        }
    };
    let client = hosts.client(&request, server.address);
    match request.answer(server, client.as_ref()) {
        Answer::Send(reply) => Some((reply, request)),
        Answer::Silent(why) => {
            if client.is_some() || request.asker.boots() {
                hosts.silent(&request, &why);
            }
            None
        }
    }
}

fn note_ignored(ignored: &Ignored, arrival: Arrival) {
    tracing::debug!(from = %arrival.from, why = %ignored, "DHCP packet ignored");
}

/// A socket for everything that comes to a port through an interface, broadcasts above all.
fn bind(interface: &str, port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    Ok(socket.into())
}

/// The address from which this machine would speak to everybody on the interface.
fn address_of(interface: &str) -> io::Result<Option<Ipv4Addr>> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.connect(&SocketAddr::from((Ipv4Addr::BROADCAST, PXE_PORT)).into())?;
    Ok(match UdpSocket::from(socket).local_addr()? {
        SocketAddr::V4(address) if !address.ip().is_unspecified() => Some(*address.ip()),
        _ => None,
    })
}
