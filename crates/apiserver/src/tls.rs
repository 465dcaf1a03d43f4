//! The server's own authority and certificates, the admin's kubeconfig, and HTTPS over a listener.
//!
//! Whoever has the folder of the authority is the admin, so its files are for their owner only.

mod connections;
mod files;
mod kubeconfig;
mod listen;
mod patient;
mod pki;
mod x509;

#[cfg(test)]
mod tests;

pub use kubeconfig::server_url;
pub use listen::{ConnectionLimits, Peer, serve};
pub use pki::{ClientCertificate, Pki};

use std::io;
use std::path::PathBuf;

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read or written.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// `read`, `write`, `make`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// A file is not what it should be, and making a new one would lock everybody out.
    #[error("{} {why}: restore it from a backup, or remove the whole folder to begin with a new authority", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A key or certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}

impl From<rcgen::Error> for TlsError {
    fn from(error: rcgen::Error) -> Self {
        Self::Certificate(error.to_string())
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Certificate(error.to_string())
    }
}
