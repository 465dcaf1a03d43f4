//! What becomes of a cluster's own infrastructure: where its API server is reached, and which servers may fail together.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

/// The port of an API server whose endpoint we find ourselves.
const PORT: u16 = 6443;

/// What the owner of a cluster's infrastructure wants. Derived every time, from its object alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Goal {
    /// Somebody else looks after it.
    pub external: bool,
    /// It is to be forgotten.
    pub leaving: bool,
    /// Where the API server is reached, if its owner says so.
    pub endpoint: Option<Endpoint>,
}

/// Where an API server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// IP address or DNS name.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// What was just seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Whose infrastructure it is.
    pub owner: Owner,
    /// Whether its object cannot vanish without us.
    pub protected: bool,
    /// The machines of its control plane, oldest first.
    pub control_plane: Vec<ControlPlaneMachine>,
    /// The failure domains that its hosts are in.
    pub domains: BTreeSet<String>,
}

/// Whose infrastructure it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's but its author's: there is no Cluster API here.
    Nobody,
    /// Cluster API has not taken it over yet.
    Awaited,
    /// Nobody can own it: Cluster API is not installed.
    NoClusterApi,
    /// The Cluster is gone for certain.
    Gone,
    /// Nothing may be done now, for this reason: it is paused, or whether it is cannot be told.
    Paused(String),
    /// This cluster's.
    Cluster {
        /// Where its API server is reached, if it says so.
        endpoint: Option<Endpoint>,
        /// What makes its control plane, if anything does.
        control_plane: Option<String>,
    },
}

/// A machine of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneMachine {
    /// Whether its infrastructure is ready.
    pub ready: bool,
    /// Its addresses inside, best first.
    pub internal: Vec<String>,
    /// Its other addresses.
    pub others: Vec<String>,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Keep the object from vanishing.
    Protect,
    /// Store where the API server is reached. It never changes afterwards.
    SetEndpoint(Endpoint),
    /// Let the object go.
    LetGo,
}

/// Where a cluster's infrastructure stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is none of our business.
    Aside,
    /// Cluster API, which is to own it, is not installed.
    NoClusterApi,
    /// Cluster API has not taken it over yet.
    AwaitsOwner,
    /// Nothing may be done, for this reason.
    Paused(String),
    /// It is there.
    Provisioned {
        /// Where the API server is reached, or why that is not known.
        endpoint: Result<Endpoint, Missing>,
        /// The failure domains.
        domains: BTreeSet<String>,
    },
}

/// Why it is not known where the API server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// This control plane provider makes no machine before it is told.
    RequiredBy(String),
    /// No machine of the control plane is ready, or none has an address.
    NoMachine,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it stands.
    pub standing: Standing,
    /// What to do now, one after the other.
    pub acts: Vec<Act>,
}

/// Decides what follows from what is wanted and seen. Total and pure.
pub fn step(goal: &Goal, sight: &Sight) -> Step {
    let aside = Step { standing: Standing::Aside, acts: Vec::new() };
    if goal.external {
        return aside;
    }
    let (told, provider) = match &sight.owner {
        Owner::Paused(why) => return Step { standing: Standing::Paused(why.clone()), acts: Vec::new() },
        // There is nothing of its own to take down.
        _ if goal.leaving => return Step { acts: vec![Act::LetGo], ..aside },
        Owner::NoClusterApi => return Step { standing: Standing::NoClusterApi, ..aside },
        Owner::Awaited => return Step { standing: Standing::AwaitsOwner, ..aside },
        Owner::Gone => return aside,
        Owner::Nobody => (None, None),
        Owner::Cluster { endpoint, control_plane } => (endpoint.clone(), control_plane.clone()),
    };
    let mut acts = Vec::new();
    if !sight.protected {
        acts.push(Act::Protect);
    }
    let endpoint = match (&goal.endpoint, told, provider) {
        (Some(given), _, _) => Ok(given.clone()),
        (None, Some(told), _) => Ok(told),
        // It waits for us and would not get a machine that we could take the address of.
        (None, None, Some(provider)) => Err(Missing::RequiredBy(provider)),
        (None, None, None) => sight.first_address().ok_or(Missing::NoMachine),
    };
    if goal.endpoint.is_none()
        && let Ok(endpoint) = &endpoint
    {
        acts.push(Act::SetEndpoint(endpoint.clone()));
    }
    Step { standing: Standing::Provisioned { endpoint, domains: sight.domains.clone() }, acts }
}

impl Sight {
    fn first_address(&self) -> Option<Endpoint> {
        let machine = self.control_plane.iter().find(|machine| machine.ready && machine.address().is_some())?;
        Some(Endpoint { host: machine.address()?.to_owned(), port: PORT })
    }
}

impl ControlPlaneMachine {
    fn address(&self) -> Option<&str> {
        self.internal.first().or(self.others.first()).map(String::as_str)
    }
}
