//! Machines, and the hosts that they get.

use api::beskar7::Beskar7Machine;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::wait_for;
use tokio::time::Instant;

use crate::story::ISO;
use crate::world::World;

/// Stand-ins for Cluster API's own.
pub const CLUSTER_API: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusters.cluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {kind: Cluster, plural: clusters, singular: cluster}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: machines.cluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {kind: Machine, plural: machines, singular: machine}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

impl World {
    /// A namespace of the shared cluster, with an operator that knows no Cluster API.
    pub async fn alone(prefix: &str) -> Self {
        let world = Self::quiet(prefix).await;
        world.start_alone();
        world
    }

    /// The same in process.
    pub async fn alone_in_process() -> Self {
        let world = Self::quiet_in_process().await;
        world.start_alone();
        world
    }

    /// Starts an operator that knows no Cluster API.
    pub fn start_alone(&self) {
        self.start_operator_with(self.clock(), |config| config.cluster_api = false);
    }

    /// Machines, as their admin sees them.
    pub fn machines(&self) -> Api<Beskar7Machine> {
        Api::namespaced(self.admin(), &self.namespace)
    }

    /// Creates a machine.
    pub async fn create_machine(&self, name: &str, spec: Value) -> Beskar7Machine {
        let machine = json!({ "metadata": { "name": name }, "spec": spec });
        let machine = serde_json::from_value(machine).unwrap();
        self.machines().create(&PostParams::default(), &machine).await.unwrap()
    }

    /// Waits until a machine is as `wanted` says; on time-out, shows what it is instead.
    pub async fn wait_for_machine(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Beskar7Machine) -> bool,
    ) -> Beskar7Machine {
        let machines = self.machines();
        let began = Instant::now();
        loop {
            let machine = machines.get(name).await.unwrap();
            if wanted(&machine) {
                return machine;
            }
            assert!(
                began.elapsed() < self.patience(),
                "{name}: {what} did not come true: {}",
                serde_json::to_string_pretty(&machine).unwrap()
            );
            self.pause_since(began).await;
        }
    }

    /// Waits until a machine is ready.
    pub async fn wait_for_ready(&self, name: &str) -> Beskar7Machine {
        self.wait_for_machine(name, "ready", |machine| {
            machine.status.as_ref().is_some_and(|status| status.ready == Some(true))
        })
        .await
    }

    /// Deletes a machine.
    pub async fn delete_machine(&self, name: &str) {
        self.machines().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a machine is gone.
    pub async fn wait_for_no_machine(&self, name: &str) {
        let machines = self.machines();
        wait_for(&format!("{name} to be gone"), self.patience(), async || {
            machines.get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// Annotates a machine.
    pub async fn annotate_machine(&self, name: &str, annotation: &str, value: &str) {
        let patch = json!({ "metadata": { "annotations": { annotation: value } } });
        self.machines().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

/// What a machine asks for that boots an image as it is.
pub fn iso() -> Value {
    json!({ "osFamily": "kairos", "imageURL": ISO, "provisioningMode": "PreBakedISO" })
}

/// Status, reason and sentence of a condition.
pub fn told(machine: &Beskar7Machine, type_: &str) -> (String, String, String) {
    let condition = machine.status.as_ref().and_then(|status| status.condition(type_)).cloned();
    condition.map(|it| (it.status, it.reason, it.message)).unwrap_or_default()
}

/// The host that a machine has.
pub fn host_of(machine: &Beskar7Machine) -> Option<String> {
    machine.status.as_ref().and_then(|status| status.host_ref.as_ref()).map(|host| host.name.clone())
}
