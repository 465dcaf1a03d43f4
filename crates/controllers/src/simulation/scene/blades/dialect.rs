//! A dialect for tests that has what ours lacks: hosts without a namespace, BMCs and credentials that are objects of their own, a kind that
//! opens a gate, and a kind for what was found.

use std::collections::BTreeMap;

use bmc::{Address, SystemChoice};
use engine::failure::{Failure, Kind};
use engine::host::{Anchor, Claim, Gate, Goal, Neutral, Order, Proof, Recipe, Record, Road, Starts, Words};
use engine::placement::{Availability, Candidate};
use engine::server::{Scope, Seen};
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use kube::{CustomResource, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::companions::Companion;
use crate::dialect::{Attention, Connection, HostDialect, News, Outcome, TrustWish, View, Writes};
use crate::fingerprint::digest;
use crate::hands::Job;
use crate::marks::Mark;
use crate::object::ObjectId;
use crate::objects::{Decision, Look, ObjectDialect};
use crate::relatives::Relative;
use crate::roster::Offer;
use crate::vault::{Data, Keeper};
use crate::writer::Ownership;

const OURS: Ownership = Ownership { manager: "blades", conditions: &[], left_behind: &[] };

/// Annotation of a blade that is to be left alone.
pub(super) const HANDS_OFF: &str = "racks.example/hands-off";

/// The mark of Keys that a blade needs.
pub(super) const LABEL: &str = "racks.example/used-by";
pub(super) const KEPT: &str = "racks.example/kept";
/// What another operator has put on Reports.
pub(super) const FILED: &str = "racks.example/filed";

/// A server. It is ordered to boot an image by its own spec, and has to wait for a permit.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "racks.example", version = "v1", kind = "Blade", status = "BladeStatus", schema = "disabled")]
pub(crate) struct BladeSpec {
    /// Its BMC.
    pub(super) console: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) image: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BladeStatus {
    pub(super) state: String,
    pub(super) record: Option<String>,
    pub(super) wait: Option<String>,
    pub(super) fault: Option<String>,
    /// What the operator before us has written.
    pub(super) deployed: bool,
}

/// A BMC.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "racks.example", version = "v1", kind = "Console", status = "ConsoleStatus", schema = "disabled")]
pub(crate) struct ConsoleSpec {
    pub(super) address: String,
    /// Its credentials.
    pub(super) key: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConsoleStatus {
    pub(super) serial: Option<String>,
    pub(super) problem: Option<String>,
}

/// Credentials.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "racks.example", version = "v1", kind = "Key", schema = "disabled")]
pub(super) struct KeySpec {
    pub(super) words: BTreeMap<String, String>,
}

impl Keeper for Key {
    const FIELDS: &'static [&'static str] = &["f:spec"];

    fn into_data(self) -> Data {
        self.spec.words.into_iter().map(|(key, word)| (key, ByteString(word.into_bytes()))).collect()
    }
}

/// Lets a blade boot.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "racks.example", version = "v1", kind = "Permit", schema = "disabled")]
pub(super) struct PermitSpec {
    pub(super) blade: String,
}

/// What was found in a blade.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "racks.example", version = "v1", kind = "Report", schema = "disabled")]
pub(super) struct ReportSpec {
    pub(super) serial: String,
}

/// Blades.
pub(crate) struct Blades;

impl HostDialect for Blades {
    type Host = Blade;

    const NAME: &'static str = "blades";
    const STATES: &'static [&'static str] = &["Unknown"];
    const FINALIZER: &'static str = "racks.example/blade";
    const OURS: Ownership = OURS;
    const RECORD: &'static [&'static str] = &["status", "record"];
    const CREDENTIALS_FIELD: &'static str = "spec.key of its Console";
    const CA_BUNDLE_FIELD: &'static str = "";
    const BOOTSTRAP_FIELD: &'static str = "";
    const CLAIM_ID: &'static str = "racks.example/claim-id";
    const CLUSTER_API: bool = false;

    fn relatives() -> Vec<Relative> {
        vec![
            Relative::of::<Console>(|_| Vec::new()),
            Relative::with_credentials::<Key>(),
            Relative::of::<Permit>(|permit| vec![ObjectId::named::<Blade>(None, &permit.spec.blade)]),
            Relative::of::<Report>(|_| Vec::new()),
        ]
    }

    const RIVAL_LEASE: Option<&'static str> = Some("rack-operator");
    const MARK: Option<Mark> = Some(Mark { labels: &[(LABEL, "blade")], finalizer: KEPT });
    const COMPANION_FINALIZERS: &'static [&'static str] = &[FILED];

    fn marked(view: &View<'_, Blade>) -> Vec<ObjectId> {
        let console = view.related.get::<Console>(None, &view.object.spec.console);
        console.iter().map(|console| ObjectId::named::<Key>(None, &console.spec.key)).collect()
    }

    fn depends_on(view: &View<'_, Blade>) -> Vec<ObjectId> {
        vec![ObjectId::named::<Console>(None, &view.object.spec.console)]
    }

    fn attention(view: &View<'_, Blade>) -> Attention {
        let is_left_alone = view.object.annotations().contains_key(HANDS_OFF);
        if is_left_alone { Attention::Nothing } else { Attention::Full }
    }

    fn goal(view: &View<'_, Blade>) -> Goal {
        let blade = view.object;
        let road = if blade.metadata.deletion_timestamp.is_some() {
            Road::Delete(engine::host::Deletion::CleanUp)
        } else {
            Road::Manage
        };
        let image = blade.spec.image.as_ref();
        let is_open = view.related.all::<Permit>().iter().any(|permit| permit.spec.blade == blade.name_any());
        Goal {
            road,
            claim: image.map(|_| Claim { id: "itself".to_owned(), consumer: None }),
            order: image.map(|url| Order {
                deployment: digest(url),
                gate: Some(Gate { keeper: "a Permit".to_owned(), open: is_open }),
                recipe: Ok(Recipe::Iso { url: url.clone(), starts: Starts::First }),
            }),
            ..Goal::default()
        }
    }

    fn proof(view: &View<'_, Blade>) -> Option<Proof> {
        let status = view.object.status.as_ref()?;
        Some(if status.deployed { Proof::Deployed } else { Proof::Free })
    }

    fn served(_: &crate::dialect::Settings) -> Option<&'static str> {
        Some("")
    }

    fn connection(view: &View<'_, Blade>, _: Option<&Anchor>) -> Result<Connection, Failure> {
        let name = &view.object.spec.console;
        let console = view.related.get::<Console>(None, name);
        let missing = || Failure::new(Kind::AddressInvalid, format!("spec.console: there is no Console {name}."));
        connection(console.ok_or_else(missing)?.as_ref())
    }

    fn state(_: &Blade) -> &'static str {
        "Unknown"
    }

    fn record(blade: &Blade) -> Option<Record> {
        serde_json::from_str(blade.status.as_ref()?.record.as_deref()?).ok()
    }

    fn server_identity(_: &Blade) -> Option<String> {
        None
    }

    fn offer(blade: &Blade) -> Offer {
        let candidate = Candidate {
            namespace: String::new(),
            name: blade.name_any(),
            taints: Vec::new(),
            labels: blade.labels().clone(),
            availability: Availability::Unavailable("blades order for themselves".to_owned()),
            rack: None,
            capacity: None,
            media: None,
            network_boot: None,
            released: None,
        };
        Offer { candidate, holdings: Vec::new(), free: None }
    }

    fn without_claim() -> Value {
        json!({ "spec": { "image": null } })
    }

    fn render(outcome: &Outcome<'_, Blade>) -> Writes {
        let record = &outcome.step.record;
        let before = outcome.host.status.clone().unwrap_or_default();
        let status = BladeStatus {
            state: record.phase.as_str().to_owned(),
            record: serde_json::to_string(record).ok(),
            wait: record.wait.as_ref().map(|wait| wait.what.name().to_owned()),
            fault: record.fault.as_ref().map(|fault| fault.failure.tell(&Neutral)),
            ..before.clone()
        };
        let hardware = outcome.seen.and_then(|seen| seen.hardware.as_ref());
        let serial = hardware.and_then(|hardware| hardware.serial_number.clone());
        let is_new = status.state == "Provisioned" && before.state != status.state;
        let lamp = News { warning: false, reason: "LampLit".to_owned(), message: "The lamp is lit.".to_owned() };
        let events = is_new.then_some(lamp).into_iter().collect();
        let report = |serial| Companion::like(&Report::new(&outcome.host.name_any(), ReportSpec { serial }));
        Writes {
            object: None,
            companions: serial.into_iter().map(report).collect(),
            status: (status != before).then(|| serde_json::to_value(status).unwrap()),
            events,
            counts: Vec::new(),
        }
    }

    fn event_reason(reason: &'static str) -> Option<&'static str> {
        (reason != "Inspecting").then_some(if reason == "Available" { "Vacant" } else { reason })
    }

    fn paused_status(_: &View<'_, Blade>, _: &str, _: Option<&Seen>) -> Option<Value> {
        None
    }

    fn shows_pause(_: &Blade) -> bool {
        false
    }

    fn words() -> &'static dyn Words {
        &Neutral
    }
}

/// Consoles: each shows its server once as a Blade.
pub(crate) struct Consoles;

impl ObjectDialect for Consoles {
    type Object = Console;

    const NAME: &'static str = "consoles";
    const FINALIZER: &'static str = "racks.example/console";
    const OURS: Ownership = OURS;
    const SECRET_FIELDS: [&'static str; 2] = ["spec.key", ""];

    fn relatives() -> Vec<Relative> {
        vec![Relative::of::<Blade>(|_| Vec::new()), Relative::with_credentials::<Key>()]
    }

    fn connection(view: &View<'_, Console>) -> Option<Result<Connection, Failure>> {
        Some(connection(view.object))
    }

    fn step(view: &View<'_, Console>, look: &Look<'_>) -> Decision {
        let console = view.object;
        if console.metadata.deletion_timestamp.is_some() {
            return Decision { finished: true, ..Decision::default() };
        }
        let before = console.status.clone().unwrap_or_default();
        let again = Job { number: 0, acts: Vec::new(), look: Scope::Inventory };
        let (status, companions, job) = match look.sight.map(|sight| &sight.seen) {
            None => (before.clone(), Vec::new(), Some(again)),
            Some(Err(failure)) => {
                (ConsoleStatus { problem: Some(failure.to_string()), ..before.clone() }, Vec::new(), Some(again))
            }
            Some(Ok(seen)) => {
                let serial = seen.hardware.as_ref().and_then(|hardware| hardware.serial_number.clone());
                let spec = BladeSpec { console: console.name_any(), image: None };
                let blade = Companion::like(&Blade::new(&console.name_any(), spec));
                (ConsoleStatus { serial, problem: None }, vec![blade], None)
            }
        };
        let hello = News { warning: true, reason: "Hello".to_owned(), message: "Here it is.".to_owned() };
        let hello = (status.serial != before.serial).then_some(hello).into_iter().collect();
        let status = (status != before).then(|| serde_json::to_value(status).unwrap());
        Decision {
            protect: true,
            writes: Writes { companions, status, events: hello, ..Writes::default() },
            again: job.is_some().then(|| view.now + SignedDuration::from_secs(30)),
            job,
            finished: false,
        }
    }
}

fn connection(console: &Console) -> Result<Connection, Failure> {
    Ok(Connection {
        address: Address::parse(&console.spec.address)?,
        system: SystemChoice::Only,
        credentials: ObjectId::named::<Key>(None, &console.spec.key).into(),
        trust: TrustWish::SystemRoots,
        family: None,
    })
}
