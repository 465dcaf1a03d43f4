use serde_json::{Value, json};

use super::*;
use crate::resource::Part;
use crate::status::Qualified;

fn built_in(group: &str, plural: &str) -> (Arc<Resource>, usize) {
    let served = crate::catalogue::Catalogue::new(resources().unwrap()).find(group, "v1", plural).unwrap();
    (served.resource, served.index)
}

/// What becomes of a new object, or the sentence that refuses it.
fn create(group: &str, plural: &str, object: Value) -> Result<Value, String> {
    write(group, plural, object, None, Part::Main)
}

fn write(group: &str, plural: &str, mut new: Value, old: Option<&Value>, part: Part) -> Result<Value, String> {
    let (resource, index) = built_in(group, plural);
    let version = &resource.versions[index];
    if let Some(convert) = version.convert {
        (convert.store)(&mut new);
    }
    (resource.hooks.default)(&mut new);
    (resource.hooks.prepare)(&mut new, old, part);
    let errors = (resource.hooks.validate)(&new, old, part, version);
    if errors.is_empty() {
        return Ok(new);
    }
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    Err(Failure::invalid(Qualified { group: &resource.group, name: &resource.kind }, name, &errors).message)
}

#[test]
fn secrets_take_plain_text_and_get_a_type() {
    let secret = json!({ "metadata": { "name": "s1" }, "stringData": { "a": "x" }, "data": { "b": "eA==" } });
    assert_eq!(
        create("", "secrets", secret).unwrap(),
        json!({ "metadata": { "name": "s1" }, "data": { "a": "eA==", "b": "eA==" }, "type": "Opaque" })
    );
    let empty = json!({ "metadata": { "name": "s4" }, "type": "", "data": null, "immutable": false });
    assert_eq!(
        create("", "secrets", empty).unwrap(),
        json!({ "metadata": { "name": "s4" }, "immutable": false, "type": "Opaque" })
    );
}

#[test]
fn secrets_must_hold_what_their_type_promises() {
    for (kind, expected) in [
        (
            "kubernetes.io/tls",
            r#"Secret "s2" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]"#,
        ),
        (
            "kubernetes.io/basic-auth",
            r#"Secret "s2" is invalid: [data[username]: Required value, data[password]: Required value]"#,
        ),
        ("kubernetes.io/ssh-auth", r#"Secret "s2" is invalid: data[ssh-privatekey]: Required value"#),
        ("kubernetes.io/dockerconfigjson", r#"Secret "s2" is invalid: data[.dockerconfigjson]: Required value"#),
        ("kubernetes.io/dockercfg", r#"Secret "s2" is invalid: data[.dockercfg]: Required value"#),
        (
            "kubernetes.io/service-account-token",
            r#"Secret "s2" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value"#,
        ),
    ] {
        let secret = json!({ "metadata": { "name": "s2" }, "type": kind });
        assert_eq!(create("", "secrets", secret).unwrap_err(), expected);
    }
    assert!(create("", "secrets", json!({ "type": "anything goes" })).is_ok());
}

#[test]
fn keys_of_secrets_must_be_file_names() {
    let secret =
        json!({ "metadata": { "name": "s2" }, "data": { "b b": "eA==", "..": "eA==", "": "eA==", "..a": "" } });
    assert_eq!(
        create("", "secrets", secret).unwrap_err(),
        "Secret \"s2\" is invalid: [\
         data[]: Invalid value: \"\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
         (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+'), \
         data[..]: Invalid value: \"..\": must not be '..', \
         data[..a]: Invalid value: \"..a\": must not start with '..', \
         data[b b]: Invalid value: \"b b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
         (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')]"
    );
    let big = json!({ "metadata": { "name": "big" }, "stringData": { "a": "x".repeat(rules::MOST_DATA + 1) } });
    assert_eq!(
        create("", "secrets", big).unwrap_err(),
        "Secret \"big\" is invalid: data: Too long: may not be more than 1048576 bytes"
    );
}

#[test]
fn an_immutable_secret_stays_as_it_is() {
    let old = json!({ "metadata": { "name": "s3" }, "type": "anything goes", "immutable": true });
    let new = json!({ "metadata": { "name": "s3" }, "type": "other", "data": { "a": "" }, "immutable": false });
    assert_eq!(
        write("", "secrets", new, Some(&old), Part::Main).unwrap_err(),
        "Secret \"s3\" is invalid: [type: Invalid value: \"other\": field is immutable, immutable: Forbidden: field is \
         immutable when `immutable` is set, data: Forbidden: field is immutable when `immutable` is set]"
    );
}

#[test]
fn keys_of_a_config_map_are_unique_in_both_maps() {
    let map = json!({
        "metadata": { "name": "c1" }, "data": { "a": "x", "a b": "y" }, "binaryData": { "a": "eA==", "..": "" }
    });
    assert_eq!(
        create("", "configmaps", map).unwrap_err(),
        "ConfigMap \"c1\" is invalid: [data[a]: Invalid value: \"a\": duplicate of key present in binaryData, data[a \
         b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
         'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+'), binaryData[..]: \
         Invalid value: \"..\": must not be '..']"
    );
    let big = json!({ "metadata": { "name": "big" }, "data": { "a": "x".repeat(rules::MOST_DATA + 1) } });
    assert_eq!(
        create("", "configmaps", big).unwrap_err(),
        "ConfigMap \"big\" is invalid: []: Too long: may not be more than 1048576 bytes"
    );
}

#[test]
fn durations_of_leases_are_positive() {
    let lease = json!({ "metadata": { "name": "l2" }, "spec": { "leaseDurationSeconds": 0, "leaseTransitions": -1 } });
    assert_eq!(
        create("coordination.k8s.io", "leases", lease).unwrap_err(),
        "Lease.coordination.k8s.io \"l2\" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater \
         than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]"
    );
    let lease = json!({ "spec": { "holderIdentity": "", "strategy": "x", "preferredHolder": "y", "renewTime": null } });
    assert_eq!(create("coordination.k8s.io", "leases", lease).unwrap(), json!({ "spec": { "holderIdentity": "" } }));
    assert_eq!(create("coordination.k8s.io", "leases", json!({})).unwrap(), json!({ "spec": {} }));
}

#[test]
fn namespaces_are_born_active_with_a_finalizer_and_their_name_as_a_label() {
    let namespace = json!({
        "metadata": { "name": "b" }, "spec": { "finalizers": ["x/y"] }, "status": { "phase": "Terminating" }
    });
    let born = create("", "namespaces", namespace).unwrap();
    assert_eq!(
        born,
        json!({
            "metadata": { "name": "b", "labels": { "kubernetes.io/metadata.name": "b" } },
            "spec": { "finalizers": ["x/y", "kubernetes"] },
            "status": { "phase": "Active" },
        })
    );
    let changed = json!({ "metadata": { "name": "b", "labels": { "a": "b" } }, "spec": { "finalizers": ["z/y"] } });
    let changed = write("", "namespaces", changed, Some(&born), Part::Main).unwrap();
    assert_eq!(changed["spec"], born["spec"]);
    assert_eq!(changed["metadata"]["labels"], json!({ "a": "b", "kubernetes.io/metadata.name": "b" }));
    assert_eq!(
        create("", "namespaces", json!({ "metadata": { "name": "d" }, "spec": { "finalizers": ["nope"] } }))
            .unwrap_err(),
        "Namespace \"d\" is invalid: spec.finalizers: Invalid value: \"nope\": name is neither a standard finalizer \
         name nor is it fully qualified"
    );
    let early = json!({ "metadata": { "name": "b" }, "status": { "phase": "Terminating" } });
    assert_eq!(
        write("", "namespaces", early, Some(&born), Part::Status).unwrap_err(),
        "Namespace \"b\" is invalid: status.Phase: Invalid value: \"Terminating\": may only be 'Active' if \
         `deletionTimestamp` is empty"
    );
    let hooks = built_in("", "namespaces").0.hooks;
    assert_eq!((hooks.valid_name)("a.b").unwrap_err(), "must not contain dots");
    let mut dying = born;
    (hooks.deleting)(&mut dying);
    assert_eq!(dying["status"]["phase"], "Terminating");
    assert!((hooks.held)(&dying));
}

const EVENT_META: &str = r#"{ "name": "e1", "namespace": "a" }"#;

fn event(fields: &Value) -> Value {
    let mut event = json!({ "metadata": serde_json::from_str::<Value>(EVENT_META).unwrap() });
    for (key, value) in fields.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

#[test]
fn core_events_always_show_the_same_fields() {
    let stored = create("", "events", event(&json!({ "involvedObject": { "namespace": "a" } }))).unwrap();
    assert_eq!(
        stored,
        event(&json!({
            "involvedObject": { "namespace": "a" }, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": null, "reportingComponent": "", "reportingInstance": "",
        }))
    );
    let (resource, index) = built_in("events.k8s.io", "events");
    let mut loaded = stored.clone();
    (resource.versions[index].convert.unwrap().load)(&mut loaded);
    assert_eq!(
        loaded,
        event(&json!({
            "apiVersion": "events.k8s.io/v1", "eventTime": null, "regarding": { "namespace": "a" },
            "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
        }))
    );
}

#[test]
fn events_are_the_same_through_either_group() {
    let (resource, index) = built_in("events.k8s.io", "events");
    let convert = resource.versions[index].convert.unwrap();
    let core = event(&json!({
        "apiVersion": "v1", "involvedObject": { "kind": "Pod", "name": "p" }, "reason": "r", "message": "m",
        "source": { "component": "c" }, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1, "type": "Weird", "eventTime": null, "reportingComponent": "x.io/ab", "reportingInstance": "i",
        "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z" }, "action": "a",
        "related": { "name": "q" },
    }));
    let mut through = core.clone();
    (convert.load)(&mut through);
    assert_eq!(
        through,
        event(&json!({
            "apiVersion": "events.k8s.io/v1", "regarding": { "kind": "Pod", "name": "p" }, "reason": "r", "note": "m",
            "deprecatedSource": { "component": "c" }, "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
            "deprecatedLastTimestamp": "2026-01-01T00:00:00Z", "deprecatedCount": 1, "type": "Weird", "eventTime": null,
            "reportingController": "x.io/ab", "reportingInstance": "i", "action": "a", "related": { "name": "q" },
            "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z" },
        }))
    );
    (convert.store)(&mut through);
    assert_eq!(through, core);
}

#[test]
fn events_must_be_where_their_object_is() {
    let stray = event(&json!({ "involvedObject": { "namespace": "other" } }));
    assert_eq!(
        create("", "events", stray).unwrap_err(),
        "Event \"e1\" is invalid: involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"
    );
    assert_eq!(
        create("events.k8s.io", "events", event(&json!({}))).unwrap_err(),
        "Event \"e1\" is invalid: [involvedObject.namespace: Invalid value: \"\": does not match event.namespace, \
         eventTime: Required value, type: Invalid value: \"\": has invalid value: ]"
    );
}

#[test]
fn new_events_must_be_complete() {
    let bare = event(&json!({ "eventTime": "2026-01-01T00:00:00.123456Z" }));
    let sentence = |field: &str| {
        format!(
            "Event \"e1\" is invalid: [involvedObject.namespace: Invalid value: \"\": does not match event.namespace, \
             {field}: Required value, {field}: Invalid value: \"\": name part must be non-empty, {field}: Invalid value: \
             \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), reportingInstance: Required value, action: Required value, \
             reason: Required value"
        )
    };
    assert_eq!(create("", "events", bare.clone()).unwrap_err(), sentence("reportingComponent") + "]");
    assert_eq!(
        create("events.k8s.io", "events", bare).unwrap_err(),
        sentence("reportingController") + ", type: Invalid value: \"\": has invalid value: ]"
    );
    let old_fields = event(&json!({
        "eventTime": "2026-01-01T00:00:00.123456Z", "regarding": { "namespace": "a" }, "reportingController": "ab",
        "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal", "series": { "count": 1 },
        "deprecatedCount": 2, "deprecatedSource": { "component": "x" },
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z", "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
    }));
    assert_eq!(
        create("events.k8s.io", "events", old_fields).unwrap_err(),
        "Event \"e1\" is invalid: [series.count: Invalid value: \"\": should be at least 2, series.lastObservedTime: \
         Required value, firstTimestamp: Invalid value: \"\": needs to be unset, lastTimestamp: Invalid value: \"\": \
         needs to be unset, count: Invalid value: \"\": needs to be unset, source: Invalid value: \"\": needs to be \
         unset]"
    );
}

#[test]
fn definitions_get_their_names_completed_and_remember_what_was_stored() {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": schema }, { "name": "v2", "schema": schema },
            ],
        },
    });
    let born = create("apiextensions.k8s.io", "customresourcedefinitions", definition).unwrap();
    assert_eq!(
        born["spec"]["names"],
        json!({ "plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList" })
    );
    assert_eq!(born["spec"]["conversion"], json!({ "strategy": "None" }));
    let second = json!({ "name": "v2", "served": false, "storage": false, "schema": schema });
    assert_eq!(born["spec"]["versions"][1], second);
    assert_eq!(
        born["status"],
        json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": ["v1"] })
    );
}

#[test]
fn definitions_are_kept_without_what_says_nothing() {
    let definition = json!({ "spec": {
        "preserveUnknownFields": false, "names": { "kind": "Thing", "shortNames": [], "categories": [] },
        "versions": [{
            "name": "v1", "served": true, "storage": true, "deprecated": false, "selectableFields": [],
            "additionalPrinterColumns": [
                { "name": "A", "type": "string", "jsonPath": ".a", "priority": 0, "format": "", "description": "" },
            ],
            "schema": { "openAPIV3Schema": {
                "type": "object", "description": "", "required": [],
                "properties": { "spec": { "type": "object", "nullable": false, "properties": {
                    "a": { "type": "array", "items": { "type": "string", "minLength": 0, "pattern": "" } },
                    "e": { "uniqueItems": false, "x-kubernetes-validations": [{ "rule": "self > 0", "message": "" }] },
                } } },
            } },
        }],
    } });
    let (resource, _) = built_in("apiextensions.k8s.io", "customresourcedefinitions");
    let mut kept = definition;
    (resource.hooks.default)(&mut kept);
    assert_eq!(
        kept["spec"],
        json!({
            "conversion": { "strategy": "None" },
            "names": { "kind": "Thing", "singular": "thing", "listKind": "ThingList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [{ "name": "A", "type": "string", "jsonPath": ".a" }],
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": {
                        "a": { "type": "array", "items": { "type": "string", "minLength": 0 } },
                        "e": { "x-kubernetes-validations": [{ "rule": "self > 0" }] },
                    } } },
                } },
            }],
        })
    );
}
