//! A read-only TFTP server: one transfer is a value that is told what came and answers what to send.

pub mod packet;

pub use self::packet::{Malformed, Options, Packet};
