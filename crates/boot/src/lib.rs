//! What a server boots: the user's ISO with kernel parameters written into it, and its bootstrap data.
//!
//! From the core outwards: [`os`] knows which kernel parameter an operating system reads, [`iso`] writes it into an image,
//! [`ticket`] and [`links`] define who may fetch what and where, [`fetch`] reads the user's image, [`serve`] answers BMCs and
//! servers over HTTP, [`dhcp`] and [`tftp`] answer firmware that boots from the network.

pub mod dhcp;
pub mod fetch;
pub mod ipxe;
pub mod iso;
pub mod kind;
pub mod links;
pub mod neighbours;
pub mod os;
pub mod serve;
pub mod tftp;
pub mod ticket;
mod uki;
