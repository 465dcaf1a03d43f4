//! Leader election with a `coordination.k8s.io` Lease, by the rules of client-go, so that usual tools and dashboards work.
//!
//! - Every write is a PUT (or POST) that carries the resourceVersion it was decided on; of two writers one gets 409.
//! - The times in the Lease are for people. Whether a lease has run out is measured on the *local* monotonic clock,
//!   from the moment this replica last saw the record change, so clocks that disagree by hours do no harm.
//! - The holder counts from the moment it *sent* its last successful renewal, everybody else from the moment they
//!   *saw* it, which is never earlier. The holder stops working before the others start to count down to zero.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::clock::Clock;

/// Times of an election.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// How long candidates wait if the record does not change.
    pub lease_duration: Duration,
    /// How long after its last successful renewal the holder stops leading.
    pub renew_deadline: Duration,
    /// Interval between two tries.
    pub retry_period: Duration,
    /// Candidates prolong each wait by a random part of this, so that they do not all try at once.
    pub jitter: f64,
}

impl Default for Timing {
    /// The defaults of client-go.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            jitter: 1.2,
        }
    }
}

impl Timing {
    fn check(&self) -> Result<(), LeaderError> {
        let rules = [
            (self.jitter.is_finite() && self.jitter >= 0.0, "the jitter must not be negative"),
            (self.retry_period > Duration::ZERO, "the retry period must be longer than nothing"),
            (
                self.renew_deadline.as_secs_f64() > self.retry_period.as_secs_f64() * self.jitter.max(1.0),
                "the renew deadline must be longer than the retry period with its jitter",
            ),
            (self.lease_duration > self.renew_deadline, "the lease duration must be longer than the renew deadline"),
            (i32::try_from(self.lease_duration.as_secs()).is_ok(), "the lease duration must fit 32 bits of seconds"),
        ];
        match rules.iter().find(|(kept, _)| !kept) {
            Some((_, rule)) => Err(LeaderError::Timing { rule, timing: *self }),
            None => Ok(()),
        }
    }

    /// How long the work may take to stop. A tenth is reserved for timers that fire late.
    fn grace(&self) -> Duration {
        (self.lease_duration.saturating_sub(self.renew_deadline)) * 9 / 10
    }

    /// A hung request must leave time for another one before the deadline.
    fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    fn candidate_pause(&self) -> Duration {
        self.retry_period.mul_f64(1.0 + self.jitter * fastrand::f64())
    }

    /// Rounded up: other replicas must not count shorter than the holder does.
    fn lease_seconds(&self) -> i32 {
        let whole = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(whole).unwrap_or(i32::MAX)
    }
}

/// Why an election cannot start.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum LeaderError {
    /// The times contradict each other.
    #[error("The times of the leader election do not fit together: {rule} ({timing:?}).")]
    Timing {
        /// The rule that is broken.
        rule: &'static str,
        /// What was given.
        timing: Timing,
    },
    /// Without an identity every replica would think that the lease is its own, or free.
    #[error("The leader election needs an identity that no other replica has; an empty one was given.")]
    NoIdentity,
    /// The same elector is already leading or waiting to lead.
    #[error("{identity} already takes part in the election for {lease}.")]
    AlreadyElecting {
        /// Who we are.
        identity: String,
        /// Namespace and name of the lease.
        lease: String,
    },
}

/// How a term ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// Stopped before leading; the work was never started.
    NeverLed,
    /// The work ended while the lease was held, by itself or because of the shutdown. The lease was given back.
    Done(T),
    /// The lease was lost. The work has stopped.
    Lost {
        /// How it was lost.
        loss: Loss,
        /// What the work returned; nothing if it did not stop in time and was dropped.
        output: Option<T>,
    },
}

/// How a lease was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// It could not be renewed within the renew deadline.
    NotRenewed,
    /// Another replica holds it.
    TakenBy(String),
    /// The task that renews it failed, which is a bug.
    Broken,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRenewed => f.write_str("the lease could not be renewed in time"),
            Self::TakenBy(holder) => write!(f, "{holder} has taken the lease"),
            Self::Broken => f.write_str("the task that renews the lease failed"),
        }
    }
}

/// What a Lease says about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty when it was given back.
    pub holder: String,
    /// How long it lasts without a change.
    pub duration: Duration,
    /// When this holder took it, by the holder's clock.
    pub acquired: Option<Timestamp>,
    /// When it was last renewed, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// How often the holder changed.
    pub transitions: i32,
}

impl Record {
    fn of(lease: &Lease, default_duration: Duration) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        // The holder's own duration counts: it may be configured with a longer one.
        let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: seconds.map_or(default_duration, Duration::from_secs),
            acquired: spec.acquire_time.map(|t| t.0),
            renewed: spec.renew_time.map(|t| t.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// A record, and the local time at which it was first seen like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// What it says.
    pub record: Record,
    /// Since when.
    pub since: Instant,
}

/// What to do about a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It does not exist, is free, or has run out: take it.
    Acquire,
    /// It is ours: renew it.
    Renew,
    /// Another replica holds it, for at most that long if nothing changes.
    Wait {
        /// Who holds it.
        holder: String,
        /// Until it runs out.
        remaining: Duration,
    },
}

/// Decides what `identity` does about the lease it has seen.
pub fn decide(observed: Option<&Observed>, now: Instant, identity: &str) -> Decision {
    let Some(Observed { record, since }) = observed else { return Decision::Acquire };
    if record.holder == identity {
        return Decision::Renew;
    }
    let remaining = record.duration.saturating_sub(now.saturating_duration_since(*since));
    if record.holder.is_empty() || remaining.is_zero() {
        return Decision::Acquire;
    }
    Decision::Wait { holder: record.holder.clone(), remaining }
}

/// One replica's part in the election.
#[derive(Debug)]
pub struct Elector {
    seat: Arc<Seat>,
    leading: watch::Sender<bool>,
    electing: tokio::sync::Mutex<()>,
}

impl Elector {
    /// Takes part in the election for the Lease `namespace`/`name` as `identity`, which must differ between any two
    /// processes that ever ran (host name and a random part).
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        timing: Timing,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LeaderError> {
        timing.check()?;
        if identity.is_empty() {
            return Err(LeaderError::NoIdentity);
        }
        let seat = Seat {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            timing,
            clock,
        };
        Ok(Self { seat: Arc::new(seat), leading: watch::Sender::new(false), electing: tokio::sync::Mutex::new(()) })
    }

    /// Whether this replica leads now.
    pub fn is_leader(&self) -> bool {
        *self.leading.borrow()
    }

    /// A channel that shows whether this replica leads.
    pub fn leading(&self) -> watch::Receiver<bool> {
        self.leading.subscribe()
    }

    /// Waits for the lease, runs `work`, and releases the lease when the work has stopped.
    ///
    /// The token that `work` gets is cancelled when `shutdown` is, and the moment the lease is lost. After a shutdown
    /// the lease is renewed for as long as the work takes to stop. After a loss the work has until shortly before
    /// somebody else may lead; if it has not returned by then it is dropped. So whatever it spawns must end when it is
    /// dropped (a `JoinSet`, not a detached task).
    pub async fn lead<F, Fut>(&self, shutdown: CancellationToken, work: F) -> Result<Outcome<Fut::Output>, LeaderError>
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future,
    {
        let seat = &self.seat;
        // Two terms with one identity would both think that they hold the lease.
        let _electing = self
            .electing
            .try_lock()
            .map_err(|_| LeaderError::AlreadyElecting { identity: seat.identity.clone(), lease: seat.to_string() })?;
        let mut candidate = Candidate::new(Arc::clone(seat));
        let Some(asked) = candidate.acquire(&shutdown).await else { return Ok(Outcome::NeverLed) };
        if shutdown.is_cancelled() {
            seat.release().await;
            return Ok(Outcome::NeverLed);
        }

        info!(lease = %seat, identity = seat.identity, "this replica leads");
        let term = shutdown.child_token();
        let crown = Crown::put_on(&self.leading);
        // A separate task, so that busy work cannot delay renewals or its own end.
        let mut keeper = JoinSet::new();
        keeper.spawn(candidate.keep(asked, term.clone(), self.leading.clone()));
        let mut work = Box::pin(work(term.clone()));
        let end = tokio::select! {
            biased;
            end = keeper.join_next() => end,
            output = &mut work => {
                keeper.shutdown().await;
                drop(crown);
                seat.release().await;
                return Ok(Outcome::Done(output));
            }
        };

        let (loss, stop_by) = match end {
            Some(Ok(Lost { loss, stop_by })) => (loss, stop_by),
            Some(Err(_)) | None => (Loss::Broken, Instant::now()),
        };
        term.cancel();
        drop(crown);
        warn!(lease = %seat, identity = seat.identity, "this replica no longer leads: {loss}");
        let output = tokio::time::timeout_at(stop_by, &mut work).await.ok();
        if output.is_none() {
            error!(lease = %seat, "the work did not stop in time after the lease was lost, and was dropped");
        }
        Ok(Outcome::Lost { loss, output })
    }
}

/// How often a write that releases the lease is retried after a conflict.
const RELEASE_TRIES: u32 = 3;

/// What does not change during an election.
#[derive(Debug)]
struct Seat {
    api: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    timing: Timing,
    clock: Arc<dyn Clock>,
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Seat {
    async fn read(&self) -> Result<Option<Lease>, TryError> {
        self.bounded(self.api.get_opt(&self.name)).await
    }

    /// Creates what has no resourceVersion yet, and replaces exactly that version of what has.
    async fn write(&self, lease: &Lease) -> Result<Lease, TryError> {
        let params = PostParams::default();
        if lease.metadata.resource_version.is_some() {
            self.bounded(self.api.replace(&self.name, &params, lease)).await
        } else {
            self.bounded(self.api.create(&params, lease)).await
        }
    }

    async fn bounded<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, TryError> {
        let limit = self.timing.request_timeout();
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => answer.map_err(TryError::from),
            Err(_) => Err(TryError::Silent(limit)),
        }
    }

    /// Releases the lease, so that the next replica need not wait until it expires. Only after the work has stopped.
    async fn release(&self) {
        let release = async {
            for _ in 0..RELEASE_TRIES {
                let Some(lease) = self.read().await? else { return Ok(()) };
                if Record::of(&lease, self.timing.lease_duration).holder != self.identity {
                    return Ok(());
                }
                match self.write(&released(lease, self.clock.now())).await {
                    // A renewal in progress came first.
                    Err(TryError::Overtaken(_)) => (),
                    answer => return answer.map(|_| ()),
                }
            }
            Err(TryError::Overtaken(format!("{RELEASE_TRIES} times in a row")))
        };
        match tokio::time::timeout(self.timing.renew_deadline, release).await {
            Ok(Ok(())) => info!(lease = %self, "lease released"),
            Ok(Err(error)) => warn!(lease = %self, "cannot release the lease, it will expire: {error}"),
            Err(_) => warn!(lease = %self, "cannot release the lease in time, it will expire"),
        }
    }
}

/// What this replica knows about the lease.
#[derive(Debug)]
struct Candidate {
    seat: Arc<Seat>,
    seen: Option<(Lease, Observed)>,
    /// Whether `seen` is our own last write, so that the next renewal need not read first.
    current: bool,
    failures: u32,
}

/// How one try ended.
#[derive(Debug)]
enum Try {
    /// The lease is ours, by a request sent at that moment.
    Ours { asked: Instant },
    /// It is another's.
    Theirs { holder: String },
}

#[derive(Debug)]
struct Lost {
    loss: Loss,
    stop_by: Instant,
}

impl Candidate {
    fn new(seat: Arc<Seat>) -> Self {
        Self { seat, seen: None, current: false, failures: 0 }
    }

    /// Tries until this replica holds the lease. Returns when the successful request was sent; `None` if asked to stop.
    async fn acquire(&mut self, shutdown: &CancellationToken) -> Option<Instant> {
        let mut told = None;
        while !shutdown.is_cancelled() {
            // A read may be cancelled, but a write must not: it could make this replica the holder without its knowledge.
            let looked = shutdown.run_until_cancelled(self.look()).await?;
            let tried = match looked {
                Ok(()) => self.claim().await,
                Err(error) => Err(error),
            };
            match tried {
                Ok(Try::Ours { asked }) if asked.elapsed() < self.seat.timing.renew_deadline => {
                    self.well();
                    return Some(asked);
                }
                Ok(Try::Ours { .. }) => continue,
                Ok(Try::Theirs { holder }) => {
                    self.well();
                    if told.as_ref() != Some(&holder) {
                        info!(lease = %self.seat, "standing by: {holder} leads");
                        told = Some(holder);
                    }
                }
                Err(error) => self.ill(&error),
            }
            shutdown.run_until_cancelled(tokio::time::sleep(self.seat.timing.candidate_pause())).await?;
        }
        None
    }

    /// Renews the lease until it is lost. Then ends the term, and returns until when the work has to stop.
    async fn keep(mut self, mut asked: Instant, term: CancellationToken, leading: watch::Sender<bool>) -> Lost {
        // Also when this task panics or is aborted.
        let _end_of_term = term.drop_guard();
        let seat = Arc::clone(&self.seat);
        let timing = seat.timing;
        let mut next = asked + timing.retry_period;
        let (loss, stop_by) = loop {
            let deadline = asked + timing.renew_deadline;
            let tried = tokio::time::timeout_at(deadline, async {
                tokio::time::sleep_until(next).await;
                self.renew().await
            });
            match tried.await {
                Err(_) => break (Loss::NotRenewed, deadline + timing.grace()),
                // A process that was suspended finds the answer waiting, but the deadline has passed.
                Ok(Ok(Try::Ours { asked: last })) if last.elapsed() < timing.renew_deadline => {
                    self.well();
                    asked = last;
                    next = asked + timing.retry_period;
                }
                Ok(Ok(Try::Ours { asked: last })) => {
                    break (Loss::NotRenewed, last + timing.renew_deadline + timing.grace());
                }
                // The other replica may be working already: no time left.
                Ok(Ok(Try::Theirs { holder })) => break (Loss::TakenBy(holder), Instant::now()),
                Ok(Err(error)) => {
                    self.ill(&error);
                    next = Instant::now() + timing.retry_period;
                }
            }
        };
        leading.send_replace(false);
        Lost { loss, stop_by }
    }

    async fn renew(&mut self) -> Result<Try, TryError> {
        if !self.current {
            self.look().await?;
        }
        self.claim().await
    }

    /// Reads the lease.
    async fn look(&mut self) -> Result<(), TryError> {
        self.current = false;
        match self.seat.read().await? {
            Some(lease) => self.observe(lease),
            None => self.seen = None,
        }
        Ok(())
    }

    /// Writes the lease if the last read allows it. After a conflict, reads and tries once more.
    async fn claim(&mut self) -> Result<Try, TryError> {
        match self.claim_once().await {
            Err(TryError::Overtaken(_)) => {
                self.look().await?;
                self.claim_once().await
            }
            tried => tried,
        }
    }

    async fn claim_once(&mut self) -> Result<Try, TryError> {
        let asked = Instant::now();
        let decision = decide(self.seen.as_ref().map(|(_, observed)| observed), asked, &self.seat.identity);
        // Until the answer arrives, what is known may be outdated.
        self.current = false;
        if let Decision::Wait { holder, .. } = decision {
            return Ok(Try::Theirs { holder });
        }
        let wanted = proposal(self.seen.as_ref().map(|(lease, _)| lease), &decision, &self.seat);
        let stored = self.seat.write(&wanted).await?;
        self.observe(stored);
        self.current = true;
        Ok(Try::Ours { asked })
    }

    fn observe(&mut self, lease: Lease) {
        let record = Record::of(&lease, self.seat.timing.lease_duration);
        let since = match &self.seen {
            // A label on the Lease gives it a new version, but does not prolong it.
            Some((_, observed)) if observed.record == record => observed.since,
            _ => Instant::now(),
        };
        self.seen = Some((lease, Observed { record, since }));
    }

    fn well(&mut self) {
        if self.failures > 0 {
            info!(lease = %self.seat, "lease reachable again after {} failures", self.failures);
        }
        self.failures = 0;
    }

    fn ill(&mut self, error: &TryError) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            warn!(lease = %self.seat, "leader election: {error}");
        } else {
            debug!(lease = %self.seat, failures = self.failures, "leader election: {error}");
        }
    }
}

/// The Lease with this replica as holder. All other fields stay.
fn proposal(seen: Option<&Lease>, decision: &Decision, seat: &Seat) -> Lease {
    let mut lease = seen.cloned().unwrap_or_else(|| {
        let mut lease = Lease::default();
        lease.metadata.name = Some(seat.name.clone());
        lease.metadata.namespace = Some(seat.namespace.clone());
        lease
    });
    let now = seat.clock.now();
    let spec = lease.spec.get_or_insert_default();
    if *decision != Decision::Renew {
        spec.lease_transitions =
            Some(if seen.is_some() { spec.lease_transitions.unwrap_or(0).saturating_add(1) } else { 0 });
        spec.acquire_time = Some(MicroTime(now));
    }
    spec.holder_identity = Some(seat.identity.clone());
    spec.lease_duration_seconds = Some(seat.timing.lease_seconds());
    spec.renew_time = Some(MicroTime(after(now, spec.renew_time.as_ref())));
    lease
}

/// The Lease without a holder.
fn released(mut lease: Lease, now: Timestamp) -> Lease {
    let spec = lease.spec.take().unwrap_or_default();
    let renew_time = Some(MicroTime(after(now, spec.renew_time.as_ref())));
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time,
        ..spec
    });
    lease
}

/// An update that changes nothing is not stored, so others would not see it: after a clock was set back, a renewal could have the
/// same time as the stored one.
fn after(now: Timestamp, written: Option<&MicroTime>) -> Timestamp {
    match written {
        Some(written) if written.0.as_microsecond() == now.as_microsecond() => {
            now.checked_add(SignedDuration::from_micros(1)).unwrap_or(now)
        }
        _ => now,
    }
}

/// Why one try failed.
#[derive(Debug, thiserror::Error)]
enum TryError {
    #[error("the lease was changed by somebody else: {0}")]
    Overtaken(String),
    #[error("the API server refused: {0}")]
    Refused(String),
    #[error("the API server did not answer within {0:?}")]
    Silent(Duration),
    #[error("the API server cannot be reached: {0}")]
    Unreachable(kube::Error),
}

impl From<kube::Error> for TryError {
    fn from(error: kube::Error) -> Self {
        match error {
            // 404 on a PUT: deleted since we saw it.
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::Overtaken(status.message),
            kube::Error::Api(status) => Self::Refused(status.message),
            error => Self::Unreachable(error),
        }
    }
}

/// Shows that this replica leads, until it is dropped, however a term ends.
#[derive(Debug)]
struct Crown(watch::Sender<bool>);

impl Crown {
    fn put_on(leading: &watch::Sender<bool>) -> Self {
        leading.send_replace(true);
        Self(leading.clone())
    }
}

impl Drop for Crown {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

#[cfg(test)]
mod tests;
