//! Secrets: watched as metadata only, read one by one when a BMC is to be spoken to.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bmc::{Credentials, Trust};
use engine::failure::{Failure, Kind};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};

use crate::dialect::TrustWish;

/// Where Secrets come from.
#[derive(Clone)]
pub struct Vault {
    client: Client,
    known: Store<PartialObjectMeta<Secret>>,
    read: Arc<Mutex<HashMap<(String, String), Read>>>,
    /// Keyed afresh in each process: what is remembered of a password is of no use to anybody else.
    hash: RandomState,
}

/// What is remembered of a Secret that was read. Not its content.
struct Read {
    uid: Option<String>,
    resource_version: Option<String>,
    digest: u64,
    /// The resourceVersion with which the data, as opposed to labels and the like, last changed.
    data_version: String,
    /// Whether the watch has shown it, too.
    shown: bool,
}

type Data = BTreeMap<String, k8s_openapi::ByteString>;

impl Vault {
    /// A vault over a store that somebody keeps up to date.
    pub fn new(client: Client, known: Store<PartialObjectMeta<Secret>>) -> Self {
        Self { client, known, read: Arc::default(), hash: RandomState::new() }
    }

    /// Changes whenever the Secret's data does. A new label must not look like a new password: it would be tried again.
    pub fn version(&self, namespace: &str, name: &str) -> String {
        let known = self.known.get(&ObjectRef::new(name).within(namespace));
        let mut read = self.remembered();
        let read = read.get_mut(&(namespace.to_owned(), name.to_owned()));
        match (known, read) {
            (Some(secret), Some(read)) if read.uid == secret.metadata.uid => {
                read.shown = true;
                read.data_version.clone()
            }
            (Some(secret), _) => version(&secret.metadata),
            // The watch is behind. What it will show was read already, and must not look like something new then.
            (None, Some(read)) if !read.shown => read.data_version.clone(),
            (None, _) => "none".to_owned(),
        }
    }

    /// A Secret was touched. Answers whether its data may have changed.
    pub async fn is_news(&self, namespace: &str, name: &str, touched: &ObjectMeta) -> bool {
        let before = {
            let read = self.remembered();
            let read = read.get(&(namespace.to_owned(), name.to_owned())).filter(|read| read.uid == touched.uid);
            match read {
                None => return true,
                Some(read) if read.resource_version == touched.resource_version => return false,
                Some(read) => read.data_version.clone(),
            }
        };
        if self.read(namespace, name, "").await.is_err() {
            self.remembered().remove(&(namespace.to_owned(), name.to_owned()));
        }
        self.version(namespace, name) != before
    }

    fn remember(&self, namespace: &str, name: &str, secret: &Secret) {
        let digest =
            self.hash.hash_one(secret.data.iter().flatten().map(|(key, value)| (key, &value.0)).collect::<Vec<_>>());
        let (uid, resource_version) = (secret.metadata.uid.clone(), secret.metadata.resource_version.clone());
        let mut read = self.remembered();
        let key = (namespace.to_owned(), name.to_owned());
        let before = read.get(&key).filter(|read| read.uid == uid);
        let shown = before.is_some_and(|read| read.shown);
        let same = before.filter(|read| read.digest == digest);
        let data_version = same.map_or_else(|| version(&secret.metadata), |read| read.data_version.clone());
        read.insert(key, Read { uid, resource_version, digest, data_version, shown });
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<(String, String), Read>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// User name and password.
    pub async fn credentials(&self, namespace: &str, name: &str) -> Result<Credentials, Failure> {
        let data = self.read(namespace, name, "spec.redfishConnection.credentialsSecretRef").await?;
        let text = |key: &str| -> Result<String, Failure> {
            let bytes = data.get(key).map_or(&[][..], |bytes| &bytes.0);
            let text = std::str::from_utf8(bytes).map_err(|_| missing(namespace, name, key, "is not text"))?;
            // An editor or `echo` leaves a line end that no password has.
            match text.trim_end_matches(['\r', '\n']) {
                "" => Err(missing(namespace, name, key, "is missing or empty")),
                text => Ok(text.to_owned()),
            }
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
            Ok(Some(secret)) => {
                self.remember(namespace, name, &secret);
                Ok(secret.data.unwrap_or_default())
            }
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

fn version(metadata: &ObjectMeta) -> String {
    format!(
        "{}/{}",
        metadata.uid.as_deref().unwrap_or_default(),
        metadata.resource_version.as_deref().unwrap_or_default()
    )
}

fn missing(namespace: &str, name: &str, key: &str, what: &str) -> Failure {
    Failure::new(
        Kind::MissingSecretData,
        format!("Key {key} of Secret {namespace}/{name} {what}. Set it; the change is noticed at once."),
    )
}
