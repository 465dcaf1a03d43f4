//! One task places everybody who waits for a host, from one snapshot, and writes the claims.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::slice::from_ref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::host::Words;
use engine::placement::{Availability, Candidate, Outcome, Refusal, Request, place};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::dialect::{ANCHOR_ANNOTATION, HostDialect};
use crate::object::ObjectId;
use crate::roster::{Free, Roster};
use crate::writer::patch;

/// How long requests are gathered, so that whoever comes in the same moment is placed by age.
const GATHER: Duration = Duration::from_millis(25);
/// How many claims are written at once.
const WRITES_AT_ONCE: usize = 8;
/// A write that takes longer makes room for others: an API server may let one of them hang and answer the rest.
const SLOW: Duration = Duration::from_secs(1);
/// How long to wait after a write that the API server did not take.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// How long a refusal stands before another one takes its place.
const SAID_FOR: Duration = Duration::from_secs(5);

/// Who waits for a host, and what it would write on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) request: Request,
    /// The claim and the order, as a merge patch for the host.
    pub(crate) claim: Value,
}

/// Why somebody got no host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NoHost {
    /// None fits.
    Refused(Refusal),
    /// The API server did not take the claim on this one.
    NotWritten { host: ObjectId, error: String },
}

impl NoHost {
    fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::Refused(refusal) => refusal.tell(words),
            Self::NotWritten { host, error } => {
                format!("{} {} cannot be claimed: {error}.", host.kind.kind, host.name)
            }
        }
    }
}

/// The waiting room.
#[derive(Debug, Default)]
pub(crate) struct Placer {
    room: Mutex<Room>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Room {
    waiting: BTreeMap<ObjectId, Wanted>,
    /// Whose claims are being written, and on which host.
    writing: HashMap<ObjectId, Booking>,
    /// Whose claims were written without an answer, or on a version that is not the last: they may have arrived, or still do so.
    unanswered: HashMap<ObjectId, Booking>,
    /// Who of those whose claims are being written is gone meanwhile.
    gone: HashSet<ObjectId>,
    /// Why somebody got no host, and since when that is said.
    refusals: HashMap<ObjectId, (NoHost, Instant)>,
}

/// A host that nobody else gets.
#[derive(Debug, Clone)]
struct Booking {
    host: ObjectId,
    /// The version that the claim is written on.
    version: u64,
    holder: String,
    group: String,
}

impl Booking {
    fn new(host: ObjectId, version: u64, request: &Request) -> Self {
        Self { host, version, holder: request.claimant.clone(), group: request.group.clone() }
    }
}

impl Room {
    fn withdraw(&mut self, claimant: &ObjectId) -> bool {
        self.waiting.remove(claimant);
        self.unanswered.remove(claimant);
        self.refusals.remove(claimant);
        !self.writing.contains_key(claimant)
    }

    /// Whether a claim may be written: whoever does not wait any more gets none.
    fn begin(&mut self, claimant: &ObjectId, booking: Booking) -> bool {
        if !self.waiting.contains_key(claimant) || self.writing.contains_key(claimant) {
            return false;
        }
        self.unanswered.remove(claimant);
        self.writing.insert(claimant.clone(), booking);
        true
    }

    /// The hosts as others see them: those that are booked are held.
    fn mark_booked(&self, hosts: &mut [(ObjectId, u64, Candidate)]) {
        let booked = self.writing.values().chain(self.unanswered.values());
        let booked: HashMap<_, _> = booked.map(|booking| (&booking.host, booking)).collect();
        for (key, _, host) in hosts {
            if let Some(booking) =
                booked.get(key).filter(|_| !matches!(host.availability, Availability::Claimed { .. }))
            {
                let group = Some(booking.group.clone());
                host.availability = Availability::Claimed { holder: booking.holder.clone(), group };
            }
        }
    }
}

/// A write that has ended.
enum Done<H> {
    /// A claim was written, or not.
    Claim(ObjectId, ObjectId, kube::Result<H>),
    /// The claim of somebody who is gone was taken off, or not.
    TakenOff(ObjectId, ObjectId, H),
}

type Write<'a, H> = BoxFuture<'a, Done<H>>;

impl Placer {
    /// Waits for a host from now on.
    pub(crate) fn ask(&self, claimant: &ObjectId, wanted: Wanted) {
        let mut room = self.room();
        if room.waiting.get(claimant) != Some(&wanted) {
            room.waiting.insert(claimant.clone(), wanted);
            self.news.notify_one();
        }
    }

    /// Does not wait any more. Answers whether that came in time: while a claim is being written, nobody can say whether it
    /// has a host.
    pub(crate) fn withdraw(&self, claimant: &ObjectId) -> bool {
        self.room().withdraw(claimant)
    }

    /// It is gone. A claim that is being written for it is taken off again: nobody else would.
    pub(crate) fn forget(&self, claimant: &ObjectId) {
        let mut room = self.room();
        if !room.withdraw(claimant) {
            room.gone.insert(claimant.clone());
        }
    }

    /// Whether a claim for it is being written right now.
    pub(crate) fn is_writing(&self, claimant: &ObjectId) -> bool {
        self.room().writing.contains_key(claimant)
    }

    /// Why it got no host, when it was last tried.
    pub(crate) fn refusal(&self, claimant: &ObjectId, words: &dyn Words) -> Option<String> {
        self.room().refusals.get(claimant).map(|(why, _)| why.tell(words))
    }

    /// Places for as long as it is polled. Tells those about whom something has changed. Nobody waits for the write of another: a host
    /// is booked while a claim for it is being written, and all others are placed meanwhile.
    pub(crate) async fn run<D: HostDialect>(&self, client: &Client, roster: &Roster, wake: &UnboundedSender<ObjectId>) {
        let slots = Semaphore::new(WRITES_AT_ONCE);
        let mut writes: FuturesUnordered<Write<'_, D::Host>> = FuturesUnordered::new();
        let (mut gathered, mut again) = (None, None::<Instant>);
        loop {
            let next_round = async {
                match [gathered, again].into_iter().flatten().min() {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.news.notified(), if gathered.is_none() => gathered = Some(Instant::now() + GATHER),
                () = roster.changed(), if gathered.is_none() => gathered = Some(Instant::now() + GATHER),
                Some(done) = writes.next() => {
                    let (more, is_failed) = self.settle::<D>(done, client, roster, wake);
                    writes.extend(more);
                    if is_failed {
                        again.get_or_insert(Instant::now() + TRY_AGAIN);
                    }
                }
                () = next_round => {
                    let (begun, is_unfinished) = self.round::<D>(client, roster, &slots, wake);
                    writes.extend(begun);
                    (gathered, again) = (None, is_unfinished.then(|| Instant::now() + TRY_AGAIN));
                }
            }
        }
    }

    /// Places everybody whose claim is not being written. Answers with the writes, and whether it should be tried again although
    /// nothing changes.
    fn round<'a, D: HostDialect>(
        &self,
        client: &Client,
        roster: &Roster,
        slots: &'a Semaphore,
        wake: &UnboundedSender<ObjectId>,
    ) -> (Vec<Write<'a, D::Host>>, bool) {
        let mut room = self.room();
        let idle = room.waiting.iter().filter(|(claimant, _)| !room.writing.contains_key(*claimant));
        let mut waiting: Vec<(ObjectId, Wanted)> =
            idle.map(|(claimant, wanted)| (claimant.clone(), wanted.clone())).collect();
        if waiting.is_empty() {
            return (Vec::new(), false);
        }
        let mut hosts = roster.candidates();
        let mut begun = Vec::new();
        waiting.retain(|(claimant, wanted)| match room.unanswered.get(claimant) {
            None => true,
            Some(_) if !roster.holdings_of(claimant).is_empty() => false,
            Some(booking) => {
                let booking = booking.clone();
                let is_same = |(key, version, host): &(ObjectId, u64, Candidate)| {
                    (key, *version) == (&booking.host, booking.version)
                        && matches!(place(from_ref(&wanted.request), from_ref(host))[..], [Outcome::Placed { .. }])
                };
                if !hosts.iter().any(is_same) {
                    // What was written on that version cannot arrive any more.
                    room.unanswered.remove(claimant);
                    return true;
                }
                begun.push((claimant.clone(), booking, wanted.claim.clone()));
                false
            }
        });
        room.mark_booked(&mut hosts);
        let (keys, hosts): (Vec<_>, Vec<_>) =
            hosts.into_iter().map(|(key, version, host)| ((key, version), host)).unzip();
        let requests: Vec<_> = waiting.iter().map(|(_, wanted)| wanted.request.clone()).collect();
        let mut refused = Vec::new();
        for ((claimant, wanted), outcome) in waiting.into_iter().zip(place(&requests, &hosts)) {
            match outcome {
                Outcome::Placed { namespace, name } => {
                    let host = keys.iter().find(|(key, _)| key.namespace() == namespace && key.name == name);
                    begun.extend(host.map(|(key, version)| {
                        let booking = Booking::new(key.clone(), *version, &wanted.request);
                        let claim = announce::<D>(key, roster.free(key, *version), wanted.claim);
                        (claimant, booking, claim)
                    }));
                }
                Outcome::Refused(refusal) => refused.push((claimant, NoHost::Refused(refusal))),
            }
        }
        begun.retain(|(claimant, booking, _)| room.begin(claimant, booking.clone()));
        drop(room);
        let mut again = false;
        for (claimant, why) in refused {
            again |= !self.refuse(&claimant, why, wake);
        }
        let write = |(claimant, booking, claim): (ObjectId, Booking, Value)| {
            let write = write::<D>(client.clone(), booking.host.clone(), booking.version, claim);
            async move { Done::Claim(claimant, booking.host, in_turn(slots, write).await) }.boxed()
        };
        (begun.into_iter().map(write).collect(), again)
    }

    /// Takes the end of a write in. Answers with what is to be written next, and whether another round is to be tried although nothing
    /// changes.
    fn settle<'a, D: HostDialect>(
        &self,
        done: Done<D::Host>,
        client: &Client,
        roster: &Roster,
        wake: &UnboundedSender<ObjectId>,
    ) -> (Option<Write<'a, D::Host>>, bool) {
        let (claimant, told, is_failed) = match done {
            Done::Claim(claimant, key, Ok(host)) => {
                info!(%claimant, host = %key, "claimed");
                self.withdraw(&claimant);
                if self.room().gone.remove(&claimant) {
                    let client = client.clone();
                    let take_off = async move {
                        let host = take_off::<D>(client, &key, host).await;
                        Done::TakenOff(claimant, key, host)
                    };
                    return (Some(take_off.boxed()), false);
                }
                wake.send(key).ok();
                (claimant, roster.put::<D>(&host), false)
            }
            Done::TakenOff(claimant, key, host) => {
                wake.send(key).ok();
                (claimant, roster.put::<D>(&host), false)
            }
            Done::Claim(claimant, _, Err(kube::Error::Api(status))) if status.code == 409 || status.code == 404 => {
                // Somebody wrote the host meanwhile, perhaps we, without an answer: the watch will show what.
                if status.code == 409 {
                    self.keep_booked(&claimant);
                }
                (claimant, Vec::new(), true)
            }
            Done::Claim(claimant, key, Err(error)) => {
                warn!(%error, host = %key, "cannot write the claim");
                self.refuse(&claimant, NoHost::NotWritten { host: key, error: error.to_string() }, wake);
                if !matches!(&error, kube::Error::Api(status) if status.code < 500) {
                    self.keep_booked(&claimant);
                }
                (claimant, Vec::new(), true)
            }
        };
        let mut room = self.room();
        room.writing.remove(&claimant);
        room.gone.remove(&claimant);
        drop(room);
        for claimant in told.into_iter().chain([claimant]) {
            wake.send(claimant).ok();
        }
        (None, is_failed)
    }

    /// What was written may have arrived, or may still do so. Until another version of that host is seen, there is no other one for
    /// whoever waits.
    fn keep_booked(&self, claimant: &ObjectId) {
        let mut room = self.room();
        let booking = room.writing.get(claimant).filter(|_| room.waiting.contains_key(claimant)).cloned();
        if let Some(booking) = booking {
            room.unanswered.insert(claimant.clone(), booking);
        }
    }

    /// Notes why somebody gets no host. Answers whether that could be told: in a busy fleet it changes with every host, and
    /// nobody can read that fast.
    fn refuse(&self, claimant: &ObjectId, why: NoHost, wake: &UnboundedSender<ObjectId>) -> bool {
        let mut room = self.room();
        let told = room.refusals.get(claimant);
        if !room.waiting.contains_key(claimant) || told.is_some_and(|(told, _)| *told == why) {
            return true;
        }
        if told.is_some_and(|(_, since)| since.elapsed() < SAID_FOR) {
            return false;
        }
        room.refusals.insert(claimant.clone(), (why, Instant::now()));
        wake.send(claimant.clone()).ok();
        true
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a free slot, and gives it back to others when the write is slow.
async fn in_turn<T>(slots: &Semaphore, write: impl Future<Output = T>) -> T {
    // The semaphore is never closed.
    let slot = slots.acquire().await;
    futures::pin_mut!(write);
    if let Ok(written) = tokio::time::timeout(SLOW, &mut write).await {
        return written;
    }
    drop(slot);
    write.await
}

/// The claim with the anchor that it is going to be accepted with: one write less for each machine.
fn announce<D: HostDialect>(key: &ObjectId, free: Option<Free>, mut claim: Value) -> Value {
    if let Some(anchor) = free.and_then(|free| D::announced(key, &free, &claim)) {
        claim["metadata"]["annotations"][ANCHOR_ANNOTATION] = json!(anchor.to_json());
    }
    claim
}

/// The claim is one write, on exactly the host that was looked at.
async fn write<D: HostDialect>(client: Client, key: ObjectId, version: u64, claim: Value) -> kube::Result<D::Host> {
    patch(&client, &key, Some(&version.to_string()), claim).await
}

/// Takes the claim of somebody off who went while it was written. If that fails, the host's own loop does it later.
async fn take_off<D: HostDialect>(client: Client, key: &ObjectId, host: D::Host) -> D::Host {
    match patch(&client, key, host.resource_version().as_deref(), D::without_claim()).await {
        Ok(host) => host,
        Err(error) => {
            warn!(%error, host = %key, "cannot remove a stale claim");
            host
        }
    }
}
