//! Schemas of types that are not ours, with texts for `kubectl explain`.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Six pairs of hex digits; not anchored, as upstream's is not.
pub(super) const MAC_PATTERN: &str = "[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}";

/// A core ObjectReference, replaced as a whole by server-side apply.
pub(super) fn object_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": { "type": "string", "description": "Group and version of the object." },
            "kind": { "type": "string", "description": "Kind of the object." },
            "namespace": { "type": "string", "description": "Namespace of the object." },
            "name": { "type": "string", "description": "Name of the object." },
            "uid": { "type": "string", "description": "UID of the object." },
            "resourceVersion": { "type": "string", "description": "Version of the object." },
            "fieldPath": { "type": "string", "description": "Part of the object." },
        },
    })
}

/// A boot mode. The words of an enum are in the schema only, so that reading never fails.
pub(super) fn boot_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["UEFI", "UEFISecureBoot", "legacy"] })
}

/// An integer of whatever size, as Go's int.
pub(super) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// A size, or zero for none.
pub(super) fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0 })
}

/// A time as text.
pub(super) fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// A VLAN's number.
pub(super) fn vlan_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 0, "maximum": 4094 })
}
