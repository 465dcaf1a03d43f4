//! Secrets, and what a dialect has in their place: watched as metadata only, read one by one when a BMC is to be spoken to.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bmc::{Credentials, Trust};
use engine::failure::{Failure, Kind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::Store;
use serde_json::{Value, json};

use crate::dialect::{GivenCredentials, Login, TrustWish};
use crate::fingerprint::{digest, quoted};
use crate::object::{KindId, Object, ObjectId};

/// What a Secret holds, by key.
pub type Data = BTreeMap<String, ByteString>;

/// Kinds whose objects hold credentials.
pub trait Keeper: Object {
    /// The fields by which they are written. Whoever applies a Secret with `stringData` is recorded as the writer of that.
    const FIELDS: &'static [&'static str] = &["f:data", "f:stringData"];

    /// What an object holds.
    fn into_data(self) -> Data;
}

impl Keeper for Secret {
    fn into_data(self) -> Data {
        self.data.unwrap_or_default()
    }
}

/// Where credentials come from.
#[derive(Clone)]
pub struct Vault {
    client: Client,
    kinds: Vec<(KindId, Arc<dyn Kept>)>,
    read: Arc<Mutex<HashMap<ObjectId, Read>>>,
    /// Keyed afresh in each process: what is remembered of a password is of no use to anybody else.
    hash: RandomState,
}

/// The objects of one kind.
trait Kept: Send + Sync {
    /// The metadata that the watch has shown.
    fn metadata(&self, id: &ObjectId) -> Option<ObjectMeta>;
    /// Which version the watch has shown.
    fn known(&self, id: &ObjectId) -> Option<Version>;
    /// Which objects that the watch has shown have such metadata.
    fn find(&self, is_meant: &dyn Fn(&ObjectMeta) -> bool) -> Vec<ObjectId>;
    /// Asks for an object, which may not exist.
    fn read<'a>(
        &'a self,
        client: &'a Client,
        id: &'a ObjectId,
    ) -> BoxFuture<'a, kube::Result<Option<(ObjectMeta, Data)>>>;
    /// Changes metadata by a merge patch.
    fn patch<'a>(
        &'a self,
        client: &'a Client,
        id: &'a ObjectId,
        patch: Value,
    ) -> BoxFuture<'a, kube::Result<ObjectMeta>>;
    /// Waits until all have been listed once.
    fn is_ready(&self) -> BoxFuture<'_, ()>;
}

impl<K: Keeper> Kept for Store<PartialObjectMeta<K>> {
    fn metadata(&self, id: &ObjectId) -> Option<ObjectMeta> {
        self.get(&id.object_ref()).map(|object| object.metadata.clone())
    }

    fn find(&self, is_meant: &dyn Fn(&ObjectMeta) -> bool) -> Vec<ObjectId> {
        let meant = |object: &Arc<PartialObjectMeta<K>>| {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let id = ObjectId::named::<K>(object.metadata.namespace.as_deref(), name);
            is_meant(&object.metadata).then_some(id)
        };
        self.state().iter().filter_map(meant).collect()
    }

    fn known(&self, id: &ObjectId) -> Option<Version> {
        self.get(&id.object_ref()).map(|object| Version::of(&object.metadata))
    }

    fn read<'a>(
        &'a self,
        client: &'a Client,
        id: &'a ObjectId,
    ) -> BoxFuture<'a, kube::Result<Option<(ObjectMeta, Data)>>> {
        async move {
            let Some(mut object) = id.api::<K>(client).get_opt(&id.name).await? else { return Ok(None) };
            let mut metadata = std::mem::take(object.meta_mut());
            shorten::<K>(&mut metadata);
            Ok(Some((metadata, object.into_data())))
        }
        .boxed()
    }

    fn patch<'a>(
        &'a self,
        client: &'a Client,
        id: &'a ObjectId,
        patch: Value,
    ) -> BoxFuture<'a, kube::Result<ObjectMeta>> {
        async move {
            let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
            let mut patched = id.api::<K>(client).patch_metadata(&id.name, &params, &patch).await?;
            shorten::<K>(&mut patched.metadata);
            Ok(patched.metadata)
        }
        .boxed()
    }

    fn is_ready(&self) -> BoxFuture<'_, ()> {
        // Fails only when the writer is gone, and then the work ends by itself.
        self.wait_until_ready().map(drop).boxed()
    }
}

/// Which object it is, and in which version. Shown as what stays the same until its data is written again, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    uid: Option<String>,
    /// Its resourceVersion.
    revision: Option<String>,
    /// Who has written its data, and when, as a short word.
    origin: Option<String>,
}

impl Version {
    fn of(metadata: &ObjectMeta) -> Self {
        let ObjectMeta { uid, resource_version, self_link, .. } = metadata;
        Self { uid: uid.clone(), revision: resource_version.clone(), origin: self_link.clone() }
    }

    /// As version 0.1.0 has shown it: it changes with every label.
    fn former(&self) -> String {
        Self { origin: None, ..self.clone() }.to_string()
    }
}

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part: Option<&String>| part.cloned().unwrap_or_default();
        write!(f, "{}/{}", text(self.uid.as_ref()), text(self.origin.as_ref().or(self.revision.as_ref())))
    }
}

/// Drops what nobody asks for from the metadata of an object with credentials: all Secrets of a cluster are kept in memory. What it says of
/// the writers of its fields becomes a short word about its data.
pub(crate) fn shorten<K: Keeper>(metadata: &mut ObjectMeta) {
    metadata.annotations = None;
    let writers = metadata.managed_fields.take().unwrap_or_default();
    // No API server fills this field any more.
    metadata.self_link = origin(&writers, K::FIELDS);
}

/// Who has written these fields, and when. `None` if that is not told of everybody.
fn origin(writers: &[ManagedFieldsEntry], fields: &[&str]) -> Option<String> {
    let mut all = Vec::new();
    for writer in writers {
        let name = |name: &Option<String>| quoted(name.as_deref().unwrap_or_default());
        for written in fields.iter().filter_map(|field| writer.fields_v1.as_ref()?.0.get(field)) {
            let (manager, operation) = (name(&writer.manager), name(&writer.operation));
            all.push(format!("{manager} {operation} {} {written}", writer.time.as_ref()?.0));
        }
    }
    all.sort();
    (!all.is_empty()).then(|| digest(&all.join("\n")))
}

/// What to log in with, and the word that stands for it in this process.
#[derive(Debug)]
pub(crate) struct KnownCredentials {
    pub(crate) credentials: Credentials,
    pub(crate) word: String,
}

/// What is remembered of an object that was read. Not what it holds.
struct Read {
    version: Version,
    digest: u64,
    /// The version in which the data, as opposed to labels and the like, was first read, and the same as version 0.1.0 has shown it.
    data_version: String,
    former: String,
    /// Whether the watch has shown it, too.
    shown: bool,
}

impl Vault {
    /// An empty one.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kinds: Vec::new(), read: Arc::default(), hash: RandomState::new() }
    }

    /// Takes in the objects of a kind, from a store that somebody keeps up to date.
    pub(crate) fn keep<K: Keeper>(&mut self, known: Store<PartialObjectMeta<K>>) {
        self.kinds.push((KindId::of::<K>(), Arc::new(known)));
    }

    /// Waits until all objects of these kinds have been listed once.
    pub(crate) async fn is_complete(&self, kinds: &[KindId]) {
        for kept in kinds.iter().filter_map(|kind| self.kind(kind)) {
            kept.is_ready().await;
        }
    }

    /// Whether there is such an object, as far as the watch has shown.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.known(id).is_some()
    }

    /// The metadata of an object, as far as the watch has shown it: without annotations, and of the labels only those that some dialect
    /// marks objects with.
    pub(crate) fn metadata(&self, id: &ObjectId) -> Option<ObjectMeta> {
        self.kind(&id.kind)?.metadata(id)
    }

    /// All objects with such metadata.
    pub(crate) fn find(&self, is_meant: &dyn Fn(&ObjectMeta) -> bool) -> Vec<ObjectId> {
        self.kinds.iter().flat_map(|(_, kept)| kept.find(is_meant)).collect()
    }

    /// Changes the metadata of an object by a merge patch, if it still has the version that was seen. That is no news about its data.
    pub(crate) async fn patch(&self, id: &ObjectId, seen: &ObjectMeta, mut patch: Value) -> kube::Result<ObjectMeta> {
        // What was seen is of a kind that is kept.
        let Some(kept) = self.kind(&id.kind) else { return Ok(seen.clone()) };
        patch["metadata"]["resourceVersion"] = json!(seen.resource_version);
        patch["metadata"]["uid"] = json!(seen.uid);
        let patched = kept.patch(&self.client, id, patch).await?;
        if let Some(read) = self.remembered().get_mut(id).filter(|read| read.version == Version::of(seen)) {
            read.version = Version::of(&patched);
        }
        Ok(patched)
    }

    fn known(&self, id: &ObjectId) -> Option<Version> {
        self.kind(&id.kind)?.known(id)
    }

    fn kind(&self, kind: &KindId) -> Option<&dyn Kept> {
        self.kinds.iter().find(|(known, _)| known == kind).map(|(_, kept)| kept.as_ref())
    }

    /// Changes whenever the object's data does. A new label must not look like a new password: it would be tried again.
    ///
    /// Whoever has written the data tells it apart, with the time, so that it is the same after a restart, too. Only if the same writer changes
    /// the labels while nobody looks, that is not known from a new password.
    pub fn version(&self, id: &ObjectId) -> String {
        self.versions(id).0
    }

    /// The same as version 0.1.0 has made it.
    pub fn former_version(&self, id: &ObjectId) -> String {
        self.versions(id).1
    }

    fn versions(&self, id: &ObjectId) -> (String, String) {
        let known = self.known(id);
        let mut read = self.remembered();
        let read = read.get_mut(id);
        match (known, read) {
            (Some(known), Some(read)) if read.version.uid == known.uid => {
                read.shown = true;
                (read.data_version.clone(), read.former.clone())
            }
            (Some(known), _) => (known.to_string(), known.former()),
            // The watch is behind. What it will show was read already, and must not look like something new then.
            (None, Some(read)) if !read.shown => (read.data_version.clone(), read.former.clone()),
            (None, _) => ("none".to_owned(), "none".to_owned()),
        }
    }

    /// The resourceVersion with which the object's data last changed, as far as we know; `None` if there is no such object.
    pub(crate) fn data_version(&self, id: &ObjectId) -> Option<String> {
        self.known(id)?;
        self.former_version(id).rsplit('/').next().map(str::to_owned)
    }

    /// An object was touched. Answers whether its data may have changed.
    pub async fn is_news(&self, id: &ObjectId, touched: &ObjectMeta) -> bool {
        let before = {
            let read = self.remembered();
            let read = read.get(id).filter(|read| read.version.uid == touched.uid);
            match read {
                None => return true,
                Some(read) if read.version.revision == touched.resource_version => return false,
                Some(read) => read.data_version.clone(),
            }
        };
        if self.read(id, "").await.is_err() {
            self.remembered().remove(id);
        }
        self.version(id) != before
    }

    fn remember(&self, id: &ObjectId, metadata: &ObjectMeta, data: &Data) {
        let digest = self.hash.hash_one(data.iter().map(|(key, value)| (key, &value.0)).collect::<Vec<_>>());
        let version = Version::of(metadata);
        let mut read = self.remembered();
        let before = read.get(id).filter(|read| read.version.uid == version.uid);
        let shown = before.is_some_and(|read| read.shown);
        let (data_version, former) = match before {
            Some(read) if read.digest == digest => (read.data_version.clone(), read.former.clone()),
            // Written twice by the same writer within a second.
            Some(read) if read.version.origin == version.origin => (version.former(), version.former()),
            _ => (version.to_string(), version.former()),
        };
        read.insert(id.clone(), Read { version, digest, data_version, former, shown });
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<ObjectId, Read>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A word that stands for these texts in this process, and says nothing of them to anybody else.
    pub(crate) fn word_for(&self, texts: &[&str]) -> String {
        format!("{:016x}", self.hash.hash_one(texts))
    }

    /// What to log in with. That field names the object that keeps it.
    pub(crate) async fn login(&self, login: &Login, field: &str) -> Result<KnownCredentials, Failure> {
        match login {
            Login::Kept(id) => self.credentials(id, field).await,
            Login::Given(GivenCredentials { username, password }) => Ok(self.known_credentials(username, password)),
        }
    }

    fn known_credentials(&self, username: &str, password: &str) -> KnownCredentials {
        let word = self.word_for(&[username, password]);
        KnownCredentials { credentials: Credentials::new(username, password), word }
    }

    /// User name and password, from a Secret that is named in that field.
    pub(crate) async fn credentials(&self, secret: &ObjectId, field: &str) -> Result<KnownCredentials, Failure> {
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
        Ok(self.known_credentials(&text("username")?, &text("password")?))
    }

    /// What is wrong with an object that must have this key, which that field names. `None` if nothing is, or if that cannot be told now.
    pub(crate) async fn lack(&self, id: &ObjectId, field: &str, key: &str) -> Option<Failure> {
        match self.read(id, field).await {
            Ok(data) if data.get(key).is_some_and(|value| !value.0.is_empty()) => None,
            Ok(_) => Some(missing(id, key, "is missing or empty")),
            Err(failure) => Some(failure).filter(|failure| failure.kind == Kind::SecretNotFound),
        }
    }

    /// Whom to believe that it is the BMC. That field names the Secret, if there is one.
    pub async fn trust(&self, wish: &TrustWish, field: &str) -> Result<Trust, Failure> {
        let secret = match wish {
            TrustWish::SystemRoots => return Ok(Trust::SystemRoots),
            TrustWish::Pin(fingerprint) => return Ok(Trust::Pin(*fingerprint)),
            TrustWish::FirstUse => return Ok(Trust::FirstUse),
            TrustWish::Anything => return Ok(Trust::Anything),
            TrustWish::CaBundle(secret) => secret,
        };
        let data = self.read(secret, field).await?;
        let pem = ["ca.crt", "tls.crt"].iter().find_map(|key| data.get(*key)).filter(|pem| !pem.0.is_empty());
        let pem = pem.ok_or_else(|| missing(secret, "ca.crt", "is missing or empty"))?;
        let text = String::from_utf8(pem.0.clone()).map_err(|_| missing(secret, "ca.crt", "is not text"))?;
        Ok(Trust::CaBundle(text))
    }

    async fn read(&self, id: &ObjectId, field: &str) -> Result<Data, Failure> {
        let unreadable = |why: String| {
            Failure::new(Kind::SecretUnreadable, format!("{id:#}, named in {field}, cannot be read: {why}"))
        };
        let kept = self.kind(&id.kind).ok_or_else(|| unreadable("its kind holds no credentials.".to_owned()))?;
        match kept.read(&self.client, id).await {
            Ok(Some((metadata, data))) => {
                self.remember(id, &metadata, &data);
                Ok(data)
            }
            Ok(None) => Err(Failure::new(
                Kind::SecretNotFound,
                format!("{id:#}, named in {field}, does not exist. Create it; it is noticed at once."),
            )),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }
}

fn missing(secret: &ObjectId, key: &str, what: &str) -> Failure {
    Failure::new(
        Kind::MissingSecretData,
        format!("Key {key} of {secret:#} {what}. Set it; the change is noticed at once."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(writers: &Value) -> Version {
        let mut metadata: ObjectMeta =
            serde_json::from_value(json!({ "uid": "u", "resourceVersion": "7", "managedFields": writers })).unwrap();
        shorten::<Secret>(&mut metadata);
        assert_eq!(metadata.managed_fields, None);
        Version::of(&metadata)
    }

    fn writer(manager: &str, second: u32, fields: &Value) -> Value {
        let time = format!("2026-11-18T08:00:{second:02}Z");
        json!({ "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsV1": fields })
    }

    #[test]
    fn data_is_known_by_who_has_written_it_and_when_and_labels_do_not_count() {
        let data = &json!({ "f:data": { "f:password": {}, "f:username": {} } });
        let labels = &json!({ "f:metadata": { "f:labels": { "f:a": {} } } });
        let first = secret(&json!([writer("kubectl-create", 1, data)])).to_string();
        let same = |writers: Value| secret(&writers).to_string() == first;
        assert_eq!(first, "u/f8fa7e2b9ec2dbb59735");
        assert!(same(json!([writer("kubectl-create", 1, data), writer("capm3", 2, labels)])));
        assert!(same(json!([writer("capm3", 9, labels), writer("kubectl-create", 1, data)])));
        assert!(!same(json!([writer("kubectl-create", 2, data)])), "written again");
        let applied = json!([writer("kubectl", 1, &json!({ "f:stringData": { "f:password": {} } }))]);
        assert!(secret(&applied).origin.is_some());
        assert!(!same(json!([writer("kubectl-edit", 1, data)])), "written by somebody else");
        let password = &json!({ "f:data": { "f:password": {} } });
        assert!(!same(json!([writer("kubectl-create", 1, password)])), "a key was taken out");
        // Where nobody says who has written it, every change counts.
        let unsigned = json!({ "manager": "a", "operation": "Update", "fieldsV1": data });
        for writers in [json!([]), json!([writer("capm3", 2, labels)]), json!([unsigned])] {
            assert_eq!(secret(&writers).to_string(), "u/7");
        }
        assert_eq!(secret(&json!([writer("kubectl-create", 1, data)])).former(), "u/7");
    }
}
