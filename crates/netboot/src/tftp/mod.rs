//! A read-only TFTP server: one transfer is a value that is told what came and answers what to send.

pub mod packet;
mod request;

pub use self::packet::{Malformed, Options, Packet};
pub use self::request::{First, ReadRequest, Refusal, clean};
