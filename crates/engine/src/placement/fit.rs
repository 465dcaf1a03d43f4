//! What a claim requires of a host, and what a host lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::{Availability, BootWay, Candidate, Capacity, MediaWays, Request, Taint};

/// Minimum hardware. Zero requires nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requirements {
    /// Cores of all CPUs together.
    pub cores: u32,
    /// Memory in GB: 1000³ bytes, so that a server sold with 32 GiB has 32 GB in any case.
    pub memory_gb: u64,
    /// Size of one disk in GB: several small disks cannot hold a large image.
    pub disk_gb: u64,
}

/// Which labels a host must have. All terms must match; an empty selector matches every host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(pub Vec<Term>);

impl Selector {
    /// Whether something with these labels is selected.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|term| term.holds(labels))
    }
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The label's key.
    pub key: String,
    /// What its value must be.
    pub test: Test,
}

/// A requirement on the value of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// One of these.
    In(BTreeSet<String>),
    /// None of these; the label may be missing.
    NotIn(BTreeSet<String>),
    /// Anything.
    Exists,
    /// The label must be missing.
    Absent,
}

/// The failure domain that a host with these labels is in.
pub fn domain<'a>(labels: &'a BTreeMap<String, String>, keys: &[String]) -> Option<&'a str> {
    keys.iter().find_map(|key| labels.get(key).filter(|name| !name.is_empty())).map(String::as_str)
}

/// A reason why a host does not fit a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bar {
    /// Somebody has claimed it.
    Claimed(String),
    /// Its server runs although nobody asked for it.
    Running,
    /// It is in this state.
    Unavailable(String),
    /// It could not serve this claim recently, for this reason.
    Refused(String),
    /// It has this taint, which the claim does not tolerate.
    Taint(Taint),
    /// This term of the selector does not match.
    Label(Term),
    /// It is in another failure domain, or in none.
    Domain(Option<String>),
    /// It has no virtual CD drive.
    NoDrive,
    /// Its BMC cannot set it to boot from the network.
    NoNetworkBoot,
    /// It takes images only by these schemes.
    Schemes(Vec<String>),
    /// Nothing is known of its hardware.
    Unknown,
    /// It has only so many cores.
    Cores(u32),
    /// It has only so much memory.
    Memory(u64),
    /// Its largest disk has only so many bytes.
    Disk(u64),
}

const GB: u64 = 1_000_000_000;

impl Request {
    /// Why a host does not fit this claim; empty if it fits.
    pub(super) fn bars(&self, host: &Candidate) -> Vec<Bar> {
        let mut bars = Vec::new();
        match &host.availability {
            Availability::Free => {}
            Availability::Claimed { holder, .. } => bars.push(Bar::Claimed(holder.clone())),
            Availability::Running => bars.push(Bar::Running),
            Availability::Unavailable(state) => bars.push(Bar::Unavailable(state.clone())),
        }
        if !self.refused_by.is_empty() {
            bars.extend(self.refused_by.get(&self.name_of(host)).cloned().map(Bar::Refused));
        }
        let is_tolerated = |taint: &&Taint| self.tolerations.iter().any(|toleration| toleration.covers(taint));
        bars.extend(host.taints.iter().filter(|taint| !is_tolerated(taint)).cloned().map(Bar::Taint));
        bars.extend(self.selector.0.iter().filter(|term| !term.holds(&host.labels)).cloned().map(Bar::Label));
        if let Some(name) = &self.failure_domain {
            let found = domain(&host.labels, &self.domain_keys);
            if found != Some(name) {
                bars.push(Bar::Domain(found.map(str::to_owned)));
            }
        }
        match (&self.way, &host.media) {
            (BootWay::Image(scheme), Some(media)) => bars.extend(media.bar(scheme)),
            (BootWay::Network, _) if host.network_boot == Some(false) => bars.push(Bar::NoNetworkBoot),
            _ => {}
        }
        bars.extend(self.requirements.bars(host.capacity.as_ref()));
        bars
    }
}

impl MediaWays {
    /// Why a server cannot boot images with this scheme.
    fn bar(&self, scheme: &str) -> Option<Bar> {
        let takes = self.schemes.is_empty() || self.schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme));
        if self.drives == 0 {
            return Some(Bar::NoDrive);
        }
        (!takes).then(|| Bar::Schemes(self.schemes.clone()))
    }
}

impl Requirements {
    fn bars(&self, capacity: Option<&Capacity>) -> Vec<Bar> {
        if *self == Self::default() {
            return Vec::new();
        }
        let Some(capacity) = capacity else { return vec![Bar::Unknown] };
        let largest = capacity.disk_bytes.iter().copied().max().unwrap_or(0);
        let mut bars = Vec::new();
        if capacity.cores < self.cores {
            bars.push(Bar::Cores(capacity.cores));
        }
        if capacity.memory_bytes < self.memory_gb.saturating_mul(GB) {
            bars.push(Bar::Memory(capacity.memory_bytes));
        }
        if largest < self.disk_gb.saturating_mul(GB) {
            bars.push(Bar::Disk(largest));
        }
        bars
    }
}

impl Term {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match &self.test {
            Test::In(allowed) => value.is_some_and(|value| allowed.contains(value)),
            Test::NotIn(denied) => value.is_none_or(|value| !denied.contains(value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
        }
    }
}

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match &self.test {
            Test::In(allowed) if allowed.len() == 1 => write!(f, "{}={}", self.key, list(allowed)),
            Test::In(allowed) => write!(f, "{} in ({})", self.key, list(allowed)),
            Test::NotIn(denied) => write!(f, "{} notin ({})", self.key, list(denied)),
            Test::Exists => f.write_str(&self.key),
            Test::Absent => write!(f, "!{}", self.key),
        }
    }
}
