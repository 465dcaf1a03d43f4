//! Who owns whom, by uid. Pure: it says which objects need attention, and somebody else looks after them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// What counts about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) uid: Box<str>,
    /// Empty for objects of the cluster.
    pub(super) namespace: Box<str>,
    pub(super) owners: Box<[Owner]>,
    /// It is being deleted, and waits for its dependents to go.
    pub(super) foreground: bool,
    /// It is being deleted, and waits for its dependents to be freed.
    pub(super) orphan: bool,
}

/// An owner of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: Box<str>,
    /// Whether the owner's foreground deletion waits for the object.
    pub(super) blocks: bool,
}

/// A field of an object.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Metadata,
    #[serde(other)]
    Other,
}

/// Looks for the metadata of an object.
struct Search<'s, 'de>(&'s mut Option<Metadata<'de>>);

impl<'de> Visitor<'de> for Search<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key()? {
            match field {
                Field::Metadata => {
                    *self.0 = Some(fields.next_value()?);
                    break;
                }
                Field::Other => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(default)]
    owner_references: Option<Vec<Reference>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    uid: Box<str>,
    #[serde(default)]
    block_owner_deletion: Option<bool>,
}

impl Facts {
    /// From the bytes of an object; `None` if it has no uid.
    pub(super) fn read(stored: &[u8]) -> Option<Self> {
        let Metadata { uid, namespace, owner_references, finalizers, deletion_timestamp } = metadata(stored)?;
        let waits_with =
            |wanted: &str| deletion_timestamp.is_some() && finalizers.iter().flatten().any(|found| found == wanted);
        Some(Self {
            foreground: waits_with(FOREGROUND),
            orphan: waits_with(ORPHAN),
            uid: uid.into(),
            namespace: namespace.into(),
            owners: owner_references
                .into_iter()
                .flatten()
                .map(|reference| Owner {
                    uid: reference.uid,
                    blocks: reference.block_owner_deletion.unwrap_or_default(),
                })
                .collect(),
        })
    }

    fn is_of_interest(&self) -> bool {
        !self.owners.is_empty() || self.foreground || self.orphan
    }
}

/// The metadata of an object. What comes behind it is most of the object, and is not read: at each start, all objects pass here before
/// clients are answered.
fn metadata(stored: &[u8]) -> Option<Metadata<'_>> {
    let mut found = None;
    // To stop in the middle of an object is an error, which means nothing here.
    serde_json::Deserializer::from_slice(stored).deserialize_map(Search(&mut found)).ok();
    found
}

/// Objects that have owners or wait, by their keys in the store.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Arc<str>, Facts>,
    /// Owner's uid → its dependents.
    dependents: HashMap<Box<str>, HashSet<Arc<str>>>,
    /// Uids of those that wait in the foreground.
    waiting: HashMap<Box<str>, Arc<str>>,
}

/// What must be known about an object to attend to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) uid: Box<str>,
    /// Whether dependents keep it from going.
    pub(super) blocked: bool,
    pub(super) has_dependents: bool,
    /// Whether a dependent itself waits for dependents: they may wait for each other.
    pub(super) circle: bool,
    /// Whom to free, if it waits for that.
    pub(super) orphans: Vec<Arc<str>>,
}

impl Graph {
    /// An object is as these facts say. Returns who needs attention because of that.
    pub(super) fn put(&mut self, key: &str, facts: Facts) -> Vec<Arc<str>> {
        let mut affected = Vec::new();
        let old = self.nodes.get_key_value(key).map(|(key, facts)| (key.clone(), facts.clone()));
        let (key, old) = match old {
            // Made again under the same name: the other one is gone.
            Some((key, old)) if old.uid != facts.uid => {
                affected = self.remove(&key, Some(&old.uid));
                (key, None)
            }
            Some((key, old)) => (key, Some(old)),
            None if facts.is_of_interest() => (Arc::from(key), None),
            None => return affected,
        };
        if let Some(old) = &old {
            self.unlink(&key, old);
            for owner in old.owners.iter().filter(|owner| owner.blocks) {
                let blocks_still = facts.owners.iter().any(|now| now.blocks && now.uid == owner.uid);
                affected.extend(self.waiting.get(&owner.uid).filter(|_| !blocks_still).cloned());
            }
        }
        for owner in &facts.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        let was = |what: fn(&Facts) -> bool| old.as_ref().is_some_and(what);
        let other_owners = old.as_ref().is_none_or(|old| old.owners != facts.owners);
        let begins_to_wait =
            (facts.foreground && !was(|old| old.foreground)) || (facts.orphan && !was(|old| old.orphan));
        if begins_to_wait || (other_owners && !facts.owners.is_empty()) {
            affected.push(key.clone());
        }
        if facts.foreground {
            if self.waiting.insert(facts.uid.clone(), key.clone()).is_none() {
                affected.extend(self.dependents.get(&facts.uid).into_iter().flatten().cloned());
            }
        } else {
            self.waiting.remove(&facts.uid);
        }
        if facts.is_of_interest() {
            self.nodes.insert(key, facts);
        } else {
            self.nodes.remove(&key);
        }
        affected
    }

    /// An object is gone. Returns who needs attention because of that.
    pub(super) fn remove(&mut self, key: &str, uid: Option<&str>) -> Vec<Arc<str>> {
        let mut affected = Vec::new();
        let node = self.nodes.remove_entry(key);
        if let Some((key, node)) = &node {
            self.unlink(key, node);
            self.waiting.remove(&node.uid);
            affected.extend(node.owners.iter().filter_map(|owner| self.waiting.get(&owner.uid).cloned()));
        }
        if let Some(uid) = uid.or(node.as_ref().map(|(_, node)| &*node.uid)) {
            affected.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        }
        affected
    }

    fn unlink(&mut self, key: &Arc<str>, facts: &Facts) {
        for owner in &facts.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Who needs attention in the beginning: those that wait, and those with owners that wait, or are not among the
    /// living (uid and namespace) in their reach.
    pub(super) fn in_need(&self, alive: &HashMap<Box<str>, Box<str>>) -> Vec<Arc<str>> {
        let needs = |facts: &Facts| {
            let in_reach = |place: &str| place.is_empty() || *place == *facts.namespace;
            let concerned = |owner: &Owner| {
                !alive.get(&owner.uid).is_some_and(|place| in_reach(place)) || self.waiting.contains_key(&owner.uid)
            };
            facts.foreground || facts.orphan || facts.owners.iter().any(concerned)
        };
        self.nodes.iter().filter(|(_, facts)| needs(facts)).map(|(key, _)| key.clone()).collect()
    }

    /// What is known about an object, if it is of interest.
    pub(super) fn view(&self, key: &str) -> Option<View> {
        let facts = self.nodes.get(key)?;
        let dependents = self.dependents.get(&facts.uid);
        let nodes = || dependents.into_iter().flatten().filter_map(|dependent| self.nodes.get(dependent));
        let blocks = |dependent: &Facts| dependent.owners.iter().any(|owner| owner.blocks && owner.uid == facts.uid);
        let owner_waits = facts.owners.iter().any(|owner| self.waiting.contains_key(&owner.uid));
        Some(View {
            uid: facts.uid.clone(),
            blocked: facts.foreground && nodes().any(blocks),
            has_dependents: dependents.is_some(),
            circle: owner_waits && nodes().any(|dependent| dependent.foreground),
            orphans: if facts.orphan { dependents.into_iter().flatten().cloned().collect() } else { Vec::new() },
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}
