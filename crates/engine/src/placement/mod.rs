//! Which host a claim gets, and why not another one.
//!
//! All waiting claims are placed together, oldest first, on one snapshot of the hosts, so that no host is given to two of them. A
//! claim that gets none is told why.

mod explain;
mod fit;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

pub use explain::Refusal;
pub use fit::{Bar, Requirements, Selector, Term, Test, domain};

/// A claim that waits for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who claims: a name that users know, and the last tie-break.
    pub claimant: String,
    /// Since when it waits. The claim that has waited longest goes first.
    pub since: Timestamp,
    /// Only hosts of this pool.
    pub pool: Pool,
    /// Only the host of this name.
    pub named: Option<String>,
    /// Taints that it tolerates.
    pub tolerations: Vec<Toleration>,
    /// Only hosts with such labels.
    pub selector: Selector,
    /// Only hosts in this failure domain.
    pub failure_domain: Option<String>,
    /// Labels that name the failure domain of a host. The first that it has counts.
    pub domain_keys: Vec<String>,
    /// The minimum hardware of the host.
    pub requirements: Requirements,
    /// How its server is to boot.
    pub way: BootWay,
    /// Hosts that could not serve this claim recently, as [`Pool::name_of`] calls them, each with its reason.
    pub refused_by: BTreeMap<String, String>,
    /// Claims of one group are spread over racks.
    pub group: String,
}

/// Where a claim looks for hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pool {
    /// In one namespace.
    Namespace(String),
    /// Among all hosts.
    Everything,
}

impl Pool {
    /// What whoever looks for hosts here calls a host: by its name, and by its namespace if that is another one.
    pub fn name_of(&self, namespace: &str, name: &str) -> String {
        let is_own = matches!(self, Self::Namespace(own) if own == namespace);
        if is_own || namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
    }

    fn contains(&self, host: &Candidate) -> bool {
        match self {
            Self::Namespace(namespace) => *namespace == host.namespace,
            Self::Everything => true,
        }
    }
}

impl Request {
    /// The name of a host, as this pool shows it.
    fn name_of(&self, host: &Candidate) -> String {
        self.pool.name_of(&host.namespace, &host.name)
    }

    /// Whether this is one of the hosts that it asks for.
    fn means(&self, host: &Candidate) -> bool {
        self.pool.contains(host) && self.named.as_ref().is_none_or(|name| *name == host.name)
    }
}

/// A mark on a host that repels claims which do not tolerate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    pub value: String,
}

/// A taint that a claim tolerates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// Key.
    pub key: String,
    /// Value; `None` for any.
    pub value: Option<String>,
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        self.key == taint.key && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

/// How a server is to boot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BootWay {
    /// In any way.
    #[default]
    Any,
    /// From an image that its BMC fetches by this scheme, such as `https`.
    Image(String),
    /// From the network.
    Network,
}

/// A host as the placer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Namespace; empty if hosts of its kind have none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Taints. Only claims that tolerate them get the host.
    pub taints: Vec<Taint>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it can be claimed.
    pub availability: Availability,
    /// The rack that it is in.
    pub rack: Option<String>,
    /// What is known of its hardware; `None` before it was inspected.
    pub capacity: Option<Capacity>,
    /// What is known of its virtual CD drives; `None` before they were read.
    pub media: Option<MediaWays>,
    /// Whether it can boot from the network; `None` if its BMC does not report it.
    pub network_boot: Option<bool>,
    /// When it was last released; `None` if it never was.
    pub released: Option<Timestamp>,
}

/// Whether a host can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Free,
    /// Somebody has claimed it.
    Claimed {
        /// Who.
        holder: String,
        /// The group of the claimer, if it has one.
        group: Option<String>,
    },
    /// Its server runs although nobody asked for it, so somebody may use it.
    Running,
    /// Not now: it is in this state.
    Unavailable(String),
}

/// The hardware of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Cores of all CPUs; 0 if the BMC does not report them.
    pub cores: u32,
    /// Memory; 0 if the BMC does not report it.
    pub memory_bytes: u64,
    /// Sizes of the disks that the BMC reports.
    pub disk_bytes: Vec<u64>,
}

/// How a server takes images.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaWays {
    /// How many virtual CD drives its BMC shows.
    pub drives: u32,
    /// Schemes of the image URLs that it takes; empty if it states none.
    pub schemes: Vec<String>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It gets this host.
    Placed {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It gets none for now.
    Refused(Refusal),
}

/// Decides for all requests. The answers are in the order of the requests.
pub fn place(requests: &[Request], hosts: &[Candidate]) -> Vec<Outcome> {
    let mut order: Vec<(usize, &Request)> = requests.iter().enumerate().collect();
    order.sort_by_key(|(_, request)| (request.since, &request.pool, &request.claimant));
    let mut round = Round::new(hosts);
    let mut outcomes: Vec<(usize, Outcome)> =
        order.into_iter().map(|(index, request)| (index, round.place(request))).collect();
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

type Rank<'a> = (u32, Reverse<u32>, Option<Timestamp>, &'a str, &'a str);

/// One placement of all waiting claims.
struct Round<'a> {
    hosts: &'a [Candidate],
    /// Hosts that were taken in this round, and by which request.
    given: HashMap<(&'a str, &'a str), &'a str>,
    /// How many hosts a group of a namespace has in a rack.
    crowds: HashMap<(&'a str, &'a str, &'a str), u32>,
}

impl<'a> Round<'a> {
    fn new(hosts: &'a [Candidate]) -> Self {
        let mut round = Self { hosts, given: HashMap::new(), crowds: HashMap::new() };
        for host in hosts {
            if let Availability::Claimed { group: Some(group), .. } = &host.availability {
                round.join(host, group);
            }
        }
        round
    }

    fn place(&mut self, request: &'a Request) -> Outcome {
        let hosts: Vec<_> = self.hosts.iter().filter(|host| request.means(host)).collect();
        let room = self.room(request, &hosts);
        let (mut best, mut barred) = (None, Vec::new());
        for host in hosts {
            let mut bars = request.bars(host);
            if let Some(holder) = self.given.get(&(host.namespace.as_str(), host.name.as_str())) {
                bars.insert(0, Bar::Claimed((*holder).to_owned()));
            }
            if bars.is_empty() {
                let rank = self.rank(request, host, &room);
                if best.as_ref().is_none_or(|(other, _)| rank < *other) {
                    best = Some((rank, host));
                }
            } else {
                barred.push((request.name_of(host), bars));
            }
        }
        let Some((_, host)) = best else { return Outcome::Refused(Refusal::new(request, barred)) };
        self.given.insert((&host.namespace, &host.name), &request.claimant);
        self.join(host, &request.group);
        Outcome::Placed { namespace: host.namespace.clone(), name: host.name.clone() }
    }

    /// How many free hosts each failure domain has left, for claims that accept any of them.
    fn room(&self, request: &Request, hosts: &[&'a Candidate]) -> HashMap<&'a str, u32> {
        let mut room = HashMap::new();
        if request.failure_domain.is_some() {
            return room;
        }
        for host in hosts {
            let is_free = host.availability == Availability::Free
                && !self.given.contains_key(&(host.namespace.as_str(), host.name.as_str()));
            if let Some(domain) = domain(&host.labels, &request.domain_keys).filter(|_| is_free) {
                *room.entry(domain).or_default() += 1;
            }
        }
        room
    }

    /// Lower is better: first, few hosts of the same group in the rack; then, the failure domain with most hosts left (hosts
    /// without one come first); then, the longest unused; then, by name.
    fn rank(&self, request: &Request, host: &'a Candidate, room: &HashMap<&str, u32>) -> Rank<'a> {
        let left = domain(&host.labels, &request.domain_keys)
            .map_or(u32::MAX, |domain| room.get(domain).copied().unwrap_or_default());
        let crowd = host
            .rack
            .as_deref()
            .and_then(|rack| self.crowds.get(&(host.namespace.as_str(), request.group.as_str(), rack)).copied());
        (crowd.unwrap_or(0), Reverse(left), host.released, &host.name, &host.namespace)
    }

    fn join(&mut self, host: &'a Candidate, group: &'a str) {
        if let Some(rack) = &host.rack {
            *self.crowds.entry((&host.namespace, group, rack)).or_default() += 1;
        }
    }
}
