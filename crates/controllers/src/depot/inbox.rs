//! What the boot service tells the leader: one BootSession for each deployment, whoever of the replicas writes it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::boot::{BootProblem, BootSession, BootSessionSpec, BootStep, Fetched, Report};
use boot::serve::{Delivery, Gate, Problem, Step, Unavailable, config_gate};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::deliveries::Served;
use super::sessions::step_name;
use crate::clock::Clock;

/// How often a write is tried when others write the same object.
const TRIES: usize = 8;
/// How long before the same problem is told again.
const QUIET_FOR: Duration = Duration::from_mins(1);
/// Problems that are remembered, to tell none twice.
const REMEMBERED: usize = 4096;
/// What a sentence may have in the object.
const MESSAGE_LIMIT: usize = 1024;
/// Whoever tells the same again before this time has passed has nothing new to tell.
const REPORT_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Steps of a boot that are kept.
const STEPS: usize = 32;

/// Writes sessions.
pub(super) struct Inbox {
    client: Client,
    /// Where the sessions of hosts are that have no namespace.
    namespace: Arc<str>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    told: Arc<Mutex<HashMap<String, (&'static str, Instant)>>>,
}

impl Inbox {
    pub(super) fn new(client: Client, namespace: &str, clock: Arc<dyn Clock>) -> Self {
        Self { client, namespace: namespace.into(), clock, tasks: TaskTracker::new(), told: Arc::default() }
    }

    pub(super) async fn stop(&self) {
        self.tasks.close();
        tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await.ok();
    }

    /// Whether this address may fetch the bootstrap data of a deployment. The first one that asks is recorded; of any number
    /// that ask at once, the API server lets one be the first.
    pub(super) async fn first_seen(
        &self,
        served: &Served,
        delivery: &Delivery,
        from: IpAddr,
    ) -> Result<Gate, Unavailable> {
        let now = self.clock.now();
        let gate = change(self.sessions_of(served), served, |session| {
            let first = session.fetched.as_ref().map(|fetched| parse(fetched).ok_or_else(|| unreadable(fetched)));
            let gate = config_gate(delivery.powered_on, first.transpose()?, from, now);
            if gate == Gate::First {
                session.fetched = Some(Fetched { by: from.to_canonical().to_string(), at: Time(now) });
                session.problem = None;
            }
            Ok((gate, gate == Gate::First))
        });
        gate.await.map_err(|why| Unavailable { why: format!("who fetches it cannot be recorded: {why}") })
    }

    /// Keeps what a probe has told.
    pub(super) async fn register(&self, served: &Served, data: &str) -> Result<(), Unavailable> {
        let now = self.clock.now();
        let kept = change(self.sessions_of(served), served, |session| {
            let is_new = session.report.as_ref().is_none_or(|known| now.duration_since(known.at.0) >= REPORT_AGAIN);
            if is_new {
                session.report = Some(Report { at: Time(now), data: data.to_owned() });
            }
            Ok(((), is_new))
        });
        kept.await.map_err(|why| Unavailable { why: format!("the report cannot be kept: {why}") })
    }

    /// What a probe has told.
    pub(super) async fn reported(&self, served: &Served) -> Result<Option<String>, Unavailable> {
        let session = self.sessions_of(served).get_opt(served.id()).await;
        let session = session.map_err(|error| Unavailable { why: format!("the report cannot be read: {error}") })?;
        Ok(session.and_then(|session| session.spec.report).map(|report| report.data))
    }

    /// Forgets what a probe has told. Answers whether there was something.
    pub(super) async fn forget(&self, served: &Served) -> Result<bool, Unavailable> {
        let deleted = self.sessions_of(served).delete(served.id(), &DeleteParams::default()).await;
        match deleted {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(Unavailable { why: format!("the report cannot be deleted: {error}") }),
        }
    }

    /// Tells of a problem, in the background and not too often.
    pub(super) fn report(&self, served: Served, problem: &Problem) {
        if !self.is_news(served.id(), problem.reason()) {
            return;
        }
        let told = BootProblem {
            reason: problem.reason().to_owned(),
            message: problem.to_string().chars().take(MESSAGE_LIMIT).collect(),
            at: Time(self.clock.now()),
        };
        let sessions = self.sessions_of(&served);
        self.tasks.spawn(async move {
            let written = change(sessions, &served, |session| {
                session.problem = Some(told.clone());
                Ok(((), true))
            });
            if let Err(why) = written.await {
                warn!(host = %served.host, deployment = served.id(), why, "cannot record a problem");
            }
        });
    }

    /// Records a step of a boot from the network, in the background. What a server asks again and again is not recorded each time.
    pub(super) fn note(&self, served: Served, step: Step, by: String) {
        let (name, is_fetched) = (step_name(step), matches!(step, Step::Fetched(_)));
        if !is_fetched && !self.is_news(&format!("{} {name}", served.id()), "step") {
            return;
        }
        let noted = BootStep { step: name, by, at: Time(self.clock.now()) };
        let sessions = self.sessions_of(&served);
        self.tasks.spawn(async move {
            let written = change(sessions, &served, |session| {
                let known = session.steps.iter().find(|known| known.step == noted.step);
                if known.is_some_and(|known| noted.at.0.duration_since(known.at.0) < REPORT_AGAIN) {
                    return Ok(((), false));
                }
                session.steps.retain(|known| known.step != noted.step);
                if session.steps.len() >= STEPS {
                    session.steps.remove(0);
                }
                session.steps.push(noted.clone());
                if is_fetched {
                    // What went wrong before is over.
                    session.problem = None;
                }
                Ok(((), true))
            });
            if let Err(why) = written.await {
                warn!(host = %served.host, deployment = served.id(), step = noted.step, why, "cannot record a step of a boot");
            }
        });
    }

    fn sessions_of(&self, served: &Served) -> Api<BootSession> {
        Api::namespaced(self.client.clone(), served.host.namespace.as_deref().unwrap_or(&self.namespace))
    }

    fn is_news(&self, deployment: &str, reason: &'static str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if told.get(deployment).is_some_and(|(known, at)| *known == reason && now - *at < QUIET_FOR) {
            return false;
        }
        if told.len() >= REMEMBERED {
            told.retain(|_, (_, at)| now - *at < QUIET_FOR);
        }
        told.insert(deployment.to_owned(), (reason, now));
        true
    }
}

/// Changes the session of a deployment, which is made if there is none; again if somebody else was faster. What is changed
/// decides whether it is written.
async fn change<T>(
    sessions: Api<BootSession>,
    served: &Served,
    decide: impl Fn(&mut BootSessionSpec) -> Result<(T, bool), String>,
) -> Result<T, String> {
    let deployment = served.id();
    let params = PostParams::default();
    for _ in 0..TRIES {
        let known = sessions.get_opt(deployment).await.map_err(|error| error.to_string())?;
        let is_new = known.is_none();
        let mut session = known.unwrap_or_else(|| new_session(served));
        let (answer, is_changed) = decide(&mut session.spec)?;
        if !is_changed {
            return Ok(answer);
        }
        let written = if is_new {
            sessions.create(&params, &session).await
        } else {
            sessions.replace(deployment, &params, &session).await
        };
        match written {
            Ok(_) => return Ok(answer),
            Err(kube::Error::Api(status)) if status.code == 409 || (status.code == 404 && !is_new) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("too many write the same session at once".to_owned())
}

fn new_session(served: &Served) -> BootSession {
    BootSession {
        metadata: ObjectMeta {
            name: Some(served.id().to_owned()),
            owner_references: Some(served.owner.iter().cloned().collect()),
            ..ObjectMeta::default()
        },
        spec: BootSessionSpec { host: served.host.name.clone(), ..BootSessionSpec::default() },
    }
}

fn parse(fetched: &Fetched) -> Option<(IpAddr, Timestamp)> {
    Some((fetched.by.parse().ok()?, fetched.at.0))
}

/// Whoever wrote that, it was not us: the door stays shut.
fn unreadable(fetched: &Fetched) -> String {
    format!("spec.fetched.by of its BootSession is {:?}, which is no address", fetched.by)
}
