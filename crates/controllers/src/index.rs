//! Who names which server and which Secret: kept up to date from the watch, so that no reconcile searches the fleet.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::host::Anchor;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::dialect::{HostDialect, HostKey, settled_anchor};

/// The index of one dialect's hosts.
#[derive(Debug, Default)]
pub struct Index(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    hosts: HashMap<HostKey, Entry>,
    /// Who names a server. Nearly always one, so a short list and no tree: there is one for each server.
    servers: HashMap<String, Vec<(Rank, HostKey)>>,
    /// Who depends on a Secret of that namespace and name.
    secrets: HashMap<(String, String), HashSet<HostKey>>,
    /// Hosts not seen yet in a list that is under way.
    unseen: Option<HashSet<HostKey>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    rank: Rank,
    /// Address and system, if they make sense.
    target: Option<String>,
    /// What tells the server from every other one: as stored, and as last seen at that target.
    known: Option<String>,
    seen: Option<String>,
    secrets: Vec<String>,
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
            entry.secrets = connection.secrets().map(str::to_owned).collect();
        }
        let mut entries = self.entries();
        if let Some(unseen) = &mut entries.unseen {
            unseen.remove(&key);
        }
        if let Some(before) = entries.hosts.get(&key).filter(|before| before.target == entry.target) {
            entry.seen.clone_from(&before.seen);
        }
        entries.insert(key, entry);
    }

    /// The server behind a host was seen. Known before it is stored, so that of two hosts that find out at the same time
    /// that they are one, only one goes on. Answers who else names that server, if that is news.
    pub fn see(&self, key: &HostKey, identity: &str) -> Vec<HostKey> {
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
    pub fn remove(&self, key: &HostKey) {
        self.entries().remove(key);
    }

    /// The host that names the same server and has the better right to it.
    pub fn rival(&self, key: &HostKey) -> Option<HostKey> {
        let entries = self.entries();
        let entry = entries.hosts.get(key)?;
        let firsts = entry.servers().filter_map(|server| entries.servers.get(server)?.iter().min());
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
        for server in entry.servers() {
            let claimant = (entry.rank, key.clone());
            let claimants = self.servers.entry(server.clone()).or_insert_with(|| Vec::with_capacity(1));
            if !claimants.contains(&claimant) {
                claimants.push(claimant);
            }
        }
        for secret in &entry.secrets {
            self.secrets.entry((key.namespace.clone(), secret.clone())).or_default().insert(key.clone());
        }
        self.hosts.insert(key, entry);
    }

    fn remove(&mut self, key: &HostKey) {
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
