//! A world whose operator looks after BareMetalHosts.

use std::time::Duration;

use api::metal3::BareMetalHost;
use controllers::clock::Clock;
use controllers::dialects::Dialect;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::wait_ok;

use crate::bed::OPERATOR;
use crate::gate::Gate;
use crate::world::{Running, World};

/// The role that we ship for BareMetalHosts.
const ROLES: &str = concat!(
    include_str!("../../../config/metal3/role.yaml"),
    "\n---\n",
    include_str!("../../../config/metal3/role_binding.yaml"),
);

/// Longer than an emulated server takes for anything.
const PATIENCE: Duration = Duration::from_mins(5);

impl World {
    /// Installs Metal3's definitions on the cluster, and lets the operator use them in this world's namespace.
    pub async fn install_metal3(&self) {
        self.cluster().apply_yaml(&api::crd::documents(&api::metal3_crds())).await;
        let roles = ROLES.replace("beskar7-system", &self.namespace).replace("ClusterRole", "Role");
        self.cluster().service_account(&self.namespace, OPERATOR, &roles).await;
    }

    /// Starts an operator of BareMetalHosts only.
    pub fn launch_metal3(&self, gate: &Gate, clock: impl Clock) -> Running {
        self.launch(gate, clock, |config| config.dialects = vec![Dialect::Metal3])
    }

    /// BareMetalHosts, as their admin sees them.
    pub fn bare_metal_hosts(&self) -> Api<BareMetalHost> {
        Api::namespaced(self.admin(), &self.namespace)
    }

    /// Changes a BareMetalHost by a merge patch.
    pub async fn patch_bare_metal_host(&self, name: &str, patch: Value) {
        self.bare_metal_hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits for a state of a BareMetalHost.
    pub async fn wait_for_bare_metal_host(&self, name: &str, state: &str) -> BareMetalHost {
        let hosts = self.bare_metal_hosts();
        wait_ok(&format!("{name} to be {state}"), PATIENCE, async || {
            let host = hosts.get(name).await.map_err(|error| error.to_string())?;
            let status = host.status.clone().unwrap_or_default();
            if status.provisioning.state == state { Ok(host) } else { Err(json!(status).to_string()) }
        })
        .await
    }
}
