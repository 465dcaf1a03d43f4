//! What stands in a reply besides the address.

use std::net::Ipv4Addr;

use super::answer::{Client, Lease, Mode, ReplyKind, Server};
use super::architecture::Architecture;
use super::asker::Asker;
use super::files::{BootFile, NoBoot};
use super::options::{
    BOOT_FILE, DNS_SERVERS, DOMAIN_NAME, ETHERBOOT, LEASE_TIME, NTP_SERVERS, REBINDING_TIME, RENEWAL_TIME, ROUTERS,
    SUBNET_MASK, TFTP_SERVER, VENDOR_CLASS, VENDOR_OPTIONS,
};
use super::packet::{Full, Packet};
use super::request::Request;

/// PXE's discovery control (6) with bit 3: no prompt, menu or search for boot servers if there is a file name.
const BOOT_FROM_THE_FILE_NAME: [u8; 4] = [6, 1, 8, 255];
/// iPXE's no-pxedhcp (176): it otherwise waits three seconds for the offer of a proxy. Only the server that gives the
/// address can say so.
const NO_PROXY: [u8; 3] = [176, 1, 1];

/// How long the address may be used.
pub(super) fn add_times(packet: &mut Packet, lease: &Lease) -> Result<(), Full> {
    packet.add(LEASE_TIME, &lease.seconds.to_be_bytes())?;
    // The defaults of RFC 2131: half, and seven eighths.
    packet.add(RENEWAL_TIME, &(lease.seconds / 2).to_be_bytes())?;
    packet.add(REBINDING_TIME, &(lease.seconds - lease.seconds / 8).to_be_bytes())
}

/// The network that the client is in.
pub(super) fn add_network(packet: &mut Packet, lease: &Lease) -> Result<(), Full> {
    packet.add(SUBNET_MASK, &lease.mask.octets())?;
    packet.add(ROUTERS, &octets(&lease.routers))?;
    packet.add(DNS_SERVERS, &octets(&lease.dns))
}

impl Request {
    /// What firmware can do without: after the boot file, and only if it is asked for.
    pub(super) fn add_extras(&self, packet: &mut Packet, lease: &Lease) {
        let domain = lease.domain.as_deref().unwrap_or_default().as_bytes();
        for (code, value) in [(DOMAIN_NAME, domain), (NTP_SERVERS, octets(&lease.ntp).as_slice())] {
            if self.wanted.contains(&code) {
                packet.add_if_it_fits(code, value);
            }
        }
    }

    /// The packet with the boot file if there is one and it fits, or else as it was, and why.
    pub(super) fn add_boot(
        &self,
        packet: Packet,
        server: Server,
        client: &Client,
        kind: ReplyKind,
    ) -> (Packet, Result<BootFile, NoBoot>) {
        let file = client.boot.as_ref().ok_or(NoBoot::NothingToBoot).and_then(|files| files.for_client(self));
        let file = match file {
            Ok(file) => file,
            Err(reason) => return (packet, Err(reason)),
        };
        let mut with_file = packet.clone();
        match self.add_file(&mut with_file, server, &file, kind) {
            Ok(()) => (with_file, Ok(file)),
            Err(Full) => (packet, Err(NoBoot::NoRoom(Packet::limit(self)))),
        }
    }

    fn add_file(&self, packet: &mut Packet, server: Server, file: &BootFile, kind: ReplyKind) -> Result<(), Full> {
        let proxy = server.mode != Mode::Reservation;
        let http = self.asker == Asker::HttpFirmware;
        // Many EDK2 versions drop a proxy's offer that has discovery control. Without, they send a request to port 4011.
        let comes_to_4011 =
            proxy && self.asker == Asker::PxeFirmware && self.architecture() != Some(Architecture::Bios);
        packet.add(VENDOR_CLASS, if http { b"HTTPClient" } else { b"PXEClient" })?;
        let (next_server, name) = match file {
            // They send it to siaddr, which has to be us then.
            BootFile::Tftp { name, .. } if comes_to_4011 && kind == ReplyKind::Offer => (server.address, name),
            BootFile::Tftp { server, name } => (*server, name),
            // iPXE takes the offer of a proxy only if siaddr is set, even with a URL.
            BootFile::Url(url) => (server.address, url),
        };
        packet.name_file(next_server, name);
        packet.add(BOOT_FILE, name.as_bytes())?;
        if let BootFile::Tftp { .. } = file {
            packet.add(TFTP_SERVER, next_server.to_string().as_bytes())?;
        }
        if !(http || comes_to_4011) {
            packet.add(VENDOR_OPTIONS, &BOOT_FROM_THE_FILE_NAME)?;
        }
        if !proxy && matches!(self.asker, Asker::Ipxe(_)) {
            packet.add(ETHERBOOT, &NO_PROXY)?;
        }
        Ok(())
    }
}

fn octets(addresses: &[Ipv4Addr]) -> Vec<u8> {
    addresses.iter().flat_map(Ipv4Addr::octets).collect()
}
