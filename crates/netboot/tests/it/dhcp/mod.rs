//! DHCP.

mod packets;
mod rack;
mod reading;
