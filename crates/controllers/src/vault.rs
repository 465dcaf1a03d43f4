//! Secrets: watched as metadata only, read one by one when a BMC is to be spoken to.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bmc::{Credentials, Trust};
use engine::failure::{Failure, Kind};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::Store;

use crate::dialect::TrustWish;
use crate::object::ObjectId;

/// Where Secrets come from.
#[derive(Clone)]
pub struct Vault {
    client: Client,
    known: Store<PartialObjectMeta<Secret>>,
    read: Arc<Mutex<HashMap<ObjectId, Read>>>,
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
    pub fn version(&self, secret: &ObjectId) -> String {
        let known = self.known.get(&secret.object_ref());
        let mut read = self.remembered();
        let read = read.get_mut(secret);
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
    pub async fn is_news(&self, secret: &ObjectId, touched: &ObjectMeta) -> bool {
        let before = {
            let read = self.remembered();
            let read = read.get(secret).filter(|read| read.uid == touched.uid);
            match read {
                None => return true,
                Some(read) if read.resource_version == touched.resource_version => return false,
                Some(read) => read.data_version.clone(),
            }
        };
        if self.read(secret, "").await.is_err() {
            self.remembered().remove(secret);
        }
        self.version(secret) != before
    }

    fn remember(&self, id: &ObjectId, secret: &Secret) {
        let digest =
            self.hash.hash_one(secret.data.iter().flatten().map(|(key, value)| (key, &value.0)).collect::<Vec<_>>());
        let (uid, resource_version) = (secret.metadata.uid.clone(), secret.metadata.resource_version.clone());
        let mut read = self.remembered();
        let before = read.get(id).filter(|read| read.uid == uid);
        let shown = before.is_some_and(|read| read.shown);
        let same = before.filter(|read| read.digest == digest);
        let data_version = same.map_or_else(|| version(&secret.metadata), |read| read.data_version.clone());
        read.insert(id.clone(), Read { uid, resource_version, digest, data_version, shown });
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<ObjectId, Read>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// User name and password, from a Secret that is named in that field.
    pub async fn credentials(&self, secret: &ObjectId, field: &str) -> Result<Credentials, Failure> {
        let data = self.read(secret, field).await?;
        let text = |key: &str| -> Result<String, Failure> {
            let bytes = data.get(key).map_or(&[][..], |bytes| &bytes.0);
            let text = std::str::from_utf8(bytes).map_err(|_| missing(secret, key, "is not text"))?;
            // An editor or `echo` leaves a line end that no password has.
            match text.trim_end_matches(['\r', '\n']) {
                "" => Err(missing(secret, key, "is missing or empty")),
                text => Ok(text.to_owned()),
            }
        };
        Ok(Credentials::new(text("username")?, text("password")?))
    }

    /// Whom to believe that it is the BMC. That field names the Secret, if there is one.
    pub async fn trust(&self, namespace: Option<&str>, wish: &TrustWish, field: &str) -> Result<Trust, Failure> {
        let name = match wish {
            TrustWish::SystemRoots => return Ok(Trust::SystemRoots),
            TrustWish::Pin(fingerprint) => return Ok(Trust::Pin(*fingerprint)),
            TrustWish::FirstUse => return Ok(Trust::FirstUse),
            TrustWish::Anything => return Ok(Trust::Anything),
            TrustWish::CaBundle(name) => name,
        };
        let secret = &ObjectId::named::<Secret>(namespace, name);
        let data = self.read(secret, field).await?;
        let pem = ["ca.crt", "tls.crt"].iter().find_map(|key| data.get(*key)).filter(|pem| !pem.0.is_empty());
        let pem = pem.ok_or_else(|| missing(secret, "ca.crt", "is missing or empty"))?;
        let text = String::from_utf8(pem.0.clone()).map_err(|_| missing(secret, "ca.crt", "is not text"))?;
        Ok(Trust::CaBundle(text))
    }

    async fn read(&self, id: &ObjectId, field: &str) -> Result<Data, Failure> {
        match id.api::<Secret>(&self.client).get_opt(&id.name).await {
            Ok(Some(secret)) => {
                self.remember(id, &secret);
                Ok(secret.data.unwrap_or_default())
            }
            Ok(None) => Err(Failure::new(
                Kind::SecretNotFound,
                format!("{id:#}, named in {field}, does not exist. Create it; it is noticed at once."),
            )),
            Err(error) => {
                Err(Failure::new(Kind::SecretUnreadable, format!("{id:#}, named in {field}, cannot be read: {error}")))
            }
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

fn missing(secret: &ObjectId, key: &str, what: &str) -> Failure {
    Failure::new(
        Kind::MissingSecretData,
        format!("Key {key} of {secret:#} {what}. Set it; the change is noticed at once."),
    )
}
