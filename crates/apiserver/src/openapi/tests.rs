use super::*;
use crate::builtins;

fn catalogue() -> Catalogue {
    let definition = json!({
        "spec": {
            "group": "infra.x-k8s.io", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "selectableFields": [{ "jsonPath": ".spec.color" }],
                "subresources": {
                    "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" },
                },
                "schema": { "openAPIV3Schema": {
                    "description": "A widget.", "type": "object",
                    "properties": { "spec": { "type": "object", "properties": { "color": { "type": "string" } } } },
                } },
            }],
        },
    });
    let mut all = builtins::resources().unwrap();
    all.push(Arc::new(crate::crd::resource(&definition, 0).unwrap()));
    Catalogue::new(all)
}

fn ask(path: &str, query: &str, tag: Option<&str>) -> Option<Response<Bytes>> {
    let mut headers = HeaderMap::new();
    if let Some(tag) = tag {
        headers.insert(IF_NONE_MATCH, tag.parse().unwrap());
    }
    answer(&catalogue(), path, query, &headers, "2026-11-16T02:53:56Z".parse().unwrap())
}

fn document(path: &str) -> Value {
    serde_json::from_slice(ask(path, "", None).unwrap().body()).unwrap()
}

#[test]
fn the_index_leads_to_documents_that_never_change() {
    let index = document("/openapi/v3");
    let names: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "api/v1",
            "apis/apiextensions.k8s.io/v1",
            "apis/coordination.k8s.io/v1",
            "apis/events.k8s.io/v1",
            "apis/infra.x-k8s.io/v1beta1"
        ]
    );
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap();
    let (path, query) = url.split_once('?').unwrap();
    let response = ask(path, query, None).unwrap();
    assert_eq!(response.headers()[CACHE_CONTROL], "public, immutable");
    assert_eq!(response.headers()[EXPIRES], "Tue, 16 Nov 2027 02:53:56 UTC");
    let tag = response.headers()[ETAG].to_str().unwrap().to_owned();
    assert_eq!(ask(path, "", Some(&tag)).unwrap().status(), StatusCode::NOT_MODIFIED);
    let moved = ask(path, "hash=ABC", None).unwrap();
    assert_eq!((moved.status(), &moved.headers()[LOCATION]), (StatusCode::MOVED_PERMANENTLY, &url.parse().unwrap()));
    assert!(ask("/openapi/v3/apis/nope/v1", "", None).is_none());
    assert!(ask("/openapi/v3/", "", None).is_none());
}

#[test]
fn kubectl_finds_what_it_needs_to_apply_and_to_explain() {
    let document = document("/openapi/v3/apis/infra.x-k8s.io/v1beta1");
    let gvk = json!({ "group": "infra.x-k8s.io", "version": "v1beta1", "kind": "Widget" });
    let folder = "/apis/infra.x-k8s.io/v1beta1/namespaces/{namespace}/widgets";
    let patch = &document["paths"][format!("{folder}/{{name}}")]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
    assert_eq!(patch["operationId"], "patchInfraXK8sIoV1beta1NamespacedWidget");
    assert!(patch["parameters"].as_array().unwrap().iter().any(|parameter| parameter["name"] == "fieldValidation"));
    let schema = &document["components"]["schemas"]["io.x-k8s.infra.v1beta1.Widget"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([gvk]));
    assert_eq!(schema["description"], "A widget.");
    assert_eq!(
        schema["properties"]["metadata"]["allOf"],
        json!([{ "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" }])
    );
    assert_eq!(schema["x-kubernetes-selectable-fields"], json!([{ "fieldPath": "spec.color" }]));
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            folder,
            &format!("{folder}/{{name}}"),
            &format!("{folder}/{{name}}/scale"),
            &format!("{folder}/{{name}}/status"),
            "/apis/infra.x-k8s.io/v1beta1/widgets"
        ]
    );
}

#[test]
fn all_references_lead_somewhere() {
    fn check(value: &Value, schemas: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let name = reference.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas[name].is_object(), "{reference}");
                }
                fields.values().for_each(|value| check(value, schemas));
            }
            Value::Array(items) => items.iter().for_each(|value| check(value, schemas)),
            _ => {}
        }
    }
    for path in document("/openapi/v3")["paths"].as_object().unwrap().keys() {
        let document = document(&format!("/openapi/v3/{path}"));
        check(&document, &document["components"]["schemas"]);
    }
}

#[test]
fn documents_about_what_has_not_changed_are_not_written_again() {
    let catalogue = catalogue();
    let old = Documents::new(&catalogue);
    let hash = &old.by_path["api/v1"].text().hash;
    let mut same = Documents::new(&Catalogue::new(catalogue.resources().to_vec()));
    carry_over(&old, &mut same);
    assert_eq!(same.by_path["api/v1"].text.get().map(|text| &text.hash), Some(hash));
    let mut other = Documents::new(&super::tests::catalogue());
    carry_over(&old, &mut other);
    assert!(other.by_path["api/v1"].text.get().is_none());
}
