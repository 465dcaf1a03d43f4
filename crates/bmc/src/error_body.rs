//! The body of an error answer (ExtendedInfo, plain text, HTML, or nothing), turned into one sentence.

use std::fmt;

use serde_json::Value;

use crate::lenient;
use crate::resource::View;

/// A BMC may answer a page of HTML; a condition should not.
const SENTENCE_LIMIT: usize = 600;

/// The reason that a BMC gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    messages: Vec<Message>,
    sentence: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Message {
    /// `Base.1.12.ActionParameterMissing`, `IDRAC.2.8.SYS518`, or without registry and version.
    id: String,
    /// Message arguments and related properties: what the message is about.
    about: Vec<String>,
}

/// Conditions that pass by themselves; the request was not executed.
const NOT_READY: &[&str] = &[
    "SYS518",
    "InvalidOperationForSystemState",
    "UnableToModifyDuringSystemPOST",
    "ResourceInUse",
    "ResourceInStandby",
    "ServiceTemporarilyUnavailable",
    "ServiceInUnknownState",
    "ResourceNotReadyRetry",
];

impl Problem {
    /// Reads the body of an error answer of any form.
    pub(crate) fn read(status: u16, content_type: &str, body: &[u8]) -> Self {
        if let Ok(value) = lenient::parse(body) {
            return Self::from_json(&value);
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let sentence = if text.is_empty() {
            http::StatusCode::from_u16(status)
                .ok()
                .and_then(|s| s.canonical_reason())
                .unwrap_or("no reason given")
                .to_owned()
        } else if text.starts_with('<') || content_type.contains("html") || content_type.contains("xml") {
            let what = if content_type.contains("xml") && !content_type.contains("html") { "XML" } else { "HTML" };
            match title(text) {
                Some(title) => format!("it answered {what}, not Redfish ({title:?})"),
                None => format!("it answered {what}, not Redfish"),
            }
        } else {
            one_line(text)
        };
        Self { messages: Vec::new(), sentence: cut(&sentence) }
    }

    /// Reads a Redfish error object, or messages that stand in another resource (a task).
    pub(crate) fn from_json(value: &Value) -> Self {
        let error = value.get("error").unwrap_or(value);
        let found = ["@Message.ExtendedInfo", "Messages"]
            .iter()
            .filter_map(|key| error.get(*key))
            .find(|found| !found.is_null());
        // iDRAC gives a single object where the schema wants an array.
        let entries: &[Value] = match found {
            Some(Value::Array(entries)) => entries,
            Some(single @ Value::Object(_)) => std::slice::from_ref(single),
            _ => &[],
        };
        let mut messages = Vec::new();
        let mut told: Vec<String> = Vec::new();
        for entry in entries {
            let entry = View(entry);
            let id = entry.text("/MessageId").or_else(|| entry.text("/MessageID")).unwrap_or_default();
            let mut about = entry.texts("/MessageArgs");
            about.extend(entry.texts("/RelatedProperties"));
            if let Some(sentence) = entry.text("/Message").filter(|sentence| !told.contains(sentence)) {
                told.push(sentence);
            }
            messages.push(Message { id, about });
        }
        let error = View(error);
        if messages.is_empty()
            && let Some(code) = error.text("/code")
        {
            messages.push(Message { id: code, about: Vec::new() });
        }
        // iLO gives ids only and a message that points to them; sushy gives a general id and the reason as the message.
        let says_something =
            |text: &String| !text.contains("ExtendedInfo") && !text.starts_with("A general error has occurred");
        if told.is_empty() {
            told.extend(error.text("/message").filter(says_something));
        }
        if told.is_empty() {
            told.extend(messages.iter().map(|message| message.id.clone()).filter(|id| !id.is_empty()));
        }
        let sentence = if told.is_empty() { "no reason given".to_owned() } else { told.join(" ") };
        Self { messages, sentence: cut(&one_line(&sentence)) }
    }

    /// The sentence, changed: to take out what must not be repeated.
    pub(crate) fn map_sentence(mut self, change: impl Fn(String) -> String) -> Self {
        self.sentence = change(self.sentence);
        for message in &mut self.messages {
            message.about = std::mem::take(&mut message.about).into_iter().map(&change).collect();
        }
        self
    }

    /// The BMC's words.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Whether one of the messages has that id, whatever its registry and version.
    pub fn has(&self, suffix: &str) -> bool {
        self.messages.iter().any(|message| is_id(&message.id, suffix))
    }

    /// Whether one of the messages with that id is about that property or parameter.
    pub fn is_about(&self, property: &str) -> bool {
        self.messages
            .iter()
            .flat_map(|message| &message.about)
            .any(|about| about.rsplit(['/', '.']).next().is_some_and(|last| last.eq_ignore_ascii_case(property)))
            || self.sentence.contains(property)
    }

    /// Whether the BMC gave a reason of its own, as opposed to none or a general one.
    pub fn is_specific(&self) -> bool {
        self.messages.iter().any(|message| {
            !message.id.is_empty()
                && !["GeneralError", "ExtendedInfo", "ExtendedError", "Success", "InternalError"]
                    .iter()
                    .any(|general| is_id(&message.id, general))
        })
    }

    /// Whether no session is left: iDRAC's RAC0218, iLO's and the standard's SessionLimitExceeded.
    pub(crate) fn is_session_limit(&self) -> bool {
        ["RAC0218", "SessionLimitExceeded", "MaximumSessionsReached"].iter().any(|id| self.has(id))
    }

    /// Whether it passes by itself.
    pub(crate) fn is_not_ready(&self) -> bool {
        NOT_READY.iter().any(|id| self.has(id))
    }

    /// Whether a new password is wanted before anything else.
    pub(crate) fn wants_new_password(&self) -> bool {
        self.has("PasswordChangeRequired")
    }

    /// Whether the account may not do this, as opposed to: the session is no good.
    pub(crate) fn is_about_rights(&self) -> bool {
        [
            "InsufficientPrivilege",
            "InsufficientPrivilegeForOperation",
            "OemLicenseNotPassed",
            "LicenseRequired",
            "ActionNotSupported",
        ]
        .iter()
        .any(|id| self.has(id))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

fn is_id(id: &str, suffix: &str) -> bool {
    id.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(suffix))
}

fn title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower.get(start..)?.find("</title>")?;
    let title = one_line(html.get(start..end)?);
    (!title.is_empty()).then(|| title.chars().take(80).collect())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(sentence: &str) -> String {
    if sentence.chars().count() <= SENTENCE_LIMIT {
        return sentence.to_owned();
    }
    let mut short: String = sentence.chars().take(SENTENCE_LIMIT).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Problem {
        Problem::read(400, "application/json", text.as_bytes())
    }

    #[test]
    fn extended_info_becomes_a_sentence() {
        let problem = json(
            r##"{"error":{"code":"Base.1.8.GeneralError","message":"A general error has occurred.","@Message.ExtendedInfo":[
                {"MessageId":"Base.1.8.ActionParameterMissing","Message":"The action requires TransferProtocolType.",
                 "MessageArgs":["InsertMedia","TransferProtocolType"],"RelatedProperties":["#/TransferProtocolType"]}]}}"##,
        );
        assert_eq!(problem.sentence(), "The action requires TransferProtocolType.");
        assert!(
            problem.has("ActionParameterMissing") && problem.is_about("TransferProtocolType") && problem.is_specific()
        );
        assert!(!problem.has("ParameterMissing"));
    }

    #[test]
    fn idrac_gives_one_object_instead_of_a_list() {
        let problem =
            json(r#"{"error":{"@Message.ExtendedInfo":{"MessageId":"IDRAC.2.8.SYS518","Message":"Not ready."}}}"#);
        assert!(problem.is_not_ready());
        assert_eq!(problem.sentence(), "Not ready.");
    }

    #[test]
    fn ilo_gives_ids_without_messages() {
        let problem = json(
            r#"{"error":{"code":"iLO.0.10.ExtendedInfo","message":"See @Message.ExtendedInfo for more information.","@Message.ExtendedInfo":[{"MessageId":"iLO.2.14.UnableToModifyDuringSystemPOST"}]}}"#,
        );
        assert!(problem.is_not_ready());
        assert_eq!(problem.sentence(), "iLO.2.14.UnableToModifyDuringSystemPOST");
    }

    #[test]
    fn html_is_named_not_quoted() {
        let problem = Problem::read(
            504,
            "text/html",
            b"<!DOCTYPE html><HTML><head><TITLE>504 Gateway\n Timeout</TITLE></head>...",
        );
        assert_eq!(problem.sentence(), "it answered HTML, not Redfish (\"504 Gateway Timeout\")");
    }

    #[test]
    fn sushy_answers_plain_text_or_nothing() {
        assert_eq!(Problem::read(400, "text/plain", b"  Bad\nrequest ").sentence(), "Bad request");
        assert_eq!(Problem::read(405, "", b"").sentence(), "Method Not Allowed");
        assert_eq!(json(r#"{"error":{"code":"Base.1.0.GeneralError","message":"Boom"}}"#).sentence(), "Boom");
        let both = json(
            r#"{"error":{"code":"Base.1.0.GeneralError","message":"Boom","@Message.ExtendedInfo":[{"MessageId":"Base.1.0.GeneralError"}]}}"#,
        );
        assert_eq!(both.sentence(), "Boom");
        assert!(!both.is_specific());
    }

    #[test]
    fn a_long_reason_is_cut() {
        let problem = Problem::read(500, "text/plain", "x".repeat(5000).as_bytes());
        assert_eq!(problem.sentence().chars().count(), SENTENCE_LIMIT + 1);
    }

    proptest! {
        #[test]
        fn any_body_gives_a_bounded_sentence(status in 0u16..1000, content_type in ".{0,20}", body in prop::collection::vec(any::<u8>(), 0..2000)) {
            let problem = Problem::read(status, &content_type, &body);
            prop_assert!(!problem.sentence().is_empty());
            prop_assert!(problem.sentence().chars().count() <= SENTENCE_LIMIT + 1);
        }
    }
}
