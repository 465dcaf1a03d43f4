//! One authority, and what it vouches for: this server, the admin, and service accounts (by a key of their own).
//!
//! Keys of the authority and of tokens stay for ever; certificates are renewed in time, also while running.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerifier as _};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};

use super::TlsError;
use super::files::{private_folder, read_private, write_private};
use super::kubeconfig::kubeconfig;
use super::x509::{self, Facts};
use crate::clock::Clock;

const DAY: SignedDuration = SignedDuration::from_hours(24);
const AUTHORITY_LASTS: SignedDuration = SignedDuration::from_hours(24 * 3653);
const AUTHORITY_RENEWED: SignedDuration = SignedDuration::from_hours(24 * 365);
const CERTIFICATE_LASTS: SignedDuration = SignedDuration::from_hours(24 * 365);
const CERTIFICATE_RENEWED: SignedDuration = SignedDuration::from_hours(24 * 90);

/// The group whose members may do everything.
const MASTERS: &str = "system:masters";

/// One for all: it is large, and the same everywhere.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));

/// The authority of one server.
#[derive(Clone)]
pub struct Pki(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// `None` keeps everything in memory.
    folder: Option<PathBuf>,
    /// What the server is called, beside loopback.
    names: Vec<String>,
    authority: Issuer<'static, KeyPair>,
    token_key: Vec<u8>,
    current: RwLock<Current>,
    /// Where the admin's kubeconfig is, what it calls the cluster, and where that is.
    kubeconfig: Mutex<Option<(PathBuf, String, String)>>,
}

#[derive(Clone)]
struct Current {
    authority: Arc<CertificateDer<'static>>,
    clients: Arc<dyn ClientCertVerifier>,
    serving: Identity,
    admin: Identity,
}

/// A certificate with its key.
#[derive(Clone)]
struct Identity {
    pem: Arc<str>,
    facts: Arc<Facts>,
    certified: Arc<CertifiedKey>,
}

/// A client's certificate that the authority has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The common name: the user.
    pub name: String,
    /// The organizations: the user's groups.
    pub groups: Vec<String>,
    /// SHA-256 of the certificate, in hex.
    pub fingerprint: String,
    not_before: Timestamp,
    not_after: Timestamp,
}

impl ClientCertificate {
    /// Whether it is still, or already, good.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki").field("folder", &self.0.folder).field("names", &self.0.names).finish_non_exhaustive()
    }
}

impl Pki {
    /// The authority in a folder, made if it is not there. `names` are addresses and DNS names by which clients reach
    /// the server, beside localhost and the loopback addresses. Certificates that end soon, or lack a name, are
    /// renewed.
    pub fn open_or_create(folder: &Path, clock: &Clock, names: &[String]) -> Result<Self, TlsError> {
        private_folder(folder)?;
        Self::open(Some(folder.to_owned()), clock, names)
    }

    /// An authority that lives as long as the process: for tests.
    pub fn in_memory(clock: &Clock, names: &[String]) -> Result<Self, TlsError> {
        Self::open(None, clock, names)
    }

    fn open(folder: Option<PathBuf>, clock: &Clock, names: &[String]) -> Result<Self, TlsError> {
        let (authority_key, is_new) = key(folder.as_deref(), "ca.key")?;
        if is_new && stored(folder.as_deref(), "ca.crt")?.is_some() {
            let path = folder.unwrap_or_default().join("ca.key");
            return Err(TlsError::Damaged { path, why: "is missing" });
        }
        if is_new {
            store(folder.as_deref(), "ca.key", &authority_key.serialize_pem())?;
        }
        let (token_key, is_new) = key(folder.as_deref(), "token.key")?;
        if is_new {
            store(folder.as_deref(), "token.key", &token_key.serialize_pem())?;
        }
        let now = clock.now();
        let names = names_of_server(names);
        let stored_authority = stored(folder.as_deref(), "ca.crt")?.and_then(|pem| certificate(&pem)).filter(|der| {
            x509::facts(der).is_some_and(|facts| !is_due(&facts, now, AUTHORITY_RENEWED))
                && vouches(der, &authority_key)
        });
        let authority = match stored_authority {
            Some(der) => der,
            None => new_authority(folder.as_deref(), &authority_key, now)?,
        };
        let issuer = Issuer::new(authority_params(now)?, authority_key);
        let clients = client_verifier(&authority)?;
        let serving = match stored(folder.as_deref(), "serving.pem")?.and_then(|pem| Identity::read(&pem)) {
            Some(serving) if serving.serves(&names, &authority, now) => serving,
            _ => new_serving(folder.as_deref(), &issuer, &names, now)?,
        };
        let admin = match stored(folder.as_deref(), "admin.pem")?.and_then(|pem| Identity::read(&pem)) {
            Some(admin) if admin.is_admin(&*clients, now) => admin,
            _ => new_admin(folder.as_deref(), &issuer, now)?,
        };
        let current = Current { authority: Arc::new(authority), clients, serving, admin };
        Ok(Self(Arc::new(Inner {
            clock: clock.clone(),
            folder,
            names,
            authority: issuer,
            token_key: token_key.serialize_der(),
            current: RwLock::new(current),
            kubeconfig: Mutex::new(None),
        })))
    }

    fn current(&self) -> Current {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The key with which tokens of service accounts are signed: P-256, PKCS #8.
    pub fn token_key(&self) -> &[u8] {
        &self.0.token_key
    }

    /// The certificate of the authority, as PEM: what clients trust.
    pub fn authority_pem(&self) -> String {
        pem("CERTIFICATE", &self.current().authority)
    }

    /// A kubeconfig for the admin of the server behind a URL, which it calls `cluster`.
    pub fn kubeconfig(&self, cluster: &str, server: &str) -> String {
        let current = self.current();
        let (certificate, key) = current.admin.split();
        kubeconfig(cluster, server, &pem("CERTIFICATE", &current.authority), &certificate, &key)
    }

    /// Writes the admin's kubeconfig, readable by its owner only, and keeps it up to date as certificates are renewed.
    pub fn write_kubeconfig(&self, path: &Path, cluster: &str, server: &str) -> Result<(), TlsError> {
        let text = self.kubeconfig(cluster, server);
        if read_private(path)?.as_deref() != Some(&*text) {
            write_private(path, &text)?;
        }
        *self.0.kubeconfig.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((path.to_owned(), cluster.to_owned(), server.to_owned()));
        Ok(())
    }

    /// Renews what ends soon. Cheap when nothing does.
    pub fn renew_if_due(&self) -> Result<(), TlsError> {
        let now = self.0.clock.now();
        let mut current = self.current();
        let folder = self.0.folder.as_deref();
        let mut renewed = false;
        if x509::facts(&current.authority).is_none_or(|facts| is_due(&facts, now, AUTHORITY_RENEWED)) {
            let authority = new_authority(folder, self.0.authority.key(), now)?;
            current.clients = client_verifier(&authority)?;
            current.authority = Arc::new(authority);
            renewed = true;
        }
        if is_due(&current.serving.facts, now, CERTIFICATE_RENEWED) {
            current.serving = new_serving(folder, &self.0.authority, &self.0.names, now)?;
            renewed = true;
        }
        if is_due(&current.admin.facts, now, CERTIFICATE_RENEWED) {
            current.admin = new_admin(folder, &self.0.authority, now)?;
            renewed = true;
        }
        if !renewed {
            return Ok(());
        }
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        let placed = self.0.kubeconfig.lock().unwrap_or_else(PoisonError::into_inner).clone();
        placed.map_or(Ok(()), |(path, cluster, server)| self.write_kubeconfig(&path, &cluster, &server))
    }

    /// Whom a client's certificate names, if the authority has signed it and its time has not passed.
    pub fn client(&self, chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
        let (leaf, intermediates) = chain.split_first()?;
        self.current().clients.verify_client_cert(leaf, intermediates, unix(self.0.clock.now())).ok()?;
        let facts = x509::facts(leaf)?;
        let name = facts.common_name.filter(|name| !name.is_empty())?;
        Some(ClientCertificate {
            name,
            groups: facts.organizations,
            fingerprint: hex(&Sha256::digest(leaf)),
            not_before: facts.not_before,
            not_after: facts.not_after,
        })
    }

    /// A certificate and key for another client of this server.
    #[cfg(test)]
    pub(crate) fn issue_client(&self, name: &str, group: &str, lasts: SignedDuration) -> Result<String, TlsError> {
        let now = self.0.clock.now();
        let mut params = client_params(name, group, now)?;
        valid(&mut params, now, lasts);
        Ok(Identity::issue(&params, &self.0.authority)?.pem.to_string())
    }

    /// How connections are accepted: clients may show a certificate. Like kube-apiserver, a bad one does not end the
    /// handshake: the requests are answered with 401.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let mut config = ServerConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyClient(self.current().clients)))
            .with_cert_resolver(Arc::new(CurrentCertificate(self.clone())));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Shows the newest certificate.
#[derive(Debug)]
struct CurrentCertificate(Pki);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current().serving.certified)
    }
}

/// Lets every client through the handshake that has the key of its certificate; who it is, is asked afterwards.
#[derive(Debug)]
struct AnyClient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyClient {
    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &PROVIDER.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &PROVIDER.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        PROVIDER.signature_verification_algorithms.supported_schemes()
    }
}

impl Identity {
    /// From a file with the certificate and its key; `None` if it is anything else.
    fn read(text: &str) -> Option<Self> {
        let certificate = certificate(text)?;
        let facts = x509::facts(&certificate)?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok()?;
        let certified = CertifiedKey::from_der(vec![certificate], key, &PROVIDER).ok()?;
        Some(Self { pem: text.into(), facts: Arc::new(facts), certified: Arc::new(certified) })
    }

    fn issue(params: &CertificateParams, issuer: &Issuer<'static, KeyPair>) -> Result<Self, TlsError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, issuer)?;
        Self::read(&(certificate.pem() + &key.serialize_pem()))
            .ok_or_else(|| TlsError::Certificate("a new certificate cannot be read".to_owned()))
    }

    /// The certificate and the key, as PEM.
    fn split(&self) -> (String, String) {
        let key = self.pem.find("-----BEGIN PRIVATE KEY").unwrap_or(self.pem.len());
        let (certificate, key) = self.pem.split_at(key);
        (certificate.to_owned(), key.to_owned())
    }

    fn serves(&self, names: &[String], authority: &CertificateDer<'static>, now: Timestamp) -> bool {
        let trusted = || {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(authority).ok()?), PROVIDER.clone())
                    .build()
                    .ok()?;
            let name = ServerName::try_from("localhost").ok()?;
            verifier.verify_server_cert(self.certified.end_entity_cert().ok()?, &[], &name, &[], unix(now)).ok()
        };
        !is_due(&self.facts, now, CERTIFICATE_RENEWED) && self.facts.names == names && trusted().is_some()
    }

    fn is_admin(&self, clients: &dyn ClientCertVerifier, now: Timestamp) -> bool {
        !is_due(&self.facts, now, CERTIFICATE_RENEWED)
            && self.facts.organizations == [MASTERS]
            && self
                .certified
                .end_entity_cert()
                .is_ok_and(|certificate| clients.verify_client_cert(certificate, &[], unix(now)).is_ok())
    }
}

fn is_due(facts: &Facts, now: Timestamp, margin: SignedDuration) -> bool {
    now < facts.not_before || facts.not_after.duration_since(now) < margin
}

/// Loopback first, then what was asked for, each once. Addresses that mean all interfaces are no names.
fn names_of_server(names: &[String]) -> Vec<String> {
    let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    for name in names {
        let name = match name.parse::<IpAddr>() {
            Ok(address) if address.is_unspecified() => continue,
            Ok(address) => address.to_string(),
            Err(_) => name.to_ascii_lowercase(),
        };
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn new_authority(folder: Option<&Path>, key: &KeyPair, now: Timestamp) -> Result<CertificateDer<'static>, TlsError> {
    let certificate = authority_params(now)?.self_signed(key)?;
    store(folder, "ca.crt", &certificate.pem())?;
    Ok(certificate.into())
}

fn new_serving(
    folder: Option<&Path>,
    issuer: &Issuer<'static, KeyPair>,
    names: &[String],
    now: Timestamp,
) -> Result<Identity, TlsError> {
    let mut params = params("apiserver", now, CERTIFICATE_LASTS)?;
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into()?),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let identity = Identity::issue(&params, issuer)?;
    store(folder, "serving.pem", &identity.pem)?;
    Ok(identity)
}

fn new_admin(folder: Option<&Path>, issuer: &Issuer<'static, KeyPair>, now: Timestamp) -> Result<Identity, TlsError> {
    let identity = Identity::issue(&client_params("admin", MASTERS, now)?, issuer)?;
    store(folder, "admin.pem", &identity.pem)?;
    Ok(identity)
}

fn authority_params(now: Timestamp) -> Result<CertificateParams, TlsError> {
    // The name must not change: certificates of former starts lead back to it.
    let mut params = params("apiserver-ca", now, AUTHORITY_LASTS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = false;
    Ok(params)
}

fn client_params(name: &str, group: &str, now: Timestamp) -> Result<CertificateParams, TlsError> {
    let mut params = params(name, now, CERTIFICATE_LASTS)?;
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn params(name: &str, now: Timestamp, lasts: SignedDuration) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    valid(&mut params, now, lasts);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn valid(params: &mut CertificateParams, now: Timestamp, lasts: SignedDuration) {
    // The end of the year 9999.
    const LAST: i64 = 253_402_300_799;
    let date = |seconds: i64| {
        let since = Duration::from_secs(seconds.clamp(0, LAST).unsigned_abs());
        rcgen::date_time_ymd(1970, 1, 1) + since
    };
    // Clocks of clients may be behind.
    params.not_before = date(now.as_second().saturating_sub(DAY.as_secs()));
    params.not_after = date(now.as_second().saturating_add(lasts.as_secs()));
}

fn unix(time: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default()))
}

fn roots(authority: &CertificateDer<'static>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    Ok(roots)
}

fn client_verifier(authority: &CertificateDer<'static>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), PROVIDER.clone())
        .build()
        .map_err(|error| TlsError::Certificate(error.to_string()))
}

/// Whether this is the certificate of that key.
fn vouches(certificate: &CertificateDer<'static>, key: &KeyPair) -> bool {
    let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    CertifiedKey::from_der(vec![certificate.clone()], private, &PROVIDER).is_ok()
}

/// The key in a file, or a new one and `true`. A file without a key is an error: what it has signed would be lost.
fn key(folder: Option<&Path>, name: &str) -> Result<(KeyPair, bool), TlsError> {
    match stored(folder, name)? {
        None => Ok((KeyPair::generate()?, true)),
        Some(text) => {
            let usable = KeyPair::from_pem(&text).ok().filter(|key| key.algorithm() == &rcgen::PKCS_ECDSA_P256_SHA256);
            let path = folder.unwrap_or(Path::new("")).join(name);
            Ok((usable.ok_or(TlsError::Damaged { path, why: "does not hold a P-256 key" })?, false))
        }
    }
}

fn certificate(text: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(text.as_bytes()).ok()
}

fn stored(folder: Option<&Path>, name: &str) -> Result<Option<String>, TlsError> {
    folder.map_or(Ok(None), |folder| read_private(&folder.join(name)))
}

fn store(folder: Option<&Path>, name: &str, text: &str) -> Result<(), TlsError> {
    folder.map_or(Ok(()), |folder| write_private(&folder.join(name), text))
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::prelude::BASE64_STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + &format!("-----END {label}-----\n")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |hex, byte| hex + &format!("{byte:02x}"))
}
