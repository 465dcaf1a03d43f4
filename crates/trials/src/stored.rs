//! What one version of the operator has stored, kept in files, so that every later version can be started on it.
//!
//! A *situation* is recorded once, by the version of that day, and never again: `BESKAR7_BLESS=1` writes the files that are
//! missing, into a folder of that version. A file holds the objects as the API server has stored them, with their uids and
//! resourceVersions, the time, and what each BMC was asked to change, so that a BMC can be brought into the same state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api::beskar7::PhysicalHost;
use bytes::Bytes;
use controllers::clock::Clock as _;
use controllers::operator::Config;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sim::{Kind, Outcome, Verb};

use crate::story::HOST;
use crate::world::{World, anchor, fault_of, state_of};

/// The namespace of all situations: its name is part of what is stored.
const NAMESPACE: &str = "racks";
/// Later than what an API server writes by itself, in this version and in those to come.
const FIRST_VERSION: u64 = 1000;
/// What is recorded; the rest is made by the API server, or of no consequence.
const KINDS: [&str; 6] =
    ["PhysicalHost", "Beskar7Machine", "Beskar7Cluster", "BootSession", "Secret", "Beskar7MachineTemplate"];

/// A situation that operators of all versions can be started in.
pub struct Situation {
    /// Its name, and that of its files.
    pub name: &'static str,
    /// The BMC of the server.
    pub bmc: fn() -> sim::Bmc,
    /// How the operator is configured, before and after.
    pub config: fn(&World, &mut Config),
}

/// A file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    now: Timestamp,
    /// By their keys in the API server's store.
    objects: BTreeMap<String, Value>,
    /// What the BMC was asked to change, and did, oldest first.
    changes: Vec<Asked>,
    /// What else the test wants to know later.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    notes: Value,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    method: String,
    path: String,
    body: String,
}

impl Situation {
    /// Has this version of the operator bring the situation about, and records it. Only on demand, and only what was not recorded
    /// before. `bring_about` ends when the situation is there; the operator is then killed. It answers what is to be noted.
    pub async fn record(&self, bring_about: impl AsyncFnOnce(&World, &sim::Bmc) -> Value) {
        let file = folder().join(env!("CARGO_PKG_VERSION")).join(format!("{}.json", self.name));
        if std::env::var_os("BESKAR7_BLESS").is_none() || file.exists() {
            return;
        }
        let world = World::quiet_in_process_at(None, NAMESPACE).await;
        world.process().skip_to(FIRST_VERSION).await;
        let bmc = world.add_bmc(HOST, (self.bmc)());
        self.start(&world);
        let notes = bring_about(&world, &bmc).await;
        world.kill_operator().await;
        let stored = Stored { now: world.clock().now(), objects: recorded(&world), changes: changes(&bmc), notes };
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, serde_json::to_string_pretty(&stored).unwrap() + "\n").unwrap();
    }

    /// The situation as every version left it that has recorded it. The operator does not run yet.
    pub async fn upgrades(&self) -> Vec<Upgrade<'_>> {
        let mut upgrades = Vec::new();
        for version in versions() {
            let Ok(text) = std::fs::read_to_string(version.join(format!("{}.json", self.name))) else { continue };
            upgrades.push(self.upgrade(serde_json::from_str(&text).unwrap()).await);
        }
        assert!(!upgrades.is_empty(), "nobody has recorded {}: BESKAR7_BLESS=1 does", self.name);
        upgrades
    }

    async fn upgrade(&self, stored: Stored) -> Upgrade<'_> {
        let bmc = (self.bmc)();
        for change in &stored.changes {
            change.make(&bmc).await;
        }
        bmc.reset_counters();
        let world = World::quiet_in_process_at(Some(stored.now), NAMESPACE).await;
        world.add_bmc(HOST, bmc.clone());
        let mut objects: Vec<_> = stored.objects.iter().collect();
        objects.sort_by_key(|(_, object)| version_of(object));
        for (key, object) in objects {
            world.process().put(key, object).await;
        }
        let before = world.hosts().get_opt(HOST).await.unwrap();
        let done = bmc.journal().len();
        Upgrade { world, bmc, before, notes: stored.notes, situation: self, done }
    }

    /// Starts the operator of this version as the situation has it.
    pub fn start(&self, world: &World) {
        world.start_operator_with(world.clock(), |config| (self.config)(world, config));
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/fixtures")
}

fn versions() -> Vec<PathBuf> {
    let mut folders: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn recorded(world: &World) -> BTreeMap<String, Value> {
    let is_ours = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        KINDS.contains(&kind) && object["metadata"]["namespace"] == NAMESPACE
    };
    world.process().objects().into_iter().filter(|(_, object)| is_ours(object)).collect()
}

fn changes(bmc: &sim::Bmc) -> Vec<Asked> {
    let is_done = |outcome| matches!(outcome, Outcome::Status(200..=299));
    let done = bmc.journal().into_iter().filter(|mutation| is_done(mutation.outcome));
    let asked = |mutation: sim::Mutation| {
        let method = match mutation.verb {
            Verb::Patch => "PATCH",
            Verb::Post => "POST",
            other => panic!("{other:?} {}", mutation.path),
        };
        Asked { method: method.to_owned(), path: mutation.path, body: mutation.body }
    };
    done.map(asked).collect()
}

impl Asked {
    async fn make(&self, bmc: &sim::Bmc) {
        let request = http::Request::builder()
            .method(self.method.as_str())
            .uri(&self.path)
            .header("content-type", "application/json")
            // admin:password
            .header("authorization", "Basic YWRtaW46cGFzc3dvcmQ=")
            .body(Bytes::from(self.body.clone()))
            .unwrap();
        let answer = bmc.call(request).await.unwrap();
        assert!(answer.status().is_success(), "{self:?}: {answer:?}");
    }
}

/// A situation that another version left behind.
pub struct Upgrade<'a> {
    /// Where it is.
    pub world: World,
    /// The BMC of the server, in the state that it was in.
    pub bmc: sim::Bmc,
    /// The host as it was stored, if there is one.
    pub before: Option<PhysicalHost>,
    /// What was noted.
    pub notes: Value,
    situation: &'a Situation,
    done: usize,
}

impl Upgrade<'_> {
    /// Starts the operator of this version.
    pub fn start(&self) {
        self.situation.start(&self.world);
    }

    /// What the server's BMC was asked to change since, in short.
    pub fn changes(&self) -> Vec<String> {
        self.bmc.journal().split_off(self.done).iter().map(in_short).collect()
    }

    /// How often the BMC was logged in to since.
    pub fn logins(&self) -> u64 {
        self.bmc.counters().of(Verb::Post, Kind::Sessions)
    }

    /// The host now.
    pub async fn host(&self) -> PhysicalHost {
        self.world.host(HOST).await
    }

    /// The host as it was stored.
    pub fn stored(&self) -> &PhysicalHost {
        self.before.as_ref().unwrap()
    }

    /// Asserts that the same is shown and remembered as before, that no time that counts was set anew, and that nothing was done
    /// to the server.
    pub async fn assert_same(&self) {
        let (before, after) = (self.stored(), self.host().await);
        assert_eq!(self.changes(), [""; 0], "nothing was due");
        let now = shown(&after);
        let lost: Vec<_> = shown(before).into_iter().filter(|line| !now.contains(line)).collect();
        assert!(lost.is_empty(), "not shown any more: {lost:#?}; but: {now:#?}");
        assert_eq!(remembered(&after), remembered(before));
        assert_eq!(after.spec, before.spec);
    }

    /// Starts the operator, and asserts that for that long nothing comes of it.
    pub async fn assert_rests(&self, span: std::time::Duration) {
        self.start();
        tokio::time::sleep(span).await;
        self.assert_same().await;
    }
}

/// What a user sees of a host and acts upon. Sentences may get better, and tries go on.
fn shown(host: &PhysicalHost) -> Vec<String> {
    let status = host.status.clone().unwrap_or_default();
    let mut shown = vec![state_of(host), format!("power {:?}", status.observed_power_state)];
    shown.push(format!("fault {:?} since {:?}", fault_of(host), status.fault.and_then(|fault| fault.since)));
    if let Some(waiting) = status.waiting {
        shown.push(format!("waits for {}", waiting.reason));
    }
    shown.extend(status.conditions.iter().map(|condition| {
        format!(
            "{} {} {} since {:?}",
            condition.type_, condition.status, condition.reason, condition.last_transition_time
        )
    }));
    shown.sort();
    shown
}

/// What must not be forgotten of a host.
fn remembered(host: &PhysicalHost) -> BTreeMap<&'static str, Value> {
    let anchor = anchor(host);
    let names = ["claim", "deployment", "milestone", "adopted", "freeSince", "outdated", "uuid", "hold", "pin"];
    names.map(|name| (name, anchor[name].clone())).into()
}

fn in_short(change: &sim::Mutation) -> String {
    let body: Value = serde_json::from_str(&change.body).unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match change.kind {
        Kind::Reset => word(&body["ResetType"]),
        Kind::InsertMedia => format!("insert {}", word(&body["Image"])),
        Kind::EjectMedia => "eject".to_owned(),
        Kind::System | Kind::SystemSettings => {
            let boot = &body["Boot"];
            format!("boot {} {}", word(&boot["BootSourceOverrideTarget"]), word(&boot["BootSourceOverrideEnabled"]))
        }
        other => format!("{other:?} {}", change.body),
    }
}
