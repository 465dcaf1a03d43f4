//! Where a world is: on a cluster of the test bed, or in this process.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use apiserver::auth::StaticTokens;
use apiserver::server::{Config, Server};
use apiserver::store::{Change, Expect, Scan, Store};
use bytes::Bytes;
use controllers::clock::{Clock, SystemClock, TokioClock};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt as _, discovery};
use serde_json::{Value, json};
use testkit::{Account, Cluster, wait_ok};

/// The role that we ship for an operator of one namespace.
const ROLES: &str = concat!(
    include_str!("../../../config/rbac/namespaced/role.yaml"),
    "\n---\n",
    include_str!("../../../config/rbac/namespaced/role_binding.yaml"),
);

/// The operator's ServiceAccount.
pub(crate) const OPERATOR: &str = "beskar7";

pub(crate) enum Bed {
    /// The operator has the ServiceAccount and roles that we ship, and a runtime of its own.
    Cluster { cluster: &'static Cluster, account: Account },
    /// The operator shares the thread with its API server, and is the admin.
    Process(Arc<Process>),
}

pub(crate) struct Process {
    server: Server,
    store: Store,
    clock: TokioClock,
}

/// When a world in process begins, unless it is said.
const BEGIN: &str = "2026-11-16T08:00:00Z";

impl Bed {
    /// A new namespace of a cluster.
    pub(crate) async fn on(cluster: &'static Cluster, prefix: &str) -> (Self, String) {
        let namespace = cluster.namespace(prefix).await;
        (Self::in_namespace(cluster, &namespace).await, namespace)
    }

    /// A new namespace of a cluster, with that name.
    pub(crate) async fn named_on(cluster: &'static Cluster, namespace: &str) -> Self {
        cluster.apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await;
        Self::in_namespace(cluster, namespace).await
    }

    async fn in_namespace(cluster: &'static Cluster, namespace: &str) -> Self {
        cluster.apply_yaml(&api::crds_yaml()).await;
        let roles = ROLES.replace("beskar7-system", namespace);
        let account = cluster.service_account(namespace, OPERATOR, &roles).await;
        Self::Cluster { cluster, account }
    }

    /// An API server in this process, with a namespace and our CRDs.
    pub(crate) async fn in_process() -> (Self, String) {
        let bed = Self::empty(BEGIN.parse().unwrap()).await;
        let namespace = bed.namespace(json!({ "generateName": "lab-" })).await;
        (bed, namespace)
    }

    /// The same with a namespace of that name, at that time.
    pub(crate) async fn in_process_at(begin: Option<Timestamp>, namespace: &str) -> Self {
        let bed = Self::empty(begin.unwrap_or_else(|| BEGIN.parse().unwrap())).await;
        bed.namespace(json!({ "name": namespace })).await;
        bed
    }

    async fn empty(begin: Timestamp) -> Self {
        let clock = TokioClock::starting_at(begin);
        let store = Store::memory();
        let config = Config {
            store: store.clone(),
            clock: apiserver::clock::Clock::new(move || clock.now()),
            seed: 7,
            pki: None,
            tokens: StaticTokens::default(),
            build: "beskar7.test".to_owned(),
        };
        let server = Server::start(config).await.unwrap();
        let bed = Self::Process(Arc::new(Process { server, store, clock }));
        let definitions: Api<CustomResourceDefinition> = Api::all(bed.admin());
        for definition in api::crds() {
            definitions.create(&PostParams::default(), &definition).await.unwrap();
        }
        for definition in api::crds() {
            let name = definition.name_any();
            await_condition(definitions.clone(), &name, conditions::is_crd_established()).await.unwrap();
        }
        bed
    }

    /// Another namespace of the same API server.
    pub(crate) async fn beside(&self) -> (Self, String) {
        let Self::Process(process) = self else { panic!("every world on a cluster is beside all others") };
        let bed = Self::Process(process.clone());
        let namespace = bed.namespace(json!({ "generateName": "lab-" })).await;
        (bed, namespace)
    }

    async fn namespace(&self, metadata: Value) -> String {
        let namespaces: Api<Namespace> = Api::all(self.admin());
        let namespace = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap().name_any()
    }

    /// A client that may do everything.
    pub(crate) fn admin(&self) -> Client {
        match self {
            Self::Cluster { cluster, .. } => cluster.admin(),
            Self::Process(process) => Client::new(process.server.router(), "default"),
        }
    }

    /// The operator's client. It belongs to the runtime in which it is made.
    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Cluster { account, .. } => account.client(),
            Self::Process(_) => self.admin(),
        }
    }

    /// The time that everybody has who is in no hurry.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Cluster { .. } => Arc::new(SystemClock),
            Self::Process(process) => Arc::new(process.clock),
        }
    }

    /// Applies every document of `yaml`; those without a namespace go to `namespace`.
    pub(crate) async fn apply(&self, namespace: &str, yaml: &str) {
        if let Self::Cluster { cluster, .. } = self {
            cluster.apply_yaml_in(namespace, yaml).await;
            return;
        }
        let documents: Vec<DynamicObject> = serde_saphyr::from_multiple(yaml).unwrap();
        let client = self.admin();
        for document in documents {
            let kind = GroupVersionKind::try_from(document.types.as_ref().unwrap()).unwrap();
            // A definition that was just created may take a moment to show up in discovery.
            let known = async || discovery::pinned_kind(&client, &kind).await;
            let (resource, capabilities) = wait_ok(&format!("{kind:?} to be known"), PATIENCE, known).await;
            let objects: Api<DynamicObject> = match capabilities.scope {
                discovery::Scope::Cluster => Api::all_with(client.clone(), &resource),
                discovery::Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
            };
            let force = PatchParams::apply("testkit").force();
            objects.patch(&document.name_any(), &force, &Patch::Apply(&document)).await.unwrap();
        }
    }
}

/// What the store of a world in process holds, as it is.
impl Process {
    /// Every object, by its key.
    pub(crate) fn objects(&self) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        let all = Scan { prefix: "/registry/", after: None, at: None };
        self.store
            .scan(all, &mut |key, _, bytes| {
                objects.insert(key.to_owned(), serde_json::from_slice(bytes).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        objects
    }

    /// Lets time pass in which others write, until the next write gets this resourceVersion.
    pub(crate) async fn skip_to(&self, next: u64) {
        let filler = || Change::Put(Box::new(|_| Bytes::from_static(b"{}")));
        let mut expect = Expect::Absent;
        assert!(self.store.revision() < next, "{next} is taken: the store is at {}", self.store.revision());
        while self.store.revision() + 1 < next {
            let key = format!("/filler/{next}");
            expect = Expect::Revision(self.store.write(&key, expect, filler()).await.unwrap());
        }
    }

    /// Stores an object as it is, with its uid and its resourceVersion.
    pub(crate) async fn put(&self, key: &str, object: &Value) {
        let version = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        self.skip_to(version).await;
        let bytes = Bytes::from(object.to_string());
        let written = self.store.write(key, Expect::Absent, Change::Put(Box::new(|_| bytes))).await.unwrap();
        assert_eq!(written, version, "{key}");
    }
}

/// How long an API server may take to serve a definition.
const PATIENCE: Duration = Duration::from_secs(30);

impl Drop for Process {
    fn drop(&mut self) {
        self.server.api().stop();
    }
}
