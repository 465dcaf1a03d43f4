use http::HeaderValue;

use super::*;
use crate::builtins;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                  application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

fn catalogue() -> Catalogue {
    Catalogue::new(builtins::resources().unwrap())
}

fn legacy(path: &str) -> Value {
    document(&catalogue(), path, "127.0.0.1:6443").unwrap()
}

fn ask(path: &str, accept: &str, tag: Option<&HeaderValue>) -> Option<Response<Bytes>> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept.parse().unwrap());
    if let Some(tag) = tag {
        headers.insert(IF_NONE_MATCH, tag.clone());
    }
    aggregated(&catalogue(), path, &headers)
}

#[test]
fn legacy_documents_name_groups_versions_and_resources() {
    assert_eq!(
        legacy("/api"),
        json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [
            { "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443" },
        ] })
    );
    let groups = legacy("/apis");
    let names: Vec<&str> = groups["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert_eq!(names, BUILT_IN_GROUPS);
    assert_eq!(
        legacy("/apis/events.k8s.io/"),
        json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "events.k8s.io",
            "versions": [{ "groupVersion": "events.k8s.io/v1", "version": "v1" }],
            "preferredVersion": { "groupVersion": "events.k8s.io/v1", "version": "v1" },
        })
    );
    assert_eq!(
        legacy("/apis/apiextensions.k8s.io/v1"),
        json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apiextensions.k8s.io/v1",
            "resources": [
                {
                    "name": "customresourcedefinitions", "singularName": "customresourcedefinition", "namespaced": false,
                    "kind": "CustomResourceDefinition",
                    "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                    "shortNames": ["crd", "crds"], "categories": ["api-extensions"], "storageVersionHash": "jfWCUB31mvA=",
                },
                {
                    "name": "customresourcedefinitions/status", "singularName": "", "namespaced": false,
                    "kind": "CustomResourceDefinition", "verbs": ["get", "patch", "update"],
                },
            ],
        })
    );
    assert_eq!(document(&catalogue(), "/apis/nope", ""), None);
    assert_eq!(document(&catalogue(), "/api/v2", ""), None);
}

#[test]
fn the_core_group_has_its_subresources() {
    let list = legacy("/api/v1");
    let resources = list["resources"].as_array().unwrap();
    let names: Vec<&str> = resources.iter().map(|resource| resource["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "configmaps",
            "events",
            "namespaces",
            "namespaces/finalize",
            "namespaces/status",
            "secrets",
            "serviceaccounts",
            "serviceaccounts/token"
        ]
    );
    assert_eq!(
        resources[2],
        json!({
            "name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace",
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"], "shortNames": ["ns"],
            "storageVersionHash": "Q3oi5N2YM8M=",
        })
    );
    assert_eq!(
        resources[7],
        json!({
            "name": "serviceaccounts/token", "singularName": "", "namespaced": true, "group": "authentication.k8s.io",
            "version": "v1", "kind": "TokenRequest", "verbs": ["create"],
        })
    );
    assert_eq!(resources[0]["storageVersionHash"], "qFsyl6wFWjQ=");
    assert_eq!(legacy("/apis/events.k8s.io/v1")["resources"][0]["storageVersionHash"], "r2yiGXH7wu8=");
}

#[test]
fn the_aggregated_document_replaces_all_others() {
    let response = ask("/apis", V2, None).unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], AGGREGATED);
    assert_eq!(response.headers()[CACHE_CONTROL], "public");
    let document: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(document["items"][1]["metadata"], json!({ "name": "authentication.k8s.io", "creationTimestamp": null }));
    assert_eq!(
        document["items"][3],
        json!({
            "metadata": { "name": "apiextensions.k8s.io", "creationTimestamp": null },
            "versions": [{ "version": "v1", "freshness": "Current", "resources": [{
                "resource": "customresourcedefinitions",
                "responseKind": { "group": "", "version": "", "kind": "CustomResourceDefinition" },
                "scope": "Cluster", "singularResource": "customresourcedefinition",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["crd", "crds"], "categories": ["api-extensions"],
                "subresources": [{
                    "subresource": "status",
                    "responseKind": { "group": "", "version": "", "kind": "CustomResourceDefinition" },
                    "verbs": ["get", "patch", "update"],
                }],
            }] }],
        })
    );
    let core: Value = serde_json::from_slice(ask("/api", V2, None).unwrap().body()).unwrap();
    assert_eq!(core["items"][0]["metadata"], json!({ "creationTimestamp": null }));
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_aggregated_document_is_only_for_those_who_ask_and_do_not_have_it() {
    assert!(ask("/apis", "application/json", None).is_none());
    assert!(ask("/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", None).is_none());
    assert!(ask("/apis/events.k8s.io", V2, None).is_none());
    let tag = ask("/apis", V2, None).unwrap().headers()[ETAG].clone();
    let again = ask("/apis", V2, Some(&tag)).unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(again.body().is_empty());
    assert_eq!(ask("/api", V2, Some(&tag)).unwrap().status(), StatusCode::OK);
}
