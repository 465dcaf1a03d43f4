//! IP addresses and networks, written strictly: no leading zeros, no zones, no IPv4 inside of IPv6.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ip(pub(super) IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cidr {
    ip: IpAddr,
    bits: u8,
}

impl Ip {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let ip: IpAddr = text.parse().map_err(|_| {
            format!(
                "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
            )
        })?;
        if matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()) {
            return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
        }
        Ok(Self(ip))
    }

    pub(super) fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    pub(super) fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
            IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
        }
    }

    pub(super) fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
        }
    }

    pub(super) fn is_global_unicast(self) -> bool {
        !self.0.is_unspecified()
            && !self.0.is_loopback()
            && !self.0.is_multicast()
            && !self.is_link_local_unicast()
            && self.0 != IpAddr::V4(Ipv4Addr::BROADCAST)
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Cidr {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let twice = "network address parse error during conversion from string: ";
            format!("{twice}{twice}netip.ParsePrefix({text:?}): {why}")
        };
        let (ip, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
        let ip: IpAddr = ip.parse().map_err(|_| wrong(&format!("ParseAddr({ip:?}): unable to parse IP")))?;
        if matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()) {
            return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
        }
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        if bits.len() > 1 && bits.starts_with('0') || !bits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(wrong("bad bits after slash: ") + &format!("{bits:?}"));
        }
        match bits.parse::<u8>() {
            Ok(bits) if bits <= longest => Ok(Self { ip, bits }),
            _ => Err(wrong("prefix length out of range")),
        }
    }

    pub(super) fn ip(self) -> Ip {
        Ip(self.ip)
    }

    pub(super) fn prefix_length(self) -> i64 {
        i64::from(self.bits)
    }

    pub(super) fn masked(self) -> Self {
        Self { ip: mask(self.ip, self.bits), bits: self.bits }
    }

    pub(super) fn contains_ip(self, ip: Ip) -> bool {
        self.ip.is_ipv4() == ip.0.is_ipv4() && mask(self.ip, self.bits) == mask(ip.0, self.bits)
    }

    pub(super) fn contains_cidr(self, other: Cidr) -> bool {
        self.bits <= other.bits && self.contains_ip(Ip(other.ip))
    }

    /// Bytes of the address.
    pub(super) fn bytes(self) -> u64 {
        if self.ip.is_ipv4() { 4 } else { 16 }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

fn mask(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let wide = Cidr::parse("10.0.0.0/8").unwrap();
        assert!(wide.contains_ip(Ip::parse("10.1.2.3").unwrap()));
        assert!(!wide.contains_ip(Ip::parse("::1").unwrap()));
        assert!(wide.contains_cidr(Cidr::parse("10.1.0.0/16").unwrap()));
        assert!(!Cidr::parse("10.1.0.0/16").unwrap().contains_cidr(wide));
        assert_eq!(Cidr::parse("10.1.2.3/8").unwrap().masked(), wide);
        assert!(Cidr::parse("0.0.0.0/0").unwrap().contains_ip(Ip::parse("8.8.8.8").unwrap()));
        for text in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "x/8", "10.0.0.0/-1", "/"] {
            assert!(Cidr::parse(text).is_err(), "{text}");
        }
        for text in ["::ffff:1.2.3.4", "1.2.3", "01.2.3.4", "", "fe80::1%eth0"] {
            assert!(Ip::parse(text).is_err(), "{text}");
        }
    }
}
