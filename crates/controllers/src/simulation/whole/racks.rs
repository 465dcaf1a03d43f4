//! What the users of Servers do: those who claim them, those who maintain them, their boot provider, and clients that make mistakes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use api::ironcore::states::{boot, power};
use api::ironcore::{Bmc, BmcSecret, Server, ServerBootConfiguration, ServerClaim, ServerMaintenance, names};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::stage::{NAMESPACE, Stage};
use crate::object::{Object, Reach as _, api};

/// What the users know of each claim on a Server.
#[derive(Clone, Default)]
pub(super) struct Racks(Arc<Mutex<BTreeMap<String, Claim>>>);

impl Racks {
    pub(super) fn claims(&self) -> MutexGuard<'_, BTreeMap<String, Claim>> {
        self.0.lock().unwrap()
    }

    /// Somebody gives a reason to touch the server of that BMC.
    pub(super) fn stir(&self, rack: &str) {
        let server = server_of(rack);
        for claim in self.claims().values_mut().filter(|claim| claim.home.as_ref() == Some(&server)) {
            (claim.stirred, claim.settled) = (Instant::now(), None);
        }
    }
}

/// What the users know of one of them.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) uid: String,
    pub(super) on: bool,
    pub(super) leaving: bool,
    /// The Server that it has had since it was bound.
    pub(super) home: Option<String>,
    /// When somebody last gave a reason to touch the server.
    pub(super) stirred: Instant,
    /// The server was seen to run what is ordered, and nobody gave a reason to touch it since: how often it had booted then.
    pub(super) settled: Option<u32>,
}

/// The Server of the only system behind a BMC.
pub(super) fn server_of(rack: &str) -> String {
    format!("{rack}-system-0")
}

/// The BMC that a Server is behind.
pub(super) fn rack_of(server: &str) -> &str {
    server.strip_suffix("-system-0").unwrap_or(server)
}

impl Stage {
    /// An object of metal-operator's kinds as the API server has it, or nothing.
    pub(super) fn show_of<K: Object>(&self, name: &str) -> Option<Value> {
        let served = self.objects().served(&K::group(&()), &K::version(&()), &K::plural(&())).ok()?;
        let namespace = if K::Scope::HAS_NAMESPACES { NAMESPACE } else { "" };
        self.objects().get(&served, namespace, name).ok()
    }

    async fn make<K: Object>(&self, name: &str, fields: Value) -> Option<K> {
        let mut object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name}});
        crate::dialect::merge(&mut object, &fields);
        let object = serde_json::from_value(object).unwrap();
        api::<K>(&self.admin, Some(NAMESPACE)).create(&PostParams::default(), &object).await.ok()
    }

    async fn edit_of<K: Object>(&self, name: &str, patch: Value) {
        let (objects, patch) = (api::<K>(&self.admin, Some(NAMESPACE)), Patch::Merge(patch));
        if let Err(error) = objects.patch(name, &PatchParams::default(), &patch).await {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        }
    }

    async fn drop_of<K: Object>(&self, name: &str) {
        api::<K>(&self.admin, Some(NAMESPACE)).delete(name, &DeleteParams::default()).await.ok();
    }

    /// Describes a BMC. Its Server is found behind it.
    pub(super) async fn create_rack(&self, name: &str) {
        let spec = json!({
            "access": {"ip": name, "macAddress": "23:11:8a:33:cf:ea"}, "bmcSecretRef": {"name": name},
            "protocol": {"name": "Redfish", "port": 443},
        });
        self.make::<Bmc>(name, json!({ "spec": spec })).await;
    }

    pub(super) async fn put_bmc_secret(&self, name: &str) {
        let data = json!({"stringData": {"username": "admin", "password": self.passwords[name]}});
        if self.make::<BmcSecret>(name, data.clone()).await.is_none() {
            self.edit_of::<BmcSecret>(name, data).await;
        }
    }

    pub(super) async fn claim_server(&mut self, name: &str) {
        if self.racks.claims().contains_key(name) {
            return self.set_claim_power(name).await;
        }
        let on = self.random.u8(..5) > 0;
        let mut spec = json!({"power": word(on), "image": "registry.example/os:1"});
        if self.random.u8(..4) == 0 {
            let rack = self.rack_names[self.random.usize(..self.rack_names.len())].clone();
            spec["serverRef"] = json!({ "name": server_of(&rack) });
        }
        let Some(created) = self.make::<ServerClaim>(name, json!({ "spec": spec })).await else { return };
        let uid = created.uid().unwrap();
        let claim = Claim { uid, on, leaving: false, home: None, stirred: Instant::now(), settled: None };
        self.racks.claims().insert(name.to_owned(), claim);
    }

    fn stir_claim(&self, name: &str, change: impl FnOnce(&mut Claim)) {
        if let Some(claim) = self.racks.claims().get_mut(name) {
            (claim.stirred, claim.settled) = (Instant::now(), None);
            change(claim);
        }
    }

    async fn set_claim_power(&mut self, name: &str) {
        let on = self.random.bool();
        self.stir_claim(name, |claim| claim.on = on);
        self.edit_of::<ServerClaim>(name, json!({"spec": {"power": word(on)}})).await;
    }

    pub(super) async fn drop_claim(&mut self, name: &str) {
        self.stir_claim(name, |claim| claim.leaving = true);
        self.drop_of::<ServerClaim>(name).await;
    }

    /// A running server is not restarted for it.
    pub(super) async fn order_other_image(&mut self, name: &str) {
        let image = format!("registry.example/os:{}", self.random.u8(..4));
        self.edit_of::<ServerClaim>(name, json!({"spec": {"image": image}})).await;
    }

    /// Something about a server vanishes, which nobody minds whose server runs.
    pub(super) async fn server_loses(&mut self, rack: &str) {
        let server = server_of(rack);
        match self.random.u8(..4) {
            0 => {
                let lost = Patch::Merge(json!({"status": null}));
                let servers = api::<Server>(&self.admin, None);
                servers.patch_status(&server, &PatchParams::default(), &lost).await.ok();
            }
            1 => self.edit_of::<Server>(&server, json!({"spec": {"serverClaimRef": null}})).await,
            2 => self.edit_of::<Server>(&server, json!({"spec": {"bootConfigurationRef": null, "power": null}})).await,
            _ => {
                let claim = self
                    .show_of::<Server>(&server)
                    .and_then(|server| server["spec"]["serverClaimRef"]["name"].as_str().map(str::to_owned));
                if let Some(claim) = claim {
                    self.drop_of::<ServerBootConfiguration>(&claim).await;
                }
            }
        }
    }

    /// Somebody removes a BMC, or describes it again.
    pub(super) async fn lose_bmc(&mut self, rack: &str) {
        if self.show_of::<Bmc>(rack).is_some() { self.drop_of::<Bmc>(rack).await } else { self.create_rack(rack).await }
    }

    /// Somebody needs a server for maintenance, or is done.
    pub(super) async fn maintain(&mut self, rack: &str) {
        self.racks.stir(rack);
        let name = format!("{rack}-upkeep");
        if self.show_of::<ServerMaintenance>(&name).is_some() {
            return self.drop_of::<ServerMaintenance>(&name).await;
        }
        let policy = ["Enforced", "OwnerApproval"][self.random.usize(..2)];
        let mut spec = json!({"serverRef": {"name": server_of(rack)}, "policy": policy});
        if self.random.bool() {
            spec["serverPower"] = word(self.random.bool()).into();
        }
        if self.random.bool() {
            let template = json!({"serverRef": {"name": server_of(rack)}, "image": "registry.example/firmware:1"});
            spec["serverBootConfigurationTemplate"] = json!({"name": "any", "spec": template});
        }
        self.make::<ServerMaintenance>(&name, json!({ "spec": spec })).await;
    }

    /// Somebody asks for something to be done to a server once.
    pub(super) async fn operate(&mut self, rack: &str) {
        self.racks.stir(rack);
        let all =
            ["park", "unpark", "unpark", "graceful-restart-server", "hard-restart-server", "force-off-server", "dance"];
        let asked = all[self.random.usize(..all.len())];
        self.annotate_server(rack, Some(asked)).await;
    }

    async fn annotate_server(&self, rack: &str, value: Option<&str>) {
        let annotations = json!({"metadata": {"annotations": {names::OPERATION: value}}});
        self.edit_of::<Server>(&server_of(rack), annotations).await;
    }

    /// The boot provider: what is pending is ready, or it is in trouble.
    pub(super) async fn provide(&mut self) {
        if self.rack_names.is_empty() {
            return;
        }
        let all = api::<ServerBootConfiguration>(&self.admin, Some(NAMESPACE));
        for configuration in all.list(&ListParams::default()).await.unwrap() {
            let state = configuration.status.as_ref().map(|status| status.state.as_str()).unwrap_or_default();
            let next = match state {
                boot::PENDING if !self.is_calm && self.random.u8(..6) == 0 => boot::ERROR,
                boot::PENDING => boot::READY,
                boot::ERROR if self.is_calm || self.random.bool() => boot::READY,
                _ => continue,
            };
            let patch = Patch::Merge(json!({"status": {"state": next}}));
            all.patch_status(&configuration.name_any(), &PatchParams::default(), &patch).await.ok();
        }
    }

    /// What only people can put right.
    pub(super) async fn calm_racks(&mut self) {
        for rack in self.rack_names.clone() {
            self.drop_of::<ServerMaintenance>(&format!("{rack}-upkeep")).await;
            self.racks.stir(&rack);
            if self.show_of::<Bmc>(&rack).is_none() {
                self.create_rack(&rack).await;
            }
            let parked = self.show_of::<Server>(&server_of(&rack)).is_some_and(|server| {
                let annotations = &server["metadata"]["annotations"];
                annotations.get(names::PARKED).is_some() || annotations[names::OPERATION] == "park"
            });
            if parked {
                self.annotate_server(&rack, Some("unpark")).await;
            }
        }
        // A reference that somebody has removed from a server in use is put back; that to a deleted claim is gone for good.
        let home_of = |(name, claim): (&String, &Claim)| {
            let home = claim.home.clone().filter(|_| !claim.leaving)?;
            Some((name.clone(), home))
        };
        let homes: Vec<_> = self.racks.claims().iter().filter_map(home_of).collect();
        for (claim, server) in homes {
            let Some(shown) = self.show_of::<Server>(&server) else { continue };
            let is_torn =
                shown["spec"].get("serverClaimRef").is_none() && self.show_of::<ServerClaim>(&claim).is_some();
            let is_over = shown["metadata"]["annotations"]["beskar7.io/released"].is_string();
            if is_torn && !is_over {
                let reference = json!({"namespace": NAMESPACE, "name": claim});
                self.edit_of::<Server>(&server, json!({"spec": {"serverClaimRef": reference}})).await;
            }
        }
    }
}

fn word(on: bool) -> &'static str {
    if on { power::ON } else { power::OFF }
}
