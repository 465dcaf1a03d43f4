//! Which host a client of the network is, and what it may boot.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use engine::host::{Anchor, BootPlan, Goal, LastBoot, boot_plan};
use jiff::Timestamp;
use netboot::client::{By, Clients, Host, Mac, Match, Uuid};

use crate::dialect::NetworkIdentity;
use crate::object::ObjectId;

/// What is known of all hosts.
#[derive(Default)]
pub(super) struct Boots {
    hosts: HashMap<ObjectId, Known>,
    /// Made when it is needed, after a change.
    clients: Option<Clients<ObjectId>>,
}

/// What is known of a host.
struct Known {
    macs: Vec<Mac>,
    uuid: Option<Uuid>,
    /// The address that it has from us.
    address: Option<Ipv4Addr>,
    ordered: Ordered,
}

/// What decides about the boots of a host.
pub(super) struct Ordered {
    pub(super) anchor: Anchor,
    pub(super) goal: Goal,
    /// When its last start began that was to follow the order.
    pub(super) begun: Option<Timestamp>,
}

/// A client that is a host.
pub(super) struct Recognised<'a> {
    pub(super) host: &'a ObjectId,
    pub(super) ordered: &'a Ordered,
    pub(super) by: By,
}

impl Boots {
    pub(super) fn put(&mut self, host: ObjectId, identity: &NetworkIdentity, ordered: Ordered) {
        let mut macs: Vec<Mac> = identity.macs.iter().filter_map(|mac| mac.parse().ok()).collect();
        macs.retain(|mac| mac.is_of_a_card());
        let uuid = identity.uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        let is_same = self.hosts.get(&host).is_some_and(|known| known.macs == macs && known.uuid == uuid);
        if !is_same {
            self.clients = None;
        }
        self.hosts.insert(host, Known { macs, uuid, address: identity.address, ordered });
    }

    pub(super) fn remove(&mut self, host: &ObjectId) {
        if self.hosts.remove(host).is_some() {
            self.clients = None;
        }
    }

    /// The address that a host has stored.
    pub(super) fn address(&self, host: &ObjectId) -> Option<Ipv4Addr> {
        self.hosts.get(host)?.address
    }

    /// Which host a client is, or why it is none.
    pub(super) fn recognise(&mut self, mac: Mac, uuid: Option<Uuid>) -> Result<Recognised<'_>, String> {
        let clients = self.clients.get_or_insert_with(|| {
            let host = |(key, known): (&ObjectId, &Known)| Host {
                key: key.clone(),
                macs: known.macs.clone(),
                uuid: known.uuid,
            };
            Clients::new(self.hosts.iter().map(host))
        });
        let (key, by) = match clients.who(mac, uuid) {
            Match::Host { key, by, disagreeing } => {
                if let Some(other) = disagreeing {
                    tracing::info!(host = %key, %mac, %other, "a client has the MAC address of one host and the UUID of another; the MAC address counts");
                }
                (key, by)
            }
            Match::Nobody(reason) => return Err(reason.to_string()),
        };
        let found =
            self.hosts.get_key_value(&key).map(|(host, known)| Recognised { host, ordered: &known.ordered, by });
        found.ok_or_else(|| "the host was removed meanwhile".to_owned())
    }
}

impl Ordered {
    /// What the server may boot now.
    pub(super) fn plan(&self, handed: Option<Timestamp>, now: Timestamp) -> BootPlan<'_> {
        boot_plan(&self.anchor, &self.goal, LastBoot { begun: self.begun, handed }, now)
    }
}
