//! A host by the name that somebody gave it on the command line.

use anyhow::{anyhow, bail};
use kube::api::DynamicObject;

use super::HostKind;
use crate::access::{Access, Hosts};

/// A host that was found.
pub(crate) struct Found {
    /// Where it was found.
    pub(crate) hosts: Hosts,
    /// Its namespace, if it has one.
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
    /// As it is to be called, see [`label`].
    pub(crate) label: String,
    /// As it is at the API server.
    pub(crate) object: DynamicObject,
}

/// What a host is called: `lab/server-01`, or `server-01` where hosts have no namespaces. With the kind before it if there are several:
/// `physicalhost/lab/server-01`.
pub(crate) fn label(
    kinds: &[&'static dyn HostKind],
    kind: &dyn HostKind,
    namespace: Option<&str>,
    name: &str,
) -> String {
    let word = (kinds.len() > 1).then(|| word(kind));
    [word.as_deref(), namespace, Some(name)].into_iter().flatten().collect::<Vec<_>>().join("/")
}

fn word(kind: &dyn HostKind) -> String {
    kind.resource().kind.to_lowercase()
}

/// Finds the host that is called so. It must be the only one: power is not a matter to guess in.
pub(crate) async fn find(
    access: &Access,
    kinds: &[&'static dyn HostKind],
    given: &str,
    namespace: Option<&str>,
) -> anyhow::Result<Found> {
    let readings = readings(kinds, given, namespace, &access.namespace);
    let called = |(kind, namespace, name): &Reading| label(kinds, *kind, namespace.as_deref(), name);
    let absent = match readings.as_slice() {
        [only] => called(only),
        _ => given.to_owned(),
    };
    let mut found = Vec::new();
    for reading in readings {
        let label = called(&reading);
        let (kind, namespace, name) = reading;
        let hosts = access.hosts(kind, namespace.as_deref());
        if let Some(object) = hosts.get(&name).await? {
            found.push(Found { hosts, namespace, name, label, object });
        }
    }
    if found.len() > 1 {
        let labels: Vec<_> = found.iter().map(|found| found.label.as_str()).collect();
        bail!("{given} can be any of {}: name it with its kind", labels.join(", "));
    }
    found.pop().ok_or_else(|| anyhow!("there is no host {absent}; `beskar7 hosts` lists them"))
}

/// Which host a name may mean.
type Reading = (&'static dyn HostKind, Option<String>, String);

/// All that may be meant. Hosts without namespaces are never meant where a namespace is given.
fn readings(kinds: &[&'static dyn HostKind], given: &str, namespace: Option<&str>, context: &str) -> Vec<Reading> {
    let plain = |kind: &'static dyn HostKind, name: &str| {
        let inside = kind.has_namespaces();
        let place = inside.then(|| namespace.unwrap_or(context).to_owned());
        (inside || namespace.is_none()).then(|| (kind, place, name.to_owned()))
    };
    let within = |kind: &'static dyn HostKind, namespace: &str, name: &str| {
        kind.has_namespaces().then(|| (kind, Some(namespace.to_owned()), name.to_owned()))
    };
    let is_named = |kind: &dyn HostKind, given: &str| word(kind).eq_ignore_ascii_case(given);
    let kinds = kinds.iter().copied();
    match given.split('/').collect::<Vec<_>>()[..] {
        [name] => kinds.filter_map(|kind| plain(kind, name)).collect(),
        [first, name] => kinds
            .flat_map(|kind| [within(kind, first, name), is_named(kind, first).then(|| plain(kind, name)).flatten()])
            .flatten()
            .collect(),
        [first, namespace, name] => {
            kinds.filter(|kind| is_named(*kind, first)).filter_map(|kind| within(kind, namespace, name)).collect()
        }
        _ => Vec::new(),
    }
}
