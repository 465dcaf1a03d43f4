//! What a server answered, with a few words to say what was expected.

use std::ops::Index;

use http::HeaderMap;
use serde_json::{Map, Value, json};

/// Headers that are part of the interface; the others are of no concern to clients.
const COMPARED_HEADERS: [&str; 6] = ["allow", "cache-control", "content-type", "location", "retry-after", "warning"];

/// One answer. What a case says of it is asserted on the real server only: on ours, it shows as a difference.
pub struct Answer {
    pub(crate) title: String,
    pub(crate) judge: bool,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The status code that the real server answers with.
    #[track_caller]
    pub fn is(&self, code: u16) -> &Self {
        self.assert(self.code == code, || format!("code {code}"));
        self
    }

    /// A part of the message that the real server answers with.
    #[track_caller]
    pub fn says(&self, words: &str) -> &Self {
        let said = self.body["message"].as_str().unwrap_or_default();
        self.assert(said.contains(words), || format!("a message with {words:?}"));
        self
    }

    /// A part of a warning that the real server answers with.
    #[track_caller]
    pub fn warns(&self, words: &str) -> &Self {
        let said = self.headers.get_all("warning").iter().any(|line| header_text(line).contains(words));
        self.assert(said, || format!("a warning with {words:?}"));
        self
    }

    /// What the real server answers at a JSON pointer; null is absent.
    #[track_caller]
    pub fn has(&self, pointer: &str, value: impl Into<Value>) -> &Self {
        let value = value.into();
        self.assert(*self.at(pointer) == value, || format!("{value} at {pointer}, not {}", self.at(pointer)));
        self
    }

    /// Asserts anything else of the real server's answer.
    #[track_caller]
    pub fn holds(&self, what: &str, condition: impl FnOnce(&Value) -> bool) -> &Self {
        self.assert(!self.judge || condition(&self.body), || what.to_owned());
        self
    }

    /// What is at a JSON pointer; null where there is nothing.
    pub fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The text at a JSON pointer, to be used in the next request; empty where there is none.
    pub fn text(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_default().to_owned()
    }

    /// `metadata.resourceVersion`.
    pub fn revision(&self) -> String {
        self.text("/metadata/resourceVersion")
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> String {
        self.text("/metadata/uid")
    }

    /// A header; empty where there is none.
    pub fn header(&self, name: &str) -> String {
        self.headers.get(name).map(header_text).unwrap_or_default()
    }

    /// The content type.
    pub fn content_type(&self) -> String {
        self.header("content-type")
    }

    /// The status code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The body; a text when it is not JSON.
    pub fn body(&self) -> &Value {
        &self.body
    }

    #[track_caller]
    fn assert(&self, holds: bool, expected: impl FnOnce() -> String) {
        assert!(
            holds || !self.judge,
            "the real server answers otherwise\n  to       {}\n  expected {}\n  answered {} {}",
            self.title,
            expected(),
            self.code,
            shortened(&self.body),
        );
    }

    /// As it is compared.
    pub(crate) fn record(&self) -> Value {
        let mut headers = Map::new();
        for name in COMPARED_HEADERS {
            let lines: Vec<_> = self.headers.get_all(name).iter().map(header_text).collect();
            match lines.as_slice() {
                [] => {}
                [line] => drop(headers.insert(name.to_owned(), line.as_str().into())),
                many => drop(headers.insert(name.to_owned(), many.into())),
            }
        }
        json!({"code": self.code, "headers": headers, "body": self.body})
    }
}

impl Index<&str> for Answer {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        self.body.get(key).unwrap_or(&Value::Null)
    }
}

fn header_text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn shortened(body: &Value) -> String {
    let text = body.to_string();
    match text.char_indices().nth(3000) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
