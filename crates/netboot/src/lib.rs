//! What machines that boot from the network say, and what they are answered: DHCP and TFTP, without sockets, clocks or
//! Kubernetes. The crate `boot` has the sockets.

pub mod client;
pub mod dhcp;
pub mod strangers;
mod text;
pub mod tftp;
