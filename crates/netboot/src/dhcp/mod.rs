//! DHCP and proxy DHCP for machines that boot from the network (RFC 2131 and 2132, PXE 2.1, RFC 4578, UEFI HTTP boot).
//!
//! [`Request::read`] takes a datagram apart, [`Request::answer`] says what to send back. Both are total: any bytes give a
//! value, none a panic. They do not use `dhcproto`, which stops quietly at the first option that it cannot read, keeps one
//! of several architectures, misreads or panics on options of a wrong length, and sorts the options of replies; the tests
//! have it as a second opinion.
//!
//! Beside the DHCP server of the site (proxy), a host with something to boot gets an offer without an address; the firmware
//! puts it together with the site's offer. With reservations, known hosts get the address that the caller stored for them.
//! In neither mode does anybody else hear from us.

mod answer;
mod architecture;
mod asker;
mod contents;
mod files;
mod options;
mod packet;
mod request;

pub use answer::{Answer, Client, Destination, Lease, Mode, Reply, ReplyKind, Server, Silence};
pub use architecture::Architecture;
pub use asker::{Asker, Feature, Features};
pub use files::{BIOS_LOADER, BootFile, FULL_UEFI_LOADER, Files, LOADERS, NoBoot, UEFI_LOADER};
pub use request::{Arrival, Ignored, Kind, Port, Request};
