//! CRDs of metal-operator's kinds. They must accept what upstream's accept, default what those default, and refuse what those refuse.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::json;

use super::edit::{at, edit, given_default, item, ruled};
use super::{columns, crd};
use crate::ironcore::{
    Bmc, BmcSecret, Endpoint, Server, ServerBootConfiguration, ServerClaim, ServerMaintenance, ServerReadinessRule,
    rules,
};

/// A quantity, as Kubernetes writes it.
const QUANTITY_PATTERN: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
);

/// The CRDs of metal-operator's kinds, in a stable order.
pub fn ironcore_crds() -> Vec<CustomResourceDefinition> {
    vec![
        endpoints(),
        bmcs(),
        bmc_secrets(),
        servers(),
        server_claims(),
        server_boot_configurations(),
        server_maintenances(),
        server_readiness_rules(),
    ]
}

fn endpoints() -> CustomResourceDefinition {
    let mut definition = crd::<Endpoint>(columns::ENDPOINT);
    edit(&mut definition, |_| ());
    deprecated(
        definition,
        "metal.ironcore.dev/v1alpha1 Endpoints are deprecated; specify the network access inline via BMC.spec.access (an InlineEndpoint with macAddress and ip) instead",
    )
}

fn bmcs() -> CustomResourceDefinition {
    let mut definition = crd::<Bmc>(columns::BMC);
    edit(&mut definition, |bmc| {
        references(bmc);
        given_default(at(bmc, &["status", "state"]), json!("Pending"));
        ruled(at(bmc, &["spec"]), rules::of_bmc());
        ruled(at(bmc, &["spec", "access"]), rules::immutable("access is immutable"));
        ruled(at(bmc, &["spec", "endpointRef"]), rules::immutable("endpointRef is immutable"));
    });
    definition
}

fn bmc_secrets() -> CustomResourceDefinition {
    let mut definition = crd::<BmcSecret>(columns::BMC_SECRET);
    edit(&mut definition, |secret| ruled(secret, rules::of_secret()));
    definition
}

fn servers() -> CustomResourceDefinition {
    let mut definition = crd::<Server>(columns::SERVER);
    edit(&mut definition, |server| {
        references(server);
        given_default(at(server, &["spec", "reclaimPolicy"]), json!("Recycle"));
        given_default(at(server, &["spec", "unclaimable"]), json!(false));
        given_default(at(item(at(server, &["spec", "taints"])), &["effect"]), json!("NoBind"));
        for field in ["name", "namespace"] {
            ruled(at(server, &["spec", "serverClaimRef", field]), rules::unchanged());
        }
        let status = at(server, &["status"]);
        quantity(at(status, &["totalSystemMemory"]));
        for part in ["drives", "volumes"] {
            quantity(at(item(at(item(at(status, &["storages"])), &[part])), &["capacity"]));
        }
    });
    definition
}

fn server_claims() -> CustomResourceDefinition {
    let mut definition = crd::<ServerClaim>(columns::SERVER_CLAIM);
    edit(&mut definition, |claim| {
        references(claim);
        ruled(at(claim, &["spec"]), rules::of_claim());
        ruled(at(claim, &["spec", "serverRef"]), rules::immutable("serverRef is immutable"));
        ruled(at(claim, &["spec", "serverSelector"]), rules::immutable("serverSelector is immutable"));
    });
    definition
}

fn server_boot_configurations() -> CustomResourceDefinition {
    let mut definition = crd::<ServerBootConfiguration>(columns::SERVER_BOOT_CONFIGURATION);
    edit(&mut definition, references);
    definition
}

fn server_maintenances() -> CustomResourceDefinition {
    let mut definition = crd::<ServerMaintenance>(columns::SERVER_MAINTENANCE);
    edit(&mut definition, |maintenance| {
        references(maintenance);
        given_default(at(maintenance, &["spec", "priority"]), json!(0));
    });
    deprecated(definition, "metal.ironcore.dev/v1alpha1 ServerMaintenance is deprecated")
}

fn server_readiness_rules() -> CustomResourceDefinition {
    let mut definition = crd::<ServerReadinessRule>(&[]);
    edit(&mut definition, |rule| {
        rule.required = Some(vec!["spec".to_owned()]);
        let spec = at(rule, &["spec"]);
        for field in ["conditions", "enforcementMode", "serverSelector"] {
            ruled(at(spec, &[field]), rules::immutable(&format!("{field} is immutable")));
        }
        let taint = at(spec, &["taint"]);
        ruled(taint, rules::of_taint());
        given_default(at(taint, &["effect"]), json!("NoBind"));
    });
    definition
}

/// The API server warns everybody who uses the kind.
fn deprecated(mut definition: CustomResourceDefinition, warning: &str) -> CustomResourceDefinition {
    for version in &mut definition.spec.versions {
        version.deprecated = Some(true);
        version.deprecation_warning = Some(warning.to_owned());
    }
    definition
}

/// Every reference by nothing but a name has an empty one by default.
fn references(schema: &mut JSONSchemaProps) {
    let atomic = schema.x_kubernetes_map_type.as_deref() == Some("atomic");
    for (name, field) in schema.properties.iter_mut().flatten() {
        if atomic && name == "name" {
            given_default(field, json!(""));
        }
        references(field);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        references(items);
    }
}

/// A number, or text with a unit.
fn quantity(schema: &mut JSONSchemaProps) {
    let either = |type_: &str| JSONSchemaProps { type_: Some(type_.to_owned()), ..JSONSchemaProps::default() };
    schema.type_ = None;
    schema.any_of = Some(vec![either("integer"), either("string")]);
    schema.pattern = Some(QUANTITY_PATTERN.to_owned());
    schema.x_kubernetes_int_or_string = Some(true);
}
