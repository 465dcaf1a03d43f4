//! Objects of any kind, namespaced or cluster-scoped: their identity, and how to request them.

use std::borrow::Cow;
use std::fmt::{self, Debug, Display};

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A kind, whatever version it is served in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Kind, such as `Secret`.
    pub kind: Cow<'static, str>,
}

impl KindId {
    /// The kind of a resource.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self { group: K::group(&()), kind: K::kind(&()) }
    }

    /// The kind that a reference by `apiVersion` and `kind` names.
    pub fn referred(api_version: &str, kind: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self { group: group.to_owned().into(), kind: kind.to_owned().into() }
    }
}

/// One object. Shown as `namespace/name`, and with the kind before it in the alternate form (`{:#}`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// Kind.
    pub kind: KindId,
    /// Namespace; `None` for objects of the whole cluster.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// UID: a new object with the same name is another object. `None` for any object with this name.
    pub uid: Option<String>,
}

impl ObjectId {
    /// The id of an object.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        let kind = KindId::of::<K>();
        Self { kind, namespace: object.namespace(), name: object.name_any(), uid: object.uid() }
    }

    /// Any object with that name.
    pub fn named<K: Resource<DynamicType = ()>>(namespace: Option<&str>, name: &str) -> Self {
        Self { kind: KindId::of::<K>(), namespace: namespace.map(str::to_owned), name: name.to_owned(), uid: None }
    }

    /// All objects of a kind: whoever depends on this is woken by each of them.
    pub fn all<K: Resource<DynamicType = ()>>() -> Self {
        Self::named::<K>(None, "")
    }

    /// All objects of the kind of this one.
    #[must_use]
    pub fn all_alike(&self) -> Self {
        Self { kind: self.kind.clone(), namespace: None, name: String::new(), uid: None }
    }

    /// Any object with the name of this one.
    #[must_use]
    pub fn by_name(&self) -> Self {
        Self { uid: None, ..self.clone() }
    }

    /// The namespace; empty for objects of the whole cluster.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// Its key in the stores of watches.
    pub(crate) fn object_ref<K: Resource<DynamicType = (), Scope: Reach>>(&self) -> ObjectRef<K> {
        let named = ObjectRef::new(&self.name);
        match self.namespace.as_ref().filter(|_| K::Scope::HAS_NAMESPACES) {
            Some(namespace) => named.within(namespace),
            None => named,
        }
    }

    /// The API to request it from.
    pub(crate) fn api<K: Object>(&self, client: &Client) -> Api<K> {
        api(client, self.namespace.as_deref())
    }
}

impl Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{} ", self.kind.kind)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Resources that have a loop, namespaced or cluster-scoped.
pub trait Object:
    Resource<DynamicType = (), Scope: Reach> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: Reach> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
}

/// The scope of a kind.
pub trait Reach: Sized {
    /// Whether they have namespaces.
    const HAS_NAMESPACES: bool;

    /// The API for the objects of one namespace, or for all. Cluster-scoped objects are in every namespace's.
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: &Client, namespace: Option<&str>) -> Api<K>;
}

impl Reach for NamespaceResourceScope {
    const HAS_NAMESPACES: bool = true;

    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: &Client, namespace: Option<&str>) -> Api<K> {
        match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }
}

impl Reach for ClusterResourceScope {
    const HAS_NAMESPACES: bool = false;

    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: &Client, _: Option<&str>) -> Api<K> {
        Api::all(client.clone())
    }
}

/// The API for the objects of a kind.
pub(crate) fn api<K: Resource<DynamicType = (), Scope: Reach>>(client: &Client, namespace: Option<&str>) -> Api<K> {
    <K::Scope as Reach>::api(client, namespace)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Secret};
    use serde_json::json;

    use super::*;

    fn object<K: DeserializeOwned>(metadata: &serde_json::Value) -> K {
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn an_id_shows_what_is_needed_to_find_the_object() {
        let secret = ObjectId::of(&object::<Secret>(&json!({ "name": "a", "namespace": "lab", "uid": "1" })));
        let node = ObjectId::of(&object::<Node>(&json!({ "name": "a", "uid": "1" })));
        assert_eq!(format!("{secret} {secret:#} {node} {node:#}"), "lab/a Secret lab/a a Node a");
        assert_eq!(secret.by_name(), ObjectId::named::<Secret>(Some("lab"), "a"));
        assert_ne!(secret.by_name(), secret);
        let referred = KindId::referred("cluster.x-k8s.io/v1beta1", "Cluster");
        assert_eq!((&*referred.group, &*referred.kind), ("cluster.x-k8s.io", "Cluster"));
        assert_eq!(KindId::referred("v1", "Secret"), secret.kind);
    }

    #[tokio::test]
    async fn objects_are_asked_for_where_they_are_whether_they_have_a_namespace_or_not() {
        let client = Client::new(axum::Router::new(), "default");
        let secret = ObjectId::named::<Secret>(Some("lab"), "a").api::<Secret>(&client);
        assert_eq!(secret.resource_url(), "/api/v1/namespaces/lab/secrets");
        assert_eq!(ObjectId::named::<Node>(None, "a").api::<Node>(&client).resource_url(), "/api/v1/nodes");
        assert_eq!(api::<Secret>(&client, None).resource_url(), "/api/v1/secrets");
        // An operator that is to see one namespace only sees all objects that have none.
        assert_eq!(api::<Node>(&client, Some("lab")).resource_url(), "/api/v1/nodes");
    }
}
