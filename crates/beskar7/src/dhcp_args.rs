//! The flags of DHCP with addresses of our own.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use boot::dhcp::Sockets;
use boot::neighbours::{self, Neighbours};
use controllers::depot::{Reservations, Reserves};

use crate::human;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Boot service")]
#[expect(clippy::struct_field_names, reason = "the fields are named after the flags")]
pub(crate) struct ReservationArgs {
    /// Addresses that --dhcp reservation gives to known hosts, in the network of the interface, such as 10.0.0.100-10.0.0.199
    #[arg(long, value_name = "FIRST-LAST", env = "BESKAR7_DHCP_RANGE", value_parser = range)]
    dhcp_range: Option<Range>,
    /// Routers that --dhcp reservation tells servers, best first
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', env = "BESKAR7_DHCP_ROUTER")]
    dhcp_router: Vec<Ipv4Addr>,
    /// DNS servers that --dhcp reservation tells servers, best first
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', env = "BESKAR7_DHCP_DNS")]
    dhcp_dns: Vec<Ipv4Addr>,
    /// How long a server may use its address before it has to ask again; it stays reserved
    #[arg(long, value_name = "DURATION", default_value = "1h", env = "BESKAR7_DHCP_LEASE_TIME", value_parser = human::duration)]
    dhcp_lease_time: Duration,
}

/// The first and the last address.
type Range = (Ipv4Addr, Ipv4Addr);

fn range(text: &str) -> Result<Range, String> {
    let advice = "write the first and the last address, such as 10.0.0.100-10.0.0.199";
    let (first, last) = text.split_once('-').ok_or(advice)?;
    let address =
        |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| format!("{text:?} is no IPv4 address: {advice}"));
    let range = (address(first)?, address(last)?);
    if range.0 > range.1 { Err(format!("the first address is greater than the last one: {advice}")) } else { Ok(range) }
}

impl ReservationArgs {
    /// What can be said before anything is opened.
    pub(crate) fn check(&self, mode: &str, interfaces: &[String]) -> anyhow::Result<()> {
        if mode != "reservation" {
            if self.dhcp_range.is_some() || !self.dhcp_router.is_empty() || !self.dhcp_dns.is_empty() {
                bail!(
                    "--dhcp-range, --dhcp-router and --dhcp-dns are for --dhcp reservation, which gives addresses: say so, or leave them out"
                );
            }
            return Ok(());
        }
        if self.dhcp_range.is_none() {
            bail!(
                "--dhcp reservation needs the addresses for known hosts: name them with --dhcp-range, such as 10.0.0.100-10.0.0.199"
            );
        }
        if interfaces.len() > 1 {
            bail!(
                "--dhcp reservation gives addresses of one network: name one interface with --boot-interfaces, not {}",
                interfaces.len()
            );
        }
        Ok(())
    }

    /// The addresses that hosts get on the interface of these sockets.
    pub(crate) fn reserves(&self, sockets: &Sockets) -> anyhow::Result<Reserves> {
        let (interface, address) = (sockets.interface(), sockets.address());
        let mask = neighbours::mask(interface, address).context("cannot read the routes of this machine")?;
        let mask = mask.with_context(|| {
            format!(
                "network interface {interface} has the address {address}, but no route to a network of it: give the address with its prefix, such as {address}/24"
            )
        })?;
        let range = self.dhcp_range.context("--dhcp-range is missing")?;
        let reservations = Reservations::new(range, address, mask).context("--dhcp-range")?;
        let seconds = u32::try_from(self.dhcp_lease_time.as_secs()).unwrap_or(u32::MAX).max(60);
        let reservations =
            reservations.with(self.dhcp_router.clone(), self.dhcp_dns.clone(), seconds).context("--dhcp-router")?;
        let neighbours = Neighbours::open(interface).with_context(|| format!("--boot-interfaces {interface}"))?;
        Ok(Reserves { reservations, neighbours: Arc::new(neighbours) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let good = ([10, 0, 0, 100].into(), [10, 0, 0, 199].into());
        assert_eq!(range("10.0.0.100-10.0.0.199"), Ok(good));
        assert_eq!(range("10.0.0.100 - 10.0.0.199"), Ok(good));
        for wrong in ["", "10.0.0.100", "10.0.0.100-", "10.0.0.100-199", "10.0.0.9-10.0.0.8", "fe80::1-fe80::2"] {
            assert!(range(wrong).unwrap_err().contains("such as 10.0.0.100-10.0.0.199"), "{wrong}");
        }
    }
}
