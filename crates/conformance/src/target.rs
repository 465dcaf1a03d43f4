//! A server to ask, and the identity to ask it with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

/// One API server as one user sees it.
#[derive(Clone)]
pub struct Target {
    /// `127.0.0.1:6443`.
    pub(crate) address: String,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) token: Option<String>,
    judge: bool,
    /// The document of the kubeconfig.
    kubeconfig: Value,
    authority: Vec<u8>,
    tools: Vec<PathBuf>,
}

impl Target {
    /// The real server: what a case says of its answers is asserted.
    pub fn judge(kubeconfig: &Path) -> Self {
        Self::new(kubeconfig, true)
    }

    /// The server that is judged: its answers are only recorded.
    pub fn ours(kubeconfig: &Path) -> Self {
        Self::new(kubeconfig, false)
    }

    fn new(kubeconfig: &Path, judge: bool) -> Self {
        let text = std::fs::read_to_string(kubeconfig)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", kubeconfig.display()));
        let document: Value = serde_saphyr::from_str(&text).expect("a kubeconfig is YAML");
        let cluster = &document["clusters"][0]["cluster"];
        let user = &document["users"][0]["user"];
        let authority = decoded(&cluster["certificate-authority-data"]).expect("a kubeconfig with an authority");
        let certificate = decoded(&user["client-certificate-data"]).zip(decoded(&user["client-key-data"]));
        let server = cluster["server"].as_str().expect("a kubeconfig with a server");
        Target {
            address: server.trim_start_matches("https://").trim_end_matches('/').to_owned(),
            tls: client_config(&authority, certificate.as_ref()),
            token: user["token"].as_str().map(str::to_owned),
            judge,
            kubeconfig: document,
            authority,
            tools: Vec::new(),
        }
    }

    /// The same server, asked with a bearer token and nothing else.
    pub fn with_token(&self, token: &str) -> Self {
        Target { token: Some(token.to_owned()), ..self.anonymous() }
    }

    /// The same server, asked by nobody in particular.
    pub fn anonymous(&self) -> Self {
        Target { token: None, tls: client_config(&self.authority, None), ..self.clone() }
    }

    /// The same, with directories of programs that stories may run.
    pub fn with_tools(self, tools: impl IntoIterator<Item = PathBuf>) -> Self {
        Target { tools: tools.into_iter().collect(), ..self }
    }

    /// Directories of programs that stories may run.
    pub(crate) fn tools(&self) -> &[PathBuf] {
        &self.tools
    }

    /// Whether this is the real server.
    pub fn is_judge(&self) -> bool {
        self.judge
    }

    /// The admin's kubeconfig with another namespace, for programs.
    pub(crate) fn kubeconfig_in(&self, namespace: &str) -> Value {
        let mut document = self.kubeconfig.clone();
        document["contexts"][0]["context"]["namespace"] = namespace.into();
        document
    }

    /// `real` or `ours`.
    pub fn name(&self) -> &'static str {
        if self.judge { "real" } else { "ours" }
    }

    /// `127.0.0.1:6443`.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn decoded(value: &Value) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(value.as_str()?).ok()
}

fn client_config(authority: &[u8], certificate: Option<&(Vec<u8>, Vec<u8>)>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(authority) {
        roots.add(root.expect("a PEM certificate")).expect("an authority that rustls takes");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots);
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate)
                .collect::<Result<Vec<_>, _>>()
                .expect("a PEM certificate chain");
            let key = PrivateKeyDer::from_pem_slice(key).expect("a PEM key");
            builder.with_client_auth_cert(chain, key).expect("a key that belongs to its certificate")
        }
    };
    Arc::new(config)
}
