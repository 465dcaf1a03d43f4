//! Manifests with which a fleet is made known to Beskar7.

use serde_json::json;

use crate::listen::Endpoint;

/// How the operator is to trust the BMCs' certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// By the fingerprint that each shows now.
    #[default]
    Pin,
    /// Not at all: `insecureSkipVerify`.
    Skip,
}

/// A Secret and a PhysicalHost for each endpoint, as one YAML text.
pub fn manifests(endpoints: &[Endpoint], namespace: &str, trust: Trust) -> String {
    endpoints.iter().map(|endpoint| manifest(endpoint, namespace, trust)).collect()
}

fn manifest(endpoint: &Endpoint, namespace: &str, trust: Trust) -> String {
    let bmc = endpoint.bmc();
    let credentials = bmc.credentials();
    let trusted = match (trust, endpoint.certificate()) {
        (_, None) => String::new(),
        (Trust::Pin, Some(certificate)) => {
            format!("    certificateFingerprint: {}\n", quoted(&certificate.fingerprint()))
        }
        (Trust::Skip, Some(_)) => "    insecureSkipVerify: true\n".to_owned(),
    };
    format!(
        r"---
apiVersion: v1
kind: Secret
metadata:
  name: {secret}
  namespace: {namespace}
stringData:
  username: {username}
  password: {password}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PhysicalHost
metadata:
  name: {name}
  namespace: {namespace}
spec:
  redfishConnection:
    address: {address}
    credentialsSecretRef: {secret}
{trusted}",
        name = quoted(bmc.name()),
        secret = quoted(&format!("{}-bmc", bmc.name())),
        namespace = quoted(namespace),
        username = quoted(&credentials.username),
        password = quoted(&credentials.password),
        address = quoted(&endpoint.url()),
    )
}

/// A JSON string is a YAML string, whatever is in it.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}
