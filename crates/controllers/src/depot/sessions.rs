//! What the leader knows of the deployments that are being served.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::boot::{BootProblem, BootSession, BootStep, Fetched, Report};
use boot::links::Part;
use boot::serve::Step;
use engine::host::Payload;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Config;
use kube::{Api, ResourceExt as _};
use tokio::sync::mpsc::UnboundedSender;

use crate::object::{KindId, ObjectId};
use crate::watches::{self, Change};

/// What was told of one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Who fetched the bootstrap data, and when.
    pub fetched: Option<Fetched>,
    /// What went wrong last.
    pub problem: Option<BootProblem>,
    /// How far its boot from the network has come.
    pub steps: Vec<BootStep>,
    /// What a probe has told of its server.
    pub report: Option<Arc<Report>>,
}

impl Session {
    /// When the server was handed all of what it is to boot from the network.
    pub fn handed(&self, payload: &Payload) -> Option<Timestamp> {
        let parts: Vec<_> = match payload {
            Payload::Site => return None,
            Payload::Script { .. } => vec![Part::Script],
            Payload::Efi { .. } => vec![Part::Efi],
            Payload::Kernel { initrds, .. } => {
                [Part::Kernel].into_iter().chain((0..initrds.len()).map(Part::Initrd)).collect()
            }
        };
        let at = |part: Part| {
            let name = step_name(Step::Fetched(part));
            self.steps.iter().find(|step| step.step == name).map(|step| step.at.0)
        };
        parts.into_iter().map(at).collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}

/// What a step is called in the object.
pub(super) fn step_name(step: Step) -> String {
    match step {
        Step::Offered => "offered".to_owned(),
        Step::Asked => "asked".to_owned(),
        Step::Fetched(part) => part.to_string(),
    }
}

/// The sessions of each host, by the uid of the host.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Known>);

type Known = HashMap<String, BTreeMap<ObjectId, Session>>;

impl Sessions {
    /// Where they are: with their hosts, and those of hosts without a namespace beside the key of the boot service. `None` for
    /// all namespaces.
    pub(crate) fn namespaces<'a>(
        ours: Option<&'a str>,
        of_key: &'a str,
        has_hosts_of_the_cluster: bool,
    ) -> Vec<Option<&'a str>> {
        let is_other = has_hosts_of_the_cluster && ours.is_some_and(|ours| ours != of_key);
        [ours].into_iter().chain(is_other.then_some(Some(of_key))).collect()
    }

    /// Follows the sessions for as long as it is polled, and wakes the hosts that they are about.
    pub(crate) async fn follow(&self, sessions: Api<DeserializeGuard<BootSession>>, wake: &UnboundedSender<ObjectId>) {
        let sessions = watches::follow(sessions, Config::default(), |change| {
            // Nobody listens any more only when the loop has stopped.
            self.take(change).map(|host| wake.send(host));
        });
        sessions.for_each(|_| ready(())).await;
    }

    /// What is known of the deployment of a host, or of its probe.
    pub(crate) fn of(&self, host: &ObjectId, deployment: Option<&str>) -> Option<Session> {
        let known = self.known();
        let of_host = known.get(host.uid.as_ref()?)?;
        of_host.iter().find(|(id, _)| Some(id.name.as_str()) == deployment).map(|(_, session)| session.clone())
    }

    /// Sessions of a host that are not of this deployment.
    pub(crate) fn stale(&self, host: &ObjectId, deployment: Option<&str>) -> Vec<ObjectId> {
        let known = self.known();
        let ids = host.uid.as_ref().and_then(|uid| known.get(uid)).into_iter().flat_map(BTreeMap::keys);
        ids.filter(|id| Some(id.name.as_str()) != deployment).cloned().collect()
    }

    fn take(&self, change: Change<'_, BootSession>) -> Option<ObjectId> {
        let mut known = self.known();
        match change {
            Change::Seen(session) => {
                let host = host_of(session)?;
                let told = Session {
                    fetched: session.spec.fetched.clone(),
                    problem: session.spec.problem.clone(),
                    steps: session.spec.steps.clone(),
                    report: session.spec.report.clone().map(Arc::new),
                };
                known.entry(host.uid.clone()?).or_default().insert(ObjectId::of(session).by_name(), told);
                return Some(host);
            }
            Change::Gone(session) => known.retain(|_, of_host| {
                of_host.remove(&session.by_name());
                !of_host.is_empty()
            }),
            Change::Begin | Change::Complete => {}
        }
        None
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host that a session is about: its owner.
fn host_of(session: &BootSession) -> Option<ObjectId> {
    let owner = session.owner_references().first()?;
    let kind = KindId::referred(&owner.api_version, &owner.kind);
    Some(ObjectId { kind, namespace: session.namespace(), name: owner.name.clone(), uid: Some(owner.uid.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_hosts_without_a_namespace_are_followed_also_if_one_other_namespace_is_looked_after() {
        type Case<'a> = (Option<&'a str>, bool, &'a [Option<&'a str>]);
        let table: [Case<'_>; 5] = [
            (None, true, &[None]),
            (None, false, &[None]),
            (Some("racks"), true, &[Some("racks"), Some("system")]),
            (Some("racks"), false, &[Some("racks")]),
            (Some("system"), true, &[Some("system")]),
        ];
        for (ours, has_hosts_of_the_cluster, expected) in table {
            assert_eq!(Sessions::namespaces(ours, "system", has_hosts_of_the_cluster), expected, "{ours:?}");
        }
    }
}
