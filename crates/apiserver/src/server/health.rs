//! Whether we live, are ready, and what we are.

use axum::body::Body;
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use crate::request::query::Query;

/// The version of Kubernetes that this server is like.
const MINOR: &str = "33";
const COMPATIBLE_MINOR: &str = "32";

/// The answer to `/healthz`, `/livez` and `/readyz`, and their single checks; `None` for other paths.
pub(super) fn health(path: &str, query: &Query) -> Option<Response<Body>> {
    let mut parts = path.trim_matches('/').splitn(2, '/');
    let kind = parts.next().filter(|kind| matches!(*kind, "healthz" | "livez" | "readyz"))?;
    let text = match parts.next() {
        None if query.get("verbose").is_some() => format!("[+]ping ok\n[+]store ok\n{kind} check passed\n"),
        None | Some("ping" | "store") => "ok".to_owned(),
        Some(_) => return None,
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Some(response)
}

/// The answer to `/version`.
pub(super) fn version(build: &str) -> Value {
    let suffix = if build.is_empty() { String::new() } else { format!("+{build}") };
    json!({
        "major": "1", "minor": MINOR, "emulationMajor": "1", "emulationMinor": MINOR, "minCompatibilityMajor": "1",
        "minCompatibilityMinor": COMPATIBLE_MINOR, "gitVersion": format!("v1.{MINOR}.0{suffix}"), "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

/// Processors by the names that Go gives them, which is what clients compare.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
