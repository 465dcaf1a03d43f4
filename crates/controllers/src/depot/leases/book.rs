//! Who has which address, and which may be given to whom.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};

use super::Reservations;
use crate::object::{KindId, ObjectId};

/// How long an address at which another machine was found is not given to anybody.
const BAD_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How long an address that was probed counts as free.
const FREE_FOR: SignedDuration = SignedDuration::from_mins(1);
/// How many addresses are probed at once: each takes room in the kernel's table.
const PROBED_AT_ONCE: usize = 64;

/// All addresses, and who has them.
#[derive(Debug)]
pub(super) struct Book {
    reservations: Reservations,
    /// What hosts have stored, as the watch shows them.
    stored: HashMap<ObjectId, Ipv4Addr>,
    /// What was given and is not seen in the watch yet.
    promised: HashMap<ObjectId, Ipv4Addr>,
    /// Until when an address is not given to anybody.
    bad: HashMap<Ipv4Addr, Timestamp>,
    /// Addresses at which nobody answered, and until when that counts.
    free: BTreeMap<Ipv4Addr, Timestamp>,
    waiting: BTreeSet<ObjectId>,
    /// The kinds whose hosts have all been seen. Before, an address that looks free may be one that is stored.
    listed: HashSet<KindId>,
    is_exhausted: bool,
}

impl Book {
    pub(super) fn new(reservations: Reservations) -> Self {
        let (stored, promised, bad, free, waiting, listed) = Default::default();
        Self { reservations, stored, promised, bad, free, waiting, listed, is_exhausted: false }
    }

    /// The watch shows a host with this address.
    pub(super) fn seen(&mut self, host: &ObjectId, stored: Option<Ipv4Addr>) {
        match stored {
            Some(address) => {
                self.stored.insert(host.clone(), address);
                // A promise stays until it is seen: the watch may be behind what was written.
                if self.promised.get(host) == Some(&address) {
                    self.promised.remove(host);
                }
            }
            None => {
                self.stored.remove(host);
            }
        }
    }

    pub(super) fn gone(&mut self, host: &ObjectId) {
        self.stored.remove(host);
        self.promised.remove(host);
        self.waiting.remove(host);
        // Its address may be what others wait for; that is found out when they are probed for.
        self.is_exhausted = false;
    }

    /// All hosts of a kind have been seen. Whether some of them wait.
    pub(super) fn listed(&mut self, kind: KindId) -> bool {
        self.listed.insert(kind);
        !self.waiting.is_empty()
    }

    /// The address for a host that has this one stored; `None` if it is among those that wait.
    pub(super) fn ask(&mut self, host: &ObjectId, stored: Option<Ipv4Addr>, now: Timestamp) -> Option<Ipv4Addr> {
        let address = self.choose(host, stored, now);
        match address {
            Some(_) => self.waiting.remove(host),
            None => self.waiting.insert(host.clone()),
        };
        self.update_exhausted(now);
        address
    }

    fn choose(&mut self, host: &ObjectId, stored: Option<Ipv4Addr>, now: Timestamp) -> Option<Ipv4Addr> {
        if let Some(address) = stored.filter(|address| self.may_keep(host, *address, now)) {
            // It was written, but the watch may be behind that.
            if self.stored.get(host) == Some(&address) {
                self.promised.remove(host);
            } else {
                self.promised.insert(host.clone(), address);
            }
            return Some(address);
        }
        if !self.listed.contains(&host.kind) {
            return None;
        }
        if let Some(address) = self.promised.get(host).copied().filter(|address| self.may_keep(host, *address, now)) {
            return Some(address);
        }
        self.promised.remove(host);
        let taken = self.taken();
        self.free.retain(|address, until| *until > now && !taken.contains(address));
        let (address, _) = self.free.pop_first()?;
        self.promised.insert(host.clone(), address);
        Some(address)
    }

    /// Whether an address that a host has is still its own. Copies of one host object name the same address: then the first of them has it.
    fn may_keep(&self, host: &ObjectId, address: Ipv4Addr, now: Timestamp) -> bool {
        let is_promised = self.promised.iter().any(|(other, theirs)| other != host && *theirs == address);
        let is_stored = self.stored.iter().any(|(other, theirs)| other < host && *theirs == address);
        self.reservations.is_usable(address) && !self.is_bad(address, now) && !is_promised && !is_stored
    }

    pub(super) fn is_bad(&self, address: Ipv4Addr, now: Timestamp) -> bool {
        self.bad.get(&address).is_some_and(|until| *until > now)
    }

    /// Another machine was found at an address.
    pub(super) fn spoil(&mut self, address: Ipv4Addr, now: Timestamp) {
        self.bad.retain(|_, until| *until > now);
        self.bad.insert(address, now.saturating_add(BAD_FOR).unwrap_or(Timestamp::MAX));
        self.free.remove(&address);
    }

    /// Nobody answered at an address.
    pub(super) fn found_free(&mut self, address: Ipv4Addr, now: Timestamp) {
        self.free.insert(address, now.saturating_add(FREE_FOR).unwrap_or(Timestamp::MAX));
    }

    /// The addresses to be probed for those who wait, the lowest first.
    pub(super) fn take_unprobed(&mut self, now: Timestamp) -> Vec<Ipv4Addr> {
        self.free.retain(|_, until| *until > now);
        if self.listed.is_empty() {
            return Vec::new();
        }
        let wanted = self.waiting.len().saturating_sub(self.free.len()).min(PROBED_AT_ONCE);
        self.candidates(now, wanted)
    }

    /// Addresses that nobody is known to have and that were not probed yet.
    fn candidates(&self, now: Timestamp, wanted: usize) -> Vec<Ipv4Addr> {
        if wanted == 0 {
            return Vec::new();
        }
        let (taken, Reservations { first, last, .. }) = (self.taken(), &self.reservations);
        let all = (first.to_bits()..=last.to_bits()).map(Ipv4Addr::from_bits);
        let may = |address: &Ipv4Addr| {
            self.reservations.is_usable(*address)
                && !taken.contains(address)
                && !self.free.contains_key(address)
                && !self.is_bad(*address, now)
        };
        all.filter(may).take(wanted).collect()
    }

    /// Those who wait for an address and can have one now, or all who wait if there is none: they should say so.
    pub(super) fn take_waiting(&mut self, now: Timestamp) -> Vec<ObjectId> {
        self.update_exhausted(now);
        let count = if self.is_exhausted { self.waiting.len() } else { self.free.len() };
        self.waiting.iter().take(count).cloned().collect()
    }

    /// Notes whether there is no address for those who wait, neither now nor after a probe.
    fn update_exhausted(&mut self, now: Timestamp) {
        let is_known = !self.listed.is_empty();
        self.is_exhausted =
            is_known && !self.waiting.is_empty() && self.free.is_empty() && self.candidates(now, 1).is_empty();
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    fn taken(&self) -> HashSet<Ipv4Addr> {
        self.stored.values().chain(self.promised.values()).copied().collect()
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
