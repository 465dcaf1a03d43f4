//! Why a claim got no host, in words that a user can act on.

use std::collections::BTreeMap;

use super::{Bar, Pool, Request};
use crate::host::Words;

/// How many of the nearest hosts are named.
const NAMED: usize = 3;

/// Why no host fits: how many hosts there are, why they do not fit, and which of them come closest.
///
/// The text depends on the hosts alone, not on the time or on the order in which they were seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pool: Pool,
    named: Option<String>,
    hosts: usize,
    /// How many hosts have this as their hardest bar.
    tally: BTreeMap<Hurdle, usize>,
    nearest: Vec<(String, Vec<Bar>)>,
}

/// Bars without details. Later ones are harder to remove: a claim ends, but a server gets no more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hurdle {
    Claimed,
    Running,
    Refused,
    Tainted,
    Unavailable,
    Labels,
    Domain,
    Media,
    Unknown,
    Hardware,
}

impl Refusal {
    pub(super) fn new(request: &Request, mut barred: Vec<(String, Vec<Bar>)>) -> Self {
        let mut tally = BTreeMap::new();
        for (_, bars) in &barred {
            if let Some(hurdle) = bars.iter().map(Bar::hurdle).max() {
                *tally.entry(hurdle).or_default() += 1;
            }
        }
        let hosts = barred.len();
        // A claimed host is not one of the nearest, however well it would fit.
        barred.retain(|(_, bars)| !bars.iter().any(|bar| matches!(bar, Bar::Claimed(_))));
        barred.sort_by(|(left, few), (right, many)| (few.len(), left).cmp(&(many.len(), right)));
        barred.truncate(NAMED);
        Self { pool: request.pool.clone(), named: request.named.clone(), hosts, tally, nearest: barred }
    }
}

impl Bar {
    fn hurdle(&self) -> Hurdle {
        match self {
            Self::Claimed(_) => Hurdle::Claimed,
            Self::Running => Hurdle::Running,
            Self::Refused(_) => Hurdle::Refused,
            Self::Unavailable(_) => Hurdle::Unavailable,
            Self::Taint(_) => Hurdle::Tainted,
            Self::Label(_) => Hurdle::Labels,
            Self::Domain(_) => Hurdle::Domain,
            Self::NoDrive | Self::NoNetworkBoot | Self::Schemes(_) => Hurdle::Media,
            Self::Unknown => Hurdle::Unknown,
            Self::Cores(_) | Self::Memory(_) | Self::Disk(_) => Hurdle::Hardware,
        }
    }
}

impl Refusal {
    /// The sentences.
    pub fn tell(&self, words: &dyn Words) -> String {
        let kind = words.host_kind();
        let place = match &self.pool {
            Pool::Namespace(namespace) => format!(" in namespace {namespace}"),
            Pool::Everything => String::new(),
        };
        let mut text = match (self.hosts, &self.named) {
            (0, None) => return format!("There are no {kind}s{place}."),
            (0, Some(name)) => return format!("There is no {kind} {name}{place}."),
            (_, Some(name)) => format!("{kind} {name}{place} does not fit: "),
            (1, None) => format!("The only {kind}{place} does not fit: "),
            (hosts, None) => format!("None of the {hosts} {kind}s{place} fits: "),
        };
        let told: Vec<_> = self.tally.iter().map(|(hurdle, count)| hurdle.tell(*count)).collect();
        text.push_str(&told.join(", "));
        text.push('.');
        if !self.nearest.is_empty() {
            let told = self.nearest.iter().map(|(name, bars)| {
                let bars: Vec<_> = bars.iter().map(|bar| bar.tell(words)).collect();
                format!("{name} ({})", bars.join(", "))
            });
            text = format!("{text} Nearest: {}.", told.collect::<Vec<_>>().join("; "));
        }
        text
    }
}

impl Hurdle {
    fn tell(self, count: usize) -> String {
        let (is, has) = if count == 1 { ("is", "has") } else { ("are", "have") };
        match self {
            Self::Claimed => format!("{count} {is} claimed"),
            Self::Running => format!("{count} {is} running although nobody asked for it"),
            Self::Refused => format!("{count} {has} refused"),
            Self::Tainted => format!("{count} {has} taints that are not tolerated"),
            Self::Unavailable => format!("{count} {is} not available"),
            Self::Labels => format!("{count} {has} other labels"),
            Self::Domain => format!("{count} {is} in another failure domain"),
            Self::Media => format!("{count} cannot boot the image"),
            Self::Unknown => format!("{count} {has} no known hardware"),
            Self::Hardware => format!("{count} {has} too little hardware"),
        }
    }
}

impl Bar {
    fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::Claimed(holder) => format!("claimed by {holder}"),
            Self::Running => format!(
                "running: set {}, or {} to have it taken as it is",
                words.power_request(false),
                words.claimable_while_running()
            ),
            Self::Refused(reason) => format!("refused: {reason}"),
            Self::Taint(taint) if taint.value.is_empty() => format!("tainted {}", taint.key),
            Self::Taint(taint) => format!("tainted {}={}", taint.key, taint.value),
            Self::NoDrive => "no virtual CD drive".to_owned(),
            Self::NoNetworkBoot => "no network boot".to_owned(),
            Self::Schemes(schemes) => format!("takes images only by {}", schemes.join(", ")),
            Self::Unavailable(state) => format!("is {state}"),
            Self::Label(term) => format!("not {term}"),
            Self::Domain(Some(domain)) => format!("in failure domain {domain}"),
            Self::Domain(None) => "in no failure domain".to_owned(),
            Self::Unknown => "hardware not known".to_owned(),
            Self::Cores(cores) => format!("{cores} cores"),
            Self::Memory(bytes) => format!("{} GB of memory", bytes / 1_000_000_000),
            Self::Disk(0) => "no disk known".to_owned(),
            Self::Disk(bytes) => format!("largest disk {} GB", bytes / 1_000_000_000),
        }
    }
}
