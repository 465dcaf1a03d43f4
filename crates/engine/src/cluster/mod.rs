//! The infrastructure of a cluster: the address of its API server, and its failure domains.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

/// The port of an API server whose address is taken from a Machine.
const PORT: u16 = 6443;

/// What the owner of a cluster's infrastructure wants. Derived at every step, from its object alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Goal {
    /// It is managed by somebody else.
    pub external: bool,
    /// It is being deleted.
    pub leaving: bool,
    /// The address of the API server, if its owner sets it.
    pub endpoint: Option<Endpoint>,
}

/// The address of an API server.
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
    /// Its owner.
    pub owner: Owner,
    /// Whether its object has our finalizer.
    pub protected: bool,
    /// The machines of its control plane, oldest first.
    pub control_plane: Vec<ControlPlaneMachine>,
    /// The failure domains that its hosts are in.
    pub domains: BTreeSet<String>,
}

/// Its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// It needs none: the operator runs without Cluster API.
    Nobody,
    /// Cluster API has not set an owner yet.
    Awaited,
    /// There can be none: Cluster API is not installed.
    NoClusterApi,
    /// Its Cluster was deleted, for certain.
    Gone,
    /// Nothing may be done now, for this reason: it is paused, or it is unknown whether it is.
    Paused(String),
    /// This Cluster.
    Cluster {
        /// The address of its API server, if it has one.
        endpoint: Option<Endpoint>,
        /// Kind of its control plane provider, if it has one.
        control_plane: Option<String>,
    },
}

/// A machine of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneMachine {
    /// Whether its infrastructure is ready.
    pub ready: bool,
    /// Its internal addresses, best first.
    pub internal: Vec<String>,
    /// Its other addresses.
    pub others: Vec<String>,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Set the finalizer.
    Protect,
    /// Store the address of the API server. It never changes afterwards.
    SetEndpoint(Endpoint),
    /// Remove the finalizer.
    LetGo,
}

/// The state of a cluster's infrastructure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is not managed here.
    Aside,
    /// Cluster API, which should own it, is not installed.
    NoClusterApi,
    /// Cluster API has not set an owner yet.
    AwaitsOwner,
    /// Nothing may be done, for this reason.
    Paused(String),
    /// It exists.
    Provisioned {
        /// The address of the API server, or why it is not known.
        endpoint: Result<Endpoint, Missing>,
        /// The failure domains.
        domains: BTreeSet<String>,
    },
}

/// Why the address of the API server is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// This control plane provider creates no Machine before the address is set.
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
        // It has nothing of its own to clean up.
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
        // It waits for the address, so there is no Machine to take one from.
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
