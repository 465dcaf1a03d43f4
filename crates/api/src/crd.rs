//! CRDs, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;

use crate::beskar7::{self, PhysicalHost};

/// What stands above the generated YAML.
const HEADER: &str = "# Generated from crates/api by `make manifests`. Do not edit.\n";

/// The CRDs of all resources, in a stable order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![physical_hosts()]
}

/// The same as YAML documents, ready for `kubectl apply`.
pub fn crds_yaml() -> String {
    let documents: Vec<_> = crds().iter().map(yaml).collect();
    format!("{HEADER}---\n{}", documents.join("---\n"))
}

/// The same as the files of `config/crd`: name and content.
pub fn crd_files() -> Vec<(String, String)> {
    let file = |crd: &CustomResourceDefinition| {
        let name = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
        (name, format!("{HEADER}---\n{}", yaml(crd)))
    };
    crds().iter().map(file).collect()
}

#[expect(clippy::expect_used, reason = "plain data that does not depend on input; tests write all of it")]
fn yaml(crd: &CustomResourceDefinition) -> String {
    serde_saphyr::to_string(crd).expect("a CRD can be written as YAML")
}

/// What `kubectl get ph` shows: one line that tells whether a server needs somebody, and with `-o wide` what it is and
/// what ails it. State, Ready and Age are upstream's. The sentence comes last, since it is long.
const PHYSICAL_HOST_COLUMNS: &[Column] = &[
    column("State", ".status.state", "Where the host is in its life"),
    Column { type_: "boolean", ..column("Ready", ".status.ready", "Whether the host is enrolled and usable") },
    column("Power", ".status.observedPowerState", "Power, as the BMC reports it"),
    column("Health", ".status.health", "Health of the server and all its parts"),
    column("Fault", ".status.fault.reason", "What is wrong, in a word"),
    column("Consumer", ".spec.consumerRef.name", "Who holds the host"),
    Column { type_: "date", ..column("Age", ".metadata.creationTimestamp", "When the object was created") },
    wide("Address", ".spec.redfishConnection.address", "Address of the BMC"),
    wide("Model", ".status.hardwareDetails.model", "Model of the server"),
    wide("Serial", ".status.hardwareDetails.serialNumber", "Serial number of the server"),
    wide("Hardware", ".status.hardwareDetails.summary", "Cores, memory and disks"),
    wide("Message", ".status.errorMessage", "What is wrong, in a sentence"),
];

/// One column of `kubectl get`.
struct Column {
    name: &'static str,
    type_: &'static str,
    path: &'static str,
    description: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
}

const fn column(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", path, description, wide: false }
}

const fn wide(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { wide: true, ..column(name, path, description) }
}

impl Column {
    fn definition(&self) -> CustomResourceColumnDefinition {
        CustomResourceColumnDefinition {
            name: self.name.to_owned(),
            type_: self.type_.to_owned(),
            json_path: self.path.to_owned(),
            description: Some(self.description.to_owned()),
            priority: self.wide.then_some(1),
            format: None,
        }
    }
}

/// One shape under two versions. With nothing to convert, the API server relabels objects by itself.
fn physical_hosts() -> CustomResourceDefinition {
    let mut crd = PhysicalHost::crd();
    for version in &mut crd.spec.versions {
        version.additional_printer_columns = Some(PHYSICAL_HOST_COLUMNS.iter().map(Column::definition).collect());
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            tidy(schema);
        }
    }
    let old = crd.spec.versions.first().cloned().map(|mut version| {
        beskar7::OLD_VERSION.clone_into(&mut version.name);
        version.storage = false;
        version
    });
    crd.spec.versions.extend(old);
    crd.spec.conversion = Some(CustomResourceConversion { strategy: "None".to_owned(), webhook: None });
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
