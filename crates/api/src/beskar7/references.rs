//! Schema of references to other objects. The Rust type is Kubernetes' own; its generated texts are not for us.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A core ObjectReference, replaced as a whole by server-side apply, with a name that must be given.
pub(super) fn object_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": { "type": "string", "maxLength": 512, "description": "Group and version of the object." },
            "kind": { "type": "string", "maxLength": 256, "description": "Kind of the object." },
            "namespace": { "type": "string", "maxLength": 253, "description": "Namespace of the object; the host's own if left out." },
            "name": { "type": "string", "maxLength": 253, "description": "Name of the object." },
            "uid": { "type": "string", "maxLength": 256, "description": "UID of the object." },
            "resourceVersion": { "type": "string", "maxLength": 256, "description": "Accepted for compatibility, not used." },
            "fieldPath": { "type": "string", "maxLength": 1024, "description": "Accepted for compatibility, not used." },
        },
    })
}
