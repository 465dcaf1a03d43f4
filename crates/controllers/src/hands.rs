//! The hands perform acts, look, and wake the loop when there is a result.
//!
//! A reconcile only decides; nothing in it waits for a BMC. Each host has one job at a time, so acts are performed one
//! after the other and every look is taken after the act before it. Hosts behind the same BMC share one client, and
//! with it one session.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bmc::{Address, Bmc, Client, Endpoint, Manner, Observer, Options, RedfishSystem, SystemChoice, Transport, Trust};
use engine::failure::{Class, Failure, Kind};
use engine::host::{Act, BmcSight, Outcome};
use engine::server::{Scope, Seen};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, debug, info_span, warn};

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::object::ObjectId;

/// How long closing sessions may take at shutdown.
const FAREWELL: Duration = Duration::from_secs(5);

/// A job that takes longer than this gives its slot to others.
const SLOW: Duration = Duration::from_secs(10);
/// How many slow jobs there may be in addition. Each holds a connection and does next to nothing.
const SLOW_PER_SLOT: usize = 8;
/// Acts that have waited this long for a slot are not performed.
const STALE: Duration = Duration::from_secs(20);

/// Every operation of the client has its own limit, so a job ends within this time. A job that takes longer was lost.
const JOB_LIMIT: Duration = Duration::from_mins(15);

/// How long a refusal of credentials counts for all hosts behind one BMC. Shorter than the shortest hold of the engine, longer
/// than the time between their tries: together they try once.
const REFUSAL_SHARED: SignedDuration = SignedDuration::from_secs(45);

/// A look at a BMC itself counts for all objects behind it for this long. A device that turns out to be a BMC gets an object that wants to
/// know the same.
const SURVEY_SHARED: SignedDuration = SignedDuration::from_secs(30);

/// A BMC that did not answer is tried this often. Only a change is reported: the end of an outage is noticed soon, and failed
/// tries are not repeated in the status.
const PATROL: Duration = Duration::from_secs(35);

/// Hosts and addresses without TLS that were logged. Kept for the life of the process: a new term or a new password logs nothing
/// again.
static TOLD_OF_PLAIN_HTTP: Mutex<BTreeSet<(ObjectId, String)>> = Mutex::new(BTreeSet::new());

/// Makes the transport to a BMC: sockets in production, a simulator in tests.
pub type Dial = Arc<dyn Fn(&Address, &Trust) -> Result<Arc<dyn Transport>, bmc::Error> + Send + Sync>;

/// What to do to a server.
#[derive(Debug, Clone)]
pub struct Job {
    /// The number of the acts, or of the last ones when there are none.
    pub number: u64,
    /// Acts, performed in this order up to the first that fails.
    pub acts: Vec<Act>,
    /// How deep to look afterwards.
    pub look: Scope,
}

impl Job {
    /// Its acts were decided on an outdated look: they are not performed, and decided again.
    fn refusal(&self) -> Option<Outcome> {
        let message = format!(
            "Too many BMCs are slow at the same time: an act waited longer than {} s for its turn and was not performed. It is decided anew.",
            STALE.as_secs()
        );
        let result = Err(Failure::new(Kind::Busy, message));
        (!self.acts.is_empty()).then_some(Outcome { number: self.number, result, not_performed: true })
    }
}

/// How to reach a server.
pub struct Line {
    /// The same for all systems behind one BMC with the same credentials and trust.
    pub key: String,
    /// The BMC and its credentials.
    pub endpoint: Endpoint,
    /// Which certificate to trust.
    pub trust: Trust,
    /// Which system.
    pub system: SystemChoice,
}

/// The hands of one operator.
pub struct Hands {
    desks: Mutex<Desks>,
    dial: Dial,
    observer: Arc<dyn Observer>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    /// Limits how many BMCs are used at once, and with it memory and open sockets.
    slots: Semaphore,
    /// A BMC that does not answer is given up after a minute or two: a rack of them must not delay all others.
    slow_slots: Semaphore,
    wake: mpsc::UnboundedSender<ObjectId>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct Desks {
    hosts: HashMap<ObjectId, Desk>,
    lines: HashMap<String, OpenLine>,
}

/// A client, and since when its credentials are known to be wrong.
struct OpenLine {
    client: Arc<Client>,
    refused: Option<Timestamp>,
    /// The last look at the BMC itself, and when it ended.
    survey: Option<(Timestamp, Seen)>,
}

/// What is known about one host, and its job in progress.
#[derive(Default)]
struct Desk {
    inputs: String,
    line: String,
    bmc: Option<Arc<dyn Bmc>>,
    sight: Option<BmcSight>,
    /// How the last acts went that this process performed.
    outcome: Option<Outcome>,
    running: Option<Running>,
    next: Option<Job>,
    /// How many jobs were begun.
    begun: u64,
}

/// How the acts went, and what was seen afterwards.
type Done = (Option<Outcome>, Result<Seen, Failure>);

struct Running {
    look: Scope,
    acts: bool,
    cancel: CancellationToken,
}

/// A job in progress. One that ends without a result, because it panicked or never returned, counts as a failed look: otherwise
/// nobody would look again.
struct Errand {
    hands: Arc<Hands>,
    key: ObjectId,
    cancel: CancellationToken,
    inputs: String,
    number: u64,
    is_over: bool,
}

impl Errand {
    fn publish(&self, outcome: Option<Outcome>, seen: Result<Seen, Failure>) {
        self.hands.publish(&self.key, &self.cancel, self.inputs.clone(), self.number, outcome, seen);
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if !self.is_over {
            warn!(host = %self.key, "a BMC job ended without a result (a bug), retrying");
            let message = "The last request to this BMC ended without a result, because of a bug in the operator. It is tried again.";
            self.publish(None, Err(Failure::new(Kind::Internal, message)));
        }
    }
}

impl Hands {
    /// Creates hands that wake hosts through `wake` and stop with `stop`.
    pub fn new(
        dial: Dial,
        observer: Arc<dyn Observer>,
        metrics: Metrics,
        clock: Arc<dyn Clock>,
        at_once: usize,
        wake: mpsc::UnboundedSender<ObjectId>,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            desks: Mutex::default(),
            dial,
            observer,
            metrics,
            clock,
            slots: Semaphore::new(at_once),
            slow_slots: Semaphore::new(at_once.saturating_mul(SLOW_PER_SLOT)),
            wake,
            tasks: TaskTracker::new(),
            stop: stop.child_token(),
        })
    }

    /// What was last seen of a host.
    pub fn sight(&self, key: &ObjectId) -> Option<BmcSight> {
        self.desks().hosts.get(key)?.sight.clone()
    }

    /// Whether there is a connection to the host's BMC for these inputs.
    pub fn is_connected(&self, key: &ObjectId, inputs: &str) -> bool {
        self.desks().hosts.get(key).is_some_and(|desk| desk.bmc.is_some() && desk.inputs == inputs)
    }

    /// The host exists: its BMC may be used until the host is removed.
    pub fn welcome(&self, key: &ObjectId) {
        if !self.stop.is_cancelled() {
            self.desks().hosts.entry(key.clone()).or_default();
        }
    }

    /// Whether there is such a host.
    pub fn knows(&self, key: &ObjectId) -> bool {
        self.desks().hosts.contains_key(key)
    }

    /// Sets the connection to the host's BMC. A host that was removed gets none: a reconcile may have begun before that, and
    /// nobody would close the session.
    pub fn connect(&self, key: &ObjectId, inputs: &str, line: Line) -> Result<(), Failure> {
        let mut desks = self.desks();
        if !desks.hosts.contains_key(key) {
            return Ok(());
        }
        let now = self.clock.now();
        let usable = |line: &&OpenLine| line.refused.is_none_or(|at| now.duration_since(at) < REFUSAL_SHARED);
        warn_of_plain_http(key, &line.endpoint.address);
        let client = if let Some(line) = desks.lines.get(&line.key).filter(usable) {
            line.client.clone()
        } else {
            let client = self.open(&line)?;
            desks.lines.insert(line.key.clone(), OpenLine { client: client.clone(), refused: None, survey: None });
            client
        };
        let Some(desk) = desks.hosts.get_mut(key) else { return Ok(()) };
        let line_before = std::mem::replace(&mut desk.line, line.key);
        inputs.clone_into(&mut desk.inputs);
        desk.bmc = Some(Arc::new(RedfishSystem::new(client, line.system)));
        desk.next = None;
        // A look with the old inputs is useless now. An act is not interrupted.
        if let Some(running) = desk.running.take_if(|running| !running.acts) {
            running.cancel.cancel();
        }
        self.hang_up(&mut desks, &line_before);
        Ok(())
    }

    fn open(&self, line: &Line) -> Result<Arc<Client>, Failure> {
        let transport = (self.dial)(&line.endpoint.address, &line.trust)?;
        let options = Options { observer: self.observer.clone(), seed: fastrand::u64(..) };
        Ok(Client::new(line.endpoint.clone(), transport, options))
    }

    /// There is no connection to the BMC: record that as a failed look.
    pub fn refuse(&self, key: &ObjectId, inputs: &str, number: u64, failure: Failure) {
        let mut desks = self.desks();
        let Some(desk) = desks.hosts.get_mut(key) else { return };
        inputs.clone_into(&mut desk.inputs);
        desk.bmc = None;
        let outcome = desk.outcome.clone();
        desk.sight = Some(BmcSight {
            at: self.clock.now(),
            after: number,
            inputs: inputs.to_owned(),
            act: outcome,
            seen: Err(failure),
        });
    }

    /// The inventory of this look is stored in the status: no need to keep it twice. That of a newer look is kept.
    pub fn drop_hardware(&self, key: &ObjectId, stored: &BmcSight) {
        let mut desks = self.desks();
        let sight = desks.hosts.get_mut(key).and_then(|desk| desk.sight.as_mut()).filter(|sight| *sight == stored);
        if let Some(Ok(seen)) = sight.map(|sight| &mut sight.seen) {
            seen.hardware = None;
        }
    }

    /// Removes a host: its job is stopped, and its session is closed if no other host uses it.
    pub fn forget(&self, key: &ObjectId) {
        let mut desks = self.desks();
        let Some(desk) = desks.hosts.remove(key) else { return };
        told_of_plain_http().retain(|(told, _)| told != key);
        if let Some(running) = desk.running {
            running.cancel.cancel();
        }
        self.hang_up(&mut desks, &desk.line);
    }

    fn hang_up(&self, desks: &mut Desks, line: &str) {
        if desks.hosts.values().any(|desk| desk.line == line) {
            return;
        }
        if let Some(line) = desks.lines.remove(line) {
            // This ends by itself: a BMC that does not answer keeps its session until it expires.
            self.tasks.spawn(async move { line.client.close().await });
        }
    }

    /// Submits a job. A look that is already in progress is not started twice.
    pub fn submit(self: &Arc<Self>, key: &ObjectId, job: Job) {
        let mut desks = self.desks();
        let Desks { hosts, lines } = &mut *desks;
        let Some(desk) = hosts.get_mut(key) else { return };
        if job.acts.is_empty() && job.look == Scope::Service && desk.running.is_none() {
            let survey = lines.get(&desk.line).and_then(|line| line.survey.as_ref());
            let is_new = |at: Timestamp| desk.sight.as_ref().is_none_or(|sight| sight.at < at);
            let now = self.clock.now();
            if let Some((at, seen)) = survey.filter(|(at, _)| now.duration_since(*at) < SURVEY_SHARED && is_new(*at)) {
                let (inputs, seen) = (desk.inputs.clone(), Ok(seen.clone()));
                desk.sight = Some(BmcSight { at: *at, after: job.number, inputs, act: None, seen });
                return self.wake(key);
            }
        }
        match &desk.running {
            None => self.start(key, desk, job, false),
            Some(running) if job.acts.is_empty() && running.look >= job.look => {}
            Some(_) => match &mut desk.next {
                Some(next) if job.acts.is_empty() => next.look = next.look.max(job.look),
                next => *next = Some(job),
            },
        }
    }

    /// Starts a job. The result of a quiet one is reported only if it is new.
    fn start(self: &Arc<Self>, key: &ObjectId, desk: &mut Desk, job: Job, is_quiet: bool) {
        let Some(bmc) = desk.bmc.clone() else { return };
        desk.begun += 1;
        let cancel = self.stop.child_token();
        desk.running = Some(Running { look: job.look, acts: !job.acts.is_empty(), cancel: cancel.clone() });
        let (hands, key, inputs) = (self.clone(), key.clone(), desk.inputs.clone());
        let span = info_span!("bmc", host = %key);
        let work = async move {
            let mut errand = Errand { hands, key, cancel, inputs, number: job.number, is_over: false };
            let turn = tokio::time::timeout(JOB_LIMIT, errand.hands.take_turn(bmc.as_ref(), &job));
            let done = errand.cancel.run_until_cancelled(turn).await;
            errand.is_over = !matches!(done, Some(Err(_)));
            if let Some(Ok((outcome, seen))) = done {
                let (hands, key) = (errand.hands.clone(), errand.key.clone());
                if is_quiet && seen.as_ref().is_err_and(|failure| hands.is_known(&key, &errand.inputs, failure)) {
                    return hands.go_on(&key, &errand.cancel, &job);
                }
                let is_out = seen.as_ref().is_err_and(is_passing);
                errand.publish(outcome, seen);
                if is_out {
                    hands.patrol(&key, &job);
                }
            }
        };
        self.tasks.spawn(work.instrument(span));
    }

    /// Performs a job when it has a slot. A slow job gives its slot to others, if there is room for slow ones.
    async fn take_turn(&self, bmc: &dyn Bmc, job: &Job) -> Done {
        let asked = Instant::now();
        // The semaphores are never closed.
        let slot = self.slots.acquire().await;
        let is_stale = asked.elapsed() > STALE;
        let work = async {
            let outcome = if is_stale { job.refusal() } else { self.perform(bmc, job).await };
            (outcome, bmc.look(job.look).await.map_err(Failure::from))
        };
        futures::pin_mut!(work);
        if let Ok(done) = tokio::time::timeout(SLOW, &mut work).await {
            return done;
        }
        let roomier = self.slow_slots.try_acquire();
        if roomier.is_ok() {
            drop(slot);
        }
        work.await
    }

    async fn perform(&self, bmc: &dyn Bmc, job: &Job) -> Option<Outcome> {
        let mut outcome = None;
        for act in &job.acts {
            let result = perform(bmc, act).await;
            let not_performed = result.as_ref().is_err_and(bmc::Error::was_not_performed);
            let result = result.map_err(Failure::from);
            self.metrics.act(act.name(), result.is_ok());
            match &result {
                Ok(()) => debug!(act = act.name(), number = job.number, "act performed"),
                Err(failure) => warn!(act = act.name(), number = job.number, %failure, "act failed"),
            }
            let failed = result.is_err();
            outcome = Some(Outcome { number: job.number, result, not_performed });
            if failed {
                break;
            }
        }
        outcome
    }

    fn publish(
        self: &Arc<Self>,
        key: &ObjectId,
        cancel: &CancellationToken,
        inputs: String,
        number: u64,
        outcome: Option<Outcome>,
        seen: Result<Seen, Failure>,
    ) {
        let mut desks = self.desks();
        let Desks { hosts, lines } = &mut *desks;
        let Some(desk) = hosts.get_mut(key) else { return };
        if cancel.is_cancelled() {
            return;
        }
        desk.running = None;
        let is_refused = seen.as_ref().is_err_and(|failure| failure.kind.class() == Class::Auth);
        if is_refused && inputs == desk.inputs {
            // This client will not try again; when the engine wants to, it gets a new one.
            desk.bmc = None;
            if let Some(line) = lines.get_mut(&desk.line) {
                line.refused.get_or_insert(self.clock.now());
            }
        }
        if let Some(line) = lines.get_mut(&desk.line).filter(|_| inputs == desk.inputs)
            && let Ok(seen) = seen.as_ref()
            && seen.service.is_some()
        {
            line.survey = Some((self.clock.now(), seen.clone()));
        }
        if outcome.is_some() {
            desk.outcome = outcome;
        }
        let sight = BmcSight { at: self.clock.now(), after: number, inputs, act: desk.outcome.clone(), seen };
        desk.sight = Some(sight);
        if let Some(next) = desk.next.take() {
            self.start(key, desk, next, false);
        }
        // Fails only during shutdown.
        self.wake.send(key.clone()).ok();
    }

    /// Wakes a host.
    pub fn wake(&self, key: &ObjectId) {
        // Fails only during shutdown.
        self.wake.send(key.clone()).ok();
    }

    /// Whether a failed look shows nothing new.
    fn is_known(&self, key: &ObjectId, inputs: &str, failure: &Failure) -> bool {
        let desks = self.desks();
        let sight = desks.hosts.get(key).and_then(|desk| desk.sight.as_ref()).filter(|sight| sight.inputs == inputs);
        is_passing(failure)
            && sight.is_some_and(|sight| sight.seen.as_ref().is_err_and(|known| known.kind == failure.kind))
    }

    /// After a look that showed nothing new: does what was requested meanwhile, or looks again later.
    fn go_on(self: &Arc<Self>, key: &ObjectId, cancel: &CancellationToken, job: &Job) {
        let mut desks = self.desks();
        let Some(desk) = desks.hosts.get_mut(key).filter(|_| !cancel.is_cancelled()) else { return };
        desk.running = None;
        let next = desk.next.take();
        if let Some(next) = next {
            return self.start(key, desk, next, false);
        }
        drop(desks);
        self.patrol(key, job);
    }

    /// Looks again after a while, unless another job has done so.
    fn patrol(self: &Arc<Self>, key: &ObjectId, job: &Job) {
        let Some(begun) = self.desks().hosts.get(key).map(|desk| desk.begun) else { return };
        let (hands, key, stop) = (Arc::downgrade(self), key.clone(), self.stop.clone());
        let job = Job { acts: Vec::new(), ..job.clone() };
        self.tasks.spawn(async move {
            if stop.run_until_cancelled(tokio::time::sleep(PATROL)).await.is_none() {
                return;
            }
            let Some(hands) = hands.upgrade() else { return };
            let mut desks = hands.desks();
            if let Some(desk) = desks.hosts.get_mut(&key).filter(|desk| desk.begun == begun && desk.running.is_none()) {
                hands.start(&key, desk, job, true);
            }
        });
    }

    /// Stops all jobs and closes all sessions.
    pub async fn stop(&self) {
        self.stop.cancel();
        let lines: Vec<_> = {
            let mut desks = self.desks();
            desks.hosts.clear();
            desks.lines.drain().map(|(_, line)| line.client).collect()
        };
        let closing = join_all(lines.iter().map(|client| client.close()));
        if tokio::time::timeout(FAREWELL, closing).await.is_err() {
            warn!("some BMCs did not end their sessions in time");
        }
        self.tasks.close();
        tokio::time::timeout(FAREWELL, self.tasks.wait()).await.ok();
    }

    fn desks(&self) -> MutexGuard<'_, Desks> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Once for each host and address.
fn warn_of_plain_http(key: &ObjectId, address: &Address) {
    let bmc = address.origin();
    if !address.is_secure() && told_of_plain_http().insert((key.clone(), bmc.clone())) {
        let advice = "its credentials can be read on the way; use https in the host's address";
        warn!(host = %key, bmc, "connection to this BMC without TLS: {advice}");
    }
}

fn told_of_plain_http() -> MutexGuard<'static, BTreeSet<(ObjectId, String)>> {
    TOLD_OF_PLAIN_HTTP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it goes away by itself.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.kind.class(), Class::Transient | Class::Throttled)
}

async fn perform(bmc: &dyn Bmc, act: &Act) -> Result<(), bmc::Error> {
    match act {
        Act::PowerOn => bmc.power_on().await,
        Act::ShutDown => bmc.power_off(Manner::Soft).await,
        Act::PowerOff => bmc.power_off(Manner::Hard).await,
        Act::Restart => bmc.restart(Manner::Hard).await,
        Act::InsertMedia { url } => bmc.insert_media(url).await,
        Act::EjectMedia => bmc.eject_media().await,
        Act::SetBoot(wish) => bmc.set_boot(wish).await,
        Act::ClearBoot => bmc.clear_boot().await,
    }
}

#[cfg(test)]
mod lost_tests;
#[cfg(test)]
mod tests;
