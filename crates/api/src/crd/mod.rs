//! CRDs, generated from the types.

mod columns;
mod edit;
mod ironcore;
mod metal3;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::beskar7::{
    self, Beskar7Cluster, Beskar7ClusterTemplate, Beskar7Machine, Beskar7MachineTemplate, PhysicalHost,
};
use crate::boot::BootSession;
use columns::Column;
pub use ironcore::ironcore_crds;
pub use metal3::metal3_crds;

/// What stands above the generated YAML.
const HEADER: &str = "# Generated from crates/api by `make manifests`. Do not edit.\n";

/// The CRDs that an operator needs unless other dialects are named: those of Beskar7, and those of every operator.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [beskar7_crds(), shared_crds()].concat()
}

/// The CRDs of Beskar7's own resources, in a stable order.
pub fn beskar7_crds() -> Vec<CustomResourceDefinition> {
    vec![
        two_versions(crd::<PhysicalHost>(columns::PHYSICAL_HOST)),
        two_versions(crd::<Beskar7Machine>(columns::MACHINE)),
        two_versions(crd::<Beskar7MachineTemplate>(columns::TEMPLATE)),
        two_versions(crd::<Beskar7Cluster>(columns::CLUSTER)),
        two_versions(crd::<Beskar7ClusterTemplate>(columns::TEMPLATE)),
    ]
}

/// The CRDs that every operator needs, whatever its dialects.
pub fn shared_crds() -> Vec<CustomResourceDefinition> {
    vec![crd::<BootSession>(columns::BOOT_SESSION)]
}

/// The CRDs of [`crds`] as YAML documents, ready for `kubectl apply`.
pub fn crds_yaml() -> String {
    documents(&crds())
}

/// CRDs as YAML documents, ready for `kubectl apply`.
pub fn documents(crds: &[CustomResourceDefinition]) -> String {
    let documents: Vec<_> = crds.iter().map(yaml).collect();
    format!("{HEADER}---\n{}", documents.join("---\n"))
}

/// CRDs as files: name and content. Those of [`crds`] are in `config/crd`, those of [`metal3_crds`] and [`ironcore_crds`] in folders below.
pub fn files(crds: &[CustomResourceDefinition]) -> Vec<(String, String)> {
    let file = |crd: &CustomResourceDefinition| {
        let name = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
        (name, format!("{HEADER}---\n{}", yaml(crd)))
    };
    crds.iter().map(file).collect()
}

#[expect(clippy::expect_used, reason = "plain data that does not depend on input; tests write all of it")]
fn yaml(crd: &CustomResourceDefinition) -> String {
    serde_saphyr::to_string(crd).expect("a CRD can be written as YAML")
}

fn crd<K: CustomResourceExt>(columns: &[Column]) -> CustomResourceDefinition {
    let mut crd = K::crd();
    for version in &mut crd.spec.versions {
        let columns: Vec<_> = columns.iter().map(Column::definition).collect();
        version.additional_printer_columns = Some(columns).filter(|columns| !columns.is_empty());
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            tidy(schema);
        }
    }
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    crd.spec.conversion = Some(CustomResourceConversion { strategy: "None".to_owned(), webhook: None });
    crd
}

/// One shape under two versions. With nothing to convert, the API server relabels objects by itself.
fn two_versions(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let old = crd.spec.versions.first().cloned().map(|mut version| {
        beskar7::OLD_VERSION.clone_into(&mut version.name);
        version.storage = false;
        version
    });
    crd.spec.versions.extend(old);
    crd
}

/// Makes a generated schema say what Go's generator would say.
///
/// * An optional field may be left out, not null: with server-side apply, null is neither "unset" nor a value.
/// * No defaults: what nobody wrote is not in the object, and diffs stay quiet. No titles either: they are Rust's names.
/// * Kubernetes knows no unsigned formats and warns about them.
/// * A line break in a doc comment is not a line break in `kubectl explain`.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.default = None;
    schema.title = None;
    if let Some(format @ ("uint32" | "uint64")) = schema.format.as_deref() {
        debug_assert!(schema.minimum.is_some(), "{format} without a minimum");
        schema.format = Some("int64".to_owned());
    }
    if let Some(description) = &mut schema.description {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        tidy(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => tidy(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
}
