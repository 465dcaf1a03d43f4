//! The user's ISO, served with kernel parameters written into it on the fly.

mod config;
mod error;
mod parameters;
mod source;

pub use config::Dialect;
pub use error::IsoError;
pub use parameters::Parameters;
pub use source::{Source, SourceError};
