//! Questions about users and permissions: objects that are answered, not stored.

use std::collections::BTreeMap;

use schema::object;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::{Attributes, Auth, Decision, User, authorize, jwt};
use crate::status::{Failure, FieldError, Qualified};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// A kind of question: a resource that can only be created. All have version `v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewKind {
    /// The API group.
    pub group: &'static str,
    /// `selfsubjectreviews`; the singular is the same without its last letter.
    pub plural: &'static str,
    /// `SelfSubjectReview`.
    pub kind: &'static str,
    /// Whether it is asked within a namespace.
    pub namespaced: bool,
}

/// All of them, in the order of discovery.
pub const REVIEWS: &[ReviewKind] = &[
    ReviewKind { group: AUTHENTICATION, plural: "selfsubjectreviews", kind: "SelfSubjectReview", namespaced: false },
    ReviewKind { group: AUTHENTICATION, plural: "tokenreviews", kind: "TokenReview", namespaced: false },
    ReviewKind {
        group: AUTHORIZATION,
        plural: "localsubjectaccessreviews",
        kind: "LocalSubjectAccessReview",
        namespaced: true,
    },
    ReviewKind {
        group: AUTHORIZATION,
        plural: "selfsubjectaccessreviews",
        kind: "SelfSubjectAccessReview",
        namespaced: false,
    },
    ReviewKind {
        group: AUTHORIZATION,
        plural: "selfsubjectrulesreviews",
        kind: "SelfSubjectRulesReview",
        namespaced: false,
    },
    ReviewKind { group: AUTHORIZATION, plural: "subjectaccessreviews", kind: "SubjectAccessReview", namespaced: false },
];

impl ReviewKind {
    /// The question behind `/apis/<group>/v1/<plural>`.
    pub fn find(group: &str, plural: &str) -> Option<&'static Self> {
        REVIEWS.iter().find(|review| review.group == group && review.plural == plural)
    }
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct AccessSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<ResourceAttributes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<NonResourceAttributes>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    uid: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    verb: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    subresource: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_selector: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<Value>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NonResourceAttributes {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    path: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    verb: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct TokenSpec {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    token: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    audiences: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RulesSpec {
    #[serde(deserialize_with = "or_default")]
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
struct NoSpec {}

impl Auth {
    /// Answers a question of a user. `namespace` is the one in the path, or empty.
    pub fn review(&self, review: &ReviewKind, namespace: &str, body: &Value, user: &User) -> Result<Value, Failure> {
        match review.kind {
            "SelfSubjectReview" => {
                let _: NoSpec = read_body(review.group, review.kind, &without_spec(body))?;
                let now = jiff::Timestamp::from_second(self.0.clock.now().as_second()).unwrap_or_default();
                Ok(json!({
                    "kind": review.kind, "apiVersion": "authentication.k8s.io/v1",
                    "metadata": { "creationTimestamp": now.to_string() },
                    "status": { "userInfo": user.to_json() },
                }))
            }
            "TokenReview" => self.review_token(review, body),
            "SelfSubjectRulesReview" => review_rules(review, body),
            _ => review_access(review, namespace, body, user),
        }
    }

    fn review_token(&self, review: &ReviewKind, body: &Value) -> Result<Value, Failure> {
        let spec: TokenSpec = read_body(review.group, review.kind, body)?;
        if spec.token.is_empty() {
            return Err(Failure::bad_request("token is required for TokenReview in authentication"));
        }
        if !object::namespace(body).is_empty() {
            return Err(Failure::bad_request("namespace is not allowed on this type"));
        }
        let audiences: Vec<&str> = spec.audiences.iter().map(String::as_str).collect();
        let audiences = if audiences.is_empty() { vec![jwt::ISSUER] } else { audiences };
        let status = match self.user_of_token(&spec.token, &audiences) {
            Ok((user, audiences)) => {
                json!({ "authenticated": true, "user": user.to_json(), "audiences": audiences })
            }
            Err(why) => json!({ "user": {}, "error": why }),
        };
        Ok(answer(review, body, &spec, &status))
    }
}

fn review_rules(review: &ReviewKind, body: &Value) -> Result<Value, Failure> {
    let spec: RulesSpec = read_body(review.group, review.kind, body)?;
    if spec.namespace.is_empty() {
        return Err(Failure::bad_request("no namespace on request"));
    }
    let status = json!({
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    });
    // Kubernetes does not repeat the question here.
    Ok(answer(review, &Value::Null, &json!({}), &status))
}

fn review_access(review: &ReviewKind, namespace: &str, body: &Value, user: &User) -> Result<Value, Failure> {
    let mut spec: AccessSpec = read_body(review.group, review.kind, body)?;
    let about_self = review.kind == "SelfSubjectAccessReview";
    let asked = object::namespace(body);
    if review.namespaced && !asked.is_empty() && asked != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if about_self {
        spec = AccessSpec {
            resource_attributes: spec.resource_attributes,
            non_resource_attributes: spec.non_resource_attributes,
            ..AccessSpec::default()
        };
    }
    let errors = mistakes(review, namespace, body, &spec);
    if !errors.is_empty() {
        return Err(Failure::invalid(Qualified { group: AUTHORIZATION, name: "" }, "", &errors));
    }
    let subject = if about_self {
        user.clone()
    } else {
        User { name: spec.user.clone(), uid: spec.uid.clone(), groups: spec.groups.clone(), extra: spec.extra.clone() }
    };
    let attributes = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(resource), _) => Attributes {
            verb: &resource.verb,
            group: &resource.group,
            resource: &resource.resource,
            subresource: &resource.subresource,
            namespace: &resource.namespace,
            name: &resource.name,
            path: "",
        },
        (None, Some(path)) => Attributes { verb: &path.verb, path: &path.path, ..Attributes::default() },
        (None, None) => Attributes::default(),
    };
    let status = match authorize(&subject, &attributes) {
        Decision::Allow => json!({ "allowed": true }),
        Decision::Deny(why) if why.is_empty() => json!({ "allowed": false }),
        Decision::Deny(why) => json!({ "allowed": false, "reason": why }),
    };
    let mut answer = answer(review, body, &spec, &status);
    if review.namespaced {
        object::meta_mut(&mut answer).insert("namespace".to_owned(), namespace.into());
    }
    Ok(answer)
}

fn mistakes(review: &ReviewKind, namespace: &str, body: &Value, spec: &AccessSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            json!(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if review.kind != "SelfSubjectAccessReview" && spec.user.is_empty() && spec.groups.is_empty() {
        errors.push(FieldError::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    let ignored: &[&str] = if review.namespaced { &["namespace", "managedFields"] } else { &["managedFields"] };
    let is_said = |(key, value): (&String, &Value)| {
        !ignored.contains(&key.as_str()) && !matches!(value, Value::Null) && value != "" && value != 0
    };
    if object::meta(body).is_some_and(|meta| meta.iter().any(is_said)) {
        let detail = if review.namespaced { "must be empty except for namespace" } else { "must be empty" };
        errors.push(FieldError::invalid("metadata", body["metadata"].clone(), detail));
    }
    if review.namespaced {
        if let Some(resource) = &spec.resource_attributes
            && resource.namespace != namespace
        {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, resource.namespace.as_str(), "must match metadata.namespace"));
        }
        if let Some(path) = &spec.non_resource_attributes {
            let field = "spec.nonResourceAttributes";
            errors.push(FieldError::invalid(field, json!(path), "disallowed on this kind of request"));
        }
    }
    errors
}

fn answer(review: &ReviewKind, body: &Value, spec: &impl Serialize, status: &Value) -> Value {
    let mut answer = json!({
        "kind": review.kind, "apiVersion": format!("{}/v1", review.group),
        "metadata": object::meta(body).cloned().unwrap_or_default(),
        "spec": spec, "status": status,
    });
    object::meta_mut(&mut answer).entry("creationTimestamp").or_insert(Value::Null);
    answer
}

fn without_spec(body: &Value) -> Value {
    let mut body = body.clone();
    if let Value::Object(body) = &mut body {
        body.remove("spec");
    }
    body
}

/// The `spec` of a body that must be of this kind, if it says what it is.
pub(super) fn read_body<T: DeserializeOwned + Default>(group: &str, kind: &str, body: &Value) -> Result<T, Failure> {
    let said = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let (said_kind, said_version) = (said("kind"), said("apiVersion"));
    let refuse = |why: String| {
        let shown_kind = if said_kind.is_empty() { kind } else { said_kind };
        let version = said_version.rsplit('/').next().filter(|version| !version.is_empty()).unwrap_or("v1");
        Failure::bad_request(format!("{shown_kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    if (!said_kind.is_empty() && said_kind != kind)
        || (!said_version.is_empty() && said_version != format!("{group}/v1"))
    {
        return Err(refuse(format!("kind must be {kind:?} and apiVersion \"{group}/v1\"")));
    }
    match body.get("spec") {
        None | Some(Value::Null) => Ok(T::default()),
        Some(spec) => T::deserialize(spec).map_err(|error| refuse(error.to_string())),
    }
}

/// Null is nothing.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
