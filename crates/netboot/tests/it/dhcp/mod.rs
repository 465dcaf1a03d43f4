//! DHCP.

mod conversations;
mod hostile;
mod offering;
mod packets;
mod proxying;
mod rack;
mod reading;
mod reserving;
