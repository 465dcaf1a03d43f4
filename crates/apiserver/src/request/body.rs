//! The bodies of requests: JSON and YAML, read so that keys that are there twice are noticed.

use std::fmt::{self, Write as _};

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{go_json, go_yaml};
use crate::status::{Failure, quoted};

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
    /// What was read, if it was JSON.
    pub text: Option<Bytes>,
    /// What Go's parser of YAML says about keys that are there more than once; their paths it does not know.
    pub yaml_remarks: Vec<String>,
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
    /// Reads JSON; `Err` is what Go's parser would say.
    pub fn json(text: &Bytes) -> Result<Self, String> {
        let mut duplicates = Vec::new();
        let mut reader = serde_json::Deserializer::from_slice(text);
        let seed = Seed { path: &mut String::new(), duplicates: &mut duplicates, order: None, lines: None, depth: 0 };
        let read = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
        match read {
            Ok(value) => Ok(Self { value, duplicates, text: Some(text.clone()), yaml_remarks: Vec::new() }),
            Err(error) if error.to_string().starts_with(TOO_DEEP) => Err(go_json::too_deep(b'{')),
            Err(error) => {
                if let Some(complaint) = go_json::complaint(text) {
                    return Err(complaint);
                }
                // Go takes text that is no Unicode, and puts replacement characters into it.
                match go_json::mended(text) {
                    Some(mended) => Self::json(&mended),
                    None => Err(error.to_string()),
                }
            }
        }
    }

    /// Reads YAML; `Err` is a sentence like those of Go's parser.
    pub fn yaml(text: &Bytes) -> Result<Self, String> {
        // JSON is YAML, and kubectl sends it as such.
        if text.first() == Some(&b'{')
            && let Ok(document) = Self::json(text)
            && document.duplicates.is_empty()
        {
            return Ok(document);
        }
        if go_yaml::begins_with_a_tab(text) {
            return Err("yaml: found character that cannot start any token".to_owned());
        }
        let text = go_yaml::first_document(text);
        let mut yaml_remarks = Vec::new();
        let seed = Seed {
            path: &mut String::new(),
            duplicates: &mut Vec::new(),
            order: None,
            lines: Some(&mut yaml_remarks),
            depth: 0,
        };
        let mut options = serde_saphyr::Options::default();
        options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
        options.with_snippet = false;
        let read =
            serde_saphyr::with_deserializer_from_slice_with_options(text, options, |reader| seed.deserialize(reader));
        match read {
            Ok(value) => Ok(Self { value, duplicates: Vec::new(), text: None, yaml_remarks }),
            Err(error) => Err(go_yaml::complaint(text, &error)),
        }
    }
}

/// The paths of all keys of a JSON text, in the order in which they stand there.
pub fn key_order(text: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let mut order = Vec::new();
    let seed =
        Seed { path: &mut String::new(), duplicates: &mut Vec::new(), order: Some(&mut order), lines: None, depth: 0 };
    seed.deserialize(&mut serde_json::Deserializer::from_slice(text))?;
    Ok(order)
}

const TOO_DEEP: &str = "nested too deeply";

/// Reads any value, and notes where keys are there twice.
struct Seed<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
    /// The paths of all keys as they come, where somebody wants to know.
    order: Option<&'a mut Vec<String>>,
    /// Remarks about keys that are there twice, with their lines; only where the text is YAML.
    lines: Option<&'a mut Vec<String>>,
    depth: usize,
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
            let seed = Seed {
                path: &mut *self.path,
                duplicates: &mut *self.duplicates,
                order: self.order.as_deref_mut(),
                lines: self.lines.as_deref_mut(),
                depth,
            };
            let item = items.next_element_seed(seed)?;
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
        while let Some((key, line)) = entries.next_key_seed(Key { yaml: self.lines.is_some() })? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if let Some(order) = &mut self.order {
                order.push(self.path.clone());
            }
            if map.contains_key(&key) {
                if let Some(lines) = &mut self.lines {
                    lines.push(format!("line {line}: key {} already set in map", quoted(&key)));
                } else if self.duplicates.len() < MOST_DUPLICATES && !self.duplicates.contains(self.path) {
                    self.duplicates.push(self.path.clone());
                }
            }
            let seed = Seed {
                path: &mut *self.path,
                duplicates: &mut *self.duplicates,
                order: self.order.as_deref_mut(),
                lines: self.lines.as_deref_mut(),
                depth,
            };
            let value = entries.next_value_seed(seed)?;
            self.path.truncate(length);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn deeper<E: Error>(depth: usize) -> Result<usize, E> {
    if depth >= DEEPEST { Err(E::custom(TOO_DEEP)) } else { Ok(depth + 1) }
}

/// A key. YAML has keys that are not texts; JSON makes texts of them.
struct Key {
    yaml: bool,
}

impl<'de> DeserializeSeed<'de> for Key {
    /// The key, and in YAML its line.
    type Value = (String, u64);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.yaml {
            let key = serde_saphyr::Spanned::<KeyText>::deserialize(deserializer)?;
            return Ok((key.value.0, key.referenced.line()));
        }
        KeyText::deserialize(deserializer).map(|key| (key.0, 0))
    }
}

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
