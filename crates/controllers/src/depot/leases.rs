//! Which host has which address on the network that servers boot from.
//!
//! [`Book`] decides, and knows neither time nor network. The leader asks it for an address when it writes the status of a host, so an address
//! is stored before it is offered. An address is given only after it was probed and nobody answered there.

mod book;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use boot::neighbours::Neighbours;
use jiff::Timestamp;
use netboot::dhcp::Lease;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use self::book::Book;
use crate::clock::Clock;
use crate::object::{KindId, ObjectId};

/// How often an address that was in use is tried again, if a host still waits for one.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// After the kernel could not be asked.
const AFTER_AN_ERROR: Duration = Duration::from_secs(5);

/// The addresses that known hosts get, and what belongs to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservations {
    first: Ipv4Addr,
    last: Ipv4Addr,
    ours: Ipv4Addr,
    mask: Ipv4Addr,
    routers: Vec<Ipv4Addr>,
    dns: Vec<Ipv4Addr>,
    seconds: u32,
}

/// Why a range of addresses cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RangeError {
    /// They are elsewhere.
    #[error(
        "{address} is not in {network}, the network of the interface: choose addresses from there, or another interface"
    )]
    Outside {
        /// One of them.
        address: Ipv4Addr,
        /// The network.
        network: String,
    },
    /// One of them is ours.
    #[error("the range contains {0}, the address of the interface itself: leave it out")]
    Ours(Ipv4Addr),
    /// One of them is no machine's.
    #[error("{0} is the network or broadcast address, which no server can have: leave it out")]
    NoMachine(Ipv4Addr),
    /// Servers cannot reach a router elsewhere.
    #[error(
        "the router {router} is not in {network}, the network of the interface, so servers cannot reach it: name one that is"
    )]
    Router {
        /// The router.
        router: Ipv4Addr,
        /// The network.
        network: String,
    },
}

impl Reservations {
    /// Addresses of the network that we have `ours` in.
    pub fn new(range: (Ipv4Addr, Ipv4Addr), ours: Ipv4Addr, mask: Ipv4Addr) -> Result<Self, RangeError> {
        let (first, last) = range;
        let new = Self { first, last, ours, mask, routers: Vec::new(), dns: Vec::new(), seconds: 3600 };
        for address in [first, last] {
            if !new.is_in_network(address) {
                return Err(RangeError::Outside { address, network: new.network() });
            }
            if !new.is_of_a_machine(address) {
                return Err(RangeError::NoMachine(address));
            }
        }
        if (first..=last).contains(&ours) {
            return Err(RangeError::Ours(ours));
        }
        Ok(new)
    }

    /// With the routers and DNS servers that servers are told, and for how long they may use an address before they ask again.
    pub fn with(mut self, routers: Vec<Ipv4Addr>, dns: Vec<Ipv4Addr>, seconds: u32) -> Result<Self, RangeError> {
        if let Some(router) = routers.iter().find(|router| !self.is_in_network(**router)) {
            return Err(RangeError::Router { router: *router, network: self.network() });
        }
        self.routers = routers;
        self.dns = dns;
        self.seconds = seconds;
        Ok(self)
    }

    /// Whether a host could have this address. It need not be in the range.
    fn is_usable(&self, address: Ipv4Addr) -> bool {
        self.is_in_network(address) && self.is_of_a_machine(address) && !self.is_taken_by_the_site(address)
    }

    fn is_taken_by_the_site(&self, address: Ipv4Addr) -> bool {
        address == self.ours || self.routers.contains(&address) || self.dns.contains(&address)
    }

    fn is_in_network(&self, address: Ipv4Addr) -> bool {
        address & self.mask == self.ours & self.mask
    }

    /// Networks of one or two addresses have no others (RFC 3021).
    fn is_of_a_machine(&self, address: Ipv4Addr) -> bool {
        let machines = !self.mask.to_bits();
        let machine = address.to_bits() & machines;
        machines <= 1 || (machine != 0 && machine != machines)
    }

    fn network(&self) -> String {
        format!("{}/{}", self.ours & self.mask, self.mask.to_bits().leading_ones())
    }

    fn lease(&self, address: Ipv4Addr) -> Lease {
        Lease {
            address,
            mask: self.mask,
            routers: self.routers.clone(),
            dns: self.dns.clone(),
            ntp: Vec::new(),
            domain: None,
            seconds: self.seconds,
        }
    }
}

impl std::fmt::Display for Reservations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// The addresses of all hosts.
#[derive(Debug)]
pub(crate) struct Leases {
    reservations: Reservations,
    neighbours: Arc<Neighbours>,
    book: Mutex<Book>,
    /// Hosts wait for addresses.
    wanted: Notify,
    /// Whom the leader wakes.
    wake: Mutex<Option<UnboundedSender<ObjectId>>>,
}

impl Leases {
    pub(super) fn new(reservations: Reservations, neighbours: Arc<Neighbours>) -> Self {
        let book = Mutex::new(Book::new(reservations.clone()));
        Self { reservations, neighbours, book, wanted: Notify::new(), wake: Mutex::default() }
    }

    /// Hosts that get their address are woken by this from now on.
    pub(crate) fn wake_by(&self, wake: UnboundedSender<ObjectId>) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    /// The address that a host is to have, which may be another one than it has `stored`; `None` if there is none yet. Only for whoever
    /// stores it.
    pub(crate) fn address(&self, host: &ObjectId, stored: Option<Ipv4Addr>, now: Timestamp) -> Option<Ipv4Addr> {
        let mut book = self.book();
        let was_exhausted = book.is_exhausted();
        let address = book.ask(host, stored, now);
        let is_exhausted = book.is_exhausted();
        drop(book);
        match address {
            Some(address) if stored != Some(address) => info!(%host, %address, "address reserved"),
            Some(_) => {}
            None => {
                if is_exhausted && !was_exhausted {
                    warn!(%host, "{}", self.exhausted_words());
                    // What it was decided on did not know that yet.
                    self.wake([host.clone()]);
                }
                self.wanted.notify_one();
            }
        }
        address
    }

    /// Why a host without an address will not get one soon, if that is so.
    pub(crate) fn exhausted(&self) -> Option<String> {
        self.book().is_exhausted().then(|| self.exhausted_words())
    }

    fn exhausted_words(&self) -> String {
        format!(
            "No address is free for this server: all of --dhcp-range {} are reserved or in use by machines that are no known hosts. Make the range larger, or delete hosts that are gone.",
            self.reservations
        )
    }

    /// What the host is told when it asks, from the relay if one passed its request on.
    pub(super) fn lease(&self, stored: Ipv4Addr, relay: Option<Ipv4Addr>, now: Timestamp) -> Option<Lease> {
        let is_here = relay.is_none_or(|relay| self.reservations.is_in_network(relay));
        let may = is_here && self.reservations.is_usable(stored) && !self.book().is_bad(stored, now);
        may.then(|| self.reservations.lease(stored))
    }

    /// Somebody else has the address of this host, as the host has found out.
    pub(super) fn declined(&self, host: &ObjectId, address: Ipv4Addr, now: Timestamp) {
        warn!(%host, %address, "the host declined its address because another machine uses it: find that machine, or leave the address out of --dhcp-range. The host gets another address; this one is not used for an hour");
        self.book().spoil(address, now);
        self.wake([host.clone()]);
    }

    pub(super) fn seen(&self, host: &ObjectId, stored: Option<Ipv4Addr>) {
        self.book().seen(host, stored);
    }

    pub(super) fn gone(&self, host: &ObjectId) {
        self.book().gone(host);
        self.wanted.notify_one();
    }

    /// All hosts of a kind have been seen.
    pub(super) fn listed(&self, kind: KindId) {
        let waiting = self.book().listed(kind);
        if waiting {
            self.wanted.notify_one();
        }
    }

    /// Looks for free addresses as long as it is polled, whenever a host waits for one.
    pub(super) async fn probe(&self, clock: &dyn Clock) {
        loop {
            let asked = self.book().take_unprobed(clock.now());
            if asked.is_empty() {
                // Addresses that were in use come back with time.
                timeout(LOOK_AGAIN, self.wanted.notified()).await.ok();
                continue;
            }
            let answering = match self.neighbours.answering(&asked).await {
                Ok(answering) => answering,
                Err(error) => {
                    warn!(%error, "cannot find out which addresses are in use, so none is reserved; trying again");
                    sleep(AFTER_AN_ERROR).await;
                    continue;
                }
            };
            let now = clock.now();
            let mut book = self.book();
            for address in asked {
                if answering.contains(&address) {
                    warn!(%address, "a machine that is no known host uses this address of --dhcp-range; it is not reserved for the next hour");
                    book.spoil(address, now);
                } else {
                    book.found_free(address, now);
                }
            }
            let woken = book.take_waiting(now);
            drop(book);
            self.wake(woken);
        }
    }

    fn wake(&self, hosts: impl IntoIterator<Item = ObjectId>) {
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        for host in hosts {
            // Nobody listens any more when we no longer lead.
            wake.as_ref().map(|wake| wake.send(host));
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_that_cannot_be_used_is_refused_with_what_to_do() {
        let range = |first, last| Reservations::new((ip(first), ip(last)), ip("10.0.0.5"), ip("255.255.255.0"));
        assert!(range("10.0.0.100", "10.0.0.199").is_ok());
        for (first, last, sentence) in [
            ("10.0.1.100", "10.0.1.199", "10.0.1.100 is not in 10.0.0.0/24"),
            ("10.0.0.100", "10.0.1.10", "10.0.1.10 is not in 10.0.0.0/24"),
            ("10.0.0.1", "10.0.0.9", "the range contains 10.0.0.5"),
            ("10.0.0.0", "10.0.0.4", "10.0.0.0 is the network or broadcast address"),
            ("10.0.0.100", "10.0.0.255", "10.0.0.255 is the network or broadcast address"),
        ] {
            let error = range(first, last).unwrap_err().to_string();
            assert!(error.starts_with(sentence), "{error}");
        }
        let good = range("10.0.0.100", "10.0.0.199").unwrap();
        let error = good.with(vec![ip("10.0.1.1")], Vec::new(), 60).unwrap_err().to_string();
        assert!(error.starts_with("the router 10.0.1.1 is not in 10.0.0.0/24"), "{error}");
    }
}
