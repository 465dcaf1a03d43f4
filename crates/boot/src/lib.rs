//! What a server is given to boot: for now, the user's ISO with kernel parameters written into it.

pub mod iso;
