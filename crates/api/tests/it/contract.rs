//! What Cluster API expects of a provider's CRDs.

use serde_json::{Value, json};

use crate::crds::crd_of;

/// The kinds that Cluster API refers to, their plurals as it computes them, and whether they have a status.
const KINDS: [(&str, &str, bool); 4] = [
    ("Beskar7Machine", "beskar7machines", true),
    ("Beskar7MachineTemplate", "beskar7machinetemplates", false),
    ("Beskar7Cluster", "beskar7clusters", true),
    ("Beskar7ClusterTemplate", "beskar7clustertemplates", false),
];

#[test]
fn crds_are_found_by_the_names_that_cluster_api_computes() {
    for (kind, plural, _) in KINDS {
        let crd = crd_of(kind);
        assert_eq!(crd["metadata"]["name"], format!("{plural}.infrastructure.cluster.x-k8s.io"));
        assert_eq!(crd["spec"]["names"]["plural"], plural);
        assert_eq!(crd["spec"]["names"]["singular"], kind.to_lowercase());
        assert_eq!(crd["spec"]["names"]["listKind"], format!("{kind}List"));
        assert_eq!(crd["spec"]["scope"], "Namespaced");
    }
}

#[test]
fn the_label_names_a_contract_and_versions_that_are_served() {
    for (kind, ..) in KINDS {
        let crd = crd_of(kind);
        // Not v1beta2: its failure domains are a list.
        assert_eq!(crd["metadata"]["labels"], json!({"cluster.x-k8s.io/v1beta1": "v1beta1"}), "{kind}");
        let served: Vec<_> = crd["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|v| v["served"] == true)
            .map(|v| &v["name"])
            .collect();
        assert!(served.contains(&&json!("v1beta1")), "{kind}");
    }
}

#[test]
fn statuses_are_subresources_and_templates_have_none() {
    for (kind, _, status) in KINDS {
        let version = &crd_of(kind)["spec"]["versions"][0];
        let expected = if status { json!({"status": {}}) } else { json!({}) };
        let found = if version["subresources"].is_null() { json!({}) } else { version["subresources"].clone() };
        assert_eq!(found, expected, "{kind}");
        assert_eq!(version["schema"]["openAPIV3Schema"]["properties"]["status"].is_object(), status, "{kind}");
    }
}

#[test]
fn kinds_are_in_the_categories_and_show_cluster_and_age() {
    for (kind, ..) in KINDS {
        let crd = crd_of(kind);
        assert_eq!(crd["spec"]["names"]["categories"], json!(["cluster-api", "beskar7"]), "{kind}");
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
        let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(names[0], "Cluster", "{kind}");
        assert!(names.contains(&"Age"), "{kind}");
        assert_eq!(columns[0]["jsonPath"], r".metadata.labels.cluster\.x-k8s\.io/cluster-name", "{kind}");
    }
}

#[test]
fn nothing_is_kept_that_the_schema_does_not_name() {
    fn walk(schema: &Value, path: &str) {
        assert_eq!(schema["x-kubernetes-preserve-unknown-fields"], Value::Null, "{path}");
        assert_eq!(schema["default"], Value::Null, "{path}: a default would show up in dry runs as a change");
        if schema["type"] == "array" {
            assert!(schema["x-kubernetes-list-type"].is_string(), "{path}");
            walk(&schema["items"], &format!("{path}[]"));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(property, &format!("{path}.{name}"));
        }
        if schema["additionalProperties"].is_object() {
            walk(&schema["additionalProperties"], &format!("{path}[]"));
        }
    }
    for (kind, ..) in KINDS {
        walk(&crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], kind);
    }
}

#[test]
fn conditions_and_failure_domains_have_the_shape_of_the_v1beta1_contract() {
    for kind in ["Beskar7Machine", "Beskar7Cluster"] {
        let status = &crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
        let conditions = &status["properties"]["conditions"];
        assert_eq!(conditions["x-kubernetes-list-type"], "map");
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
        assert_eq!(conditions["items"]["required"], json!(["lastTransitionTime", "status", "type"]));
        assert_eq!(status["properties"]["initialization"]["properties"]["provisioned"]["type"], "boolean");
        assert_eq!(status["properties"]["ready"]["type"], "boolean");
        if kind == "Beskar7Cluster" {
            let domain = &status["properties"]["failureDomains"]["additionalProperties"];
            assert_eq!(domain["properties"]["controlPlane"]["type"], "boolean");
        }
    }
}

#[test]
fn a_machine_has_no_failure_domain_in_its_spec() {
    // Core would copy it over the Machine's own, even when it is empty.
    let schema = &crd_of("Beskar7Machine")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(schema["spec"]["properties"]["failureDomain"], Value::Null);
    assert!(schema["status"]["properties"]["failureDomain"].is_object());
}

#[test]
fn templates_name_metadata_or_it_would_be_lost() {
    for kind in ["Beskar7MachineTemplate", "Beskar7ClusterTemplate"] {
        let spec = crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
        assert_eq!(spec["required"], json!(["template"]), "{kind}");
        let template = &spec["properties"]["template"];
        assert_eq!(template["required"], json!(["spec"]), "{kind}");
        for part in ["labels", "annotations"] {
            assert_eq!(
                template["properties"]["metadata"]["properties"][part]["additionalProperties"]["type"], "string",
                "{kind}"
            );
        }
    }
}

#[test]
fn a_template_holds_the_spec_of_its_kind() {
    for kind in ["Beskar7Machine", "Beskar7Cluster"] {
        let spec = |kind: &str| {
            crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].clone()
        };
        assert_eq!(spec(&format!("{kind}Template"))["template"]["properties"]["spec"]["properties"], spec(kind));
    }
}

#[test]
fn reasons_are_words_that_core_accepts() {
    // Core copies them into a metav1.Condition: a letter first, then letters, digits, `_`, `,` or `:`.
    let source = include_str!("../../src/beskar7/conditions.rs");
    let words: Vec<_> = source.lines().filter_map(|line| line.split_once("&str = \"")).collect();
    assert!(words.len() > 50);
    for (_, rest) in words {
        let word = rest.trim_end_matches("\";");
        assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
        assert!(word.chars().all(|c| c.is_ascii_alphanumeric()), "{word}");
    }
}
