//! What the users of machines do.

use std::time::Duration;

use api::beskar7::{Beskar7Machine, names};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::owners::is_gold;
use super::stage::{NAMESPACE, Stage};

/// More than the smaller servers have.
const MUCH_MEMORY_GB: u32 = 40;

/// How long somebody waits for the end of a machine, to create its namesake in the next moment.
const NAMESAKE_WAITS: u32 = 60;

/// What the users know of a machine.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) uid: String,
    /// What it was ever asked to boot, the last wish last.
    pub(super) images: Vec<String>,
    wish: Wish,
    pub(super) leaving: bool,
    /// Somebody took its claim off a host.
    pub(super) robbed: bool,
    /// Where it runs.
    pub(super) home: Option<Home>,
}

/// The server that a machine was named after.
#[derive(Debug, Clone)]
pub(super) struct Home {
    pub(super) provider: String,
    /// How often its server had booted when its system was first seen to run.
    pub(super) boots: Option<u32>,
    /// What it was given to boot.
    pub(super) image: String,
}

/// Which hosts will do.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Any,
    Gold,
    MuchMemory,
    /// More than anybody has.
    TooMuch,
}

impl Wish {
    fn draw(random: &mut fastrand::Rng) -> Self {
        match random.u8(..16) {
            0..10 => Self::Any,
            10..13 => Self::Gold,
            13..15 => Self::MuchMemory,
            _ => Self::TooMuch,
        }
    }

    fn put(self, spec: &mut Value) {
        match self {
            Self::Any => {}
            Self::Gold => spec["hostSelector"] = json!({"matchLabels": {"class": "gold"}}),
            Self::MuchMemory => spec["hardwareRequirements"] = json!({"minMemoryGB": MUCH_MEMORY_GB}),
            Self::TooMuch => spec["hardwareRequirements"] = json!({"minCPUCores": 5000}),
        }
    }
}

impl Stage {
    pub(super) fn machine_api(&self) -> Api<Beskar7Machine> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Whether a machine may run on a host.
    pub(super) fn fits(&self, machine: &Machine, host: &str) -> bool {
        match machine.wish {
            Wish::Any => true,
            Wish::Gold => is_gold(host),
            Wish::MuchMemory => self.servers.memory_gib(host) > MUCH_MEMORY_GB,
            Wish::TooMuch => false,
        }
    }

    pub(super) async fn create_machine(&mut self, name: &str) -> Result<(), String> {
        if (self.show_machine)(name).is_some() {
            return Ok(());
        }
        if self.machines.get(name).is_some_and(|machine| !machine.leaving) {
            return Err(format!("{name} is gone, and nobody deleted it"));
        }
        let wish = Wish::draw(&mut self.random);
        let image = format!("https://192.0.2.1/machine-{}.iso", self.random.u8(..2));
        let mode = ["PreBakedISO", "PXE"][self.random.usize(..2)];
        let mut spec = json!({"imageURL": image, "provisioningMode": mode, "bootEveryStart": self.random.bool()});
        wish.put(&mut spec);
        if self.random.u8(..5) == 0 {
            spec["releasePolicy"] = json!("Quarantine");
        }
        self.tell(|| format!("  {name}: {spec}"));
        let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        let created = self.machine_api().create(&PostParams::default(), &object).await.unwrap();
        let uid = created.uid().unwrap();
        let machine = Machine { uid, images: vec![image], wish, leaving: false, robbed: false, home: None };
        self.machines.insert(name.to_owned(), machine);
        Ok(())
    }

    /// Somebody finds that the machine should boot something else.
    pub(super) async fn correct_image(&mut self, name: &str) {
        let image = format!("https://192.0.2.1/machine-{}.iso", self.random.u8(..4));
        let patch = json!({"spec": {"imageURL": image}});
        if let Some(machine) = self.machines.get_mut(name) {
            // Before: the operator may be quick.
            machine.images.push(image);
            self.machine_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.ok();
        }
    }

    pub(super) async fn delete_machine(&mut self, name: &str) {
        if let Some(machine) = self.machines.get_mut(name) {
            // Before: the operator may be quick.
            machine.leaving = true;
            self.machine_api().delete(name, &DeleteParams::default()).await.ok();
        }
    }

    /// Somebody does not want to wait until the server is off.
    pub(super) async fn force_release(&mut self, name: &str) {
        let force = json!({"metadata": {"annotations": {names::FORCE_RELEASE: "true"}}});
        let force_first = self.random.bool();
        if !force_first {
            self.delete_machine(name).await;
        }
        self.machine_api().patch(name, &PatchParams::default(), &Patch::Merge(force)).await.ok();
        if force_first {
            self.delete_machine(name).await;
        }
    }

    /// Deletes a machine, and creates one of its name in the moment that it is gone.
    pub(super) async fn recreate_machine(&mut self, name: &str) -> Result<(), String> {
        self.delete_machine(name).await;
        for _ in 0..NAMESAKE_WAITS {
            if (self.show_machine)(name).is_none() {
                return self.create_machine(name).await;
            }
            let pause = Duration::from_millis(self.random.u64(1..2000));
            self.run_for(pause).await?;
        }
        Ok(())
    }

    /// Whose claim a host bears, if it is a machine's.
    fn machine_on(&self, host: &str) -> Option<String> {
        let host = (self.show)(host)?;
        let consumer = &host["spec"]["consumerRef"];
        (consumer["kind"] == "Beskar7Machine").then(|| consumer["name"].as_str().unwrap_or_default().to_owned())
    }

    pub(super) async fn delete_machine_on(&mut self, host: &str) {
        if let Some(machine) = self.machine_on(host) {
            self.delete_machine(&machine).await;
        }
    }

    /// Somebody takes the claim of a machine off its host.
    pub(super) async fn rob_machine_on(&mut self, host: &str) {
        let Some(name) = self.machine_on(host) else { return };
        if let Some(machine) = self.machines.get_mut(&name) {
            machine.robbed = true;
        }
        let annotations = json!({names::CLAIM_ID: null, names::CLAIM_GROUP: null});
        let spec = json!({"consumerRef": null, "bootIsoSource": null, "networkBoot": null});
        self.edit(host, json!({"metadata": {"annotations": annotations}, "spec": spec})).await;
    }

    /// A machine whose claim vanished is of no use to anybody.
    pub(super) async fn delete_robbed_machines(&mut self) {
        let robbed = self.machines.iter().filter(|(_, machine)| machine.robbed);
        for name in robbed.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.delete_machine(&name).await;
        }
    }
}
