//! The network of the tests: 10.77.0.0/24, we are 10.77.0.1.

use std::net::{Ipv4Addr, SocketAddrV4};

use netboot::dhcp::{
    Answer, Arrival, BIOS_LOADER, Client, Files, Lease, Mode, Port, Reply, Request, Server, Silence, UEFI_LOADER,
};

use super::packets::golden;

pub(super) const WE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const ITS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 50);
pub(super) const PROXY: Server = Server { address: WE, mode: Mode::Proxy };
pub(super) const RESERVATION: Server = Server { address: WE, mode: Mode::Reservation };

/// A client without an address broadcasts to port 67.
pub(super) const BROADCAST: Arrival = Arrival { port: Port::Dhcp, from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68) };
/// A client with an address asks on port 4011.
pub(super) const ON_4011: Arrival =
    Arrival { port: Port::Pxe, from: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 120), 4011) };

pub(super) fn files() -> Files {
    Files {
        tftp: WE,
        bios: Some(BIOS_LOADER.to_owned()),
        uefi: Some(UEFI_LOADER.to_owned()),
        http: Some("http://10.77.0.1:8080/boot/efi".to_owned()),
        script: Some("http://10.77.0.1:8080/boot/script.ipxe?ticket=0123456789abcdef".to_owned()),
    }
}

pub(super) fn lease() -> Lease {
    Lease {
        address: ITS_ADDRESS,
        mask: Ipv4Addr::new(255, 255, 255, 0),
        routers: vec![Ipv4Addr::new(10, 77, 0, 254)],
        dns: vec![Ipv4Addr::new(10, 77, 0, 2), Ipv4Addr::new(10, 77, 0, 3)],
        ntp: vec![Ipv4Addr::new(10, 77, 0, 4)],
        domain: Some("rack.example".to_owned()),
        seconds: 3600,
    }
}

/// A host with something to boot, and an address.
pub(super) fn deployed() -> Client {
    Client { boot: Some(files()), lease: Some(lease()) }
}

pub(super) fn read(packet: &[u8], arrival: Arrival) -> Request {
    Request::read(packet, arrival).unwrap_or_else(|ignored| panic!("ignored: {ignored}"))
}

#[track_caller]
pub(super) fn sent(answer: Answer) -> Reply {
    match answer {
        Answer::Send(reply) => reply,
        Answer::Silent(silence) => panic!("silent: {silence}"),
    }
}

#[track_caller]
pub(super) fn silent(answer: Answer) -> Silence {
    match answer {
        Answer::Send(reply) => panic!("sent {reply:?}"),
        Answer::Silent(silence) => silence,
    }
}

/// The answer of this server to a broadcast of the deployed host.
pub(super) fn answer(server: Server, name: &str) -> Answer {
    read(&golden(name), BROADCAST).answer(server, Some(&deployed()))
}
