//! BIOS attributes that were changed, and those that wait for a boot.

use serde_json::{Map, Value, json};

use crate::bmc::{Core, State};
use crate::server::Server;

/// Changes that wait.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) attributes: Map<String, Value>,
    /// Number of boots when they were scheduled; `None` if they were not scheduled.
    pub(crate) boots: Option<u32>,
    /// The task that ends with them.
    pub(crate) task: Option<u32>,
}

/// What differs from the tree.
#[derive(Debug, Default)]
pub(crate) struct Bios {
    pub(crate) changed: Map<String, Value>,
    pub(crate) pending: Option<Pending>,
}

impl Bios {
    /// Applies what is pending if the server has booted since; returns the task that has ended.
    pub(crate) fn apply(&mut self, server: &Server) -> Option<u32> {
        let pending = self.pending.take_if(|p| p.boots.is_some_and(|boots| server.boots > boots))?;
        self.changed.extend(pending.attributes);
        pending.task
    }
}

impl Core {
    /// The system to which a BIOS belongs.
    pub(crate) fn bios_owner(&self, path: &str) -> Option<usize> {
        let below = |system: &str| {
            path.get(..system.len()).is_some_and(|start| start.eq_ignore_ascii_case(system))
                && path[system.len()..].starts_with('/')
        };
        self.places.systems.iter().position(|s| below(&s.path))
    }

    pub(crate) fn lay_bios(&self, state: &State, path: &str, settings: bool, body: &mut Value) {
        let Some(bios) = self.bios_owner(path).and_then(|system| state.bios.get(&system)) else { return };
        if !body["Attributes"].is_object() {
            body["Attributes"] = json!({});
        }
        let Some(attributes) = body["Attributes"].as_object_mut() else { return };
        if !settings || self.personality.bios.mirrors {
            attributes.extend(bios.changed.clone());
        }
        if settings && let Some(pending) = &bios.pending {
            attributes.extend(pending.attributes.clone());
        }
    }
}
