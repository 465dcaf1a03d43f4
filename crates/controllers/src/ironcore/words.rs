//! Names of fields and annotations in sentences about Servers and BMCs.

use api::ironcore::names::{self, operations};
use engine::host::Words;

use super::access::TRUST;
use crate::dialect::ANCHOR_ANNOTATION;

/// The words of Servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerWords;

impl Words for ServerWords {
    fn host_kind(&self) -> &'static str {
        "Server"
    }

    fn claim(&self) -> &'static str {
        "spec.serverClaimRef"
    }

    fn claim_id(&self) -> String {
        format!("the annotation {}", super::server::CLAIM_ID)
    }

    fn order(&self) -> &'static str {
        "spec.bootConfigurationRef"
    }

    fn power(&self) -> &'static str {
        "spec.power of its ServerClaim"
    }

    fn power_request(&self, online: bool) -> String {
        format!("{}: {}", self.power(), if online { "On" } else { "Off" })
    }

    fn power_is(&self, online: bool) -> String {
        format!("{} is {}", self.power(), if online { "On" } else { "Off" })
    }

    fn claimable_while_running(&self) -> &'static str {
        "switch it off"
    }

    fn system(&self) -> &'static str {
        "spec.systemUUID"
    }

    fn anchor(&self) -> String {
        format!("the annotation {ANCHOR_ANNOTATION}")
    }

    fn restart(&self) -> &'static str {
        names::OPERATION
    }

    /// Not every request restarts the server: power can also be cut.
    fn restart_request(&self, id: &str) -> String {
        let asked = if id.is_empty() { String::new() } else { format!("{id} ") };
        format!("request {asked}by the annotation {}", self.restart())
    }

    fn to_restart(&self) -> String {
        format!("annotate the Server with {}: {}", names::OPERATION, operations::GRACEFUL_RESTART_SERVER)
    }

    fn to_restart_again(&self) -> String {
        self.to_restart()
    }

    fn to_release(&self, claim: &str) -> String {
        format!("delete the ServerClaim, or annotate the Server with {}: {claim}", super::server::RELEASE)
    }

    fn to_provision(&self, claim: &str) -> String {
        format!("annotate the Server with {}: {claim}", super::server::PROVISION)
    }

    fn to_inspect(&self) -> String {
        format!("annotate the Server with {}", super::server::INSPECT)
    }

    fn to_trust(&self) -> String {
        format!(
            "If this really is your BMC, annotate its BMC object with {TRUST}: sha256:… (the fingerprint of its certificate), or insecure."
        )
    }

    fn to_force_deletion(&self) -> String {
        format!("annotate it with {}: \"true\"", super::server::FORCE_DELETE)
    }

    fn to_free_wiped(&self) -> String {
        format!("annotate the Server with {}: the same value as {}", super::server::WIPED, super::server::RELEASED)
    }

    fn to_ask_for_power(&self, online: bool) -> String {
        format!("set spec.power of its ServerClaim to {}", if online { "On" } else { "Off" })
    }
}

/// The words of BMCs.
#[derive(Debug, Clone, Copy)]
pub(super) struct BmcWords;

impl Words for BmcWords {
    fn host_kind(&self) -> &'static str {
        "BMC"
    }

    fn system(&self) -> &'static str {
        "spec.systemUUID of a Server"
    }

    fn to_trust(&self) -> String {
        format!(
            "If this really is your BMC, annotate it with {TRUST}: sha256:… (the fingerprint of its certificate), or insecure."
        )
    }
}
