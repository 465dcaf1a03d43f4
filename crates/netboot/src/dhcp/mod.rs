//! DHCP and proxy DHCP for machines that boot from the network (RFC 2131 and 2132, PXE 2.1, RFC 4578, UEFI HTTP boot).
//!
//! [`Request::read`] takes a datagram apart. It is total: any bytes give a value, none a panic. It does not use `dhcproto`,
//! which stops quietly at the first option that it cannot read, keeps one of several architectures, and misreads or panics
//! on options of a wrong length; the tests have it as a second opinion.

mod architecture;
mod asker;
mod options;
mod request;

pub use architecture::Architecture;
pub use asker::{Asker, Feature, Features};
pub use request::{Arrival, Ignored, Kind, Port, Request};
