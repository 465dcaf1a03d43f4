//! CRDs of Metal3's kinds. They must accept what upstream's accept and default what those default.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::edit::{at, edit, given_default, item, nullable, ruled};
use super::{columns, crd};
use crate::metal3::{BareMetalHost, HardwareData, rules};

/// The CRDs of Metal3's kinds, in a stable order.
pub fn metal3_crds() -> Vec<CustomResourceDefinition> {
    vec![bare_metal_hosts(), hardware_data()]
}

fn bare_metal_hosts() -> CustomResourceDefinition {
    let mut definition = crd::<BareMetalHost>(columns::BARE_METAL_HOST);
    edit(&mut definition, |host| {
        given_default(at(host, &["spec", "automatedCleaningMode"]), json!("metadata"));
        given_default(at(host, &["status", "errorCount"]), json!(0));
        for raid in [["spec", "raid"].as_slice(), &["status", "provisioning", "raid"]] {
            let raid = at(host, raid);
            nullable(at(raid, &["hardwareRAIDVolumes"]));
            nullable(at(raid, &["softwareRAIDVolumes"]));
        }
        for operation in ["register", "inspect", "provision", "deprovision"] {
            let operation = at(host, &["status", "operationHistory", operation]);
            nullable(at(operation, &["start"]));
            nullable(at(operation, &["end"]));
        }
        ruled(host, rules::of_object());
        ruled(at(host, &["spec"]), rules::of_spec());
        ruled(at(host, &["spec", "raid"]), rules::of_raid());
        ruled(item(at(host, &["spec", "raid", "hardwareRAIDVolumes"])), rules::of_hardware_raid_volume());
    });
    definition
}

fn hardware_data() -> CustomResourceDefinition {
    let mut definition = crd::<HardwareData>(columns::HARDWARE_DATA);
    edit(&mut definition, |_| ());
    definition
}
