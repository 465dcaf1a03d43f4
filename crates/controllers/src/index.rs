//! Who names which server and which Secret: kept up to date from the watch, so that no reconcile searches the fleet.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::ResourceExt;

use crate::dialect::{HostDialect, HostKey, anchor};

/// The index of one dialect's hosts.
#[derive(Debug, Default)]
pub struct Index(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    hosts: HashMap<HostKey, Entry>,
    /// Who names a server, the oldest first.
    servers: HashMap<String, BTreeSet<(Timestamp, HostKey)>>,
    /// Who depends on a Secret of that namespace and name.
    secrets: HashMap<(String, String), HashSet<HostKey>>,
    /// Hosts not seen yet in a list that is under way.
    unseen: Option<HashSet<HostKey>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    created: Timestamp,
    servers: Vec<String>,
    secrets: Vec<String>,
}

impl Index {
    /// A list begins: who is not in it at its end is gone.
    pub fn begin_list(&self) {
        let mut entries = self.entries();
        entries.unseen = Some(entries.hosts.keys().cloned().collect());
    }

    /// A list has ended. Answers who is gone.
    pub fn end_list(&self) -> Vec<HostKey> {
        let mut entries = self.entries();
        let gone: Vec<_> = entries.unseen.take().into_iter().flatten().collect();
        for key in &gone {
            entries.remove(key);
        }
        gone
    }

    /// An object was seen.
    pub fn put<D: HostDialect>(&self, host: &D::Host) {
        let key = HostKey::of(host);
        let mut entry = Entry {
            created: host.creation_timestamp().map_or(Timestamp::MIN, |time| time.0),
            servers: D::server_identity(host).into_iter().collect(),
            secrets: Vec::new(),
        };
        if let Ok(connection) = D::connection(host, anchor(host).ok().flatten().as_ref()) {
            entry.servers.push(connection.target());
            entry.secrets = connection.secrets().map(str::to_owned).collect();
        }
        let mut entries = self.entries();
        if let Some(unseen) = &mut entries.unseen {
            unseen.remove(&key);
        }
        entries.insert(key, entry);
    }

    /// An object is gone.
    pub fn remove(&self, key: &HostKey) {
        self.entries().remove(key);
    }

    /// The host that names the same server and was there first.
    pub fn rival(&self, key: &HostKey) -> Option<HostKey> {
        let entries = self.entries();
        let entry = entries.hosts.get(key)?;
        let firsts = entry.servers.iter().filter_map(|server| entries.servers.get(server)?.first());
        firsts.map(|(_, first)| first).find(|first| *first != key).cloned()
    }

    /// Who depends on that Secret.
    pub fn dependents(&self, namespace: &str, secret: &str) -> Vec<HostKey> {
        let entries = self.entries();
        let dependents = entries.secrets.get(&(namespace.to_owned(), secret.to_owned()));
        dependents.into_iter().flatten().cloned().collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn insert(&mut self, key: HostKey, entry: Entry) {
        if self.hosts.get(&key) == Some(&entry) {
            return;
        }
        self.remove(&key);
        for server in &entry.servers {
            self.servers.entry(server.clone()).or_default().insert((entry.created, key.clone()));
        }
        for secret in &entry.secrets {
            self.secrets.entry((key.namespace.clone(), secret.clone())).or_default().insert(key.clone());
        }
        self.hosts.insert(key, entry);
    }

    fn remove(&mut self, key: &HostKey) {
        let Some(entry) = self.hosts.remove(key) else { return };
        for server in entry.servers {
            if let Some(claimants) = self.servers.get_mut(&server) {
                claimants.remove(&(entry.created, key.clone()));
                if claimants.is_empty() {
                    self.servers.remove(&server);
                }
            }
        }
        for secret in entry.secrets {
            let secret = (key.namespace.clone(), secret);
            if let Some(dependents) = self.secrets.get_mut(&secret) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.secrets.remove(&secret);
                }
            }
        }
    }
}
