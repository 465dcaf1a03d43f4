//! Names of fields and annotations in sentences about a BareMetalHost.

use api::metal3::names;
use engine::host::Words;

use crate::dialect::ANCHOR_ANNOTATION;

/// The words of BareMetalHosts.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostWords;

impl Words for HostWords {
    fn host_kind(&self) -> &'static str {
        "BareMetalHost"
    }

    fn claim(&self) -> &'static str {
        "spec.image"
    }

    fn order(&self) -> &'static str {
        "spec.image"
    }

    fn power(&self) -> &'static str {
        "spec.online"
    }

    fn system(&self) -> &'static str {
        "the path of spec.bmc.address"
    }

    fn anchor(&self) -> String {
        format!("the annotation {ANCHOR_ANNOTATION}")
    }

    fn restart(&self) -> &'static str {
        names::REBOOT
    }

    fn to_restart(&self) -> String {
        format!("annotate the host with {}", names::REBOOT)
    }

    fn to_restart_again(&self) -> String {
        self.to_restart()
    }

    fn to_release(&self, _: &str) -> String {
        "remove spec.image".to_owned()
    }

    fn to_provision(&self, _: &str) -> String {
        format!("remove spec.image and set it again, or state what runs there in the annotation {}", names::STATUS)
    }

    fn to_inspect(&self) -> String {
        format!("annotate the host with {}", names::INSPECT)
    }

    fn to_trust(&self) -> String {
        "If this really is your BMC, set spec.bmc.disableCertificateVerification to true, or have its certificate signed by an authority that the operator's machine trusts.".to_owned()
    }

    fn to_force_deletion(&self) -> String {
        format!("annotate it with {}", names::DETACHED)
    }

    fn to_ask_for_power(&self, online: bool) -> String {
        format!("set spec.online to {}, then to {online} again", !online)
    }
}
