//! What clients of DHCP and TFTP are told: who they are, and which file they load first.

use std::net::{Ipv4Addr, SocketAddr};

use boot::dhcp::Hosts;
use boot::links::Part;
use boot::serve::{Boots, Delivery, Step};
use boot::tftp::{self, What};
use boot::ticket::Purpose;
use bytes::Bytes;
use engine::host::Payload;
use netboot::dhcp::{BIOS_LOADER, Client, Files, Kind, NoBoot, Reply, Request, Silence, UEFI_LOADER};
use tracing::{debug, info};

use super::Depot;
use super::deliveries::Deliveries;

impl Hosts for Deliveries {
    fn client(&self, request: &Request, address: Ipv4Addr) -> Option<Client> {
        let uuid = request.uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        let (host, boots) = self.plan(&request.mac.to_string(), &uuid);
        let Some(host) = host else {
            if let (Boots::Nothing(why), true) = (&boots, request.asker.boots()) {
                self.met_stranger(request, why);
            }
            return None;
        };
        self.know_stranger(request);
        let boot = match boots {
            Boots::Payload(delivery) => Some(self.depot().files(request, address, &delivery)),
            Boots::Disk | Boots::Nothing(_) => {
                debug!(%host, mac = %request.mac, "this host is not to boot from the network now");
                None
            }
        };
        Some(Client { boot, lease: self.lease(&host, request.giaddr) })
    }

    fn answered(&self, request: &Request, reply: &Reply) {
        let Ok(file) = &reply.boot else { return };
        info!(mac = %request.mac, %file, kind = ?reply.kind, "told a server what to load");
        let uuid = request.uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        if let (_, Boots::Payload(delivery)) = self.plan(&request.mac.to_string(), &uuid) {
            self.note_step(&delivery, Step::Offered, request.mac.to_string());
        }
    }

    fn silent(&self, request: &Request, why: &Silence) {
        // Each replica hears it, whichever of them the host had its address from: also the one that reserves another address.
        if request.kind == Kind::Decline {
            self.note_decline(request);
        }
        match why {
            Silence::Unknown
            | Silence::ForTheSite
            | Silence::NoBoot(NoBoot::NothingToBoot | NoBoot::NotNetworkBoot) => {
                debug!(mac = %request.mac, %why, "DHCP request not answered");
            }
            _ => info!(mac = %request.mac, vendor = request.vendor(), %why, "DHCP request not answered"),
        }
    }
}

impl Deliveries {
    fn note_decline(&self, request: &Request) {
        let uuid = request.uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        let (host, _) = self.plan(&request.mac.to_string(), &uuid);
        let Some((host, leases)) = host.zip(self.depot().leases()) else { return };
        if let Some(lease) = self.lease(&host, request.giaddr)
            && request.requested == Some(lease.address)
        {
            leases.declined(&host, lease.address, self.clock().now());
        }
    }
}

impl tftp::Files for Deliveries {
    fn open(&self, name: &str, _: SocketAddr) -> Option<Bytes> {
        // They are no secret: whoever asks may have them.
        self.depot().network.as_ref()?.files.get(name).cloned()
    }

    fn report(&self, event: tftp::Event<'_>) {
        let tftp::Event { client, name, what } = event;
        match what {
            What::Finished { size, took, resent } => {
                info!(%client, name, size, took_ms = took.as_millis(), resent, "boot file fetched by TFTP");
            }
            What::GaveUp { acknowledged, .. } => {
                info!(%client, name, acknowledged, "a client stopped answering while it fetched a boot file by TFTP");
            }
            what => debug!(%client, name, ?what, "TFTP"),
        }
    }
}

impl Depot {
    /// What a server loads first, for each way of booting.
    fn files(&self, request: &Request, address: Ipv4Addr, delivery: &Delivery) -> Files {
        let has = |name: &str| self.network.as_ref().is_some_and(|network| network.files.contains_key(name));
        let loader = |name: &str| has(name).then(|| name.to_owned());
        let uuid = request.uuid.map_or_else(|| "-".to_owned(), |uuid| uuid.to_string());
        // iPXE would write colons as %3A.
        let mac = request.mac.to_string().replace(':', "-");
        Files {
            tftp: address,
            bios: loader(BIOS_LOADER),
            uefi: loader(UEFI_LOADER),
            http: self.started_directly(delivery).or_else(|| has(UEFI_LOADER).then(|| self.links.file(UEFI_LOADER))),
            script: Some(self.links.script(&mac, &uuid)),
        }
    }

    /// An EFI program that needs no parameters is started by the firmware itself: then it may be signed for Secure Boot.
    fn started_directly(&self, delivery: &Delivery) -> Option<String> {
        let Some(Payload::Efi { parameters, .. }) = &delivery.payload else { return None };
        let is_plain = parameters.is_empty() && delivery.configuration.is_none();
        let ticket = self.key.ticket(Purpose::Boot, &delivery.holder);
        is_plain.then(|| self.links.part(Part::Efi, &delivery.holder.deployment, &ticket).ok())?
    }
}
