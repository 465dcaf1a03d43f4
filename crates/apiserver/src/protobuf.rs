//! Request bodies in Kubernetes' protobuf envelope, read as JSON.
//!
//! kubectl and Go controllers send built-in kinds this way and do not fall back to JSON. What is read is what they
//! would write as JSON: empty texts and zeros are left out unless the field tells "unset" from "zero". Tables say which fields
//! there are ([`tables`]); fields that they do not name are skipped.

mod tables;
mod wire;

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::status::Failure;
use tables::{Kind, Message};
use wire::{Fault, Reader, Wire};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Reads a body. It says itself what kind of object it is.
pub fn to_json(body: &[u8]) -> Result<Value, Failure> {
    to_json_as(body, "", "")
}

/// Reads a body where an object of this kind is expected: what the body does not say about its kind is taken from
/// there. Whether it is of that kind is for the caller to see.
pub fn to_json_as(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Failure> {
    let envelope = open(body).map_err(|why| {
        let wanted = if kind.is_empty() { String::new() } else { format!(" (must be of type {kind})") };
        Failure::bad_request(format!("the object provided is unrecognized{wanted}: {why}"))
    })?;
    let said_version = if envelope.api_version.is_empty() { api_version } else { &envelope.api_version };
    let said_kind = if envelope.kind.is_empty() { kind } else { &envelope.kind };
    let expected = if kind.is_empty() { said_kind } else { kind };
    let unusable = |why: String| {
        let version = said_version.rsplit('/').next().unwrap_or_default();
        Failure::bad_request(format!("{said_kind} in version {version:?} cannot be handled as a {expected}: {why}"))
    };
    if !envelope.content_encoding.is_empty() {
        return Err(unusable(format!("unknown content encoding {:?}", envelope.content_encoding)));
    }
    let Some(message) = tables::find(said_version, said_kind) else { return Err(unsupported()) };
    let mut object = Map::new();
    message.read(envelope.raw, &mut object).map_err(|fault| unusable(fault.to_string()))?;
    object.insert("apiVersion".to_owned(), said_version.into());
    object.insert("kind".to_owned(), said_kind.into());
    Ok(Value::Object(object))
}

/// The body is in a format that is not read here, or not for this kind.
fn unsupported() -> Failure {
    Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml",
    )
}

/// `runtime.Unknown`.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
    content_encoding: String,
}

fn open(body: &[u8]) -> Result<Envelope<'_>, String> {
    let Some(content) = body.strip_prefix(MAGIC) else {
        return Err("the body is not Kubernetes' protobuf: it does not begin with \"k8s\\0\"".to_owned());
    };
    if content.is_empty() {
        return Err("the body is empty".to_owned());
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(content, "Unknown");
    while let Some((number, wire)) = reader.next().map_err(|fault| fault.to_string())? {
        match (number, wire) {
            (1, Wire::Bytes(inner)) => {
                let mut reader = Reader::new(inner, "TypeMeta");
                while let Some((number, wire)) = reader.next().map_err(|fault| fault.to_string())? {
                    match (number, wire) {
                        (1, Wire::Bytes(text)) => envelope.api_version = lossy(text),
                        (2, Wire::Bytes(text)) => envelope.kind = lossy(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            (3, Wire::Bytes(text)) => envelope.content_encoding = lossy(text),
            _ => {}
        }
    }
    Ok(envelope)
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Message {
    /// Reads into an object. A message that is there twice is merged, as protobuf wants it. Messages do not contain
    /// themselves, so the depth is bounded by the tables.
    fn read(&self, bytes: &[u8], object: &mut Map<String, Value>) -> Result<(), Fault> {
        let mut reader = Reader::new(bytes, self.name);
        while let Some((number, wire)) = reader.next()? {
            if let Some(field) = self.fields.iter().find(|field| field.number == number) {
                field.kind.read(field.name, wire, object)?;
            }
        }
        Ok(())
    }
}

impl Kind {
    fn read(&self, name: &'static str, wire: Wire<'_>, object: &mut Map<String, Value>) -> Result<(), Fault> {
        let (value, skip) = match (self, wire) {
            (Kind::Text, Wire::Bytes(text)) => (lossy(text).into(), text.is_empty()),
            (Kind::OptionalText, Wire::Bytes(text)) => (lossy(text).into(), false),
            (Kind::Int, Wire::Varint(number)) => (signed(number).into(), number == 0),
            (Kind::OptionalInt, Wire::Varint(number)) => (signed(number).into(), false),
            (Kind::Bool, Wire::Varint(number)) => ((number != 0).into(), number == 0),
            (Kind::OptionalBool, Wire::Varint(number)) => ((number != 0).into(), false),
            (Kind::Time, Wire::Bytes(inner)) => (time(inner, 0)?, inner.is_empty()),
            (Kind::MicroTime, Wire::Bytes(inner)) => (time(inner, 6)?, inner.is_empty()),
            (Kind::Fields, Wire::Bytes(inner)) => (fields(inner)?, false),
            (Kind::Message(message), Wire::Bytes(inner)) => {
                return message.read(inner, child(object, name));
            }
            (Kind::Messages(message), Wire::Bytes(inner)) => {
                let mut one = Map::new();
                message.read(inner, &mut one)?;
                push(object, name, Value::Object(one));
                return Ok(());
            }
            (Kind::Texts, Wire::Bytes(text)) => {
                push(object, name, lossy(text).into());
                return Ok(());
            }
            (Kind::TextMap | Kind::BytesMap | Kind::TextsMap, Wire::Bytes(inner)) => {
                let (key, value) = self.entry(name, inner)?;
                child(object, name).insert(key, value);
                return Ok(());
            }
            _ => return Err(Fault::WrongWire { field: name }),
        };
        if skip {
            object.remove(name);
        } else {
            object.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// An entry of a map: a message with key and value.
    fn entry(&self, name: &'static str, bytes: &[u8]) -> Result<(String, Value), Fault> {
        let mut key = String::new();
        let mut value: &[u8] = &[];
        let mut reader = Reader::new(bytes, name);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, Wire::Bytes(text)) => key = lossy(text),
                (2, Wire::Bytes(bytes)) => value = bytes,
                (1 | 2, _) => return Err(Fault::WrongWire { field: name }),
                _ => {}
            }
        }
        let value = match self {
            Kind::BytesMap => BASE64_STANDARD.encode(value).into(),
            Kind::TextsMap => {
                let mut texts = Vec::new();
                let mut reader = Reader::new(value, "ExtraValue");
                while let Some((number, wire)) = reader.next()? {
                    if let (1, Wire::Bytes(text)) = (number, wire) {
                        texts.push(lossy(text).into());
                    }
                }
                Value::Array(texts)
            }
            _ => lossy(value).into(),
        };
        Ok((key, value))
    }
}

fn child<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let child = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
    match child {
        Value::Object(map) => map,
        _ => unreachable!("each name has one kind in a table"),
    }
}

fn push(object: &mut Map<String, Value>, name: &str, value: Value) {
    if let Value::Array(list) = object.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
        list.push(value);
    }
}

/// Protobuf's signed numbers are two's complement.
fn signed(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

/// A moment, with so many digits after the second.
fn time(bytes: &[u8], digits: u8) -> Result<Value, Fault> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut reader = Reader::new(bytes, "Timestamp");
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Varint(number)) => seconds = signed(number),
            (2, Wire::Varint(number)) => nanoseconds = signed(number),
            (1 | 2, _) => return Err(Fault::Time),
            _ => {}
        }
    }
    let nanoseconds = i32::try_from(nanoseconds).map_err(|_| Fault::Time)?;
    let moment = Timestamp::new(seconds, nanoseconds).map_err(|_| Fault::Time)?;
    // Kubernetes cuts off, it does not round.
    let whole = Timestamp::new(moment.as_second(), 0).map_err(|_| Fault::Time)?;
    Ok(if digits == 0 {
        whole.to_string().into()
    } else {
        let fraction = moment.duration_since(whole).subsec_micros();
        format!("{}.{fraction:06}Z", whole.to_string().trim_end_matches('Z')).into()
    })
}

/// `FieldsV1`: JSON within.
fn fields(bytes: &[u8]) -> Result<Value, Fault> {
    let mut reader = Reader::new(bytes, "FieldsV1");
    let mut value = Value::Object(Map::new());
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes([])) => {}
            (1, Wire::Bytes(raw)) => {
                value = serde_json::from_slice(raw).map_err(|error| Fault::Json(error.to_string()))?;
            }
            (1, _) => return Err(Fault::WrongWire { field: "fieldsV1" }),
            _ => {}
        }
    }
    Ok(value)
}
