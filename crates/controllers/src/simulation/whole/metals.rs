//! What the users of BareMetalHosts do: people, Cluster API's provider, and clients that make mistakes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use api::metal3::{BareMetalHost, names};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::stage::{NAMESPACE, Stage};

/// A request to be off that stands until somebody removes it.
const HOLD: &str = "reboot.metal3.io/remediation";

/// What the users know of each BareMetalHost.
#[derive(Clone, Default)]
pub(super) struct Metals(Arc<Mutex<BTreeMap<String, Metal>>>);

impl Metals {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<String, Metal>> {
        self.0.lock().unwrap()
    }

    /// Somebody gives a reason to touch the server.
    pub(super) fn stir(&self, name: &str) {
        self.change(name, |metal| {
            (metal.stirred, metal.settled, metal.owed_boot) = (Instant::now(), None, None);
        });
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Metal)) {
        if let Some(metal) = self.all().get_mut(name) {
            change(metal);
        }
    }
}

/// What the users know of one of them.
#[derive(Debug, Clone)]
pub(super) struct Metal {
    pub(super) uid: String,
    /// The image that is ordered.
    pub(super) image: Option<String>,
    pub(super) online: bool,
    /// When somebody last gave a reason to touch the server.
    pub(super) stirred: Instant,
    /// The server was seen to run what is ordered, and nobody gave a reason to touch it since: how often it had booted then.
    pub(super) settled: Option<u32>,
    /// A reboot was requested while the server ran: how often it had booted then.
    pub(super) owed_boot: Option<u32>,
    pub(super) paused: Option<Instant>,
    /// Since when it is shown as detached.
    pub(super) detached: Option<Instant>,
    /// Since when it is to be deleted, and nothing keeps the operator from it.
    pub(super) leaving: Option<Instant>,
    /// Somebody else left an image in the drive, which is none of our business.
    pub(super) found_media: bool,
}

/// The image of that number.
fn image(number: u8) -> String {
    format!("https://192.0.2.1/live-{number}.iso")
}

impl Stage {
    pub(super) fn metal_api(&self) -> Api<BareMetalHost> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(super) async fn edit_metal(&self, name: &str, patch: Value) {
        let edited = self.metal_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        if let Err(error) = edited {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        }
    }

    async fn annotate_metal(&self, name: &str, annotation: &str, value: Option<&str>) {
        self.edit_metal(name, json!({"metadata": {"annotations": {annotation: value}}})).await;
    }

    pub(super) async fn create_metal(&mut self, name: &str) {
        if (self.show_metal)(name).is_some() {
            return;
        }
        let online = self.random.u8(..4) == 0;
        let image = (self.random.u8(..3) == 0).then(|| image(self.random.u8(..3)));
        let mut spec = bare_spec(name, online);
        if let Some(image) = &image {
            spec["image"] = json!({"url": image, "format": "live-iso"});
        }
        self.tell(|| format!("  {name}: {spec}"));
        let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        let created = self.metal_api().create(&PostParams::default(), &object).await.unwrap();
        let server = self.servers.server(name);
        let metal = Metal {
            uid: created.uid().unwrap(),
            image,
            online,
            stirred: Instant::now(),
            settled: None,
            owed_boot: None,
            paused: None,
            detached: None,
            leaving: None,
            found_media: server.media().is_some(),
        };
        self.metals.all().insert(name.to_owned(), metal);
    }

    /// Somebody orders an image, or another one in its place.
    pub(super) async fn order(&mut self, name: &str) {
        let image = image(self.random.u8(..3));
        let before = self.metals.all().get(name).map(|metal| (metal.image.clone(), metal.online));
        // The same image once more, with another checksum, is no other order.
        if before.is_some_and(|before| before != (Some(image.clone()), true)) {
            self.metals.stir(name);
        }
        self.metals.change(name, |metal| (metal.image, metal.online) = (Some(image.clone()), true));
        let checksum = self.random.u8(..).to_string();
        let consumer = json!({"kind": "Metal3Machine", "namespace": NAMESPACE, "name": format!("{name}-node")});
        let image = json!({"url": image, "format": "live-iso", "checksum": checksum});
        let mut spec =
            json!({"image": image, "online": true, "userData": {"name": "user-data", "namespace": NAMESPACE}});
        if self.random.bool() {
            spec["consumerRef"] = consumer;
        }
        self.edit_metal(name, json!({ "spec": spec })).await;
    }

    /// Withdraws an order as Cluster API's provider does.
    pub(super) async fn withdraw(&mut self, name: &str) {
        self.metals.stir(name);
        self.metals.change(name, |metal| (metal.image, metal.online) = (None, false));
        let mut spec = json!({"image": null, "userData": null, "metaData": null, "networkData": null, "online": false});
        if self.random.bool() {
            spec["consumerRef"] = Value::Null;
        }
        self.edit_metal(name, json!({ "spec": spec })).await;
    }

    pub(super) async fn set_online(&mut self, name: &str) {
        let online = self.random.bool();
        if self.metals.all().get(name).is_some_and(|metal| metal.online != online) {
            self.metals.stir(name);
            self.metals.change(name, |metal| metal.online = online);
        }
        self.edit_metal(name, json!({"spec": {"online": online}})).await;
    }

    pub(super) async fn reboot(&mut self, name: &str) {
        let boots = self.metals.all().get(name).and_then(|metal| metal.settled);
        self.metals.stir(name);
        let value = ["", r#"{"mode":"hard"}"#, r#"{"mode":"soft"}"#, "no JSON"][self.random.usize(..4)];
        self.annotate_metal(name, names::REBOOT, Some(value)).await;
        self.metals.change(name, |metal| metal.owed_boot = boots);
    }

    /// Somebody holds a server off, or lets it run again.
    pub(super) async fn hold_off(&mut self, name: &str) {
        self.metals.stir(name);
        let held = (self.show_metal)(name).is_some_and(|host| host["metadata"]["annotations"].get(HOLD).is_some());
        let value = [r#"{"mode":"hard"}"#, ""][self.random.usize(..2)];
        self.annotate_metal(name, HOLD, (!held).then_some(value)).await;
    }

    /// Somebody pauses a host, or ends that.
    pub(super) async fn pause(&mut self, name: &str) {
        let is_paused = self.metals.all().get(name).is_some_and(|metal| metal.paused.is_some());
        if is_paused {
            return self.unpause(name).await;
        }
        self.annotate_metal(name, names::PAUSED, Some(names::PAUSED_BY_CAPM3)).await;
        self.metals.change(name, |metal| metal.paused = Some(Instant::now()));
    }

    async fn unpause(&mut self, name: &str) {
        self.metals.change(name, |metal| {
            metal.paused = None;
            metal.leaving = metal.leaving.map(|_| Instant::now());
        });
        self.annotate_metal(name, names::PAUSED, None).await;
    }

    /// Somebody detaches a host, or attaches it again.
    pub(super) async fn detach(&mut self, name: &str) {
        let host = (self.show_metal)(name);
        if host.is_some_and(|host| host["metadata"]["annotations"].get(names::DETACHED).is_some()) {
            return self.attach(name).await;
        }
        let values = ["", r#"{"deleteAction":"delay"}"#, r#"{"force":true}"#];
        let value = values[self.random.usize(..values.len())];
        self.annotate_metal(name, names::DETACHED, Some(value)).await;
    }

    async fn attach(&mut self, name: &str) {
        self.metals.change(name, |metal| {
            metal.detached = None;
            metal.leaving = metal.leaving.map(|_| Instant::now());
            // What was not done while it was detached is done now.
            if metal.settled.is_none() {
                metal.stirred = Instant::now();
            }
        });
        self.annotate_metal(name, names::DETACHED, None).await;
    }

    pub(super) async fn delete_metal(&mut self, name: &str) {
        self.metals.stir(name);
        self.metals.change(name, |metal| metal.leaving = metal.leaving.or(Some(Instant::now())));
        self.metal_api().delete(name, &DeleteParams::default()).await.ok();
    }

    /// Somebody changes or removes the consumer by hand, which nobody minds.
    pub(super) async fn change_consumer(&mut self, name: &str) {
        let other = json!({"kind": "Metal3Machine", "namespace": NAMESPACE, "name": "somebody-else"});
        let consumer = if self.random.bool() { other } else { Value::Null };
        self.edit_metal(name, json!({"spec": {"consumerRef": consumer}})).await;
    }

    /// A client that knows nothing of our part of the status removes it all.
    pub(super) async fn metal_loses_status(&self, name: &str) {
        let lost = Patch::Merge(json!({"status": null}));
        self.metal_api().patch_status(name, &PatchParams::default(), &lost).await.ok();
    }

    /// Somebody describes a server a second time, or notices the mistake.
    pub(super) async fn rival(&mut self, name: &str) {
        let rival = rival_of(name);
        if (self.show_metal)(&rival).is_some() {
            self.metal_api().delete(&rival, &DeleteParams::default()).await.ok();
            return;
        }
        let mut spec = bare_spec(name, true);
        spec["image"] = json!({"url": image(9), "format": "live-iso"});
        let object = serde_json::from_value(json!({"metadata": {"name": rival}, "spec": spec})).unwrap();
        self.metal_api().create(&PostParams::default(), &object).await.unwrap();
        // It may get the server, if this host goes.
        self.metals.change(name, |metal| metal.found_media = true);
    }

    /// What only people can put right.
    pub(super) async fn calm_metals(&mut self) {
        for name in self.metal_names.clone() {
            self.unpause(&name).await;
            self.attach(&name).await;
            self.metal_api().delete(&rival_of(&name), &DeleteParams::default()).await.ok();
        }
    }
}

/// The name of another host of the same server.
pub(super) fn rival_of(name: &str) -> String {
    format!("{name}-rival")
}

/// Whether somebody holds the server off.
pub(super) fn is_held_off(host: &Value) -> bool {
    host["metadata"]["annotations"].get(HOLD).is_some()
}

/// Whether a reboot was requested and not carried out.
pub(super) fn is_to_reboot(host: &Value) -> bool {
    host["metadata"]["annotations"].get(names::REBOOT).is_some()
}

fn bare_spec(server: &str, online: bool) -> Value {
    let address = format!("redfish-virtualmedia://{server}");
    json!({
        "online": online,
        "bmc": {"address": address, "credentialsName": server, "disableCertificateVerification": true},
    })
}
