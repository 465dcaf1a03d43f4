//! The boot service on the network of the machines: simulated servers boot from the network with nothing else to set up.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;

use anyhow::Context as _;
use boot::dhcp::Sockets;
use boot::fetch::Network as Allowed;
use boot::links::Links;
use boot::neighbours::Neighbours;
use boot::tftp;
use controllers::depot::{BootConfig, DhcpConfig, NetworkConfig, Reservations, Reserves};
use sim::qemu::{Bridge, Lab, Network};

use crate::boot_args::BootArgs;

const HTTP_PORT: u16 = 8082;
const TFTP_PORT: u16 = 69;
/// The last bytes of the addresses for servers.
const FIRST: u8 = 100;
const LAST: u8 = 199;
const LEASE_SECONDS: u32 = 3600;

/// The boot service on the bridge, if there is one. Its key is kept in that namespace.
pub(super) fn boot_service(lab: &Lab, boot: &BootArgs, key_namespace: &str) -> anyhow::Result<Option<BootConfig>> {
    let Network::Bridge(bridge) = *lab.network() else { return Ok(None) };
    let open = move || -> anyhow::Result<_> {
        let listener = TcpListener::bind((bridge.address, HTTP_PORT)).context("boot service")?;
        let requests = UdpSocket::bind((bridge.address, TFTP_PORT)).context("TFTP")?;
        let neighbours = Neighbours::open(Bridge::INTERFACE).context("ARP")?;
        Ok((listener, requests, Sockets::open(Bridge::INTERFACE, false)?, neighbours))
    };
    let opened = lab.inside(open).context("--qemu")?;
    let (listener, requests, sockets, neighbours) = opened.context("cannot serve on the network of the machines")?;
    let reserves = Reserves { reservations: reservations(bridge)?, neighbours: Arc::new(neighbours) };
    let inside = lab.clone();
    let network = NetworkConfig {
        files: Arc::new(boot.files()?),
        dhcp: Some(DhcpConfig { sockets: Arc::new(vec![sockets]), reserves: Some(reserves) }),
        // Each transfer has a socket of its own.
        tftp: vec![tftp::Sockets::opened_by(requests, move || inside.bind_udp((bridge.address, 0).into()))],
    };
    // Whoever tries things out has the images on the same laptop.
    let loopback: Allowed = "127.0.0.0/8".parse().context("loopback")?;
    Ok(Some(BootConfig {
        links: Links::new(&url(bridge)).context("--qemu")?,
        listener: Arc::new(listener),
        tls: None,
        fetcher: boot.fetcher(&[loopback])?,
        network: Some(network),
        key_namespace: key_namespace.to_owned(),
    }))
}

/// What to tell whoever wants to boot something.
pub(super) fn text(lab: &Lab) -> Option<String> {
    let Network::Bridge(bridge) = *lab.network() else { return None };
    Some(format!(
        "  boot:    {} with DHCP and TFTP, for servers that are ordered to boot from the network; images are fetched from here, also from 127.0.0.1",
        url(bridge)
    ))
}

fn url(bridge: Bridge) -> String {
    format!("http://{}:{HTTP_PORT}", bridge.address)
}

fn reservations(bridge: Bridge) -> anyhow::Result<Reservations> {
    let [a, b, c, _] = bridge.address.octets();
    let range = (Ipv4Addr::new(a, b, c, FIRST), Ipv4Addr::new(a, b, c, LAST));
    let mask = Ipv4Addr::from_bits(u32::MAX << (32 - u32::from(bridge.prefix_length)));
    let reservations = Reservations::new(range, bridge.address, mask)?;
    Ok(reservations.with(Vec::new(), Vec::new(), LEASE_SECONDS)?)
}
