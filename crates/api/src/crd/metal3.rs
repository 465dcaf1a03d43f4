//! CRDs of Metal3's kinds. They must accept what upstream's accept and default what those default.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use serde_json::{Value, json};

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

/// Changes the schema of the one version. An object may have no spec: the types read that as an empty one.
fn edit(definition: &mut CustomResourceDefinition, change: impl FnOnce(&mut JSONSchemaProps)) {
    let version = definition.spec.versions.first_mut().and_then(|version| version.schema.as_mut());
    if let Some(schema) = version.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
        schema.required = None;
        change(schema);
    }
}

/// The schema of a field.
#[expect(clippy::panic, reason = "plain data that does not depend on input; tests build all of it")]
fn at<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> &'a mut JSONSchemaProps {
    path.iter().fold(schema, |schema, field| {
        let field_schema = schema.properties.as_mut().and_then(|properties| properties.get_mut(*field));
        field_schema.unwrap_or_else(|| panic!("there is no field {path:?}"))
    })
}

/// The schema of a list's items.
#[expect(clippy::panic, reason = "plain data that does not depend on input; tests build all of it")]
fn item(schema: &mut JSONSchemaProps) -> &mut JSONSchemaProps {
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => items,
        _ => panic!("not a list"),
    }
}

fn given_default(schema: &mut JSONSchemaProps, default: Value) {
    schema.default = Some(JSON(default));
}

fn nullable(schema: &mut JSONSchemaProps) {
    schema.nullable = Some(true);
}

fn ruled(schema: &mut JSONSchemaProps, rules: Vec<ValidationRule>) {
    schema.x_kubernetes_validations = Some(rules);
}
