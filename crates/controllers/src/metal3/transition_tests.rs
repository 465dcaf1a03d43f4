//! Every change of state that upstream documents: an object with its status in, what is written and done out.
//!
//! The table says from where to where. What is written on the way is in `transitions.txt`, step by step; write it anew with `BESKAR7_BLESS=1`.

use std::fmt::Write as _;

use engine::hardware::{Hardware, Nic};
use engine::host::{Act, Ask, BmcSight, Outcome as ActOutcome, Presence, Remembered, Sight, Step, step};
use engine::server::{BootOverride, BootProgress, Media, Persistence, PowerState, Scope};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::*;
use crate::dialect::{ANCHOR_ANNOTATION, anchor, merge};

const ISO: &str = "https://images.example/live.iso";
const INPUTS: &str = "inputs";

/// A host, the server behind it, and whether its BMC answers.
struct Life {
    object: Value,
    server: Seen,
    answers: bool,
    sight: Option<BmcSight>,
    now: Timestamp,
    gone: bool,
    story: String,
}

impl Life {
    fn new(spec: &Value) -> Self {
        let mut object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": "server-0", "namespace": "lab", "uid": "u-1", "resourceVersion": "7"},
            "spec": {"online": false, "bmc": {"address": "redfish-virtualmedia://bmc-0", "credentialsName": "bmc-0"}},
        });
        merge(&mut object["spec"], spec);
        let nic = Nic { id: "eth0".into(), mac: Some("00:53:00:00:00:01".into()), ..Nic::default() };
        let hardware = Hardware { serial_number: Some("S-1".into()), nics: vec![nic], ..Hardware::default() };
        let server = Seen {
            power: PowerState::Off,
            progress: BootProgress::NotStarted,
            media: Some(vec![Media { slot: "Cd".into(), image: None, inserted: false }]),
            hardware: Some(Box::new(hardware)),
            uuid: Some("4c4c4544-0047-5010-8037-b2c04f4d4c32".into()),
            ..Seen::default()
        };
        let now = "2026-11-18T08:00:00Z".parse().unwrap();
        Self { object, server, answers: true, sight: None, now, gone: false, story: String::new() }
    }

    fn state(&self) -> &str {
        if self.gone { "(gone)" } else { self.object["status"]["provisioning"]["state"].as_str().unwrap_or("") }
    }

    /// One decision, all that it writes, and what its acts do to the server.
    fn step(&mut self) {
        let host: BareMetalHost = serde_json::from_value(self.object.clone()).unwrap();
        let view = View { now: self.now, ..View::alone(&host) };
        if BareMetalHosts::attention(&view) != Attention::Full {
            let status = BareMetalHosts::paused_status(&view, "", None);
            self.write(&Writes { status, ..Writes::default() }, None);
            return;
        }
        let goal = BareMetalHosts::goal(&view);
        let (anchor, record) = (anchor(&host), BareMetalHosts::record(&host));
        let proof = crate::host::proof::<BareMetalHosts>(&view, &anchor, record.as_ref());
        let sight = Sight {
            now: self.now,
            inputs: INPUTS.into(),
            target: "bmc-0".into(),
            bmc: self.sight.clone(),
            consumer: Presence::NotLookedUp,
            fetched: None,
            handed: None,
            probed: None,
            claimer: Presence::NotLookedUp,
            rival: None,
            granted: vec![Ask::Deploy, Ask::Disrupt],
            hold: None,
            spread: 0,
        };
        let step = step(&goal, Remembered { anchor, record, proof }, &sight);
        if step.finished {
            self.gone = true;
            self.story.push_str("  the finalizer is removed\n");
            return;
        }
        let seen = self.sight.as_ref().and_then(|sight| sight.seen.as_ref().ok());
        let related = crate::relatives::Related::default();
        let writes = BareMetalHosts::render(&Outcome {
            host: &host,
            related: &related,
            depot: None,
            settings: View::alone(&host).settings,
            goal: &goal,
            step: &step,
            seen,
            session: None,
            credentials: Some("v1"),
            now: self.now,
        });
        self.write(&writes, Some(&step));
        for act in &step.acts {
            self.perform(act);
        }
        if step.look.is_none() && step.acts.is_empty() {
            self.now = step.again.unwrap_or(self.now).max(self.now + SignedDuration::from_secs(1));
            return;
        }
        self.now += SignedDuration::from_secs(1);
        let number = step.record.acted;
        let failed = Failure::new(Kind::Unreachable, "Nothing answers.".to_owned());
        let act = (!step.acts.is_empty()).then(|| ActOutcome {
            number,
            result: if self.answers { Ok(()) } else { Err(failed.clone()) },
            not_performed: !self.answers,
        });
        let scope = step.look.unwrap_or(Scope::Boot);
        let seen = Seen {
            media: self.server.media.clone().filter(|_| scope >= Scope::Boot),
            hardware: self.server.hardware.clone().filter(|_| scope == Scope::Inventory),
            ..self.server.clone()
        };
        let seen = if self.answers { Ok(seen) } else { Err(failed) };
        self.sight = Some(BmcSight { at: self.now, after: number, inputs: INPUTS.into(), act, seen });
    }

    fn write(&mut self, writes: &Writes, step: Option<&Step>) {
        let mut told = Vec::new();
        if let Some(step) = step.filter(|step| !step.leave_anchor) {
            self.object["metadata"]["annotations"][ANCHOR_ANNOTATION] = step.record.anchor.to_json().into();
            self.object["metadata"]["finalizers"] = json!([names::HOST_FINALIZER]);
        }
        if let Some(change) = &writes.object {
            merge(&mut self.object, change);
            told.push(format!("object: {change}"));
        }
        if let Some(status) = &writes.status {
            let before = self.object["status"].take();
            told.push(format!("status: {}", difference(&before, status)));
            self.object["status"] = status.clone();
        }
        told.extend(writes.events.iter().map(|news| format!("event: {} {}", news.reason, news.message)));
        told.extend(step.iter().flat_map(|step| &step.acts).map(|act| format!("act: {}", act.name())));
        for line in told {
            writeln!(self.story, "  {line}").unwrap();
        }
    }

    fn perform(&mut self, act: &Act) {
        if !self.answers {
            return;
        }
        let server = &mut self.server;
        let drive = server.media.as_mut().and_then(|drives| drives.first_mut()).unwrap();
        match act {
            Act::PowerOn | Act::Restart => {
                (server.power, server.progress) = (PowerState::On, BootProgress::OsStarted);
                server.boot.take_if(|boot| boot.persistence == Persistence::Once);
            }
            Act::ShutDown | Act::PowerOff => {
                (server.power, server.progress) = (PowerState::Off, BootProgress::NotStarted);
            }
            Act::InsertMedia { url } => (drive.image, drive.inserted) = (Some(url.clone()), true),
            Act::EjectMedia => (drive.image, drive.inserted) = (None, false),
            Act::SetBoot(boot) => server.boot = Some(boot.clone()),
            Act::ClearBoot => server.boot = None::<BootOverride>,
        }
    }

    /// Goes on until the host is in that state.
    fn until(&mut self, state: &str) {
        for _ in 0..60 {
            if self.state() == state {
                return;
            }
            self.step();
        }
        panic!("never {state}\n{}\n{:#}", self.story, self.object);
    }

    fn change(&mut self, change: &Value) {
        merge(&mut self.object, change);
        // The annotation that asks for an inspection is told by the version of the object.
        self.object["metadata"]["resourceVersion"] = "8".into();
    }
}

/// The fields of a status that changed, without those that are long and say the same in other words.
fn difference(before: &Value, after: &Value) -> Value {
    let mut changed = Map::new();
    for (name, value) in after.as_object().into_iter().flatten() {
        let was = &before[name];
        match name.as_str() {
            "lastUpdated" | "record" | "hardware" => {}
            _ if was == value => {}
            "conditions" => {
                let is_new = |condition: &&Value| {
                    !was.as_array().into_iter().flatten().any(|was| {
                        (&was["type"], &was["status"], &was["reason"])
                            == (&condition["type"], &condition["status"], &condition["reason"])
                    })
                };
                let words = |condition: &Value| {
                    let word = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
                    Value::from(format!("{}={}/{}", word("type"), word("status"), word("reason")))
                };
                let new: Vec<_> = value.as_array().into_iter().flatten().filter(is_new).map(words).collect();
                if !new.is_empty() {
                    changed.insert(name.clone(), new.into());
                }
            }
            _ if value.is_object() && was.is_object() => {
                changed.insert(name.clone(), difference(was, value));
            }
            _ => {
                changed.insert(name.clone(), value.clone());
            }
        }
    }
    changed.into()
}

/// A change of state: how the host comes to where it begins, what happens then, and the states that follow.
struct Row {
    /// The states up to the one from which it goes on; the host waits in the last.
    before: &'static [&'static str],
    /// What the host is like from the beginning.
    spec: Value,
    /// What somebody does, as a merge patch of the object.
    change: Value,
    /// Whether the BMC answers from then on.
    answers: bool,
    /// The states that follow.
    after: &'static [&'static str],
}

impl Row {
    fn new(before: &'static [&'static str], change: Value, after: &'static [&'static str]) -> Self {
        Self { before, spec: json!({}), change, answers: true, after }
    }

    fn spec(self, spec: Value) -> Self {
        Self { spec, ..self }
    }

    fn without_bmc(self) -> Self {
        Self { answers: false, ..self }
    }

    /// The host in the end, and the states that it passed.
    fn play(&self) -> (Life, Vec<String>) {
        let mut life = Life::new(&self.spec);
        self.before.iter().for_each(|state| life.until(state));
        life.story.clear();
        life.change(&self.change);
        life.answers = self.answers;
        let mut states = Vec::new();
        for _ in 0..80 {
            let before = life.state().to_owned();
            life.step();
            let state = life.state().to_owned();
            if state != before {
                writeln!(life.story, "  {before:?} -> {state:?}").unwrap();
                states.push(state);
            }
            if life.gone || states == self.after {
                break;
            }
        }
        // What becomes of it when nobody answers is told a little later.
        if !self.answers && !life.gone {
            (0..3).for_each(|_| life.step());
        }
        (life, states)
    }
}

fn live() -> Value {
    json!({"online": true, "image": {"url": ISO, "format": "live-iso"}})
}

fn ordered() -> Value {
    json!({ "spec": live() })
}

fn withdrawn() -> Value {
    json!({"spec": {"online": false, "image": null}})
}

fn deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-11-18T08:30:00Z"}})
}

fn detached_and_deleted() -> Value {
    let mut change = deleted();
    merge(&mut change, &annotated(names::DETACHED, ""));
    change
}

fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

const AVAILABLE: &[&str] = &["available"];
const PROVISIONED: &[&str] = &["available", "provisioning", "provisioned"];

fn rows() -> Vec<(&'static str, Row)> {
    let nothing = || json!({});
    let no_bmc = json!({"bmc": {"address": "", "credentialsName": ""}});
    let bmc = json!({"spec": {"bmc": {"address": "redfish-virtualmedia://bmc-0", "credentialsName": "bmc-0"}}});
    let external = json!({"externallyProvisioned": true, "online": true});
    vec![
        ("a new host with a BMC", Row::new(&[""], nothing(), &["registering"])),
        ("a new host without a BMC", Row::new(&[""], nothing(), &["unmanaged"]).spec(no_bmc.clone())),
        ("a BMC is given", Row::new(&["unmanaged"], bmc, &["registering"]).spec(no_bmc)),
        ("registered", Row::new(&["registering"], nothing(), AVAILABLE)),
        (
            "registered, not to be inspected",
            Row::new(&["registering"], nothing(), AVAILABLE).spec(json!({"inspectionMode": "disabled"})),
        ),
        (
            "registered, externally provisioned",
            Row::new(&["registering"], nothing(), &["externally provisioned"]).spec(external.clone()),
        ),
        ("a new host whose BMC does not answer", Row::new(&[""], nothing(), &["registering"]).without_bmc()),
        (
            "set to externally provisioned",
            Row::new(AVAILABLE, json!({ "spec": external }), &["externally provisioned"]),
        ),
        (
            "an inspection is asked for",
            Row::new(AVAILABLE, annotated(names::INSPECT, ""), &["inspecting", "available"]),
        ),
        ("an image is ordered", Row::new(AVAILABLE, ordered(), &["provisioning"])),
        ("the image has booted", Row::new(&["available", "provisioning"], nothing(), &["provisioned"]).spec(live())),
        (
            "the order is withdrawn before it was carried out",
            Row::new(&["available", "provisioning"], withdrawn(), &["deprovisioning", "available"]).spec(live()),
        ),
        (
            "deleted while it is provisioned",
            Row::new(&["available", "provisioning"], deleted(), &["deprovisioning", "(gone)"]).spec(live()),
        ),
        ("the order is withdrawn", Row::new(PROVISIONED, withdrawn(), &["deprovisioning", "available"]).spec(live())),
        (
            "another image is ordered",
            Row::new(
                PROVISIONED,
                json!({"spec": {"image": {"url": "https://images.example/other.iso"}}}),
                &["deprovisioning", "available", "provisioning", "provisioned"],
            )
            .spec(live()),
        ),
        ("deleted when provisioned", Row::new(PROVISIONED, deleted(), &["deprovisioning", "(gone)"]).spec(live())),
        ("deleted when free and off", Row::new(AVAILABLE, deleted(), &["(gone)"])),
        (
            "deleted when free and on",
            Row::new(&["available"], deleted(), &["powering off before delete", "(gone)"])
                .spec(json!({"online": true})),
        ),
        (
            "deleted when externally provisioned",
            Row::new(&["externally provisioned"], deleted(), &["(gone)"]).spec(external),
        ),
        ("deleted while it registers", Row::new(&["registering"], deleted(), &["(gone)"])),
        (
            "deleted when the BMC is dead",
            Row::new(PROVISIONED, deleted(), &["deprovisioning", "(gone)"]).spec(live()).without_bmc(),
        ),
        ("detached and deleted", Row::new(PROVISIONED, detached_and_deleted(), &["(gone)"]).spec(live())),
    ]
}

#[test]
fn every_documented_change_of_state_writes_what_it_should() {
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for (title, row) in rows() {
        let (life, states) = row.play();
        if states != row.after {
            wrong.push(format!("{title}: {states:?}, not {:?}\n{}", row.after, life.story));
        }
        writeln!(text, "{title}\n{}", life.story).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/metal3/transitions.txt");
    if std::env::var_os("BESKAR7_BLESS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap();
    assert!(text == known, "changed; run with BESKAR7_BLESS=1 if it should be\n{text}");
}
