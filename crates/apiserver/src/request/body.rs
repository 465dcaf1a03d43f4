//! The bodies of requests: JSON and YAML, read so that keys that are there twice are noticed.

use std::fmt::{self, Write as _};

use http::StatusCode;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::status::Failure;

/// The most that a body may have, as in kube-apiserver.
pub const LIMIT: usize = 3 * 1024 * 1024;

/// The deepest nesting of what is read. kube-apiserver's is 10,000; nothing sensible is deeper than this, and
/// everything that walks objects may recurse.
pub const DEEPEST: usize = 100;

/// More keys that are there twice are not told about, as in kube-apiserver.
const MOST_DUPLICATES: usize = 100;

/// A body that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// The paths of keys that are there more than once. The last one counts.
    pub duplicates: Vec<String>,
}

/// What form a body is in, by its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`, or nothing said.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Encoding {
    /// Reads `Content-Type`; `Err` says what would be understood.
    pub fn of(content_type: &str) -> Result<Self, Failure> {
        match media_type(content_type) {
            "" if content_type.is_empty() => Ok(Self::Json),
            "application/json" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Ok(Self::Protobuf),
            _ => Err(unknown_format("application/json, application/yaml, application/vnd.kubernetes.protobuf")),
        }
    }
}

/// `application/json; charset=utf-8` without what follows.
pub fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// The body is in a format that nobody reads here.
pub fn unknown_format(understood: &str) -> Failure {
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {understood}");
    Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}

/// The body is too large.
pub fn too_large() -> Failure {
    let message = format!("Request entity too large: limit is {LIMIT}");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
}

impl Document {
    /// Reads JSON; `Err` is what is wrong, and where.
    pub fn json(text: &[u8]) -> Result<Self, String> {
        let mut duplicates = Vec::new();
        let mut reader = serde_json::Deserializer::from_slice(text);
        let seed = Seed { path: &mut String::new(), duplicates: &mut duplicates, depth: 0 };
        let read = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
        let value = read.map_err(|error| format!("it is not JSON: {error}"))?;
        Ok(Self { value, duplicates })
    }

    /// Reads YAML; `Err` is what is wrong, and where.
    pub fn yaml(text: &[u8]) -> Result<Self, String> {
        // JSON is YAML, and kubectl sends it as such.
        if text.first() == Some(&b'{')
            && let Ok(document) = Self::json(text)
        {
            return Ok(document);
        }
        let mut duplicates = Vec::new();
        let seed = Seed { path: &mut String::new(), duplicates: &mut duplicates, depth: 0 };
        let mut options = serde_saphyr::Options::default();
        options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
        options.with_snippet = false;
        let text = first_document(text);
        let read =
            serde_saphyr::with_deserializer_from_slice_with_options(text, options, |reader| seed.deserialize(reader));
        let value = read.map_err(|error| format!("it is not YAML: {error}"))?;
        Ok(Self { value, duplicates })
    }
}

/// Only the first document of a YAML text counts.
fn first_document(text: &[u8]) -> &[u8] {
    let mut begun = false;
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let marker = line.strip_prefix(b"---").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace));
        if marker && begun {
            return &text[..at];
        }
        let blank = line.trim_ascii();
        begun |= marker || !(blank.is_empty() || matches!(blank.first(), Some(b'#' | b'%')));
        at += line.len();
    }
    text
}

/// Reads any value, and notes where keys are there twice.
struct Seed<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
    depth: usize,
}

impl Seed<'_> {
    fn below(&mut self, depth: usize) -> Seed<'_> {
        Seed { path: self.path, duplicates: self.duplicates, depth }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut list = Vec::new();
        let length = self.path.len();
        loop {
            // Writing into a text cannot fail.
            let _ = write!(self.path, "[{}]", list.len());
            let item = items.next_element_seed(self.below(depth))?;
            self.path.truncate(length);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut map = Map::new();
        let length = self.path.len();
        while let Some(KeyText(key)) = entries.next_key()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let told = self.duplicates.len() >= MOST_DUPLICATES;
            if map.contains_key(&key) && !told && !self.duplicates.contains(self.path) {
                self.duplicates.push(self.path.clone());
            }
            let value = entries.next_value_seed(self.below(depth))?;
            self.path.truncate(length);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn deeper<E: Error>(depth: usize) -> Result<usize, E> {
    if depth >= DEEPEST { Err(E::custom(format!("nested deeper than {DEEPEST} levels"))) } else { Ok(depth + 1) }
}

/// A key. YAML has keys that are not texts; JSON makes texts of them.
struct KeyText(String);

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor).map(Self)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }

    fn visit_string<E>(self, value: String) -> Result<String, E> {
        Ok(value)
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E>(self, value: f64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }
}
