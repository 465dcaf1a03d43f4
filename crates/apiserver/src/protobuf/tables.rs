//! Which fields the kinds have that clients send, with their numbers: from the `generated.proto` files of Kubernetes.

/// A message: a kind, or a part of one.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// As in JSON.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What a field holds. Go writes the plain ones always, empty or not; the optional ones only when they are set.
#[derive(Debug)]
pub(super) enum Kind {
    Text,
    OptionalText,
    Int,
    OptionalInt,
    Bool,
    OptionalBool,
    Time,
    MicroTime,
    /// JSON in bytes: `FieldsV1`.
    Fields,
    Message(&'static Message),
    Messages(&'static Message),
    Texts,
    TextMap,
    BytesMap,
    /// Text → list of texts.
    TextsMap,
}

use Kind::{
    Bool, BytesMap, Fields, Int, Message as One, Messages as Many, MicroTime, OptionalBool, OptionalInt, OptionalText,
    Text, TextMap, Texts, TextsMap, Time,
};

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

macro_rules! message {
    ($constant:ident, $name:literal, $($number:literal $field:literal $kind:expr,)*) => {
        static $constant: Message = Message { name: $name, fields: &[$(field($number, $field, $kind)),*] };
    };
}

/// The message behind a kind.
pub(super) fn find(api_version: &str, kind: &str) -> Option<&'static Message> {
    Some(match (api_version, kind) {
        ("v1", "Namespace") => &NAMESPACE,
        ("v1", "Secret") => &SECRET,
        ("v1", "ConfigMap") => &CONFIG_MAP,
        ("v1", "ServiceAccount") => &SERVICE_ACCOUNT,
        ("v1", "Event") => &EVENT,
        ("events.k8s.io/v1", "Event") => &NEW_EVENT,
        ("coordination.k8s.io/v1", "Lease") => &LEASE,
        ("autoscaling/v1", "Scale") => &SCALE,
        ("authentication.k8s.io/v1", "TokenRequest") => &TOKEN_REQUEST,
        ("authentication.k8s.io/v1", "TokenReview") => &TOKEN_REVIEW,
        ("authentication.k8s.io/v1", "SelfSubjectReview") => &SELF_SUBJECT_REVIEW,
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => &SELF_SUBJECT_ACCESS_REVIEW,
        ("authorization.k8s.io/v1", "SubjectAccessReview") => &SUBJECT_ACCESS_REVIEW,
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview") => &LOCAL_SUBJECT_ACCESS_REVIEW,
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => &SELF_SUBJECT_RULES_REVIEW,
        // Clients say the version of what they delete.
        (_, "DeleteOptions") => &DELETE_OPTIONS,
        _ => return None,
    })
}

message!(OBJECT_META, "ObjectMeta",
    1 "name" Text,
    2 "generateName" Text,
    3 "namespace" Text,
    4 "selfLink" Text,
    5 "uid" Text,
    6 "resourceVersion" Text,
    7 "generation" Int,
    8 "creationTimestamp" Time,
    9 "deletionTimestamp" Time,
    10 "deletionGracePeriodSeconds" OptionalInt,
    11 "labels" TextMap,
    12 "annotations" TextMap,
    13 "ownerReferences" Many(&OWNER_REFERENCE),
    14 "finalizers" Texts,
    17 "managedFields" Many(&MANAGED_FIELDS_ENTRY),
);

message!(OWNER_REFERENCE, "OwnerReference",
    1 "kind" OptionalText,
    3 "name" OptionalText,
    4 "uid" OptionalText,
    5 "apiVersion" OptionalText,
    6 "controller" OptionalBool,
    7 "blockOwnerDeletion" OptionalBool,
);

message!(MANAGED_FIELDS_ENTRY, "ManagedFieldsEntry",
    1 "manager" Text,
    2 "operation" Text,
    3 "apiVersion" Text,
    4 "time" Time,
    6 "fieldsType" Text,
    7 "fieldsV1" Fields,
    8 "subresource" Text,
);

message!(DELETE_OPTIONS, "DeleteOptions",
    1 "gracePeriodSeconds" OptionalInt,
    2 "preconditions" One(&PRECONDITIONS),
    3 "orphanDependents" OptionalBool,
    4 "propagationPolicy" OptionalText,
    5 "dryRun" Texts,
    6 "ignoreStoreReadErrorWithClusterBreakingPotential" OptionalBool,
);

message!(PRECONDITIONS, "Preconditions",
    1 "uid" OptionalText,
    2 "resourceVersion" OptionalText,
);

message!(NAMESPACE, "Namespace",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&NAMESPACE_SPEC),
    3 "status" One(&NAMESPACE_STATUS),
);

message!(NAMESPACE_SPEC, "NamespaceSpec",
    1 "finalizers" Texts,
);

message!(NAMESPACE_STATUS, "NamespaceStatus",
    1 "phase" Text,
    2 "conditions" Many(&NAMESPACE_CONDITION),
);

message!(NAMESPACE_CONDITION, "NamespaceCondition",
    1 "type" OptionalText,
    2 "status" OptionalText,
    4 "lastTransitionTime" Time,
    5 "reason" Text,
    6 "message" Text,
);

message!(SECRET, "Secret",
    1 "metadata" One(&OBJECT_META),
    2 "data" BytesMap,
    3 "type" Text,
    4 "stringData" TextMap,
    5 "immutable" OptionalBool,
);

message!(CONFIG_MAP, "ConfigMap",
    1 "metadata" One(&OBJECT_META),
    2 "data" TextMap,
    3 "binaryData" BytesMap,
    4 "immutable" OptionalBool,
);

message!(SERVICE_ACCOUNT, "ServiceAccount",
    1 "metadata" One(&OBJECT_META),
    2 "secrets" Many(&OBJECT_REFERENCE),
    3 "imagePullSecrets" Many(&LOCAL_OBJECT_REFERENCE),
    4 "automountServiceAccountToken" OptionalBool,
);

message!(OBJECT_REFERENCE, "ObjectReference",
    1 "kind" Text,
    2 "namespace" Text,
    3 "name" Text,
    4 "uid" Text,
    5 "apiVersion" Text,
    6 "resourceVersion" Text,
    7 "fieldPath" Text,
);

message!(LOCAL_OBJECT_REFERENCE, "LocalObjectReference",
    1 "name" Text,
);

message!(EVENT, "Event",
    1 "metadata" One(&OBJECT_META),
    2 "involvedObject" One(&OBJECT_REFERENCE),
    3 "reason" Text,
    4 "message" Text,
    5 "source" One(&EVENT_SOURCE),
    6 "firstTimestamp" Time,
    7 "lastTimestamp" Time,
    8 "count" Int,
    9 "type" Text,
    10 "eventTime" MicroTime,
    11 "series" One(&EVENT_SERIES),
    12 "action" Text,
    13 "related" One(&OBJECT_REFERENCE),
    14 "reportingComponent" OptionalText,
    15 "reportingInstance" OptionalText,
);

message!(EVENT_SOURCE, "EventSource",
    1 "component" Text,
    2 "host" Text,
);

message!(EVENT_SERIES, "EventSeries",
    1 "count" Int,
    2 "lastObservedTime" MicroTime,
);

message!(NEW_EVENT, "Event",
    1 "metadata" One(&OBJECT_META),
    2 "eventTime" MicroTime,
    3 "series" One(&EVENT_SERIES),
    4 "reportingController" Text,
    5 "reportingInstance" Text,
    6 "action" Text,
    7 "reason" Text,
    8 "regarding" One(&OBJECT_REFERENCE),
    9 "related" One(&OBJECT_REFERENCE),
    10 "note" Text,
    11 "type" Text,
    12 "deprecatedSource" One(&EVENT_SOURCE),
    13 "deprecatedFirstTimestamp" Time,
    14 "deprecatedLastTimestamp" Time,
    15 "deprecatedCount" Int,
);

message!(LEASE, "Lease",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&LEASE_SPEC),
);

message!(LEASE_SPEC, "LeaseSpec",
    1 "holderIdentity" OptionalText,
    2 "leaseDurationSeconds" OptionalInt,
    3 "acquireTime" MicroTime,
    4 "renewTime" MicroTime,
    5 "leaseTransitions" OptionalInt,
    6 "strategy" OptionalText,
    7 "preferredHolder" OptionalText,
);

message!(SCALE, "Scale",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&SCALE_SPEC),
    3 "status" One(&SCALE_STATUS),
);

message!(SCALE_SPEC, "ScaleSpec",
    1 "replicas" Int,
);

message!(SCALE_STATUS, "ScaleStatus",
    1 "replicas" OptionalInt,
    2 "selector" Text,
);

message!(TOKEN_REQUEST, "TokenRequest",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&TOKEN_REQUEST_SPEC),
    3 "status" One(&TOKEN_REQUEST_STATUS),
);

message!(TOKEN_REQUEST_SPEC, "TokenRequestSpec",
    1 "audiences" Texts,
    3 "boundObjectRef" One(&BOUND_OBJECT_REFERENCE),
    4 "expirationSeconds" OptionalInt,
);

message!(BOUND_OBJECT_REFERENCE, "BoundObjectReference",
    1 "kind" Text,
    2 "apiVersion" Text,
    3 "name" Text,
    4 "uid" Text,
);

message!(TOKEN_REQUEST_STATUS, "TokenRequestStatus",
    1 "token" OptionalText,
    2 "expirationTimestamp" Time,
);

message!(TOKEN_REVIEW, "TokenReview",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&TOKEN_REVIEW_SPEC),
    3 "status" One(&TOKEN_REVIEW_STATUS),
);

message!(TOKEN_REVIEW_SPEC, "TokenReviewSpec",
    1 "token" Text,
    2 "audiences" Texts,
);

message!(TOKEN_REVIEW_STATUS, "TokenReviewStatus",
    1 "authenticated" Bool,
    2 "user" One(&USER_INFO),
    3 "error" Text,
    4 "audiences" Texts,
);

message!(USER_INFO, "UserInfo",
    1 "username" Text,
    2 "uid" Text,
    3 "groups" Texts,
    4 "extra" TextsMap,
);

message!(SELF_SUBJECT_REVIEW, "SelfSubjectReview",
    1 "metadata" One(&OBJECT_META),
    2 "status" One(&SELF_SUBJECT_REVIEW_STATUS),
);

message!(SELF_SUBJECT_REVIEW_STATUS, "SelfSubjectReviewStatus",
    1 "userInfo" One(&USER_INFO),
);

message!(SELF_SUBJECT_ACCESS_REVIEW, "SelfSubjectAccessReview",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&SUBJECT_ACCESS_REVIEW_SPEC),
    3 "status" One(&SUBJECT_ACCESS_REVIEW_STATUS),
);

message!(SUBJECT_ACCESS_REVIEW, "SubjectAccessReview",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&SUBJECT_ACCESS_REVIEW_SPEC),
    3 "status" One(&SUBJECT_ACCESS_REVIEW_STATUS),
);

message!(LOCAL_SUBJECT_ACCESS_REVIEW, "LocalSubjectAccessReview",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&SUBJECT_ACCESS_REVIEW_SPEC),
    3 "status" One(&SUBJECT_ACCESS_REVIEW_STATUS),
);

message!(SUBJECT_ACCESS_REVIEW_SPEC, "SubjectAccessReviewSpec",
    1 "resourceAttributes" One(&RESOURCE_ATTRIBUTES),
    2 "nonResourceAttributes" One(&NON_RESOURCE_ATTRIBUTES),
    3 "user" Text,
    4 "groups" Texts,
    5 "extra" TextsMap,
    6 "uid" Text,
);

message!(RESOURCE_ATTRIBUTES, "ResourceAttributes",
    1 "namespace" Text,
    2 "verb" Text,
    3 "group" Text,
    4 "version" Text,
    5 "resource" Text,
    6 "subresource" Text,
    7 "name" Text,
    8 "fieldSelector" One(&SELECTOR_ATTRIBUTES),
    9 "labelSelector" One(&SELECTOR_ATTRIBUTES),
);

message!(SELECTOR_ATTRIBUTES, "SelectorAttributes",
    1 "rawSelector" Text,
    2 "requirements" Many(&SELECTOR_REQUIREMENT),
);

message!(SELECTOR_REQUIREMENT, "SelectorRequirement",
    1 "key" OptionalText,
    2 "operator" OptionalText,
    3 "values" Texts,
);

message!(NON_RESOURCE_ATTRIBUTES, "NonResourceAttributes",
    1 "path" Text,
    2 "verb" Text,
);

message!(SUBJECT_ACCESS_REVIEW_STATUS, "SubjectAccessReviewStatus",
    1 "allowed" OptionalBool,
    2 "reason" Text,
    3 "evaluationError" Text,
    4 "denied" Bool,
);

message!(SELF_SUBJECT_RULES_REVIEW, "SelfSubjectRulesReview",
    1 "metadata" One(&OBJECT_META),
    2 "spec" One(&SELF_SUBJECT_RULES_REVIEW_SPEC),
);

message!(SELF_SUBJECT_RULES_REVIEW_SPEC, "SelfSubjectRulesReviewSpec",
    1 "namespace" Text,
);
