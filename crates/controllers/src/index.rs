//! Who names which server and which Secret: kept up to date from the watch, so that no reconcile searches the fleet.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::host::Anchor;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::dialect::{HostDialect, settled_anchor};
use crate::object::ObjectId;

/// The index of the hosts of all dialects: objects of any kinds that name one server are rivals.
#[derive(Debug, Default)]
pub struct Index(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    hosts: HashMap<ObjectId, Entry>,
    /// Who names a server. Nearly always one, so a short list and no tree: there is one for each server.
    servers: HashMap<String, Vec<(Rank, ObjectId)>>,
    /// Who depends on a Secret.
    secrets: HashMap<ObjectId, HashSet<ObjectId>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    rank: Rank,
    /// Address and system, if they make sense.
    target: Option<String>,
    /// What tells the server from every other one: as stored, and as last seen at that target.
    known: Option<String>,
    seen: Option<String>,
    secrets: Vec<ObjectId>,
}

/// Who has the better right to a server: whoever uses it, else the older object. An object that is pointed at a running
/// server must not take it over because it happens to be old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_free: bool,
    created: Timestamp,
}

impl Entry {
    fn servers(&self) -> impl Iterator<Item = &String> {
        [&self.target, &self.known, &self.seen].into_iter().flatten()
    }
}

impl Index {
    /// An object was seen.
    pub fn put<D: HostDialect>(&self, host: &D::Host) {
        let key = ObjectId::of(host);
        let anchor = settled_anchor::<D>(host);
        // What cannot be read may well be in use.
        let is_free = anchor.as_ref().is_ok_and(|anchor| !anchor.as_ref().is_some_and(Anchor::is_in_use));
        let mut entry = Entry {
            rank: Rank { is_free, created: host.creation_timestamp().map_or(Timestamp::MIN, |time| time.0) },
            target: None,
            known: D::server_identity(host),
            seen: None,
            secrets: Vec::new(),
        };
        if let Ok(connection) = D::connection(host, anchor.ok().flatten().as_ref()) {
            entry.target = Some(connection.target());
            entry.secrets = connection.secrets(key.namespace.as_deref()).collect();
        }
        let mut entries = self.entries();
        if let Some(before) = entries.hosts.get(&key).filter(|before| before.target == entry.target) {
            entry.seen.clone_from(&before.seen);
        }
        entries.insert(key, entry);
    }

    /// The server behind a host was seen. Known before it is stored, so that of two hosts that find out at the same time
    /// that they are one, only one goes on. Answers who else names that server, if that is news.
    pub fn see(&self, key: &ObjectId, identity: &str) -> Vec<ObjectId> {
        let mut entries = self.entries();
        let Some(entry) = entries.hosts.get(key).filter(|entry| entry.seen.as_deref() != Some(identity)) else {
            return Vec::new();
        };
        let entry = Entry { seen: Some(identity.to_owned()), ..entry.clone() };
        entries.insert(key.clone(), entry);
        let claimants = entries.servers.get(identity).into_iter().flatten();
        claimants.map(|(_, claimant)| claimant).filter(|claimant| *claimant != key).cloned().collect()
    }

    /// An object is gone.
    pub fn remove(&self, key: &ObjectId) {
        self.entries().remove(key);
    }

    /// The host that names the same server and has the better right to it.
    pub fn rival(&self, key: &ObjectId) -> Option<ObjectId> {
        let entries = self.entries();
        let entry = entries.hosts.get(key)?;
        let firsts = entry.servers().filter_map(|server| entries.servers.get(server)?.iter().min());
        firsts.map(|(_, first)| first).find(|first| *first != key).cloned()
    }

    /// Who depends on that Secret.
    pub fn dependents(&self, secret: &ObjectId) -> Vec<ObjectId> {
        let entries = self.entries();
        let dependents = entries.secrets.get(secret);
        dependents.into_iter().flatten().cloned().collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn insert(&mut self, key: ObjectId, entry: Entry) {
        if self.hosts.get(&key) == Some(&entry) {
            return;
        }
        self.remove(&key);
        for server in entry.servers() {
            let claimant = (entry.rank, key.clone());
            let claimants = self.servers.entry(server.clone()).or_insert_with(|| Vec::with_capacity(1));
            if !claimants.contains(&claimant) {
                claimants.push(claimant);
            }
        }
        for secret in &entry.secrets {
            self.secrets.entry(secret.clone()).or_default().insert(key.clone());
        }
        self.hosts.insert(key, entry);
    }

    fn remove(&mut self, key: &ObjectId) {
        let Some(entry) = self.hosts.remove(key) else { return };
        for server in entry.servers() {
            if let Some(claimants) = self.servers.get_mut(server) {
                claimants.retain(|(_, claimant)| claimant != key);
                if claimants.is_empty() {
                    self.servers.remove(server);
                }
            }
        }
        for secret in entry.secrets {
            if let Some(dependents) = self.secrets.get_mut(&secret) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.secrets.remove(&secret);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::beskar7::PhysicalHost;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;
    use crate::beskar7::PhysicalHosts;
    use crate::dialect::foreign::{ForeignHosts, foreign_host};

    fn host(name: &str, address: &str) -> PhysicalHost {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "lab", "uid": name, "creationTimestamp": "2026-11-17T08:00:00Z" },
            "spec": { "redfishConnection": { "address": address, "credentialsSecretRef": "bmc" } },
        }))
        .unwrap()
    }

    #[test]
    fn objects_of_two_kinds_that_name_one_server_are_rivals() {
        let index = Index::default();
        // Of the same name, and of no namespace; without a time, it is the older one.
        let (ours, foreign) = (host("a", "https://10.0.0.1"), foreign_host("a", "https://10.0.0.1"));
        index.put::<PhysicalHosts>(&ours);
        index.put::<ForeignHosts>(&foreign);
        let (ours, foreign) = (ObjectId::of(&ours), ObjectId::of(&foreign));
        assert_eq!(index.rival(&ours), Some(foreign.clone()));
        assert_eq!(index.rival(&foreign), None);

        index.remove(&foreign);
        assert_eq!(index.rival(&ours), None);
        // At another address it turns out to be the same server.
        index.put::<ForeignHosts>(&foreign_host("a", "https://10.0.0.2"));
        assert_eq!(index.rival(&ours), None);
        assert!(index.see(&foreign, "uuid 1, serial 2").is_empty());
        assert_eq!(index.see(&ours, "uuid 1, serial 2"), std::slice::from_ref(&foreign));
        assert_eq!(index.rival(&ours), Some(foreign));
    }

    #[test]
    fn a_secret_wakes_hosts_of_its_namespace_only() {
        let index = Index::default();
        index.put::<PhysicalHosts>(&host("a", "https://10.0.0.1"));
        index.put::<ForeignHosts>(&foreign_host("b", "https://10.0.0.2"));
        let dependents = |namespace| index.dependents(&ObjectId::named::<Secret>(namespace, "bmc"));
        assert_eq!(dependents(Some("lab")), [ObjectId::of(&host("a", "https://10.0.0.1"))]);
        assert!(dependents(Some("other")).is_empty());
    }
}
