//! A world whose operator looks after metal-operator's kinds.

use std::sync::Arc;
use std::time::Duration;

use api::ironcore::{Bmc, BmcSecret, Endpoint, Server, ServerBootConfiguration, ServerClaim};
use controllers::dialect::Settings;
use controllers::dialects::Dialect;
use controllers::ironcore::MacPrefixes;
use controllers::operator::Config;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Resource;
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bed::OPERATOR;
use crate::world::World;

/// The roles that we ship for an operator of metal-operator's kinds.
const ROLES: &str = concat!(
    include_str!("../../../config/rbac/role.yaml"),
    "\n---\n",
    include_str!("../../../config/rbac/role_binding.yaml"),
    "\n---\n",
    include_str!("../../../config/ironcore/role.yaml"),
    "\n---\n",
    include_str!("../../../config/ironcore/role_binding.yaml"),
);

/// Longer than an emulated server takes for anything.
const PATIENCE: Duration = Duration::from_mins(5);

/// Devices whose MAC addresses begin with 23 are BMCs.
pub const PREFIXES: &str = "macPrefixes:
- macPrefix: '23'
  manufacturer: Foo
  protocol: Redfish
  port: 443
  type: bmc
  defaultCredentials:
  - username: admin
    password: password
";

/// The configuration of an operator that looks after Servers.
pub fn ironcore(config: &mut Config) {
    let mut settings = Settings::default();
    settings.ironcore.prefixes = MacPrefixes::parse(PREFIXES).unwrap();
    config.settings = Arc::new(settings);
    config.dialects = vec![Dialect::IronCore];
    config.cluster_api = false;
    // Servers and BMCs have no namespace.
    config.namespace = None;
}

/// What tests do to objects of any kind.
pub trait Objects {
    /// Creates an object; what it is called is said in its metadata.
    fn make(&self, metadata: Value, fields: Value) -> impl Future<Output = ()>;
    /// Changes an object by a merge patch.
    fn edit(&self, name: &str, patch: Value) -> impl Future<Output = ()>;
    /// Changes the status of an object by a merge patch.
    fn edit_status(&self, name: &str, status: Value) -> impl Future<Output = ()>;
    /// Asks for an object to be deleted.
    fn remove(&self, name: &str) -> impl Future<Output = ()>;
    /// An object as it is shown, or nothing.
    fn show(&self, name: &str) -> impl Future<Output = Value>;
}

impl<K> Objects for Api<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    async fn make(&self, metadata: Value, fields: Value) {
        let mut object = json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata });
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    async fn edit(&self, name: &str, patch: Value) {
        self.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn edit_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn remove(&self, name: &str) {
        self.delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn show(&self, name: &str) -> Value {
        serde_json::to_value(self.get_opt(name).await.unwrap()).unwrap()
    }
}

/// A condition of an object, or nothing.
pub fn condition_of(object: &Value, type_: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}

impl World {
    /// Installs metal-operator's definitions on the cluster, and lets the operator use them everywhere. Servers have no namespace: the
    /// cluster must be this world's own.
    pub async fn install_ironcore(&self) {
        self.cluster().apply_yaml(&api::crd::documents(&api::crd::ironcore_crds())).await;
        let roles = ROLES.replace("beskar7-system", &self.namespace);
        self.cluster().service_account(&self.namespace, OPERATOR, &roles).await;
    }

    /// Servers, as their admin sees them.
    pub fn servers(&self) -> Api<Server> {
        Api::all(self.admin())
    }

    /// BMCs.
    pub fn bmc_objects(&self) -> Api<Bmc> {
        Api::all(self.admin())
    }

    /// Credentials of BMCs.
    pub fn bmc_secrets(&self) -> Api<BmcSecret> {
        Api::all(self.admin())
    }

    /// Devices on the management network.
    pub fn endpoints(&self) -> Api<Endpoint> {
        Api::all(self.admin())
    }

    /// Claims in this world's namespace.
    pub fn server_claims(&self) -> Api<ServerClaim> {
        Api::namespaced(self.admin(), &self.namespace)
    }

    /// Boot configurations in this world's namespace.
    pub fn boot_configurations(&self) -> Api<ServerBootConfiguration> {
        Api::namespaced(self.admin(), &self.namespace)
    }

    /// Creates a BMCSecret and a BMC that is reached at `address`.
    pub async fn create_bmc(&self, name: &str, address: &str) {
        let data = json!({ "stringData": { "username": "admin", "password": "password" } });
        self.bmc_secrets().make(json!({ "name": name }), data).await;
        let spec = json!({
            "access": { "ip": address, "macAddress": "23:11:8a:33:cf:ea" },
            "bmcSecretRef": { "name": name },
            "protocol": { "name": "Redfish", "port": 443 },
        });
        self.bmc_objects().make(json!({ "name": name }), json!({ "spec": spec })).await;
    }

    /// Waits until an object is as it should be, and answers it; on time-out, shows what it is instead.
    pub async fn until<K>(&self, objects: Api<K>, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value
    where
        Api<K>: Objects,
    {
        let began = Instant::now();
        loop {
            let shown = objects.show(name).await;
            if is_so(&shown) {
                return shown;
            }
            assert!(began.elapsed() < self.patience().max(PATIENCE), "{name}: {what} did not come true: {shown:#}");
            self.pause_since(began).await;
        }
    }

    /// Waits for a state of a Server.
    pub async fn until_server(&self, name: &str, state: &str) -> Value {
        self.until(self.servers(), name, state, |server| server["status"]["state"] == state).await
    }

    /// Waits until the condition Ready of an object has this reason.
    pub async fn until_ready<K>(&self, objects: Api<K>, name: &str, reason: &str) -> Value
    where
        Api<K>: Objects,
    {
        self.until(objects, name, reason, |object| condition_of(object, "Ready")["reason"] == reason).await
    }

    /// Waits until an object is gone.
    pub async fn until_gone<K>(&self, objects: Api<K>, name: &str)
    where
        Api<K>: Objects,
    {
        self.until(objects, name, "gone", Value::is_null).await;
    }

    /// As a boot provider does: says how it stands with a boot configuration, as soon as there is one.
    pub async fn provide(&self, name: &str, state: &str) {
        let is_pending = |shown: &Value| shown["status"]["state"] == "Pending";
        self.until(self.boot_configurations(), name, "Pending", is_pending).await;
        self.boot_configurations().edit_status(name, json!({ "state": state })).await;
    }

    /// Claims any server and has it run.
    pub async fn claim_server(&self, name: &str, change: Value) {
        let mut spec = json!({ "power": "On", "image": "registry.example/os:1" });
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        self.server_claims().make(json!({ "name": name }), json!({ "spec": spec })).await;
    }
}

/// An object of a kind as a Go client of metal-operator v0.7 has it in hand after it has read it: without the fields that its types do not
/// have.
pub fn as_upstream<K: Resource<DynamicType = ()>>(object: &mut Value) {
    let crd = testkit::part("metal-operator").join(format!("crds/{}_{}.yaml", K::group(&()), K::plural(&())));
    let text = std::fs::read_to_string(&crd).unwrap_or_else(|error| panic!("{}: {error}", crd.display()));
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for part in ["spec", "status"] {
        if object.get(part).is_some() {
            prune(&mut object[part], &schema["properties"][part]);
        }
    }
}

fn prune(value: &mut Value, schema: &Value) {
    match (value, schema["properties"].as_object()) {
        (Value::Object(fields), Some(known)) => {
            fields.retain(|name, _| known.contains_key(name));
            for (name, field) in fields {
                prune(field, &known[name]);
            }
        }
        (Value::Array(items), _) => items.iter_mut().for_each(|item| prune(item, &schema["items"])),
        _ => {}
    }
}

/// A boot provider that does nothing but what the contract asks of it: it says of each ServerBootConfiguration that it is ready. It is a Go
/// client in what it writes: each status as a whole, without fields that it does not know.
#[derive(Debug)]
pub struct BootProvider {
    _work: JoinSet<()>,
}

impl BootProvider {
    /// What it may do.
    pub const ROLES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: boot-provider}
rules:
  - {apiGroups: [metal.ironcore.dev], resources: [serverbootconfigurations], verbs: [get, list, watch]}
  - {apiGroups: [metal.ironcore.dev], resources: [serverbootconfigurations/status], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: boot-provider}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: boot-provider}
subjects: [{kind: ServiceAccount, name: boot-provider, namespace: NAMESPACE}]
";

    /// Begins, and ends when it is dropped.
    pub fn start(client: Client) -> Self {
        let mut work = JoinSet::new();
        work.spawn(async move {
            loop {
                Self::look(&client).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        Self { _work: work }
    }

    async fn look(client: &Client) {
        let everywhere: Api<ServerBootConfiguration> = Api::all(client.clone());
        for configuration in everywhere.list(&ListParams::default()).await.unwrap() {
            let state = configuration.status.as_ref().map_or("", |status| status.state.as_str());
            if !matches!(state, "" | "Pending") || configuration.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let (name, namespace) = (configuration.name_any(), configuration.namespace().unwrap());
            let mut object = serde_json::to_value(configuration).unwrap();
            object["status"]["state"] = json!("Ready");
            as_upstream::<ServerBootConfiguration>(&mut object);
            let there: Api<ServerBootConfiguration> = Api::namespaced(client.clone(), &namespace);
            let written =
                there.replace_status(&name, &PostParams::default(), &serde_json::from_value(object).unwrap()).await;
            match written {
                Ok(_) => {}
                // Somebody else has written, or it is gone: it is looked at again.
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {}
                Err(error) => panic!("{namespace}/{name}: {error}"),
            }
        }
    }
}
