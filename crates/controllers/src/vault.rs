//! Secrets: watched as metadata only, read one by one when a BMC is to be spoken to.

use std::collections::BTreeMap;

use bmc::{Credentials, Trust};
use engine::failure::{Failure, Kind};
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, ResourceExt};

use crate::dialect::{Connection, TrustWish};

/// Where Secrets come from.
#[derive(Clone)]
pub struct Vault {
    client: Client,
    known: Store<PartialObjectMeta<Secret>>,
}

type Data = BTreeMap<String, k8s_openapi::ByteString>;

impl Vault {
    /// A vault over a store that somebody keeps up to date.
    pub fn new(client: Client, known: Store<PartialObjectMeta<Secret>>) -> Self {
        Self { client, known }
    }

    /// Changes whenever the Secret does.
    pub fn version(&self, namespace: &str, name: &str) -> String {
        match self.known.get(&ObjectRef::new(name).within(namespace)) {
            Some(secret) => {
                format!("{}/{}", secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default())
            }
            None => "none".to_owned(),
        }
    }

    /// User name and password.
    pub async fn credentials(&self, namespace: &str, name: &str) -> Result<Credentials, Failure> {
        let data = self.read(namespace, name, "spec.redfishConnection.credentialsSecretRef").await?;
        let text = |key: &str| -> Result<String, Failure> {
            let bytes = data
                .get(key)
                .filter(|bytes| !bytes.0.is_empty())
                .ok_or_else(|| missing(namespace, name, key, "is missing or empty"))?;
            let text = std::str::from_utf8(&bytes.0).map_err(|_| missing(namespace, name, key, "is not text"))?;
            // An editor or `echo` leaves a line end that no password has.
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        };
        Ok(Credentials::new(text("username")?, text("password")?))
    }

    /// Whom to believe that it is the BMC.
    pub async fn trust(&self, namespace: &str, wish: &TrustWish) -> Result<Trust, Failure> {
        let secret = match wish {
            TrustWish::SystemRoots => return Ok(Trust::SystemRoots),
            TrustWish::Pin(fingerprint) => return Ok(Trust::Pin(*fingerprint)),
            TrustWish::FirstUse => return Ok(Trust::FirstUse),
            TrustWish::Anything => return Ok(Trust::Anything),
            TrustWish::CaBundle(secret) => secret,
        };
        let data = self.read(namespace, secret, "spec.redfishConnection.caBundleSecretRef").await?;
        let pem = ["ca.crt", "tls.crt"].iter().find_map(|key| data.get(*key)).filter(|pem| !pem.0.is_empty());
        let pem = pem.ok_or_else(|| missing(namespace, secret, "ca.crt", "is missing or empty"))?;
        let text = String::from_utf8(pem.0.clone()).map_err(|_| missing(namespace, secret, "ca.crt", "is not text"))?;
        Ok(Trust::CaBundle(text))
    }

    async fn read(&self, namespace: &str, name: &str, field: &str) -> Result<Data, Failure> {
        let secret = Api::<Secret>::namespaced(self.client.clone(), namespace).get_opt(name).await;
        match secret {
            Ok(Some(secret)) => Ok(secret.data.unwrap_or_default()),
            Ok(None) => Err(Failure::new(
                Kind::SecretNotFound,
                format!(
                    "Secret {namespace}/{name}, named in {field}, does not exist. Create it; it is noticed at once."
                ),
            )),
            Err(error) => Err(Failure::new(
                Kind::SecretUnreadable,
                format!("Secret {namespace}/{name}, named in {field}, cannot be read: {error}"),
            )),
        }
    }
}

fn missing(namespace: &str, name: &str, key: &str, what: &str) -> Failure {
    Failure::new(
        Kind::MissingSecretData,
        format!("Key {key} of Secret {namespace}/{name} {what}. Set it; the change is noticed at once."),
    )
}

/// Fingerprint of how a BMC would be spoken to now: it changes when the object, a Secret or the trust does.
pub(crate) fn inputs(connection: &Connection, vault: &Vault, namespace: &str) -> String {
    let versions: Vec<_> = connection.secrets().map(|secret| vault.version(namespace, secret)).collect();
    digest(&format!("{connection:?} {namespace} {versions:?}"))
}

/// A short digest, to compare by.
pub(crate) fn digest(text: &str) -> String {
    use std::fmt::Write as _;

    use sha2::Digest as _;
    sha2::Sha256::digest(text.as_bytes()).iter().take(10).fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        write!(hex, "{byte:02x}").ok();
        hex
    })
}
