//! The bodies of requests, as objects, patches and options.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use schema::object::check_type_fields;
use serde_json::Value;

use crate::catalogue::Served;
use crate::protobuf;
use crate::request::body::{Document, Encoding, LIMIT, media_type, too_large, unknown_format};
use crate::request::drain::drain;
use crate::status::Failure;
use crate::verbs::{Patch, not_another_built_in, plain_failure};

/// The body of a request, if it is not too large.
pub(super) async fn body(headers: &HeaderMap, mut body: Body) -> Result<Bytes, Failure> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let mut text = Vec::with_capacity(announced.filter(|length| *length <= LIMIT).unwrap_or_default());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::bad_request(format!("unable to read the body: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        if text.len() + piece.len() > LIMIT {
            drop(text);
            drain(body).await;
            return Err(too_large());
        }
        text.extend_from_slice(&piece);
    }
    Ok(text.into())
}

pub(super) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A document of whatever kind: a review, a scale.
pub(super) fn document(headers: &HeaderMap, text: &Bytes, kind: &str) -> Result<Document, Failure> {
    match Encoding::of(content_type(headers))? {
        Encoding::Json => Document::json(text).map_err(|why| unrecognized(kind, &why)),
        Encoding::Yaml => Document::yaml(text).map_err(|why| unrecognized(kind, &why)),
        Encoding::Protobuf => Ok(Document { value: protobuf::to_json_as(text, "", kind)?, duplicates: Vec::new() }),
    }
}

/// A scale that is put.
pub(super) fn scale(headers: &HeaderMap, text: &Bytes) -> Result<Value, Failure> {
    let mut value = document(headers, text, "Scale")?.value;
    for (key, wanted) in [("apiVersion", "autoscaling/v1"), ("kind", "Scale")] {
        match value.get(key) {
            None | Some(Value::Null) if value.is_object() => value[key] = wanted.into(),
            Some(said) if said == wanted => {}
            _ => return Err(Failure::bad_request(format!("a Scale is wanted here: {key} must be {wanted:?}"))),
        }
    }
    Ok(value)
}

/// An object of a resource: what is posted and put.
pub(super) fn object(served: &Served, headers: &HeaderMap, text: &Bytes) -> Result<Document, Failure> {
    let kind = &served.resource.kind;
    let mut document = document(headers, text, kind)?;
    check_type_fields(&document.value).map_err(|why| unrecognized(kind, &why))?;
    let field = |key: &str| document.value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (said_version, said_kind) = (field("apiVersion"), field("kind"));
    if served.resource.custom {
        check_custom_type(served, &said_version, &said_kind)?;
    } else {
        check_built_in_type(served, &said_version, &said_kind)?;
        if document.value.is_null() {
            document.value = Value::Object(serde_json::Map::new());
        }
    }
    Ok(document)
}

fn check_custom_type(served: &Served, api_version: &str, kind: &str) -> Result<(), Failure> {
    let wanted = &served.resource.kind;
    if kind.is_empty() {
        return Err(unrecognized(wanted, "kind is missing"));
    }
    let expected = served.api_version();
    if api_version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(())
}

/// Built-ins know what they are; only a contradiction is refused.
fn check_built_in_type(served: &Served, api_version: &str, kind: &str) -> Result<(), Failure> {
    not_another_built_in(served, api_version, kind).map_err(|why| {
        let wanted = &served.resource.kind;
        let said_kind = if kind.is_empty() { wanted } else { kind };
        let short = api_version.rsplit('/').next().filter(|version| !version.is_empty());
        let short = short.unwrap_or(&served.version().name);
        Failure::bad_request(format!("{said_kind} in version {short:?} cannot be handled as a {wanted}: {why}"))
    })
}

fn unrecognized(kind: &str, why: &str) -> Failure {
    Failure::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}"))
}

/// `DeleteOptions`, if there is a body.
pub(super) fn delete_options(headers: &HeaderMap, text: &Bytes) -> Result<Option<Value>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let value = match Encoding::of(content_type(headers))? {
        Encoding::Json => Document::json(text).map_err(plain_failure)?.value,
        Encoding::Yaml => Document::yaml(text).map_err(plain_failure)?.value,
        Encoding::Protobuf => protobuf::to_json_as(text, "v1", "DeleteOptions")?,
    };
    check_type_fields(&value).map_err(plain_failure)?;
    match value.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => {}
        Some(kind) => return Err(plain_failure(format!("kind must be \"DeleteOptions\", not {kind:?}"))),
    }
    Ok(Some(value))
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Whether the body of a patch says what somebody wants to own.
pub(super) fn is_apply(headers: &HeaderMap) -> bool {
    media_type(content_type(headers)) == APPLY_PATCH
}

/// What kinds of patches there are for a resource.
pub(super) fn check_patch_type(served: &Served, headers: &HeaderMap) -> Result<(), Failure> {
    match media_type(content_type(headers)) {
        JSON_PATCH | MERGE_PATCH | APPLY_PATCH => Ok(()),
        STRATEGIC_PATCH if !served.resource.custom => Ok(()),
        _ if served.resource.custom => Err(unknown_format(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH].join(", "))),
        _ => {
            let message = "415: Unsupported Media Type";
            let mut failure = Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message);
            failure.details = Some(Box::default());
            Err(failure)
        }
    }
}

/// A patch.
pub(super) fn patch(headers: &HeaderMap, text: &Bytes) -> Result<Patch, Failure> {
    let json = || Document::json(text).map_err(|why| Failure::bad_request(format!("error decoding patch: {why}")));
    Ok(match media_type(content_type(headers)) {
        JSON_PATCH => Patch::Json(json()?),
        MERGE_PATCH => Patch::Merge(json()?),
        STRATEGIC_PATCH => Patch::Strategic(Document::json(text).map_err(Failure::bad_request)?),
        _ => Patch::Apply(text.clone()),
    })
}
