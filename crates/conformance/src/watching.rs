//! A watch that a case reads event by event.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::story::{Story, parsed};
use crate::wire::Wire;

/// How long an event may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// In the place of events that do not come.
const NOTHING_MORE: &str = "(nothing more comes)";

/// A running watch.
pub struct Watching {
    title: String,
    body: Incoming,
    unread: BytesMut,
    code: u16,
    content_type: String,
    _wire: Wire,
}

impl Watching {
    pub(crate) async fn begin(mut wire: Wire, request: &Request<Bytes>, path: &str) -> Self {
        let mut response = wire.open(request).await;
        // The real server asks for patience while it sets up the cache of a new kind.
        for _ in 0..100 {
            if response.status() != 429 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            wire = wire.another();
            response = wire.open(request).await;
        }
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        Watching {
            title: format!("WATCH {path}"),
            code: response.status().as_u16(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body: response.into_body(),
            unread: BytesMut::new(),
            _wire: wire,
        }
    }

    /// Reads the next `count` events and records them. Bookmarks that only keep a client up to date come when they like,
    /// and are passed over.
    pub async fn take(&mut self, story: &mut Story, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < count {
            let Some(event) = self.next(story).await else { break };
            let silent = event == NOTHING_MORE;
            if !is_idle_bookmark(&event) {
                events.push(event);
            }
            if silent {
                break;
            }
        }
        let judge = story.target().is_judge();
        assert!(!judge || events.len() == count, "the real server sends fewer events on {}: {events:?}", self.title);
        self.record(story, &events);
        events
    }

    /// Reads until the first bookmark and records it alone. Of a watch that ends without one, nothing is recorded.
    pub async fn bookmark(&mut self, story: &mut Story) -> Option<Value> {
        while let Some(event) = self.next(story).await {
            if event["type"] == "BOOKMARK" || event == NOTHING_MORE {
                self.record(story, std::slice::from_ref(&event));
                return Some(event);
            }
        }
        None
    }

    /// Reads until the server ends the watch, and records what came, without idle bookmarks.
    pub async fn rest(&mut self, story: &mut Story) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next(story).await {
            if event == NOTHING_MORE {
                events.push(event);
                break;
            }
            if !is_idle_bookmark(&event) {
                events.push(event);
            }
        }
        self.record(story, &events);
        events
    }

    fn record(&self, story: &mut Story, events: &[Value]) {
        let record = json!({"code": self.code, "content-type": self.content_type, "events": events});
        story.record(&self.title, record);
    }

    /// The next event; nothing when the watch has ended. Ours may stay silent: that is then what is recorded.
    async fn next(&mut self, story: &Story) -> Option<Value> {
        match timeout(PATIENCE, self.line()).await {
            Ok(line) => line.map(|line| parsed(&line)),
            Err(silence) => {
                assert!(!story.target().is_judge(), "the real server is silent on {}: {silence}", self.title);
                Some(NOTHING_MORE.into())
            }
        }
    }

    async fn line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                return Some(self.unread.split_to(end + 1).freeze().slice(..end));
            }
            let frame = match self.body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(_)) | None if self.unread.is_empty() => return None,
                Some(Err(_)) | None => return Some(self.unread.split().freeze()),
            };
            if let Ok(data) = frame.into_data() {
                self.unread.extend_from_slice(&data);
            }
        }
    }
}

fn is_idle_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"].is_null()
}
