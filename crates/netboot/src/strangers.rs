//! The clients that were not recognised, for whoever wonders why a machine does not boot.

use std::collections::BTreeMap;

use crate::client::{Mac, Uuid};
use crate::text::printable;

/// The clients that matched no host, the least recently seen of which is forgotten for a new one.
#[derive(Debug, Clone)]
pub struct Strangers<T> {
    seen: BTreeMap<Mac, Stranger<T>>,
}

/// A client that matched no host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger<T> {
    /// Its MAC address.
    pub mac: Mac,
    /// The UUID that it sent last.
    pub uuid: Option<Uuid>,
    /// What machine it says it is.
    pub architecture: String,
    /// Why it matched nothing.
    pub reason: String,
    /// When it was first seen.
    pub first: T,
    /// When it was last seen.
    pub last: T,
    /// How many of its packets were seen.
    pub count: u64,
}

impl<T: Ord + Copy> Strangers<T> {
    /// How many are kept: enough for a rack, few enough to list.
    pub const LIMIT: usize = 100;
    const TEXT: usize = 200;

    /// Nobody yet.
    pub fn new() -> Self {
        Self { seen: BTreeMap::new() }
    }

    /// A client that matched nothing has sent a packet.
    pub fn saw(&mut self, mac: Mac, uuid: Option<Uuid>, architecture: &str, reason: &str, now: T) {
        let known = self.seen.get(&mac);
        let stranger = Stranger {
            mac,
            uuid,
            architecture: printable(architecture.as_bytes(), Self::TEXT),
            reason: printable(reason.as_bytes(), Self::TEXT),
            first: known.map_or(now, |known| known.first),
            last: now,
            count: known.map_or(1, |known| known.count.saturating_add(1)),
        };
        if known.is_none() && self.seen.len() >= Self::LIMIT {
            let oldest = self.seen.values().min_by_key(|stranger| (stranger.last, stranger.mac));
            if let Some(oldest) = oldest.map(|stranger| stranger.mac) {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(mac, stranger);
    }

    /// It has become a known host.
    pub fn forget(&mut self, mac: Mac) {
        self.seen.remove(&mac);
    }

    /// All of them, the most recently seen first.
    pub fn list(&self) -> Vec<&Stranger<T>> {
        let mut list: Vec<_> = self.seen.values().collect();
        list.sort_by(|a, b| b.last.cmp(&a.last).then(a.mac.cmp(&b.mac)));
        list
    }
}

impl<T: Ord + Copy> Default for Strangers<T> {
    fn default() -> Self {
        Self::new()
    }
}
