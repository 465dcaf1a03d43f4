//! The network of the tests: 10.77.0.0/24, we are 10.77.0.1.

use std::net::{Ipv4Addr, SocketAddrV4};

use netboot::dhcp::{Arrival, Port, Request};

pub(super) const WE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const ITS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 50);

/// A client without an address broadcasts to port 67.
pub(super) const BROADCAST: Arrival = Arrival { port: Port::Dhcp, from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68) };

pub(super) fn read(packet: &[u8], arrival: Arrival) -> Request {
    Request::read(packet, arrival).unwrap_or_else(|ignored| panic!("ignored: {ignored}"))
}
