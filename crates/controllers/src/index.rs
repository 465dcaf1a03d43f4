//! Who names which server: kept up to date from the watch, so that no reconcile searches the fleet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::host::Anchor;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::dialect::{Connection, HostDialect, View, settled_anchor};
use crate::object::ObjectId;

/// The index of the hosts of all dialects: objects of any kinds that name one server are rivals.
#[derive(Debug, Default)]
pub struct Index(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    hosts: HashMap<ObjectId, Entry>,
    /// Who names a server. Nearly always one, so a short list and no tree: there is one for each server.
    servers: HashMap<String, Vec<(Rank, ObjectId)>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    rank: Rank,
    /// Address and system, if they make sense.
    target: Option<String>,
    /// What tells the server from every other one: as stored, and as last seen at that target.
    known: Option<String>,
    seen: Option<String>,
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
    /// An object was seen. Answers how its BMC is to be spoken to, if it says so in words that make sense.
    pub(crate) fn put<D: HostDialect>(&self, view: &View<'_, D::Host>) -> Option<Connection> {
        let host = view.object;
        let key = ObjectId::of(host);
        let anchor = settled_anchor::<D>(host);
        // What cannot be read may well be in use.
        let is_free = anchor.as_ref().is_ok_and(|anchor| !anchor.as_ref().is_some_and(Anchor::is_in_use));
        let connection = D::connection(view, anchor.ok().flatten().as_ref()).ok();
        let mut entry = Entry {
            rank: Rank { is_free, created: host.creation_timestamp().map_or(Timestamp::MIN, |time| time.0) },
            target: connection.as_ref().map(Connection::target),
            known: D::server_identity(host),
            seen: None,
        };
        let mut entries = self.entries();
        if let Some(before) = entries.hosts.get(&key).filter(|before| before.target == entry.target) {
            entry.seen.clone_from(&before.seen);
        }
        entries.insert(key, entry);
        connection
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
    }
}

#[cfg(test)]
mod tests {
    use api::beskar7::PhysicalHost;
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
        index.put::<PhysicalHosts>(&View::alone(&ours));
        index.put::<ForeignHosts>(&View::alone(&foreign));
        let (ours, foreign) = (ObjectId::of(&ours), ObjectId::of(&foreign));
        assert_eq!(index.rival(&ours), Some(foreign.clone()));
        assert_eq!(index.rival(&foreign), None);

        index.remove(&foreign);
        assert_eq!(index.rival(&ours), None);
        // At another address it turns out to be the same server.
        index.put::<ForeignHosts>(&View::alone(&foreign_host("a", "https://10.0.0.2")));
        assert_eq!(index.rival(&ours), None);
        assert!(index.see(&foreign, "uuid 1, serial 2").is_empty());
        assert_eq!(index.see(&ours, "uuid 1, serial 2"), std::slice::from_ref(&foreign));
        assert_eq!(index.rival(&ours), Some(foreign));
    }
}
