//! Self-signed certificates, as BMCs come with.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::NoServerSessionStorage;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};

use crate::listen::ListenError;

/// One for all: it is large, and the same everywhere.
pub(crate) static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));

/// A certificate that a BMC shows.
#[derive(Clone, Debug)]
pub struct Certificate {
    der: CertificateDer<'static>,
    pem: String,
    pub(crate) server: Arc<ServerConfig>,
}

impl Certificate {
    /// A new key (P-256, which takes well under a millisecond) and a certificate that it signs itself. It names
    /// `localhost`, both loopback addresses and the address given.
    pub fn self_signed(name: &str, address: IpAddr) -> Result<Self, ListenError> {
        let failed = |error: &dyn std::fmt::Display| ListenError::Certificate(error.to_string());
        let key = KeyPair::generate().map_err(|e| failed(&e))?;
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !address.is_unspecified() && !names.contains(&address.to_string()) {
            names.push(address.to_string());
        }
        let mut params = CertificateParams::new(names).map_err(|e| failed(&e))?;
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).map_err(|e| failed(&e))?;
        let der = certificate.der().clone();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut server = ServerConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| failed(&e))?
            .with_no_client_auth()
            .with_single_cert(vec![der.clone()], private)
            .map_err(|e| failed(&e))?;
        // The default keeps room for 256 sessions, times a thousand BMCs.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { der, pem: certificate.pem(), server: Arc::new(server) })
    }

    /// As PEM, which can serve as a CA bundle.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// As DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// SHA-256, as 64 lower-case hex digits.
    pub fn fingerprint(&self) -> String {
        Sha256::digest(&self.der).iter().fold(String::with_capacity(64), |hex, byte| hex + &format!("{byte:02x}"))
    }
}
