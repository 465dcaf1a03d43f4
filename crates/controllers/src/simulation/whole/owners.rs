//! What the owners of hosts do, and people who claim one by hand.

use api::beskar7::{PhysicalHost, names};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::{Credentials, PowerState};

use super::stage::{NAMESPACE, PASSWORDS, Stage};
use crate::simulation::play::host;

/// What the owners know of a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Of the object that is there.
    pub(super) uid: Option<String>,
    pub(super) leaving: bool,
    /// Who has claimed it by hand.
    pub(super) claim: Option<String>,
}

/// A label that every other host has.
pub(super) fn is_gold(name: &str) -> bool {
    name.ends_with(['0', '2', '4', '6', '8'])
}

impl Stage {
    pub(super) fn hosts(&self) -> Api<PhysicalHost> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    fn consumers(&self) -> Api<ConfigMap> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Two who want the same host look whether it is free, and write what they saw with their name in it.
    pub(super) async fn claim(&mut self, name: &str) -> Result<(), String> {
        let iso = format!("https://192.0.2.1/{}.iso", self.random.u8(..2));
        let (by_network, every_start) = (self.random.bool(), self.random.bool());
        let at = self.started.elapsed().as_millis();
        let (hosts, consumers) = (self.hosts(), self.consumers());
        let try_it = async |consumer: String| {
            let mut host = hosts.get(name).await.ok()?;
            let is_barred = host.annotations().contains_key(names::QUARANTINE);
            if host.spec.consumer_ref.is_some() || host.metadata.deletion_timestamp.is_some() || is_barred {
                return None;
            }
            let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": consumer}})).unwrap();
            consumers.create(&PostParams::default(), &object).await.unwrap();
            let claim = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": consumer});
            host.spec.consumer_ref = serde_json::from_value(claim).unwrap();
            let network = by_network.then(|| json!({"protocol": "PXE", "imageURL": iso}));
            host.spec.network_boot = network.map(|network| serde_json::from_value(network).unwrap());
            host.spec.boot_iso_source = (!by_network).then(|| iso.clone());
            host.spec.boot_every_start = Some(every_start);
            tokio::task::yield_now().await;
            if hosts.replace(name, &PostParams::default(), &host).await.is_ok() {
                return Some(consumer);
            }
            consumers.delete(&consumer, &DeleteParams::default()).await.unwrap();
            None
        };
        let (one, other) = tokio::join!(try_it(format!("{name}-node-{at}-a")), try_it(format!("{name}-node-{at}-b")));
        let known = self.known.entry(name.to_owned()).or_default();
        match (one, other) {
            (Some(one), Some(other)) => Err(format!("{name} was claimed by {one} and by {other}")),
            (Some(new), None) | (None, Some(new)) => match known.claim.replace(new.clone()) {
                Some(old) => Err(format!("{name} was claimed by {new} although {old} has it")),
                None => Ok(()),
            },
            (None, None) => Ok(()),
        }
    }

    /// A release in good order: the consumer goes, and with it the claim.
    pub(super) async fn release(&mut self, name: &str) {
        if let Some(claim) = self.known[name].claim.clone() {
            self.consumers().delete(&claim, &DeleteParams::default()).await.ok();
            self.unclaim(name).await;
        }
    }

    /// Somebody takes a claim off whose claimer lives on.
    pub(super) async fn claim_vanishes(&mut self, name: &str) {
        if self.known[name].claim.is_some() {
            self.unclaim(name).await;
        } else {
            self.rob_machine_on(name).await;
        }
    }

    async fn unclaim(&mut self, name: &str) {
        // Before: the operator may be quick.
        self.known.entry(name.to_owned()).or_default().claim = None;
        self.edit(name, json!({"spec": {"consumerRef": null, "bootIsoSource": null, "networkBoot": null}})).await;
    }

    pub(super) async fn lift_quarantine(&self, name: &str) {
        self.edit(name, json!({"metadata": {"annotations": {names::QUARANTINE: null}}})).await;
    }

    /// Consumers whose claim vanished are gone too, in the end.
    pub(super) async fn forget_consumers(&self) {
        for consumer in self.consumers().list_metadata(&ListParams::default()).await.unwrap() {
            let name = consumer.name_any();
            if !self.known.values().any(|known| known.claim.as_ref() == Some(&name)) {
                self.consumers().delete(&name, &DeleteParams::default()).await.ok();
            }
        }
    }

    pub(super) async fn edit(&self, name: &str, patch: Value) {
        let edited = self.hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        if let Err(error) = edited {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        }
    }

    pub(super) async fn delete(&mut self, name: &str) {
        if self.hosts().delete(name, &DeleteParams::default()).await.is_ok() {
            let known = self.known.entry(name.to_owned()).or_default();
            known.leaving = true;
            // No operator has met it yet, so nothing held it.
            if (self.show)(name).is_none() {
                *known = Known::default();
            }
        }
    }

    pub(super) async fn create(&mut self, name: &str) {
        if (self.show)(name).is_some() {
            return;
        }
        let mut object = host(name);
        object["metadata"]["labels"] = json!({"class": if is_gold(name) { "gold" } else { "tin" }});
        if self.random.bool() {
            object["spec"]["claimableWhileRunning"] = json!(true);
        }
        let object = serde_json::from_value(object).unwrap();
        let host = self.hosts().create(&PostParams::default(), &object).await.unwrap();
        self.known.insert(name.to_owned(), Known { uid: host.uid(), ..Known::default() });
        // Whatever was on before is left alone.
        if self.servers.server(name).power() != PowerState::Off {
            self.pressed.insert(name.to_owned());
        }
    }

    pub(super) fn change_password(&mut self, name: &str) {
        let password = PASSWORDS[self.random.usize(..2)];
        self.passwords.insert(name.to_owned(), password);
        self.servers.bmc(name).set_credentials(Credentials::new("admin", password));
    }

    /// Writes down the password that the BMC has.
    pub(super) async fn put_password(&self, name: &str) {
        if self.rack_names.iter().any(|rack| rack == name) {
            self.put_bmc_secret(name).await;
        } else {
            self.put_secret(name).await;
        }
    }

    pub(super) async fn put_secret(&self, name: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"username": "admin", "password": self.passwords[name]}});
        secrets.patch(name, &PatchParams::apply("owner").force(), &Patch::Apply(secret)).await.unwrap();
    }
}
