//! Who may fetch bootstrap data. Pure.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

/// How long the address that came first may fetch again. Installers retry, and some fetch once in the initramfs and once in the
/// installed system.
pub const OPEN_FOR: Duration = Duration::from_mins(15);

/// Whether an address may have the bootstrap data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Yes, and from now on no other address.
    First,
    /// Yes, it was the first.
    Again,
    /// No, another address was first.
    OtherAddress {
        /// Who.
        first: IpAddr,
    },
    /// No, it has been too long.
    Closed,
    /// No, the server was not powered on yet for this deployment, so the request cannot come from it.
    TooEarly,
}

/// The rule: once the server was powered on for this deployment, the first address, for a while.
pub fn config_gate(powered_on: bool, first: Option<(IpAddr, Timestamp)>, from: IpAddr, now: Timestamp) -> Gate {
    match first {
        _ if !powered_on => Gate::TooEarly,
        None => Gate::First,
        Some((first, _)) if first.to_canonical() != from.to_canonical() => Gate::OtherAddress { first },
        // Clocks of replicas differ a little; a record from far in the future is a broken clock, and no reason to stay open.
        Some((_, since)) if now.duration_since(since).unsigned_abs() > OPEN_FOR => Gate::Closed,
        Some(_) => Gate::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_power_on_the_first_address_may_come_again_for_a_quarter_of_an_hour_and_nobody_else_ever() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        let (a, b) = (address("10.0.0.1"), address("10.0.0.2"));
        let b_first = Gate::OtherAddress { first: b };
        for (first, from, now, expected) in [
            (None, a, 0, Gate::First),
            (Some((a, at(0))), a, 0, Gate::Again),
            (Some((a, at(0))), a, 900, Gate::Again),
            (Some((a, at(0))), a, 901, Gate::Closed),
            (Some((a, at(0))), a, 1_000_000, Gate::Closed),
            (Some((a, at(0))), a, -5, Gate::Again),
            (Some((a, at(0))), a, -901, Gate::Closed),
            (Some((b, at(0))), a, 0, b_first),
            (Some((b, at(0))), a, 1000, b_first),
            (Some((a, at(0))), address("::ffff:10.0.0.1"), 1, Gate::Again),
        ] {
            assert_eq!(config_gate(true, first, from, at(now)), expected, "{first:?} {from} {now}");
            assert_eq!(config_gate(false, first, from, at(now)), Gate::TooEarly, "{first:?} {from} {now}");
        }
    }
}
