//! Hosts that could not serve a claim, and for how long they are not asked again.

use jiff::{SignedDuration, Timestamp};

use super::Refused;
use crate::failure::Kind;

/// How many are remembered. If more hosts refuse, somebody has to check the image or the BMCs.
const REMEMBERED: usize = 16;
/// How long a host is not asked again after its first refusal; twice as long after each further one.
const FIRST: SignedDuration = SignedDuration::from_mins(10);
/// The same for a server that runs: the placer notices by itself when it is off.
const FIRST_WHILE_RUNNING: SignedDuration = SignedDuration::from_mins(1);
const MOST: SignedDuration = SignedDuration::from_hours(4);

/// A host that could not serve a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host.
    pub host: String,
    /// What was ordered then. The refusal says nothing about another order.
    pub order: String,
    /// Why.
    pub why: Refused,
    /// How often in a row.
    pub count: u32,
    /// Until when the host is not asked again.
    pub until: Timestamp,
}

impl Refusal {
    /// Whether the host is not asked now.
    pub fn holds(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// The refusal of this host by which a claim passes it over now.
    pub(super) fn find<'a>(known: &'a [Self], host: &str, order: &str, now: Timestamp) -> Option<&'a Self> {
        known.iter().find(|refusal| refusal.host == host && refusal.order == order && refusal.holds(now))
    }

    /// The refusals of this order, however old: a host that refuses again is not asked for longer.
    pub(super) fn about(known: &[Self], order: &str) -> Vec<Self> {
        known.iter().filter(|refusal| refusal.order == order).cloned().collect()
    }

    /// The same and one more.
    pub(super) fn add(known: &[Self], host: &str, order: &str, why: &Refused, now: Timestamp) -> Vec<Self> {
        let mut all = Self::about(known, order);
        let before = all.iter().position(|refusal| refusal.host == host).map(|at| all.remove(at));
        let count = before.map_or(0, |before| before.count).saturating_add(1);
        let is_running = Kind::named(&why.reason) == Some(Kind::ServerRunning);
        let first = if is_running { FIRST_WHILE_RUNNING } else { FIRST };
        let pause = first.saturating_mul(1 << count.saturating_sub(1).min(8)).min(MOST);
        all.push(Self {
            host: host.to_owned(),
            order: order.to_owned(),
            why: why.clone(),
            count,
            until: now.saturating_add(pause).unwrap_or(Timestamp::MAX),
        });
        let surplus = all.len().saturating_sub(REMEMBERED);
        all.drain(..surplus);
        all
    }
}
