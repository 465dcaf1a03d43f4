//! What the leader knows of the deployments that are being served.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::boot::{BootProblem, BootSession, Fetched};
use futures::StreamExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, ResourceExt as _};
use tokio::sync::mpsc::UnboundedSender;

use crate::dialect::HostKey;
use crate::watches::{Interruptions, pauses, readable};

/// What was told of one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Who fetched the bootstrap data, and when.
    pub fetched: Option<Fetched>,
    /// What went wrong last.
    pub problem: Option<BootProblem>,
}

/// The sessions of each host, by deployment.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<(String, String), BTreeMap<String, Session>>>);

impl Sessions {
    /// Follows the sessions for as long as it is polled, and wakes the hosts that they are about.
    pub(crate) async fn follow(&self, sessions: Api<DeserializeGuard<BootSession>>, wake: &UnboundedSender<HostKey>) {
        let events = watcher(sessions, Config::default()).backoff(pauses());
        futures::pin_mut!(events);
        let mut interruptions = Interruptions::of("BootSessions");
        while let Some(event) = events.next().await {
            let Some(event) = interruptions.pass(event).and_then(readable) else { continue };
            for (namespace, name) in self.take(&event) {
                // Nobody listens any more only when the loop has stopped.
                wake.send(HostKey { namespace, name, uid: String::new() }).ok();
            }
        }
    }

    /// What is known of the deployment of a host.
    pub(crate) fn of(&self, host: &HostKey, deployment: Option<&str>) -> Option<Session> {
        self.known().get(&name_of(host))?.get(deployment?).cloned()
    }

    /// Sessions of a host that are not of this deployment.
    pub(crate) fn stale(&self, host: &HostKey, deployment: Option<&str>) -> Vec<String> {
        let known = self.known();
        let names = known.get(&name_of(host)).into_iter().flat_map(BTreeMap::keys);
        names.filter(|name| Some(name.as_str()) != deployment).cloned().collect()
    }

    fn take(&self, event: &Event<BootSession>) -> Vec<(String, String)> {
        let mut known = self.known();
        let host_of = |session: &BootSession| (session.namespace().unwrap_or_default(), session.spec.host.clone());
        match event {
            Event::Init => {
                known.clear();
                Vec::new()
            }
            Event::InitApply(session) | Event::Apply(session) => {
                let host = host_of(session);
                let told = Session { fetched: session.spec.fetched.clone(), problem: session.spec.problem.clone() };
                known.entry(host.clone()).or_default().insert(session.name_any(), told);
                vec![host]
            }
            Event::Delete(session) => {
                let host = host_of(session);
                if let Some(of_host) = known.get_mut(&host) {
                    of_host.remove(&session.name_any());
                    if of_host.is_empty() {
                        known.remove(&host);
                    }
                }
                Vec::new()
            }
            Event::InitDone => Vec::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(String, String), BTreeMap<String, Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(host: &HostKey) -> (String, String) {
    (host.namespace.clone(), host.name.clone())
}
