//! The bytes of an object while its resource version is not known yet.

use bytes::Bytes;
use serde_json::{Map, Value};
use store::{Render, Revision};

use super::plain_failure;
use crate::status::Failure;

/// How many bytes an object may have: what etcd takes by default.
const MOST: usize = 1536 * 1024;

/// All of an object's bytes but its resource version.
///
/// `apiVersion` and `kind` come first, so that they can be exchanged or left out without parsing (see
/// [`Lens`](super::Lens)); everything else is sorted.
pub(super) struct Draft {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Draft {
    /// Fails if the object is too large.
    pub(super) fn fitting(object: &Value) -> Result<Self, Failure> {
        let draft = Self::of(object);
        if draft.before.len() + draft.after.len() > MOST {
            return Err(plain_failure("etcdserver: request is too large"));
        }
        Ok(draft)
    }

    pub(super) fn of(object: &Value) -> Self {
        let mut text = Vec::with_capacity(1024);
        let mut split = 0;
        text.push(b'{');
        let empty = Map::new();
        let fields = object.as_object().unwrap_or(&empty);
        for key in ["apiVersion", "kind"] {
            if let Some(value) = fields.get(key) {
                write_field(&mut text, key, value);
            }
        }
        for (key, value) in fields.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind")) {
            match value {
                Value::Object(meta) if key == "metadata" => split = write_metadata(&mut text, meta),
                _ => write_field(&mut text, key, value),
            }
        }
        text.push(b'}');
        let after = text.split_off(split);
        Self { before: text, after }
    }

    pub(super) fn bytes(&self, revision: Revision) -> Bytes {
        let mut number = revision.to_string();
        number.insert_str(0, "\"resourceVersion\":\"");
        number.push('"');
        let mut bytes = Vec::with_capacity(self.before.len() + number.len() + 1 + self.after.len());
        bytes.extend_from_slice(&self.before);
        bytes.extend_from_slice(number.as_bytes());
        if self.after.first() == Some(&b'"') {
            bytes.push(b',');
        }
        bytes.extend_from_slice(&self.after);
        bytes.into()
    }

    pub(super) fn render(self) -> Render {
        Box::new(move |revision| self.bytes(revision))
    }
}

/// Returns where the resource version belongs: after a brace or a comma, before the rest.
fn write_metadata(text: &mut Vec<u8>, meta: &Map<String, Value>) -> usize {
    write_key(text, "metadata");
    text.push(b'{');
    let mut split = None;
    for (key, value) in meta.iter().filter(|(key, _)| *key != "resourceVersion") {
        if split.is_none() && key.as_str() > "resourceVersion" {
            if text.last() != Some(&b'{') {
                text.push(b',');
            }
            split = Some(text.len());
            write_string(text, key);
            text.push(b':');
            write_value(text, value);
        } else {
            write_field(text, key, value);
        }
    }
    let split = split.unwrap_or_else(|| {
        if text.last() != Some(&b'{') {
            text.push(b',');
        }
        text.len()
    });
    text.push(b'}');
    split
}

fn write_field(text: &mut Vec<u8>, key: &str, value: &Value) {
    write_key(text, key);
    write_value(text, value);
}

fn write_key(text: &mut Vec<u8>, key: &str) {
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
    write_string(text, key);
    text.push(b':');
}

fn write_string(text: &mut Vec<u8>, string: &str) {
    // Writing into memory cannot fail, nor can a text.
    let _ = serde_json::to_writer(text, string);
}

fn write_value(text: &mut Vec<u8>, value: &Value) {
    // Writing into memory cannot fail, and all keys are texts.
    let _ = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_resource_version_finds_its_place_and_the_type_comes_first() {
        let draft = Draft::of(&json!({
            "a": 1, "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "resourceVersion": "3", "uid": "u"}, "spec": {"x": "{"},
        }));
        let text = r#"{"apiVersion":"v1","kind":"K","a":1,"metadata":{"name":"n","resourceVersion":"17","uid":"u"},"spec":{"x":"{"}}"#;
        assert_eq!(draft.bytes(17), text);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let failure = Draft::fitting(&json!({"metadata": {}, "data": "x".repeat(MOST)})).err().unwrap();
        assert_eq!(failure.message, "etcdserver: request is too large");
    }

    #[test]
    fn metadata_may_end_with_it_or_hold_nothing_else() {
        let draft = Draft::of(&json!({"kind": "K", "metadata": {"name": "n"}}));
        assert_eq!(draft.bytes(17), r#"{"kind":"K","metadata":{"name":"n","resourceVersion":"17"}}"#);
        let draft = Draft::of(&json!({"kind": "K", "metadata": {}}));
        assert_eq!(draft.bytes(17), r#"{"kind":"K","metadata":{"resourceVersion":"17"}}"#);
        let draft = Draft::of(&json!({"kind": "K", "metadata": {"uid": "u"}}));
        assert_eq!(draft.bytes(17), r#"{"kind":"K","metadata":{"resourceVersion":"17","uid":"u"}}"#);
    }
}
