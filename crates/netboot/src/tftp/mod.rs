//! A read-only TFTP server: one transfer is a value that is told what came and answers what to send.
//!
//! | RFC | what |
//! |---|---|
//! | 1350 | the protocol; `octet` only, reading only |
//! | 2347 | options, which are accepted with an OACK |
//! | 2348, 2349, 7440 | `blksize`; `timeout` and `tsize`; `windowsize` |
//!
//! [`First::of`] judges the first packet of a client, [`Transfer`] is everything after it, [`packet`] is how both look on the wire.
//! Names are never paths: whoever has the sockets looks a name up among the files that it serves.

pub mod packet;
mod request;
mod transfer;

pub use self::packet::{Malformed, Options, Packet};
pub use self::request::{First, ReadRequest, Refusal, clean};
pub use self::transfer::{Ended, Progress, Replies, Reply, Settings, Transfer};
