//! Addresses to which a user-supplied URL must not send the operator.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;

/// Lets pass all addresses but those of this machine, of the link and of cloud metadata services, which answer secrets to
/// anybody on the machine. The machine's own addresses are asked of the system each time: they come and go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    allowed: Vec<Network>,
}

/// Addresses with the same first bits: `10.0.0.0/8`, `fd00::/8`, `127.0.0.1`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network: write an address, or an address and its prefix length, such as 10.0.0.0/8")]
pub struct NetworkInvalid(String);

const LINK: &str = "a link-local address, where cloud metadata services answer";
const METADATA: &str = "a cloud metadata service";
const THIS: &str = "this machine itself";
const TRANSLATED: &str = "an IPv4 address behind a translator, and which one cannot be told";
const MANY: &str = "not the address of one server";

impl Guard {
    /// Allows these networks, too.
    pub fn allowing(allowed: impl IntoIterator<Item = Network>) -> Self {
        Self { allowed: allowed.into_iter().collect() }
    }

    /// What is wrong with an address, if something is.
    pub fn refuses(&self, address: IpAddr) -> Option<&'static str> {
        if self.allowed.iter().any(|network| network.contains(address)) {
            return None;
        }
        match address {
            IpAddr::V4(address) => refused_v4(address).or_else(|| own(address.into())),
            IpAddr::V6(address) => match embedded(address) {
                Some(inner) if self.allowed.iter().any(|network| network.contains(inner.into())) => None,
                Some(inner) => refused_v4(inner).or_else(|| own(inner.into())),
                None => refused_v6(address).or_else(|| own(address.into())),
            },
        }
    }
}

/// Whether an address is one of this machine's, on whichever interface. Nothing is sent: the system only says from which address it
/// would, and that is the address itself for those that it has.
fn own(address: IpAddr) -> Option<&'static str> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((address, 9)).ok()?;
    (socket.local_addr().ok()?.ip() == address).then_some(THIS)
}

fn refused_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [169, 254, ..] => Some(LINK),
        // Alibaba, Oracle and Azure.
        [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => Some(METADATA),
        // All of 0.0.0.0/8 means this machine to Linux.
        [0 | 127, ..] => Some(THIS),
        [224..=255, ..] => Some(MANY),
        _ => None,
    }
}

fn refused_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0xfe80..=0xfebf, ..] => Some(LINK),
        // AWS, Google and Scaleway.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
        | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42] => Some(METADATA),
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(THIS),
        [0xff00..=0xffff, ..] => Some(MANY),
        // A site's own NAT64 prefix: how much of it is the prefix is known to the site alone.
        [0x64, 0xff9b, 1, ..] => Some(TRANSLATED),
        _ => None,
    }
}

/// The IPv4 address that a packet to this one may end at: mapped, translated (NAT64) or tunnelled (6to4, Teredo, ISATAP).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            v4(high, low)
        }
        // The tunnel ends at the client, whose address is written upside down.
        [0x2001, 0, _, _, _, _, high, low] => v4(!high, !low),
        [_, _, _, _, 0 | 0x100 | 0x200 | 0x300, 0x5efe, high, low] => v4(high, low),
        // The deprecated IPv4-compatible form.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => v4(high, low),
        _ => None,
    }
}

impl Network {
    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ours, theirs, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        (ours ^ theirs).checked_shr(width - u32::from(self.bits)).is_none_or(|different| different == 0)
    }
}

impl FromStr for Network {
    type Err = NetworkInvalid;

    fn from_str(text: &str) -> Result<Self, NetworkInvalid> {
        let invalid = || NetworkInvalid(text.to_owned());
        let (address, bits) =
            text.trim().split_once('/').map_or((text.trim(), None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| invalid()))?;
        if bits > width { Err(invalid()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn secrets_of_the_machine_and_of_the_cloud_are_out_of_reach() {
        for forbidden in [
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:42::42",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1::808:808",
            // Teredo: 169.254.169.254 and 127.0.0.1, each bit turned over.
            "2001:0:4136:e378:8000:63bf:5601:5601",
            "2001::80ff:fffe",
            // ISATAP.
            "2001:db8::5efe:169.254.169.254",
            "fd00::200:5efe:127.0.0.1",
        ] {
            assert!(Guard::default().refuses(address(forbidden)).is_some(), "{forbidden}");
        }
        for fine in [
            "10.0.0.1",
            "192.168.1.1",
            "100.100.100.201",
            "8.8.8.8",
            "fd00::1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "2001:db8::5efe:10.0.0.1",
        ] {
            assert_eq!(Guard::default().refuses(address(fine)), None, "{fine}");
        }
    }

    #[test]
    fn a_lab_may_allow_what_it_needs_and_nothing_else() {
        let guard = Guard::allowing(["127.0.0.0/8".parse().unwrap(), "fe80::/16".parse().unwrap()]);
        for fine in ["127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::5"] {
            assert_eq!(guard.refuses(address(fine)), None, "{fine}");
        }
        for forbidden in ["169.254.169.254", "::1", "fe81::1"] {
            assert!(guard.refuses(address(forbidden)).is_some(), "{forbidden}");
        }
    }

    #[test]
    fn the_addresses_of_this_machine_are_refused_unless_they_are_allowed() {
        // Whichever address this machine would send from; without a network it has none but loopback.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let Ok(ours) = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) else { return };
        assert_eq!(Guard::default().refuses(ours.ip()), Some(THIS), "{ours}");
        let network = ours.ip().to_string().parse().unwrap();
        assert_eq!(Guard::allowing([network]).refuses(ours.ip()), None);
        assert_eq!(Guard::default().refuses(address("192.0.2.1")), None);
    }

    #[test]
    fn networks_are_read_and_compared_by_their_first_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("10.1.2.3/31", "10.1.2.2", "10.1.2.4"),
            ("fd00::/8", "fdff::", "fe00::"),
            ("::1/128", "::1", "::2"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("::/0", "fe80::1", "1.1.1.1"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(address(inside)) && !parsed.contains(address(outside)), "{network}");
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0", "a/8", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(text.parse::<Network>(), Err(NetworkInvalid(text.to_owned())), "{text}");
        }
    }
}
