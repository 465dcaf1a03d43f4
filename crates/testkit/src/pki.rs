//! Throw-away certificates.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Bytes;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use sha2::{Digest, Sha256};

/// A certificate authority for one cluster.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM and as files.
pub(crate) struct Identity {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
    pub(crate) certificate_file: PathBuf,
    pub(crate) key_file: PathBuf,
    /// SHA-256 of the certificate's DER, lower-case hex.
    pub(crate) fingerprint: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, new_key()).expect("rcgen signs its own authority");
        Authority { issuer }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate for a server on loopback.
    pub(crate) fn server(&self, dir: &Path, name: &str) -> Identity {
        let key = new_key();
        let certificate = loopback_server(name).signed_by(&key, &self.issuer).expect("rcgen signs a server");
        Identity::write(dir, name, &certificate, &key)
    }

    /// A certificate with which `user` in `group` logs in to Kubernetes.
    pub(crate) fn client(&self, dir: &Path, user: &str, group: &str) -> Identity {
        let key = new_key();
        let mut params = named(user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).expect("rcgen signs a client");
        Identity::write(dir, user, &certificate, &key)
    }
}

impl Identity {
    /// A server on loopback that vouches for itself, as BMCs do.
    pub(crate) fn self_signed(dir: &Path, name: &str) -> Self {
        let key = new_key();
        let certificate = loopback_server(name).self_signed(&key).expect("rcgen signs a server");
        Identity::write(dir, name, &certificate, &key)
    }

    fn write(dir: &Path, name: &str, certificate: &Certificate, key: &KeyPair) -> Self {
        let identity = Identity {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            certificate_file: dir.join(format!("{name}.crt")),
            key_file: dir.join(format!("{name}.key")),
            fingerprint: format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(certificate.der()))),
        };
        write(&identity.certificate_file, &identity.certificate_pem);
        write(&identity.key_file, &identity.key_pem);
        identity
    }
}

/// The certificate inside a PEM block.
pub(crate) fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    BASE64_STANDARD.decode(body).expect("PEM of our own making")
}

/// A bare key pair on P-256, for signing service account tokens.
pub(crate) fn new_key() -> KeyPair {
    KeyPair::generate().expect("ring makes a key")
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn loopback_server(name: &str) -> CertificateParams {
    let mut params = named(name);
    params.subject_alt_names = vec![
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SanType::DnsName("localhost".try_into().expect("localhost is ASCII")),
    ];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}
