//! What machines that boot from the network say, and what they are answered: DHCP and TFTP, without sockets, clocks or
//! Kubernetes. The crate `boot` has the sockets.

pub mod dhcp;
pub mod tftp;
