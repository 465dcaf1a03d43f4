//! A watch as a stream of JSON lines.

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::answer;
use super::metrics::Watcher;
use crate::catalogue::Served;
use crate::request::accept::{Form, View};
use crate::status::Failure;
use crate::table::{IncludeObject, Tabulator, metadata_only};
use crate::verbs::Api;
use crate::watch::{Happening, Turn, Watching};

/// What is ready goes out together, up to about this much.
const PIECE: usize = 64 * 1024;

struct Lines {
    watching: Watching,
    encoder: Encoder,
    over: bool,
    _watcher: Watcher,
}

/// Writes events in the view that was asked for.
struct Encoder {
    api: Api,
    served: Served,
    view: View,
    include: IncludeObject,
    /// The first table has the headings.
    headed: bool,
}

/// The answer to a watch.
pub(super) fn watch(
    api: &Api,
    served: &Served,
    form: Form,
    include: IncludeObject,
    watching: Watching,
    watcher: Watcher,
) -> Response<Body> {
    let encoder = Encoder { api: api.clone(), served: served.clone(), view: form.view, include, headed: true };
    let lines = Lines { watching, encoder, over: false, _watcher: watcher };
    let stream = futures::stream::unfold(lines, |mut lines| async move {
        let piece = lines.next_piece().await?;
        Some((Ok::<Bytes, Failure>(piece), lines))
    });
    answer::stream(StatusCode::OK, Body::from_stream(stream))
}

impl Lines {
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let mut piece = Vec::new();
        let first = self.watching.next().await?;
        self.write(&mut piece, &first);
        while piece.len() < PIECE && !self.over {
            match self.watching.next().now_or_never() {
                Some(Some(next)) => self.write(&mut piece, &next),
                Some(None) => self.over = true,
                None => break,
            }
        }
        Some(piece.into())
    }

    fn write(&mut self, piece: &mut Vec<u8>, happening: &Happening) {
        let (kind, object) = match happening {
            Happening::Object(turn, text) => {
                let kind = match turn {
                    Turn::Added => "ADDED",
                    Turn::Modified => "MODIFIED",
                    Turn::Deleted => "DELETED",
                };
                (kind, self.encoder.object(text))
            }
            Happening::Bookmark { revision, initial } => {
                let bookmark =
                    self.watching.bookmark(*revision, *initial, matches!(self.encoder.view, View::Partial(_)));
                ("BOOKMARK", Some(self.encoder.value(&bookmark)))
            }
            Happening::Failed(failure) => {
                self.over = true;
                ("ERROR", Some(failure.to_json().to_string().into()))
            }
        };
        let Some(object) = object else {
            self.over = true;
            return;
        };
        piece.reserve(object.len() + 40);
        piece.extend_from_slice(b"{\"type\":\"");
        piece.extend_from_slice(kind.as_bytes());
        piece.extend_from_slice(b"\",\"object\":");
        piece.extend_from_slice(&object);
        piece.extend_from_slice(b"}\n");
    }
}

impl Encoder {
    /// An object; `None` if it cannot be shown, which ends the watch.
    fn object(&mut self, text: &Bytes) -> Option<Bytes> {
        if self.view == View::Whole {
            return Some(text.clone());
        }
        let object: Value = serde_json::from_slice(text).ok()?;
        Some(self.value(&object))
    }

    fn value(&mut self, object: &Value) -> Bytes {
        let shown = match self.view {
            View::Whole => return object.to_string().into(),
            View::Table(meta) => {
                let headed = std::mem::take(&mut self.headed);
                Tabulator::new(self.served.version(), meta, self.include).table_of_one(object, headed, self.api.now())
            }
            View::Partial(meta) => metadata_only(object, meta),
            View::PartialList(_) => json!({}),
        };
        shown.to_string().into()
    }
}
