//! Which known host is this client?
//!
//! A client is a host if its MAC address is one of the host's, or else if it tells the host's UUID. Both can be forged:
//! a match decides what is offered, never who is trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// The hardware address of an Ethernet card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

/// The UUID of a machine, with its bytes in the order in which they were sent (option 97) or written.
///
/// Firmware sends the first three fields in either byte order, and BMCs write either as well: [`Clients`] takes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

/// A known host, and by what it is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host<K> {
    /// What the caller calls it.
    pub key: K,
    /// Its network cards, as far as they are known.
    pub macs: Vec<Mac>,
    /// Its UUID, if its BMC tells one.
    pub uuid: Option<Uuid>,
}

/// The index of known hosts.
#[derive(Debug, Clone)]
pub struct Clients<K> {
    by_mac: BTreeMap<Mac, BTreeSet<K>>,
    /// By [`Uuid::ordered`].
    by_uuid: BTreeMap<Uuid, BTreeSet<K>>,
}

/// Which host a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match<K> {
    /// It is this one.
    Host {
        /// The host.
        key: K,
        /// What was compared.
        by: By,
        /// The host that has the client's UUID, where the MAC address says another: somebody moved a network card, or lies.
        disagreeing: Option<K>,
    },
    /// It is no known host, or not certainly one.
    Nobody(Reason<K>),
}

/// By what a host was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The client's MAC address.
    Mac,
    /// The client's UUID, because no host has its MAC address.
    Uuid,
}

/// Why a client matched nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason<K> {
    /// There was nothing else to go by.
    #[error("no host has the MAC address {0}, and the client sent no UUID")]
    UnknownMac(Mac),
    /// Neither is known.
    #[error("no host has the MAC address {0} or the UUID {1}")]
    Unknown(Mac, Uuid),
    /// Firmware that was never given a UUID.
    #[error("no host has the MAC address {0}, and the UUID {1} is a placeholder that many machines share")]
    PlaceholderUuid(Mac, Uuid),
    /// Offering to either could boot the wrong one.
    #[error("the MAC address {mac} is listed for two hosts, {first} and {second}: remove it from one of them")]
    DoubledMac {
        /// The address.
        mac: Mac,
        /// One of the hosts.
        first: K,
        /// Another one.
        second: K,
    },
    /// Offering to either could boot the wrong one.
    #[error(
        "no host has the MAC address {mac}, and two hosts, {first} and {second}, have the UUID {uuid}: list the MAC address for the right one"
    )]
    DoubledUuid {
        /// The client's MAC address.
        mac: Mac,
        /// The UUID that it sent.
        uuid: Uuid,
        /// One of the hosts.
        first: K,
        /// Another one.
        second: K,
    },
}

impl<K: Clone + Ord> Clients<K> {
    /// An index of these hosts.
    pub fn new(hosts: impl IntoIterator<Item = Host<K>>) -> Self {
        let mut clients = Self { by_mac: BTreeMap::new(), by_uuid: BTreeMap::new() };
        for Host { key, macs, uuid } in hosts {
            for mac in macs {
                clients.by_mac.entry(mac).or_default().insert(key.clone());
            }
            if let Some(uuid) = uuid.filter(|uuid| !uuid.is_placeholder()) {
                clients.by_uuid.entry(uuid.ordered()).or_default().insert(key);
            }
        }
        clients
    }

    /// Which host this client is: by its MAC address, or else by its UUID in either byte order, if exactly one host has it.
    pub fn who(&self, mac: Mac, uuid: Option<Uuid>) -> Match<K> {
        let same_uuid = uuid.and_then(|uuid| self.by_uuid.get(&uuid.ordered())).map(holders);
        match (self.by_mac.get(&mac).map(holders), same_uuid, uuid) {
            (Some(Holders::One(key)), Some(Holders::One(other)), _) if key != other => {
                Match::Host { key: key.clone(), by: By::Mac, disagreeing: Some(other.clone()) }
            }
            (Some(Holders::One(key)), _, _) => Match::Host { key: key.clone(), by: By::Mac, disagreeing: None },
            (Some(Holders::Several(first, second)), _, _) => {
                Match::Nobody(Reason::DoubledMac { mac, first: first.clone(), second: second.clone() })
            }
            (_, Some(Holders::One(key)), _) => Match::Host { key: key.clone(), by: By::Uuid, disagreeing: None },
            (_, Some(Holders::Several(first, second)), Some(uuid)) => {
                Match::Nobody(Reason::DoubledUuid { mac, uuid, first: first.clone(), second: second.clone() })
            }
            (_, _, Some(uuid)) if uuid.is_placeholder() => Match::Nobody(Reason::PlaceholderUuid(mac, uuid)),
            (_, _, Some(uuid)) => Match::Nobody(Reason::Unknown(mac, uuid)),
            (_, _, None) => Match::Nobody(Reason::UnknownMac(mac)),
        }
    }
}

/// The hosts that have one address or UUID.
enum Holders<'a, K> {
    None,
    One(&'a K),
    Several(&'a K, &'a K),
}

fn holders<K>(keys: &BTreeSet<K>) -> Holders<'_, K> {
    let mut keys = keys.iter();
    match (keys.next(), keys.next()) {
        (Some(first), Some(second)) => Holders::Several(first, second),
        (Some(only), None) => Holders::One(only),
        (None, _) => Holders::None,
    }
}

impl Mac {
    /// Whether a network card can have it: not zero, and not the address of a group.
    pub fn is_of_a_card(self) -> bool {
        let [first, ..] = self.0;
        self != Self([0; 6]) && first & 1 == 0
    }
}

impl Uuid {
    /// What AMI's firmware ships with, in either byte order, and an example that went into products.
    const PLACEHOLDERS: [Self; 2] = [
        Self([0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x07, 0x00, 0x08, 0x00, 0x09]),
        Self([0x12, 0x34, 0x56, 0x78, 0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xde, 0xef, 0xaa, 0xbb, 0xcc]),
    ];

    /// With the first three fields in the other byte order.
    pub fn swapped(self) -> Self {
        let mut bytes = self.0;
        for field in [0..4, 4..6, 6..8] {
            bytes.get_mut(field).unwrap_or_default().reverse();
        }
        Self(bytes)
    }

    /// Whether it is one that firmware has when nobody gave it a UUID: it tells nothing.
    pub fn is_placeholder(self) -> bool {
        let [first, ..] = self.0;
        self.0.iter().all(|byte| *byte == first)
            || Self::PLACEHOLDERS.iter().any(|known| known.ordered() == self.ordered())
    }

    /// The same for both byte orders.
    fn ordered(self) -> Self {
        self.min(self.swapped())
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// A text that is no hardware address or UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnId {
    /// Twelve hexadecimal digits are needed.
    #[error("this is not a MAC address such as 52:54:00:12:34:56")]
    Mac,
    /// Thirty-two hexadecimal digits are needed.
    #[error("this is not a UUID such as 4c4c4544-0051-3010-8052-b4c04f564231")]
    Uuid,
}

/// With colons, dashes, dots or nothing between the digits: BMCs write all of them.
impl FromStr for Mac {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        digits(text, &[':', '-', '.']).map(Self).ok_or(NotAnId::Mac)
    }
}

impl FromStr for Uuid {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        digits(text, &['-']).map(Self).ok_or(NotAnId::Uuid)
    }
}

fn digits<const N: usize>(text: &str, between: &[char]) -> Option<[u8; N]> {
    let mut digits = text.chars().filter(|character| !between.contains(character)).map(|digit| digit.to_digit(16));
    let mut bytes = [0; N];
    for byte in &mut bytes {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    digits.next().is_none().then_some(bytes)
}
