//! Why a claim got no host, in words that a user can act on.

use std::collections::BTreeMap;
use std::fmt;

use super::Bar;

/// How many of the nearest hosts are named.
const NAMED: usize = 3;

/// Why no host fits: how many hosts there are, what bars them, and which of them come closest.
///
/// The text depends on the hosts alone, not on the time or on the order in which they were seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    namespace: String,
    hosts: usize,
    /// How many hosts have this as the hardest of their bars.
    tally: BTreeMap<Hurdle, usize>,
    nearest: Vec<(String, Vec<Bar>)>,
}

/// Bars without their particulars. The later, the harder to get rid of: a claim ends, a server does not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hurdle {
    Held,
    Running,
    Refused,
    Unavailable,
    Labels,
    Domain,
    Media,
    Unknown,
    Hardware,
}

impl Refusal {
    pub(super) fn new(namespace: &str, mut barred: Vec<(&str, Vec<Bar>)>) -> Self {
        let mut tally = BTreeMap::new();
        for (_, bars) in &barred {
            if let Some(hurdle) = bars.iter().map(Bar::hurdle).max() {
                *tally.entry(hurdle).or_default() += 1;
            }
        }
        let hosts = barred.len();
        // A host that is somebody else's is no near miss, however well it would fit.
        barred.retain(|(_, bars)| !bars.iter().any(|bar| matches!(bar, Bar::Held(_))));
        barred.sort_by_key(|(name, bars)| (bars.len(), *name));
        let nearest = barred.into_iter().take(NAMED).map(|(name, bars)| (name.to_owned(), bars)).collect();
        Self { namespace: namespace.to_owned(), hosts, tally, nearest }
    }
}

impl Bar {
    fn hurdle(&self) -> Hurdle {
        match self {
            Self::Held(_) => Hurdle::Held,
            Self::Running => Hurdle::Running,
            Self::Refused(_) => Hurdle::Refused,
            Self::Unavailable(_) => Hurdle::Unavailable,
            Self::Label(_) => Hurdle::Labels,
            Self::Domain(_) => Hurdle::Domain,
            Self::NoDrive | Self::NoNetworkBoot | Self::Schemes(_) => Hurdle::Media,
            Self::Unknown => Hurdle::Unknown,
            Self::Cores(_) | Self::Memory(_) | Self::Disk(_) => Hurdle::Hardware,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, hosts, tally, nearest } = self;
        match hosts {
            0 => return write!(f, "There are no PhysicalHosts in namespace {namespace}."),
            1 => write!(f, "The only PhysicalHost in namespace {namespace} does not fit: ")?,
            _ => write!(f, "None of the {hosts} PhysicalHosts in namespace {namespace} fits: ")?,
        }
        let told = tally.iter().map(|(hurdle, count)| hurdle.tell(*count)).collect::<Vec<_>>();
        write!(f, "{}.", told.join(", "))?;
        if !nearest.is_empty() {
            let told = nearest.iter().map(|(name, bars)| {
                let bars: Vec<_> = bars.iter().map(Bar::to_string).collect();
                format!("{name} ({})", bars.join(", "))
            });
            write!(f, " Nearest: {}.", told.collect::<Vec<_>>().join("; "))?;
        }
        Ok(())
    }
}

impl Hurdle {
    fn tell(self, count: usize) -> String {
        let (is, has) = if count == 1 { ("is", "has") } else { ("are", "have") };
        match self {
            Self::Held => format!("{count} {is} claimed"),
            Self::Running => format!("{count} {is} running although nobody asked for it"),
            Self::Refused => format!("{count} {has} refused"),
            Self::Unavailable => format!("{count} {is} not available"),
            Self::Labels => format!("{count} {has} other labels"),
            Self::Domain => format!("{count} {is} in another failure domain"),
            Self::Media => format!("{count} cannot boot the image"),
            Self::Unknown => format!("{count} {has} no known hardware"),
            Self::Hardware => format!("{count} {has} too little hardware"),
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(holder) => write!(f, "claimed by {holder}"),
            Self::Running => f.write_str(
                "running: set spec.online: false, or spec.claimableWhileRunning: true to have it taken as it is",
            ),
            Self::Refused(reason) => write!(f, "refused: {reason}"),
            Self::NoDrive => f.write_str("no virtual CD drive"),
            Self::NoNetworkBoot => f.write_str("no network boot"),
            Self::Schemes(schemes) => write!(f, "takes images only by {}", schemes.join(", ")),
            Self::Unavailable(state) => write!(f, "is {state}"),
            Self::Label(term) => write!(f, "not {term}"),
            Self::Domain(Some(domain)) => write!(f, "in failure domain {domain}"),
            Self::Domain(None) => f.write_str("in no failure domain"),
            Self::Unknown => f.write_str("hardware not known"),
            Self::Cores(cores) => write!(f, "{cores} cores"),
            Self::Memory(bytes) => write!(f, "{} GB of memory", bytes / 1_000_000_000),
            Self::Disk(0) => f.write_str("no disk known"),
            Self::Disk(bytes) => write!(f, "largest disk {} GB", bytes / 1_000_000_000),
        }
    }
}
