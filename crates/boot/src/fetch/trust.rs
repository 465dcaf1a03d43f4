//! Which certificates of image servers to trust.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::FetchError;

/// The roots of this machine, and those that are given (PEM).
pub(crate) fn client_config(extra_roots: Option<&str>) -> Result<Arc<ClientConfig>, FetchError> {
    let invalid = |why: String| FetchError::TrustInvalid { why };
    let mut roots = system_roots().clone();
    if let Some(pem) = extra_roots {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| invalid(format!("it is not valid PEM ({error})")))?;
            roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(invalid("there is no certificate (-----BEGIN CERTIFICATE-----)".into()));
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Read once. A machine without any can still read over HTTP and with the roots that are given.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let loaded = rustls_native_certs::load_native_certs();
        for error in &loaded.errors {
            tracing::warn!(%error, "cannot read a root certificate of this machine");
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(loaded.certs);
        roots
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_ca_certificates_get_a_sentence() {
        for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = client_config(Some(pem)).unwrap_err();
            assert_eq!(error.reason(), "TrustInvalid");
            assert!(error.to_string().contains("CA certificates"), "{error}");
        }
        assert!(client_config(None).is_ok());
    }
}
