//! The one function that decides about a claim.

use super::{Binds, Bootstrap, Goal, Host, Image, Leave, Machine, Memory, Owner, Refusal, Refused, Road, Sight};
use crate::host::{Milestone, Phase};
use crate::server::PowerState;

/// Something to do for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Give it an id and set the finalizer. Nothing else is done before that is stored.
    Protect,
    /// Look at the image that it asks for.
    CheckImage,
    /// Let the placer look for a host.
    Place,
    /// Store which hosts refused. Nothing else is done before that is stored.
    Remember,
    /// Write the order on this host anew.
    Reorder {
        /// The host.
        host: String,
    },
    /// Remove the claim from this host, which cannot serve it or is a second one.
    GiveBack {
        /// The host.
        host: String,
    },
    /// Store the provider ID of its host.
    NameProvider(String),
    /// Remove the claim from this host.
    Release {
        /// The host.
        host: String,
        /// Put it into quarantine once it is released, for this reason.
        quarantine: Option<&'static str>,
    },
    /// Remove the finalizer.
    LetGo,
}

/// The state of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing may be done, for this reason.
    Paused(String),
    /// It was moved to another cluster.
    Moving,
    /// Cluster API has not set an owner.
    AwaitsOwner,
    /// Cluster API, which should set an owner, is not installed.
    NoClusterApi,
    /// The cluster's infrastructure is not ready.
    AwaitsCluster,
    /// The bootstrap data does not exist yet, or no longer.
    AwaitsBootstrap(Bootstrap),
    /// The image cannot be fetched, or was not checked yet.
    AwaitsImage(Option<Refused>),
    /// There is no host for it, for this reason.
    AwaitsHost(Option<String>),
    /// This host could not serve it and is given back; then the claim looks for another one.
    Refused {
        /// The host.
        host: String,
        /// Why.
        why: Refused,
    },
    /// The request can never be served.
    Unservable(Refused),
    /// The request cannot be served until somebody has done something.
    Blocked(Refused),
    /// Its host is being provisioned.
    Provisioning {
        /// The host.
        host: String,
        /// What the host waits for.
        wait: Option<Refused>,
        /// What is wrong with the host.
        fault: Option<Refused>,
    },
    /// Its host runs.
    Provisioned {
        /// The host.
        host: String,
        /// Its provider ID.
        provider: String,
        /// Whether its server is off, so that it cannot be a node.
        is_off: bool,
    },
    /// The host that it was provisioned on no longer belongs to it.
    Lost {
        /// Its provider ID.
        provider: String,
    },
    /// Its host is being switched off and cleaned up.
    Releasing {
        /// The host.
        host: String,
        /// What the host waits for.
        wait: Option<Refused>,
        /// What is wrong with the host.
        fault: Option<Refused>,
    },
    /// It has no host and needs none.
    Left,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where the claim stands.
    pub standing: Standing,
    /// What to do now, one after the other.
    pub acts: Vec<Act>,
    /// Hosts that could not serve it, to be stored.
    pub refusals: Vec<Refusal>,
}

/// Why a host is in quarantine after a forced release.
const FORCED: &str = "Its machine was deleted by force, before the server was seen switched off.";
/// Why a host is in quarantine after a release with that policy.
const ASKED: &str = "Its machine had the release policy Quarantine.";

/// Decides what follows from what is wanted, remembered and seen. Total and pure.
pub fn step(goal: &Goal, memory: &Memory, sight: &Sight) -> Step {
    let mut step = decide(goal, memory, sight);
    if step.refusals.is_empty() && !matches!(step.standing, Standing::Provisioned { .. }) {
        step.refusals = Refusal::about(&memory.refusals, &goal.order);
    }
    step
}

fn decide(goal: &Goal, memory: &Memory, sight: &Sight) -> Step {
    if goal.road == Road::Leave(Leave::Move) {
        return Standing::Moving.rests();
    }
    let machine = match &sight.owner {
        Owner::Paused(why) => return Standing::Paused(why.clone()).rests(),
        Owner::Machine(machine) => Some(machine),
        Owner::Nobody | Owner::Awaited | Owner::NoClusterApi | Owner::Gone => None,
    };
    match goal.road {
        Road::Leave(leave) => part(goal, sight, leave),
        Road::Keep if matches!(sight.owner, Owner::Awaited | Owner::NoClusterApi | Owner::Gone) => match &sight.host {
            Some(host) => follow(goal, memory, sight, host).without_acts(),
            None if sight.owner == Owner::NoClusterApi => Standing::NoClusterApi.rests(),
            None => Standing::AwaitsOwner.rests(),
        },
        Road::Keep if memory.id.is_none() => Standing::AwaitsHost(None).with(Act::Protect),
        Road::Keep => match &sight.host {
            Some(host) => follow(goal, memory, sight, host),
            None => seek(goal, memory, sight, machine),
        },
    }
}

/// Without a host: what does it take to get one?
fn seek(goal: &Goal, memory: &Memory, sight: &Sight, machine: Option<&Machine>) -> Step {
    if let Some(provider) = &memory.provider {
        // A machine never moves to another server: create a new machine for that.
        return Standing::Lost { provider: provider.clone() }.rests();
    }
    if let Some(refused) = &goal.unservable {
        return Standing::Unservable(refused.clone()).rests();
    }
    if let Some(refused) = &goal.blocked {
        return Standing::Blocked(refused.clone()).rests();
    }
    if machine.is_some_and(|machine| !machine.cluster_ready) {
        return Standing::AwaitsCluster.rests();
    }
    match (machine.map_or(Bootstrap::None, |machine| machine.bootstrap), &goal.needs_bootstrap) {
        (Bootstrap::Awaited, _) => return Standing::AwaitsBootstrap(Bootstrap::Awaited).rests(),
        (Bootstrap::Missing, Some(_)) => return Standing::AwaitsBootstrap(Bootstrap::Missing).rests(),
        (Bootstrap::None, Some(refused)) => return Standing::Blocked(refused.clone()).rests(),
        _ => {}
    }
    if goal.needs_image {
        match &sight.image {
            Image::Good => {}
            Image::Unknown => return Standing::AwaitsImage(None).with(Act::CheckImage),
            Image::Unreachable(why) => return Standing::AwaitsImage(Some(why.clone())).with(Act::CheckImage),
            Image::Bad(why) => return Standing::Blocked(why.clone()).with(Act::CheckImage),
        }
    }
    Standing::AwaitsHost(sight.refusal.clone()).with(Act::Place)
}

/// With a host: how far is it?
fn follow(goal: &Goal, memory: &Memory, sight: &Sight, host: &Host) -> Step {
    if memory.provider.as_ref().is_some_and(|provider| *provider != host.provider) {
        return Standing::Lost { provider: memory.provider.clone().unwrap_or_default() }.rests();
    }
    if !host.claimed {
        // The host's own loop reports that the claim was removed while its machine exists.
        return match &memory.provider {
            Some(provider) => Standing::Lost { provider: provider.clone() }.rests(),
            None => match Refusal::find(&memory.refusals, &host.name, &goal.order, sight.now) {
                Some(refusal) => host.refused(&refusal.why).rests(),
                None => host.standing().rests(),
            },
        };
    }
    let never_ran = memory.provider.is_none() && host.never_ran();
    if goal.needs_image
        && never_ran
        && let Image::Bad(why) = &sight.image
    {
        let release = Act::Release { host: host.name.clone(), quarantine: None };
        return Standing::Blocked(why.clone()).with(release);
    }
    let awaits_start = never_ran && matches!(host.phase, Phase::Available | Phase::Preparing);
    if awaits_start && !host.ordered && can_be_ordered(goal, sight) {
        return host.standing().with(Act::Reorder { host: host.name.clone() });
    }
    if let Some(why) = host.refusal.as_ref().filter(|_| awaits_start && host.ordered) {
        return refuse(goal, memory, sight, host, why);
    }
    let provisioned =
        || Standing::Provisioned { host: host.name.clone(), provider: host.provider.clone(), is_off: host.is_off() };
    if memory.provider.is_some() {
        // What looks like a second host now may be the one that runs.
        return provisioned().rests();
    }
    let doubles = sight.doubles.iter().filter(|double| double.can_be_given_back());
    let mut acts: Vec<_> = doubles.map(|double| Act::GiveBack { host: double.name.clone() }).collect();
    let is_bound = match goal.binds {
        Binds::WhenBooted => host.has_booted(),
        Binds::WhenAccepted => host.bound,
    };
    if is_bound {
        acts.push(Act::NameProvider(host.provider.clone()));
        return Step { standing: provisioned(), acts, refusals: Vec::new() };
    }
    if goal.needs_image && never_ran {
        acts.push(Act::CheckImage);
    }
    Step { standing: host.standing(), acts, refusals: Vec::new() }
}

/// Whether the present order could be given to a host now.
fn can_be_ordered(goal: &Goal, sight: &Sight) -> bool {
    goal.unservable.is_none() && goal.blocked.is_none() && (!goal.needs_image || sight.image == Image::Good)
}

/// The host cannot serve the claim, and nothing was started: it is given back once the refusal is stored.
fn refuse(goal: &Goal, memory: &Memory, sight: &Sight, host: &Host, why: &Refused) -> Step {
    let standing = host.refused(why);
    if Refusal::find(&memory.refusals, &host.name, &goal.order, sight.now).is_some() {
        return standing.with(Act::GiveBack { host: host.name.clone() });
    }
    let refusals = Refusal::add(&memory.refusals, &host.name, &goal.order, why, sight.now);
    Step { standing, acts: vec![Act::Remember], refusals }
}

fn part(goal: &Goal, sight: &Sight, leave: Leave) -> Step {
    let Some(host) = &sight.host else { return Standing::Left.with(Act::LetGo) };
    let standing = Standing::Releasing { host: host.name.clone(), wait: host.wait.clone(), fault: host.fault.clone() };
    let quarantine = match leave {
        Leave::Force => Some(FORCED),
        _ if goal.quarantine => Some(ASKED),
        _ => None,
    };
    let mut acts = Vec::new();
    if host.claimed || leave == Leave::Force {
        acts.push(Act::Release { host: host.name.clone(), quarantine });
    }
    if leave == Leave::Force {
        acts.push(Act::LetGo);
    }
    Step { standing, acts, refusals: Vec::new() }
}

impl Host {
    /// Whether its server is booting the ordered system.
    pub fn is_booting(&self) -> bool {
        self.claimed && self.bound && self.phase == Phase::Provisioning
    }

    /// Whether it has the claim, and nothing was done that a release would have to undo.
    fn can_be_given_back(&self) -> bool {
        self.claimed && (!self.bound || self.never_ran())
    }

    /// Whether its order was changed too late: the server may run the old one.
    pub fn ignores_order(&self) -> bool {
        !self.ordered && !self.never_ran()
    }

    /// Whether the ordered system cannot run on it. A host whose anchor was lost shows no milestone, but its phase does.
    fn never_ran(&self) -> bool {
        matches!(self.milestone, Milestone::None | Milestone::Armed)
            && !matches!(self.phase, Phase::Provisioning | Phase::Provisioned)
    }

    fn has_booted(&self) -> bool {
        self.bound && self.phase == Phase::Provisioned
    }

    fn standing(&self) -> Standing {
        Standing::Provisioning { host: self.name.clone(), wait: self.wait.clone(), fault: self.fault.clone() }
    }

    fn refused(&self, why: &Refused) -> Standing {
        Standing::Refused { host: self.name.clone(), why: why.clone() }
    }

    /// A BMC that does not answer says nothing about the node, but a server that is off cannot be a node.
    fn is_off(&self) -> bool {
        self.power == PowerState::Off
    }
}

impl Standing {
    fn rests(self) -> Step {
        Step { standing: self, acts: Vec::new(), refusals: Vec::new() }
    }

    fn with(self, act: Act) -> Step {
        Step { standing: self, acts: vec![act], refusals: Vec::new() }
    }
}

impl Step {
    fn without_acts(self) -> Self {
        Self { acts: Vec::new(), ..self }
    }
}
