//! All hosts, as those see them who claim one: kept up to date from the watch, so that nobody searches the fleet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::claim;
use engine::host::{Anchor, PowerRequest};
use engine::placement::Candidate;
use jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::{Notify, watch};

use crate::dialect::HostDialect;
use crate::object::ObjectId;
use crate::watches::Change;

/// What a host has to offer, and to whom it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The host as the placer sees it.
    pub candidate: Candidate,
    /// The claims that it bears or still acts for: nearly always none or one.
    pub holdings: Vec<Holding>,
    /// What a claim on it is announced with, if it can be had.
    pub free: Option<Box<Free>>,
}

/// What is to be known of a host before a claim on it is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Free {
    /// Its anchor.
    pub anchor: Anchor,
    /// What is asked of its power.
    pub request: Option<PowerRequest>,
}

/// A host and one claim on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The claim.
    pub id: String,
    /// Who claims, by name.
    pub claimant: ObjectId,
    /// The host as the claim sees it.
    pub host: claim::Host,
    /// Addresses of the server.
    pub addresses: Vec<Address>,
    /// Labels of the host.
    pub labels: BTreeMap<String, String>,
    /// SMBIOS UUID of the server.
    pub uuid: Option<String>,
    /// What is ordered on it, in words of its dialect that differ if and only if the orders do.
    pub order: String,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// When what is wrong with it is tried again.
    pub next_try: Option<Timestamp>,
    /// Whether it is only assumed that its server has booted.
    pub assumed_booted: bool,
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// What kind of address, as Kubernetes names it: `InternalIP`, `Hostname`, …
    pub kind: String,
    /// The address.
    pub address: String,
}

/// What a host waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// What for, in a sentence.
    pub message: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Until when at most.
    pub deadline: Option<Timestamp>,
}

/// A host that bears a claim, as it was seen.
#[derive(Debug, Clone)]
pub(crate) struct Bearer {
    pub(crate) key: ObjectId,
    /// The version that the sight is of: whoever writes on its ground says so.
    pub(crate) version: u64,
    pub(crate) holding: Holding,
}

/// The hosts.
#[derive(Debug, Default)]
pub struct Roster {
    entries: Mutex<Entries>,
    changed: Notify,
    /// Whether all hosts have been listed once.
    complete: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Entries {
    hosts: BTreeMap<ObjectId, Entry>,
    /// Which hosts bear a claim. More than one is a mistake that its claimant has to mend.
    claims: HashMap<String, Vec<ObjectId>>,
    /// How many lists were begun.
    lists: u64,
}

#[derive(Debug)]
struct Entry {
    offer: Offer,
    version: u64,
    /// The list since which it is known like this.
    list: u64,
}

impl Roster {
    /// Takes in what the watch of the hosts shows. Answers who should know. What a list shows counts, also if it is older than what was
    /// known: the API server may have been restored from a backup.
    pub(crate) fn take<D: HostDialect>(&self, change: &Change<'_, D::Host>) -> Vec<ObjectId> {
        match change {
            Change::Begin => self.entries().lists += 1,
            Change::Seen(host) => return self.put::<D>(host),
            Change::Gone(key) => return self.remove(key),
            Change::Complete => {
                self.complete.send_replace(true);
                self.changed.notify_one();
            }
        }
        Vec::new()
    }

    /// Waits until all hosts have been listed once. Before that, nobody can say that a machine has no host.
    pub(crate) async fn is_complete(&self) {
        // The sender is ours, so it is not gone.
        self.complete.subscribe().wait_for(|complete| *complete).await.ok();
    }

    /// A host was seen, or we have just written it. Answers who should know. An older sight changes nothing.
    pub(crate) fn put<D: HostDialect>(&self, host: &D::Host) -> Vec<ObjectId> {
        let key = ObjectId::of(host);
        let version = host.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0);
        let mut entries = self.entries();
        let list = entries.lists;
        if let Some(known) = entries.hosts.get_mut(&key) {
            let is_listed = std::mem::replace(&mut known.list, list) < list;
            if known.version >= version && version > 0 && !is_listed {
                return Vec::new();
            }
            known.version = version;
        }
        let offer = D::offer(host);
        if entries.hosts.get(&key).is_some_and(|known| known.offer == offer) {
            return Vec::new();
        }
        let mut told = entries.remove(&key);
        told.extend(entries.insert(key, Entry { offer, version, list }));
        told.sort_unstable();
        told.dedup();
        drop(entries);
        self.changed.notify_one();
        told
    }

    /// A host is gone. Answers who should know.
    fn remove(&self, key: &ObjectId) -> Vec<ObjectId> {
        let told = self.entries().remove(key);
        self.changed.notify_one();
        told
    }

    /// The hosts that bear a claim, the one that is furthest on its way first.
    pub(crate) fn holdings(&self, claim: &str) -> Vec<Bearer> {
        let entries = self.entries();
        let keys = entries.claims.get(claim).map(Vec::as_slice).unwrap_or_default();
        let mut found: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let entry = entries.hosts.get(key)?;
                let holding = entry.offer.holdings.iter().find(|holding| holding.id == claim)?.clone();
                Some(Bearer { key: key.clone(), version: entry.version, holding })
            })
            .collect();
        found.sort_by(|left, right| {
            let progress = |held: &Bearer| (held.holding.host.bound, held.holding.host.milestone);
            progress(right).cmp(&progress(left)).then_with(|| left.key.cmp(&right.key))
        });
        found
    }

    /// The hosts that bear a claim of somebody.
    pub(crate) fn holdings_of(&self, claimant: &ObjectId) -> Vec<ObjectId> {
        let entries = self.entries();
        let bears = |entry: &Entry| entry.offer.holdings.iter().any(|holding| holding.claimant == *claimant);
        entries.hosts.iter().filter(|(_, entry)| bears(entry)).map(|(key, _)| key.clone()).collect()
    }

    /// All hosts, with the version that the sight is of.
    pub(crate) fn candidates(&self) -> Vec<(ObjectId, u64, Candidate)> {
        let entries = self.entries();
        entries.hosts.iter().map(|(key, entry)| (key.clone(), entry.version, entry.offer.candidate.clone())).collect()
    }

    /// What a claim on a host is announced with, if it is still as it was in that version.
    pub(crate) fn free(&self, key: &ObjectId, version: u64) -> Option<Free> {
        let entries = self.entries();
        let entry = entries.hosts.get(key).filter(|entry| entry.version == version)?;
        entry.offer.free.as_deref().cloned()
    }

    /// What a reader finds in the labels of the hosts of a namespace. Hosts without a namespace are in all of them.
    pub(crate) fn labels_in<T: Ord>(
        &self,
        namespace: &str,
        read: impl Fn(&BTreeMap<String, String>) -> Option<T>,
    ) -> BTreeSet<T> {
        let entries = self.entries();
        let hosts = entries.hosts.iter().filter(|(key, _)| key.namespace.as_deref().is_none_or(|own| own == namespace));
        hosts.filter_map(|(_, entry)| read(&entry.offer.candidate.labels)).collect()
    }

    /// Waits for a change.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn insert(&mut self, key: ObjectId, entry: Entry) -> Vec<ObjectId> {
        let mut told = Vec::new();
        for holding in &entry.offer.holdings {
            self.claims.entry(holding.id.clone()).or_default().push(key.clone());
            told.push(holding.claimant.clone());
        }
        self.hosts.insert(key, entry);
        told
    }

    fn remove(&mut self, key: &ObjectId) -> Vec<ObjectId> {
        let Some(entry) = self.hosts.remove(key) else { return Vec::new() };
        let mut told = Vec::new();
        for holding in entry.offer.holdings {
            if let Some(keys) = self.claims.get_mut(&holding.id) {
                keys.retain(|known| known != key);
                if keys.is_empty() {
                    self.claims.remove(&holding.id);
                }
            }
            told.push(holding.claimant);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use api::beskar7::{Beskar7Machine, PhysicalHost};
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::beskar7::PhysicalHosts;
    use crate::watches::Present;

    fn host(version: &str, claim: Option<&str>) -> PhysicalHost {
        let mut host = json!({
            "metadata": { "name": "a", "namespace": "lab", "uid": "1", "resourceVersion": version, "annotations": {} },
            "spec": { "redfishConnection": { "address": "https://a", "credentialsSecretRef": "bmc" } },
        });
        if let Some(id) = claim {
            host["metadata"]["annotations"]["beskar7.io/claim-id"] = json!(id);
            host["spec"]["consumerRef"] = json!({ "kind": "Beskar7Machine", "name": "node", "namespace": "lab" });
        }
        serde_json::from_value(host).unwrap()
    }

    #[test]
    fn a_claim_is_known_with_the_version_that_shows_it() {
        let roster = Roster::default();
        assert_eq!(
            roster.put::<PhysicalHosts>(&host("5", Some("id"))),
            [ObjectId::named::<Beskar7Machine>(Some("lab"), "node")]
        );
        let held = roster.holdings("id");
        assert_eq!((held.len(), held[0].version), (1, 5));
        assert!(held[0].holding.host.claimed && !held[0].holding.host.bound);

        assert_eq!(roster.put::<PhysicalHosts>(&host("4", None)), [], "an older sight changes nothing");
        assert_eq!(roster.holdings("id").len(), 1);
        roster.put::<PhysicalHosts>(&host("6", None));
        assert_eq!(roster.holdings("id").len(), 0);
    }

    #[test]
    fn a_list_counts_also_if_it_is_older_and_ends_what_it_does_not_show() {
        let roster = Roster::default();
        roster.put::<PhysicalHosts>(&host("9", Some("id")));
        let mut present = Present::default();
        let mut show = |event: &Event<PhysicalHost>| {
            for change in present.take(event, ObjectId::of) {
                roster.take::<PhysicalHosts>(&change);
            }
        };
        show(&Event::Init);
        assert_eq!(roster.candidates()[0].1, 9, "nobody writes on the ground of nothing meanwhile");
        show(&Event::InitApply(host("3", None)));
        roster.put::<PhysicalHosts>(&host("2", Some("id")));
        show(&Event::InitDone);
        assert_eq!((roster.holdings("id").len(), roster.candidates()[0].1), (0, 3), "restored from a backup");

        show(&Event::Init);
        show(&Event::InitDone);
        assert_eq!(roster.candidates(), []);
    }
}
