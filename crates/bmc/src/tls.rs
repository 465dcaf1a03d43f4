//! Which certificate to trust: system roots, a CA bundle, a pinned certificate, the first one seen, or any.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// How a BMC's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By the roots of the machine we run on.
    SystemRoots,
    /// By these CA certificates (PEM), and no others.
    CaBundle(String),
    /// It is exactly this certificate; name and dates do not matter.
    Pin(Fingerprint),
    /// The certificate that is shown first, and from then on only that one. The caller stores what was seen (`Seen::certificate`)
    /// and pins it the next time.
    FirstUse,
    /// Not at all.
    Anything,
}

/// The SHA-256 of a certificate. Shown as `sha256:` and lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// Lower-case hex, without a prefix.
    pub fn to_hex(self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            for nibble in [byte >> 4, byte & 0xf] {
                text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
            text
        })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.to_hex())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    /// Reads hex of either case, with or without `sha256:` and colons, as openssl and browsers print it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || {
            Error::TrustInvalid {
            why: "the certificate fingerprint must be a SHA-256: 64 hexadecimal digits, with or without colons and a leading sha256:"
                .into(),
        }
        };
        let text = text.trim().to_ascii_lowercase();
        let hex = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("sha256=")).unwrap_or(&text);
        let nibbles: Vec<u8> = hex
            .chars()
            .filter(|c| *c != ':' && !c.is_whitespace())
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or_else(invalid)?;
        let bytes: Vec<u8> = nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        match (<[u8; 32]>::try_from(bytes), nibbles.len()) {
            (Ok(bytes), 64) => Ok(Self(bytes)),
            _ => Err(invalid()),
        }
    }
}

/// What a handshake showed; shared between the verifier and the transport that owns it.
#[derive(Debug, Default)]
pub(crate) struct Sighting(Mutex<Option<Fingerprint>>);

impl Sighting {
    pub(crate) fn get(&self) -> Option<Fingerprint> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, seen: Fingerprint) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

/// The TLS settings for one BMC. Roots and cryptography are shared by all of them.
pub(crate) fn client_config(trust: &Trust, sighting: Arc<Sighting>) -> Result<ClientConfig, Error> {
    let check = match trust {
        Trust::SystemRoots => Check::Chain(system_verifier()?),
        Trust::CaBundle(pem) => Check::Chain(bundle_verifier(pem)?),
        Trust::Pin(pin) => Check::Pin(*pin),
        Trust::FirstUse => Check::FirstUse(OnceLock::new()),
        Trust::Anything => Check::Anything,
    };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::TrustInvalid { why: error.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { check, sighting }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // rustls keeps room for 256 sessions by default; a BMC is one server, and there are a thousand of them.
    config.resumption = rustls::client::Resumption::in_memory_sessions(2);
    Ok(config)
}

#[derive(Debug)]
enum Check {
    Chain(Arc<WebPkiServerVerifier>),
    Pin(Fingerprint),
    FirstUse(OnceLock<Fingerprint>),
    Anything,
}

#[derive(Debug)]
struct Verifier {
    check: Check,
    sighting: Arc<Sighting>,
}

/// The certificate is not the pinned one; travels through rustls as the cause of a failed handshake.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the certificate is {seen}, not {pinned}")]
pub(crate) struct PinMismatch {
    pub(crate) pinned: Fingerprint,
    pub(crate) seen: Fingerprint,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let seen = Fingerprint::of(end_entity);
        self.sighting.set(seen);
        let pinned = match &self.check {
            Check::Chain(verifier) => {
                return verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
            }
            Check::Anything => seen,
            Check::Pin(pin) => *pin,
            Check::FirstUse(first) => *first.get_or_init(|| seen),
        };
        if pinned == seen {
            return Ok(ServerCertVerified::assertion());
        }
        let mismatch = rustls::OtherError(Arc::new(PinMismatch { pinned, seen }));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(mismatch)))
    }

    // A certificate is public: only these two prove that the BMC has its key. With any certificate trusted there is no proof, so
    // that certificates which webpki cannot even parse (X.509 v1 on old firmware) still connect.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self.check {
            Check::Anything => Ok(HandshakeSignatureValid::assertion()),
            _ => verify_tls12_signature(message, cert, signature, &provider().signature_verification_algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self.check {
            Check::Anything => Ok(HandshakeSignatureValid::assertion()),
            _ => verify_tls13_signature(message, cert, signature, &provider().signature_verification_algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())).clone()
}

/// The roots of this machine, read once: some 150 certificates that a thousand clients share.
fn system_verifier() -> Result<Arc<WebPkiServerVerifier>, Error> {
    static VERIFIER: OnceLock<Result<Arc<WebPkiServerVerifier>, String>> = OnceLock::new();
    VERIFIER
        .get_or_init(|| {
            let loaded = rustls_native_certs::load_native_certs();
            for error in &loaded.errors {
                tracing::warn!(%error, "cannot read a root certificate of this machine");
            }
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(loaded.certs);
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .map_err(|error| error.to_string())
        })
        .clone()
        .map_err(|why| Error::TrustInvalid {
            why: format!(
                "this machine has no usable root certificates ({why}); give a CA bundle or a certificate fingerprint"
            ),
        })
}

fn bundle_verifier(pem: &str) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let invalid = |why: String| Error::TrustInvalid { why: format!("the CA bundle: {why}") };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| invalid(format!("it is not valid PEM ({error})")))?;
        roots
            .add(certificate)
            .map_err(|error| invalid(format!("it contains a certificate that cannot be used ({error})")))?;
    }
    if roots.is_empty() {
        return Err(invalid("it contains no certificate (-----BEGIN CERTIFICATE-----)".into()));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_in_every_common_form() {
        let hex = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        for text in
            [hex.clone(), hex.to_uppercase(), format!("sha256:{hex}"), colons.clone(), format!(" SHA256:{colons}\n")]
        {
            assert_eq!(text.parse::<Fingerprint>().unwrap().to_string(), format!("sha256:{hex}"), "{text}");
        }
        for text in ["", "abc", "sha1:abcd", &"zz".repeat(32), &"ab".repeat(33), &"é".repeat(32)] {
            let error = text.parse::<Fingerprint>().unwrap_err();
            assert!(error.to_string().contains("64 hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn a_bad_ca_bundle_gets_a_sentence() {
        for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = client_config(&Trust::CaBundle(pem.into()), Arc::default()).unwrap_err();
            assert_eq!(error.kind(), engine::failure::Kind::TrustInvalid);
            assert!(error.to_string().contains("CA bundle"), "{error}");
        }
    }
}
