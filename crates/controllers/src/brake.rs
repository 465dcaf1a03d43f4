//! The fleet brake: a mistake that asks for a whole fleet to be switched off is carried out slowly enough to be noticed.
//!
//! Power-offs, resets and wipes of running servers pass one rate limit, deployments one concurrency limit, and a freeze
//! refuses both. The brake calls nobody: a host that has to wait asks again after the time that it was given. The host that
//! has waited longest goes first. A host that does not ask in time lets the next one pass, but keeps its place for a while.
//!
//! Everything is kept in memory. A new leader starts with a full bucket, which holds a tenth of a minute's worth. Deployments in progress
//! keep their slots, and hosts that wait for one their places: both are read from the hosts before the first one asks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::host::{Ahead, Ask, BrakeLimit};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::object::ObjectId;

/// What the fleet brake allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrakeConfig {
    /// How many running servers may be switched off, reset or wiped in any minute; 0 for none.
    pub disruptions_per_minute: u32,
    /// How many deployments may be under way at once; 0 for none.
    pub concurrent_deployments: usize,
    /// Refuses everything destructive.
    pub freeze: bool,
}

impl Default for BrakeConfig {
    fn default() -> Self {
        Self { disruptions_per_minute: 10, concurrent_deployments: 20, freeze: false }
    }
}

/// What the brake says to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Go ahead, now.
    Go,
    /// Not now.
    NotNow {
        /// Why.
        limit: BrakeLimit,
        /// When to ask again. Others may go before a host that asks later.
        again_in: Duration,
    },
}

/// How busy the brake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Hosts that wait to be switched off, reset or wiped.
    pub waiting_to_disrupt: usize,
    /// Hosts that wait to be deployed.
    pub waiting_to_deploy: usize,
    /// How often a host had to begin to wait, by the same two kinds.
    pub waits: [u64; 2],
    /// Deployments under way.
    pub deploying: usize,
    /// Whether everything destructive is refused.
    pub frozen: bool,
}

/// The fleet brake of one leader, for the hosts of all dialects.
#[derive(Debug)]
pub struct Brake(Mutex<Core>);

impl Brake {
    /// A brake on which nobody waits.
    pub fn new(config: BrakeConfig) -> Self {
        Self(Mutex::new(Core::new(config)))
    }

    /// Asks for one disruption, or for a deployment slot. Each [`Answer::Go`] to the former is good for one act; a slot is
    /// kept until [`Brake::done`], however often it is asked for.
    pub fn ask(&self, host: &ObjectId, ask: Ask) -> Answer {
        self.core().ask(Instant::now(), host, ask)
    }

    /// Whether somebody has asked already in this term: then it is too late to recall a place.
    pub fn has_begun(&self) -> bool {
        self.core().has_begun
    }

    /// Puts a host into the queue for a deployment slot that it has waited for since then, under an earlier leader.
    pub fn recall(&self, host: &ObjectId, since: Timestamp) {
        self.core().recall(host, since);
    }

    /// Takes a slot for a deployment that a new leader finds in progress. Never refused.
    pub fn resume(&self, host: &ObjectId) {
        self.core().resume(host);
    }

    /// The host's deployment rests: it is paused, or in a fault that is tried again later. Others may use its slot, and it asks
    /// again when it goes on. Its position in the queue stays.
    pub fn rest(&self, host: &ObjectId) {
        self.core().rest(host);
    }

    /// Notes whether a host that has a slot is trying again after a fault.
    pub fn mark(&self, host: &ObjectId, faulted: bool) {
        self.core().mark(host, faulted);
    }

    /// The host's deployment has ended or is no longer wanted: frees its slot. If it waits for a disruption, it goes on waiting.
    pub fn done(&self, host: &ObjectId) {
        self.core().done(host);
    }

    /// The host is gone.
    pub fn forget(&self, host: &ObjectId) {
        self.core().forget(host);
    }

    /// How busy it is.
    pub fn load(&self) -> Load {
        self.core().load()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // A panic leaves nothing half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A host that does not ask within this time after it was due lets others pass.
const LATE: Duration = Duration::from_secs(10);
/// A host that does not ask within this time after it was due loses its place in the queue.
const GONE: Duration = Duration::from_mins(5);
/// Short enough that a sentence about who is ahead does not grow stale.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// How soon the next in line looks for a place that a deployment left.
const DEPLOYMENT_PAUSE: Duration = Duration::from_secs(5);
/// Further hosts get no place in the queue and only hear when to ask again, so that memory stays bounded.
const LONGEST_LINE: usize = 20_000;
/// How many of the hosts that have a slot are named.
const NAMED: usize = 3;

/// All of the brake but the clock.
#[derive(Debug)]
struct Core {
    config: BrakeConfig,
    rate: Rate,
    disruptions: Line,
    deployments: Line,
    /// The hosts that have a slot, and whether they are in fault.
    deploying: BTreeMap<ObjectId, bool>,
    /// Since when those wait for a place who did so under an earlier leader, until the first host asks.
    recalled: HashMap<ObjectId, Timestamp>,
    has_begun: bool,
}

impl Core {
    fn new(config: BrakeConfig) -> Self {
        let rate = Rate::new(config.disruptions_per_minute);
        Self {
            config,
            rate,
            disruptions: Line::default(),
            deployments: Line::default(),
            deploying: BTreeMap::new(),
            recalled: HashMap::new(),
            has_begun: false,
        }
    }

    fn recall(&mut self, host: &ObjectId, since: Timestamp) {
        if !self.has_begun {
            self.recalled.insert(host.clone(), since);
        }
    }

    /// Lets those queue up who waited before, in the order in which they began to.
    fn begin(&mut self, now: Instant) {
        self.has_begun = true;
        let mut recalled: Vec<_> = std::mem::take(&mut self.recalled).into_iter().collect();
        recalled.sort_unstable_by(|(one, since), (other, earlier)| (since, one).cmp(&(earlier, other)));
        for (host, _) in recalled {
            self.deployments.wait(now, &host, DEPLOYMENT_PAUSE);
        }
    }

    fn ask(&mut self, now: Instant, host: &ObjectId, ask: Ask) -> Answer {
        if !self.has_begun {
            self.begin(now);
        }
        if self.config.freeze {
            return Answer::NotNow { limit: BrakeLimit::Frozen, again_in: LONGEST_PAUSE };
        }
        match ask {
            Ask::Disrupt => self.disrupt(now, host),
            Ask::Deploy => self.deploy(now, host),
        }
    }

    fn disrupt(&mut self, now: Instant, host: &ObjectId) -> Answer {
        let ahead = self.disruptions.ahead_of(now, host);
        if ahead < self.rate.free(now) {
            self.disruptions.leave(host);
            self.rate.take(now);
            return Answer::Go;
        }
        let pause = self.rate.pause(now, ahead).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        self.disruptions.wait(now, host, pause);
        let per_minute = self.config.disruptions_per_minute;
        let limit = BrakeLimit::Disruptions { ahead: Ahead::rounded(ahead), per_minute };
        Answer::NotNow { limit, again_in: pause }
    }

    fn deploy(&mut self, now: Instant, host: &ObjectId) -> Answer {
        if self.deploying.contains_key(host) {
            return Answer::Go;
        }
        let limit = self.config.concurrent_deployments;
        let ahead = self.deployments.ahead_of(now, host);
        if ahead < limit.saturating_sub(self.deploying.len()) {
            self.deployments.leave(host);
            self.deploying.insert(host.clone(), false);
            return Answer::Go;
        }
        let rounds = u32::try_from(ahead / limit.max(1)).unwrap_or(u32::MAX);
        let pause = DEPLOYMENT_PAUSE.saturating_mul(rounds.saturating_add(1)).min(LONGEST_PAUSE);
        self.deployments.wait(now, host, pause);
        let limit = match ahead {
            0 if limit > 0 => self.slots_used(),
            _ => BrakeLimit::Deployments { ahead: Ahead::rounded(ahead), limit },
        };
        Answer::NotNow { limit, again_in: pause }
    }

    /// Which hosts have the slots. Faulted hosts are named first: somebody may have to do something about them.
    fn slots_used(&self) -> BrakeLimit {
        let mut holders: Vec<_> = self.deploying.iter().map(|(host, faulted)| (!faulted, host)).collect();
        holders.sort_unstable();
        BrakeLimit::Slots {
            used: self.deploying.len(),
            limit: self.config.concurrent_deployments,
            faulted: self.deploying.values().filter(|faulted| **faulted).count(),
            holders: holders.iter().take(NAMED).map(|(_, host)| host.to_string()).collect(),
        }
    }

    fn resume(&mut self, host: &ObjectId) {
        self.deployments.leave(host);
        self.deploying.entry(host.clone()).or_default();
    }

    fn rest(&mut self, host: &ObjectId) {
        self.deploying.remove(host);
    }

    fn mark(&mut self, host: &ObjectId, faulted: bool) {
        if let Some(known) = self.deploying.get_mut(host) {
            *known = faulted;
        }
    }

    fn done(&mut self, host: &ObjectId) {
        self.deployments.leave(host);
        self.deploying.remove(host);
        self.recalled.remove(host);
    }

    fn forget(&mut self, host: &ObjectId) {
        self.done(host);
        self.disruptions.leave(host);
    }

    fn load(&self) -> Load {
        Load {
            waiting_to_disrupt: self.disruptions.tickets.len(),
            waiting_to_deploy: self.deployments.tickets.len(),
            waits: [self.disruptions.waits, self.deployments.waits],
            deploying: self.deploying.len(),
            frozen: self.config.freeze,
        }
    }
}

/// A token bucket that holds a tenth of a minute's worth, and a memory of the last minute: the bucket alone would let
/// its content and a minute's refill pass within one minute.
#[derive(Debug)]
struct Rate {
    per_minute: u32,
    /// When the bucket is full again.
    full_at: Option<Instant>,
    /// What was granted within the last minute, oldest first.
    granted: VecDeque<Instant>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Rate {
    fn new(per_minute: u32) -> Self {
        Self { per_minute, full_at: None, granted: VecDeque::new() }
    }

    fn burst(&self) -> u32 {
        (self.per_minute / 10).max(1)
    }

    /// Time between two tokens.
    fn interval(&self) -> Duration {
        MINUTE / self.per_minute.max(1)
    }

    /// How many may go now.
    fn free(&mut self, now: Instant) -> usize {
        if self.per_minute == 0 {
            return 0;
        }
        while self.granted.front().is_some_and(|granted| now.saturating_duration_since(*granted) >= MINUTE) {
            self.granted.pop_front();
        }
        let missing = self.until_full(now).as_nanos().div_ceil(self.interval().as_nanos().max(1));
        let in_bucket = usize::try_from(u128::from(self.burst()).saturating_sub(missing)).unwrap_or(usize::MAX);
        let in_minute = (self.per_minute as usize).saturating_sub(self.granted.len());
        in_bucket.min(in_minute)
    }

    fn take(&mut self, now: Instant) {
        self.full_at = Some(now + self.until_full(now) + self.interval());
        self.granted.push_back(now);
    }

    /// How long until `ahead` hosts and one more can go.
    fn pause(&self, now: Instant, ahead: usize) -> Duration {
        if self.per_minute == 0 {
            return LONGEST_PAUSE;
        }
        let nth = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
        let bucket = (self.until_full(now) + self.interval().saturating_mul(nth))
            .saturating_sub(self.interval().saturating_mul(self.burst()));
        let surplus = (self.granted.len() + ahead + 1).saturating_sub(self.per_minute as usize);
        let minute = match surplus.checked_sub(1) {
            None => Duration::ZERO,
            Some(nth) => self.granted.get(nth).map_or(MINUTE, |at| (*at + MINUTE).saturating_duration_since(now)),
        };
        bucket.max(minute)
    }

    fn until_full(&self, now: Instant) -> Duration {
        self.full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}

/// The hosts that wait, in the order in which they came.
#[derive(Debug, Default)]
struct Line {
    tickets: BTreeMap<u64, Ticket>,
    numbers: HashMap<ObjectId, u64>,
    next: u64,
    waits: u64,
}

#[derive(Debug)]
struct Ticket {
    host: ObjectId,
    due: Instant,
}

impl Line {
    /// How many hosts wait before this one, or before a host that comes now. Late ones do not count.
    fn ahead_of(&mut self, now: Instant, host: &ObjectId) -> usize {
        let numbers = &mut self.numbers;
        self.tickets.retain(|_, ticket| {
            let stays = ticket.host == *host || now.saturating_duration_since(ticket.due) < GONE;
            if !stays {
                numbers.remove(&ticket.host);
            }
            stays
        });
        let own = self.numbers.get(host).copied().unwrap_or(self.next);
        self.tickets.range(..own).filter(|(_, ticket)| now.saturating_duration_since(ticket.due) < LATE).count()
    }

    fn wait(&mut self, now: Instant, host: &ObjectId, pause: Duration) {
        let due = now + pause;
        if let Some(ticket) = self.numbers.get(host).and_then(|number| self.tickets.get_mut(number)) {
            ticket.due = due;
        } else if self.tickets.len() < LONGEST_LINE {
            self.numbers.insert(host.clone(), self.next);
            self.tickets.insert(self.next, Ticket { host: host.clone(), due });
            self.next += 1;
            self.waits += 1;
        }
    }

    fn leave(&mut self, host: &ObjectId) {
        if let Some(number) = self.numbers.remove(host) {
            self.tickets.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests;
