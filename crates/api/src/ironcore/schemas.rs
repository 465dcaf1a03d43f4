//! Schemas of types that are not ours, with texts for `kubectl explain`.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The MAC address of a BMC.
pub(super) const MAC_PATTERN: &str = "^([0-9A-Fa-f]{2}[:-]){5}([0-9A-Fa-f]{2})$";

/// A number whose size no API server checks.
pub(super) fn int32(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32" })
}

/// An integer of whatever size, as Go's int.
pub(super) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// A time as text.
pub(super) fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Addresses of a network interface.
pub(super) fn addresses(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "ip" } })
}

/// What a taint does to claims. The words of an enum are in the schema only, so that reading never fails.
pub(super) fn effect(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["NoBind", "Evict"] })
}

/// Kubernetes' own label selector, replaced as a whole by server-side apply.
pub(super) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels with the values that they must have.",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "type": "array",
                "description": "What else must be true of the labels.",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "description": "Something that must be true of one label.",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "description": "Key of the label." },
                        "operator": { "type": "string", "description": "In, NotIn, Exists or DoesNotExist." },
                        "values": {
                            "type": "array",
                            "description": "The values, for In and NotIn.",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" },
                        },
                    },
                },
            },
        },
    })
}
