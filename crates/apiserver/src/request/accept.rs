//! What answers a client accepts.

use http::StatusCode;

use crate::status::Failure;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// JSON or YAML.
    pub media: Media,
    /// The whole object, or a view of it.
    pub view: View,
    /// With indentation.
    pub pretty: bool,
}

/// Encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
}

/// Views of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// The object.
    #[default]
    Whole,
    /// A table for people; the version of `meta.k8s.io`.
    Table(&'static str),
    /// Only the metadata of one object.
    Partial(&'static str),
    /// Only the metadata of a list of objects.
    PartialList(&'static str),
}

impl Media {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

struct Clause<'a> {
    kind: &'a str,
    quality: f32,
    view: Option<View>,
}

/// Picks an answer that the client accepts. `None`: none that we have.
pub fn negotiate(accept: &str, watching: bool) -> Option<Form> {
    if accept.trim().is_empty() {
        return Some(Form::default());
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(read_clause).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses.into_iter().find_map(|clause| {
        let media = match clause.kind {
            "application/json" | "*/*" | "application/*" => Media::Json,
            "application/yaml" if !watching => Media::Yaml,
            _ => return None,
        };
        Some(Form { media, view: clause.view?, pretty: false })
    })
}

fn read_clause(text: &str) -> Clause<'_> {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let (mut target, mut group, mut version, mut quality) = ("", "", "", 1.0);
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key.trim() {
            "as" => target = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            "q" => quality = value.trim().parse().unwrap_or(1.0),
            _ => {}
        }
    }
    let version = match version {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    };
    let view = match (target, group, version) {
        ("", _, _) => Some(View::Whole),
        ("Table", "meta.k8s.io", Some(version)) => Some(View::Table(version)),
        ("PartialObjectMetadata", "meta.k8s.io", Some(version)) => Some(View::Partial(version)),
        ("PartialObjectMetadataList", "meta.k8s.io", Some(version)) => Some(View::PartialList(version)),
        _ => None,
    };
    Clause { kind, quality, view }
}

/// None of the answers that the client accepts can be given.
pub fn not_acceptable(watching: bool) -> Failure {
    let have = if watching {
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    };
    let message = format!("only the following media types are accepted: {have}");
    Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}
