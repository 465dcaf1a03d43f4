//! Metal3's kinds.

mod types;
