//! Hosts of all dialects as the commands see them: plain data to show, and what to write for a request.
//!
//! A dialect is one file here that implements [`HostKind`] for its host resource; no command knows more of it.

mod beskar7;
mod boot_provider;
mod find;
#[cfg(test)]
pub(crate) mod foreign;
mod ironcore;
mod metal3;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use api::beskar7::{Fault, HardwareDetails, TimelineEntry, Waiting};
use api::capi::Condition;
use clap::ValueEnum;
use controllers::dialect::Settings;
use controllers::dialects::Dialect;
use engine::host::Waiting as Awaited;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource};
use serde_json::Value;

use crate::human;

pub(crate) use find::{Found, find, label};

/// The host resource of a dialect.
pub(crate) trait HostKind: Sync {
    /// Its name at the API server.
    fn resource(&self) -> ApiResource;

    /// Whether its objects have namespaces.
    fn has_namespaces(&self) -> bool;

    /// All states that a host can show, in the order of its life.
    fn states(&self) -> &'static [&'static str];

    /// What an object says.
    fn read(&self, object: &DynamicObject) -> Result<Host, serde_json::Error>;

    /// Why a power request would come to nothing, as the rest of a sentence that begins with the host. The request is refused then.
    fn obstacle(&self, object: &DynamicObject, action: Action) -> Option<String>;

    /// The merge patch that makes a power request. The id is fresh: it tells this request from an earlier, equal one.
    fn request(&self, action: Action, id: &str) -> Value;

    /// What was written for a power request, for people.
    fn requested(&self, action: Action) -> &'static str;

    /// Whether the status already speaks of the time after the request.
    fn has_heeded(&self, object: &DynamicObject, request: &Request) -> bool;

    /// The objects that make a simulated server known, in the order in which they are to be created.
    fn register(&self, server: &Simulated<'_>) -> Vec<Manifest>;

    /// How its hosts live, for the demo.
    fn life(&self) -> Life;

    /// Tells the operator how it knows simulated BMCs by their MAC addresses, if it has to.
    fn introduce(&self, _: &Devices, _: &mut Settings) {}

    /// What somebody else does at a site, for simulated servers; `None` if there is nothing.
    fn others(&self, _: &Client) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Whether what makes a BMC known makes a host of each server behind it.
    fn finds_systems(&self) -> bool {
        false
    }

    /// What the host of the first server behind a simulated BMC is called.
    fn first_host(&self, bmc: &str) -> String {
        bmc.to_owned()
    }

    /// An object of this name that claims one of the hosts in a namespace and boots an image on it; `None` if the dialect has no claims.
    fn claim(&self, namespace: &str, name: &str, image: &str) -> Option<Manifest>;

    /// The definitions of the dialect's own resources.
    fn definitions(&self) -> Vec<CustomResourceDefinition>;

    /// What the operator may do with the dialect's own resources.
    fn rules(&self) -> Vec<PolicyRule>;
}

/// A rule of a role, for one API group.
pub(crate) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(words(&[group])),
        resources: Some(words(resources)),
        verbs: words(verbs),
        ..PolicyRule::default()
    }
}

/// What the demo boots where an ISO is booted.
const ISO: &str = "https://192.0.2.1/images/my-os.iso";

/// The host resource of a dialect.
pub(crate) fn kind(dialect: Dialect) -> &'static dyn HostKind {
    match dialect {
        Dialect::Beskar7 => &beskar7::PhysicalHosts,
        Dialect::Metal3 => &metal3::BareMetalHosts,
        Dialect::IronCore => &ironcore::Servers,
    }
}

/// What the status and spec of a host say, whatever its dialect. What is unknown is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    /// Whether the operator has written a status.
    pub(crate) is_seen: bool,
    /// In the words of the dialect.
    pub(crate) state: String,
    /// When it came into that state.
    pub(crate) since: Option<Timestamp>,
    /// What the state means.
    pub(crate) progress: Progress,
    /// `On`, `Off`, or the word for what is between.
    pub(crate) power: String,
    /// What is requested, as a part of a sentence.
    pub(crate) power_request: Option<String>,
    /// `OK`, `Warning` or `Critical`.
    pub(crate) health: String,
    /// Who holds the host.
    pub(crate) claimed_by: Option<Claimant>,
    /// What is to be booted or written.
    pub(crate) order: Option<String>,
    /// What the power or the order waits for, if neither is a fault nor under way.
    pub(crate) remark: Option<String>,
    /// Why its owner wants it left alone; may be empty.
    pub(crate) maintenance: Option<String>,
    /// Why the operator leaves it alone.
    pub(crate) paused: Option<String>,
    /// Address of its BMC.
    pub(crate) bmc: String,
    /// Addresses of the server.
    pub(crate) addresses: Vec<String>,
    /// What is waited for.
    pub(crate) waiting: Option<Waiting>,
    /// What is wrong.
    pub(crate) fault: Option<Fault>,
    /// Current conditions.
    pub(crate) conditions: Vec<Condition>,
    /// What happened, the oldest first.
    pub(crate) timeline: Vec<TimelineEntry>,
    /// What the server is made of.
    pub(crate) hardware: Option<HardwareDetails>,
}

impl Host {
    /// How long its wait can last, as a part of a sentence. A wait for somebody else can last for ever: at its deadline comes a reminder.
    pub(crate) fn time_left(&self, now: Timestamp) -> Option<String> {
        let waiting = self.waiting.as_ref().filter(|wait| !Awaited::FOR_OTHERS.contains(&wait.reason.as_str()))?;
        waiting.deadline.as_ref().map(|at| format!("{} left", human::span(now, at.0)))
    }
}

/// What the state of a host means for somebody who looks over a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Progress {
    /// It will stay so until somebody asks for something else.
    Resting,
    /// Something is being done.
    #[default]
    UnderWay,
    /// It needs somebody.
    Failed,
}

/// Who holds a host. Shown as `Beskar7Machine node-01`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// Kind of the object.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(format!("{} {}", self.kind, self.name).trim())
    }
}

/// What can be asked of a server's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// Keep it on from now on
    On,
    /// Keep it off from now on
    Off,
    /// Leave its power alone from now on
    Auto,
    /// Restart it once
    Cycle,
}

/// A power request that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// What was asked for.
    pub(crate) action: Action,
    /// Tells it from others.
    pub(crate) id: String,
    /// The generation of the object that has it.
    pub(crate) generation: i64,
}

/// A simulated server that is to be made known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simulated<'a> {
    /// What to call it.
    pub(crate) name: &'a str,
    /// Where its objects go, if they have namespaces.
    pub(crate) namespace: &'a str,
    /// URL of its BMC.
    pub(crate) address: &'a str,
    /// User of its BMC.
    pub(crate) username: &'a str,
    /// Password of its BMC.
    pub(crate) password: &'a str,
    /// Fingerprint of its certificate, where one is to be pinned.
    pub(crate) fingerprint: Option<&'a str>,
    /// Where its BMC is on the management network, if the operator knows by the MAC address what it is.
    pub(crate) device: Option<&'a Device>,
}

/// Simulated BMCs on a management network.
#[derive(Debug, Clone)]
pub(crate) struct Devices {
    /// What their MAC addresses begin with: digits in lower case, without separators.
    pub(crate) mac_prefix: String,
    /// User of all of them.
    pub(crate) username: String,
    /// Password of all of them.
    pub(crate) password: String,
}

/// A simulated BMC on a management network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// Its IP address.
    pub(crate) ip: IpAddr,
    /// Its MAC address.
    pub(crate) mac: String,
}

/// The life of a host from registration to release, for the demo.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    /// What servers are applied as.
    pub(crate) registered: &'static str,
    /// What claims are called.
    pub(crate) claims: &'static str,
    /// What is to be booted.
    pub(crate) image: &'static str,
    /// By which way it is booted.
    pub(crate) way: &'static str,
    /// States from registration until it can be claimed.
    pub(crate) registration: &'static [&'static str],
    /// States from a claim until the ordered system runs.
    pub(crate) deployment: &'static [&'static str],
    /// States from the end of a claim until it can be claimed again.
    pub(crate) release: &'static [&'static str],
}

/// An object that is to be created.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    resource: ApiResource,
    object: Value,
}

impl Manifest {
    /// An object of this kind; `apiVersion` and `kind` are filled in.
    pub(crate) fn new<K: Resource<DynamicType = ()>>(mut object: Value) -> Self {
        let resource = ApiResource::erase::<K>(&());
        object["apiVersion"] = resource.api_version.as_str().into();
        object["kind"] = resource.kind.as_str().into();
        Self { resource, object }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The whole object.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// Where to create it.
    pub(crate) fn api(&self, client: &Client) -> Api<DynamicObject> {
        match self.object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }
}
