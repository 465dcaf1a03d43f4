//! Metal3's hosts: BareMetalHost as the engine understands it.

pub mod address;
