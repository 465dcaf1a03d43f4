//! DHCP.

mod conversations;
mod offering;
mod packets;
mod proxying;
mod rack;
mod reading;
mod reserving;
