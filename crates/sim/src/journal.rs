//! What a BMC was asked, for tests that count: numbers by kind of request, and the last mutations in order.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use tokio::time::Instant;

use crate::kind::{Kind, Verb};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Outcome {
    /// Answered with this status.
    Status(u16),
    /// The connection was dropped.
    Dropped,
    /// Never answered.
    Hung,
}

/// Numbers of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<(Verb, Kind, Outcome), u64>);

impl Counters {
    pub(crate) fn count(&mut self, verb: Verb, kind: Kind, outcome: Outcome) {
        *self.0.entry((verb, kind, outcome)).or_default() += 1;
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Requests of this kind, however they ended.
    pub fn of(&self, verb: Verb, kind: Kind) -> u64 {
        self.iter().filter(|(v, k, ..)| *v == verb && *k == kind).map(|(.., n)| n).sum()
    }

    /// Requests of this kind that ended so.
    pub fn ended(&self, verb: Verb, kind: Kind, outcome: Outcome) -> u64 {
        self.0.get(&(verb, kind, outcome)).copied().unwrap_or_default()
    }

    /// GET and HEAD.
    pub fn reads(&self) -> u64 {
        self.iter().filter(|(v, ..)| v.reads()).map(|(.., n)| n).sum()
    }

    /// All numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, Kind, Outcome, u64)> + '_ {
        self.0.iter().map(|(&(verb, kind, outcome), &n)| (verb, kind, outcome, n))
    }
}

/// One request that asked for a change. Sessions are not in the journal: they change no server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// When it arrived.
    pub at: Instant,
    /// Its method.
    pub verb: Verb,
    /// What it was about.
    pub kind: Kind,
    /// The path as it was sent.
    pub path: String,
    /// The body as it was sent, cut to a sensible length.
    pub body: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// Enough for any test, and little enough for a thousand BMCs.
const KEPT: usize = 128;
const BODY_KEPT: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Journal(VecDeque<Mutation>);

impl Journal {
    pub(crate) fn push(&mut self, mut mutation: Mutation) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        let cut = mutation.body.floor_char_boundary(BODY_KEPT);
        mutation.body.truncate(cut);
        self.0.push_back(mutation);
    }

    pub(crate) fn list(&self) -> Vec<Mutation> {
        self.0.iter().cloned().collect()
    }
}
