//! Answers, in the form that was asked for.

use std::collections::HashSet;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, WARNING};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::catalogue::Served;
use crate::request::accept::{Form, Media, View};
use crate::resource::Column;
use crate::status::Failure;
use crate::table::{IncludeObject, Tabulator, metadata_list, metadata_only};
use crate::verbs::{Api, Page};

/// Lists up to this size are answered in one piece, larger ones bit by bit.
const PIECE: usize = 128 * 1024;

/// An answer with a body of JSON (or YAML) text.
fn text(code: StatusCode, media: Media, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    set(&mut response, CONTENT_TYPE, media.content_type());
    set(&mut response, CACHE_CONTROL, "no-cache, private");
    response
}

pub(super) fn set(response: &mut Response<Body>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// A value as an answer.
pub(super) fn value(code: StatusCode, form: Form, value: &Value) -> Response<Body> {
    let body = match (form.media, form.pretty) {
        (Media::Json, false) => value.to_string(),
        (Media::Json, true) => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
        (Media::Yaml, _) => match serde_saphyr::to_string(value) {
            Ok(yaml) => yaml,
            Err(error) => return failed(&Failure::internal(error), Form::default()),
        },
    };
    text(code, form.media, body)
}

/// Text that is JSON already.
pub(super) fn bytes(code: StatusCode, form: Form, json: Bytes) -> Response<Body> {
    if form.media == Media::Json && !form.pretty {
        return text(code, Media::Json, json);
    }
    match serde_json::from_slice::<Value>(&json) {
        Ok(parsed) => value(code, form, &parsed),
        Err(_) => text(code, Media::Json, json),
    }
}

/// A refusal.
pub(super) fn failed(failure: &Failure, form: Form) -> Response<Body> {
    let mut response = value(failure.code, form, &failure.to_json());
    let seconds = failure.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0
        && let Ok(seconds) = HeaderValue::from_str(&seconds.to_string())
    {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds);
    }
    warn(&mut response, &failure.warnings);
    response
}

/// What is answered where no path leads.
pub(super) fn nowhere() -> Response<Body> {
    let mut response = Response::new(Body::from("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    set(&mut response, CONTENT_TYPE, "text/plain; charset=utf-8");
    set(&mut response, CACHE_CONTROL, "no-cache, private");
    set(&mut response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

/// Remarks, as headers.
///
/// As in kube-apiserver, long warnings are cut when all of them are too long together, and then only the first are shown.
pub(super) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    const TOGETHER: usize = 4 * 1024;
    const ONE: usize = 256;
    let mut known = HashSet::new();
    let warnings: Vec<&String> = warnings.iter().filter(|warning| known.insert(*warning)).collect();
    let cut = warnings.iter().map(|warning| warning.chars().count()).sum::<usize>() > TOGETHER;
    let mut shown = 0;
    for warning in warnings {
        if cut && shown >= TOGETHER {
            break;
        }
        let warning: String = warning.chars().take(if cut { ONE } else { usize::MAX }).collect();
        shown += warning.chars().count();
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        let printable: String = quoted.chars().filter(|c| !c.is_control()).collect();
        if let Ok(header) = HeaderValue::from_bytes(format!("299 - \"{printable}\"").as_bytes()) {
            response.headers_mut().append(WARNING, header);
        }
    }
}

/// One object.
pub(super) fn object(
    code: StatusCode,
    form: Form,
    api: &Api,
    served: Option<&Served>,
    columns: &[Column],
    include: IncludeObject,
    object: &Value,
) -> Response<Body> {
    let is_status = object.get("kind") == Some(&"Status".into());
    match form.view {
        _ if is_status => value(code, form, object),
        View::Whole => value(code, form, object),
        View::Table(meta) => {
            let table = Tabulator::of(columns, meta, include).table_of_one(object, true, api.now());
            value(code, form, &table)
        }
        View::Partial(meta) => value(code, form, &metadata_only(object, meta)),
        View::PartialList(_) if let Some(served) = served.filter(|served| !served.resource.custom) => {
            let kind = &served.resource.kind;
            let message = format!("you requested PartialObjectMetadataList, but a {kind} is not a list");
            failed(&Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message), form)
        }
        View::PartialList(_) => {
            failed(&Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "", "content is not a list"), form)
        }
    }
}

/// A list.
pub(super) fn list(form: Form, api: &Api, include: IncludeObject, page: Page) -> Result<Response<Body>, Failure> {
    let served = page.lens.served().clone();
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    // Custom resources have the field even if it is empty, unless they are shown in a view.
    if !page.continuation.is_empty() || (served.resource.custom && form.view == View::Whole) {
        metadata["continue"] = page.continuation.as_str().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    match form.view {
        View::Whole => {
            let head = format!(
                "{{\"apiVersion\":{},\"kind\":{},\"metadata\":{metadata},\"items\":[",
                Value::from(served.api_version()),
                Value::from(served.resource.list_kind.as_str()),
            );
            whole_list(form, head, page)
        }
        View::Table(meta) => {
            let objects = page.objects()?;
            let table = Tabulator::new(served.version(), meta, include).table(&objects, &metadata, true, api.now());
            Ok(value(StatusCode::OK, form, &table))
        }
        View::PartialList(meta) => Ok(value(StatusCode::OK, form, &metadata_list(&page.objects()?, &metadata, meta))),
        View::Partial(_) => {
            let kind = &served.resource.list_kind;
            let message = format!("you requested PartialObjectMetadata, but a {kind} is a list");
            Err(Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
        }
    }
}

fn whole_list(form: Form, head: String, page: Page) -> Result<Response<Body>, Failure> {
    let size: usize = page.found.iter().map(|found| found.stored.size() + 1).sum();
    let mut pieces = Pieces { page, next: 0, opening: Some(head), closed: false };
    if size < PIECE || form.media != Media::Json || form.pretty {
        let mut whole = Vec::with_capacity(size + 1024);
        while let Some(piece) = pieces.next_piece() {
            whole.extend_from_slice(&piece?);
        }
        return Ok(bytes(StatusCode::OK, form, whole.into()));
    }
    let stream = futures::stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.next_piece()?;
        // A client that reads as fast as we write must not keep others waiting.
        tokio::task::yield_now().await;
        Some((piece, pieces))
    });
    Ok(text(StatusCode::OK, Media::Json, Body::from_stream(stream)))
}

/// The text of a list, bit by bit: objects are put together as they are stored.
struct Pieces {
    page: Page,
    next: usize,
    opening: Option<String>,
    closed: bool,
}

impl Pieces {
    fn next_piece(&mut self) -> Option<Result<Bytes, Failure>> {
        if self.closed {
            return None;
        }
        let mut piece = self.opening.take().map_or_else(|| Vec::with_capacity(PIECE + PIECE / 8), String::into_bytes);
        while piece.len() < PIECE {
            let Some(found) = self.page.found.get(self.next) else {
                piece.extend_from_slice(b"]}");
                self.closed = true;
                break;
            };
            if self.next > 0 {
                piece.push(b',');
            }
            match found.read().and_then(|stored| self.page.lens.item(found.revision, &stored)) {
                Ok(item) => piece.extend_from_slice(&item),
                Err(failure) => {
                    self.closed = true;
                    return Some(Err(failure));
                }
            }
            self.next += 1;
        }
        Some(Ok(piece.into()))
    }
}

/// An answer that goes on.
pub(super) fn stream(code: StatusCode, body: Body) -> Response<Body> {
    text(code, Media::Json, body)
}
