//! What must differ between two servers is named after what it stands for, so that the rest can be compared.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::compare::Step;

/// Replaces identities, revisions, times, generated names and continue tokens by symbols.
///
/// Revisions become their rank among the revisions of objects that the story has seen, so that their order is compared
/// while their distance is not: others write at the same time.
pub fn normalise(steps: &mut [Step]) {
    let mut names = Names::default();
    for step in steps.iter() {
        names.learn(&step.answer);
    }
    for step in steps.iter_mut() {
        names.replace(&mut step.answer);
    }
}

#[derive(Default)]
struct Names {
    /// Identity → symbol.
    uids: HashMap<String, String>,
    /// How many identities a name has had.
    incarnations: HashMap<String, usize>,
    /// Revisions of objects.
    revisions: BTreeSet<u64>,
    /// Generated name → symbol, in the order of appearance.
    generated: Vec<(String, String)>,
}

impl Names {
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(members) => {
                if let Some(metadata) = members.get("metadata") {
                    self.learn_object(metadata);
                }
                members.values().for_each(|member| self.learn(member));
            }
            Value::String(text) => {
                for found in PRINTED_REVISION.captures_iter(text) {
                    self.revisions.extend(found[2].parse::<u64>());
                }
            }
            _ => {}
        }
    }

    fn learn_object(&mut self, metadata: &Value) {
        let Some(name) = metadata["name"].as_str() else { return };
        let mut shown = name.to_owned();
        if let Some(prefix) = metadata["generateName"].as_str()
            && let Some(suffix) = name.strip_prefix(prefix)
            && suffix.len() == 5
        {
            if !self.generated.iter().any(|(known, _)| known == name) {
                let symbol = format!("{prefix}<{}>", self.generated.len() + 1);
                self.generated.push((name.to_owned(), symbol));
            }
            shown = self.renamed(name);
        }
        if let Some(uid) = metadata["uid"].as_str()
            && !self.uids.contains_key(uid)
        {
            let count = self.incarnations.entry(shown.clone()).or_default();
            *count += 1;
            let again = if *count == 1 { String::new() } else { format!(" #{count}") };
            self.uids.insert(uid.to_owned(), format!("<uid of {shown}{again}>"));
        }
        if let Some(revision) = metadata["resourceVersion"].as_str() {
            self.revisions.extend(revision.parse::<u64>());
        }
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.replaced(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => {
                if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                    let of_object = metadata.contains_key("name");
                    if let Some(Value::String(revision)) = metadata.get_mut("resourceVersion") {
                        *revision = if of_object { self.revision(revision) } else { self.since(revision) };
                    }
                    if let Some(Value::String(token)) = metadata.get_mut("continue")
                        && !token.is_empty()
                    {
                        "<continue>".clone_into(token);
                    }
                }
                if let Some(Value::Array(managers)) = members.get_mut("managedFields") {
                    // They are sorted by time, and two may or may not fall into one second.
                    managers.sort_by_key(|entry| {
                        ["operation", "manager", "subresource", "apiVersion"].map(|key| entry[key].to_string())
                    });
                }
                sort_causes(members);
                sort_remarks(members);
                hide_prose(members);
                if let Some(Value::Array(cells)) = members.get_mut("cells") {
                    for cell in cells {
                        if cell.as_str().is_some_and(|text| AGE.is_match(text)) {
                            *cell = "<age>".into();
                        }
                    }
                }
                members.values_mut().for_each(|member| self.replace(member));
                // Keys of managed fields carry identities.
                if members.keys().any(|key| UID.is_match(key)) {
                    *members = std::mem::take(members)
                        .into_iter()
                        .map(|(key, member)| (self.replaced(&key), member))
                        .collect();
                }
            }
            _ => {}
        }
    }

    fn replaced(&self, text: &str) -> String {
        let text = UID.replace_all(text, |found: &Captures<'_>| {
            self.uids.get(&found[0]).cloned().unwrap_or_else(|| "<uid>".to_owned())
        });
        let text = TIME.replace_all(&text, |found: &Captures<'_>| match found.get(1) {
            None => "<time>".to_owned(),
            Some(fraction) => format!("<time with {} digits>", fraction.len() - 1),
        });
        let text = REVISION_IN_MESSAGE
            .replace_all(&text, |found: &Captures<'_>| format!("{}{}", &found[1], self.revision(&found[2])));
        let text = PRINTED_REVISION.replace_all(&text, |found: &Captures<'_>| {
            format!("{}{}{}", &found[1], self.revision(&found[2]), &found[3])
        });
        let text = OBJECT_IN_MESSAGE.replace_all(&text, "Invalid value: <the object as JSON>:");
        let text = CURRENT_REVISION.replace_all(&text, "${1}<revision>");
        let text = without_go_values(&text);
        let text = POINTER.replace_all(&text, "(0x<pointer>)");
        let text = FINGERPRINT.replace_all(&text, "X509SHA256=<fingerprint>");
        let text = LOOPBACK.replace_all(&text, "<server>");
        self.renamed(&text)
    }

    fn renamed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, symbol) in &self.generated {
            if text.contains(name) {
                text = text.replace(name, symbol);
            }
        }
        text
    }

    /// The rank of an object's revision.
    fn revision(&self, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(number) if self.revisions.contains(&number) => {
                format!("<revision {}>", self.revisions.range(..=number).count())
            }
            Ok(_) => "<revision>".to_owned(),
            Err(_) => text.to_owned(),
        }
    }

    /// A list's revision: at which object's revision, or after it, the list was made.
    fn since(&self, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(number) => format!("<since revision {}>", self.revisions.range(..=number).count()),
            Err(_) => text.to_owned(),
        }
    }
}

/// Go walks maps in any order, so mistakes come in any order: in the causes, and in the sentence made of them.
fn sort_causes(members: &mut Map<String, Value>) {
    let Some(Value::Array(causes)) = members.get_mut("details").and_then(|details| details.get_mut("causes")) else {
        return;
    };
    if causes.len() < 2 {
        return;
    }
    causes.sort_by_key(|cause| [&cause["field"], &cause["reason"], &cause["message"]].map(Value::to_string));
    let sentence = |cause: &Value| {
        [&cause["field"], &cause["message"]].map(|one| one.as_str().unwrap_or_default().to_owned()).join(": ")
    };
    let sentences: Vec<_> = causes.iter().map(sentence).collect();
    let Some(Value::String(message)) = members.get_mut("message") else { return };
    if let Some((subject, _)) = message.split_once(" is invalid: [") {
        *message = format!("{subject} is invalid: [{}]", sentences.join(", "));
    } else if message.contains('\n') {
        let mut lines: Vec<_> = message.lines().collect();
        lines.sort_unstable();
        *message = lines.join("\n");
    }
}

/// Nobody relies on the order of remarks about fields, neither in warnings nor in a refusal.
fn sort_remarks(members: &mut Map<String, Value>) {
    if let Some(Value::Array(warnings)) = members.get_mut("warning") {
        warnings.sort_by_key(Value::to_string);
    }
    for message in members.values_mut() {
        let Value::String(text) = message else { continue };
        let Some((before, remarks)) = text.split_once("strict decoding error: ") else { continue };
        let mut remarks: Vec<_> = remarks.split(", ").collect();
        remarks.sort_unstable();
        *text = format!("{before}strict decoding error: {}", remarks.join(", "));
    }
}

/// What Kubernetes says about the columns of its own kinds is its prose; ours is our own.
fn hide_prose(members: &mut Map<String, Value>) {
    let Some(Value::Array(columns)) = members.get_mut("columnDefinitions") else { return };
    for column in columns {
        let ours = column["name"].as_str().is_some_and(|name| SAMPLE_COLUMNS.contains(&name));
        if !ours && column["description"].as_str().is_some_and(|text| !text.is_empty()) {
            column["description"] = "<prose>".into();
        }
    }
}

/// Columns that the suite's own definitions describe.
const SAMPLE_COLUMNS: [&str; 3] = ["Color", "Size", "Tags"];

/// Replaces values that are printed in Go's own syntax: `[]v1.OwnerReference{…}`, `map[string]interface {}{…}`.
fn without_go_values(text: &str) -> String {
    let mut rest = text;
    let mut replaced = String::new();
    while let Some(found) = GO_VALUE.find(rest) {
        let (before, value) = rest.split_at(found.end());
        replaced.push_str(&before[..found.start()]);
        replaced.push_str("Invalid value: <a value in Go's syntax>");
        rest = &value[closing_brace(value)..];
    }
    replaced + rest
}

/// Where the value ends whose opening brace was just read.
fn closing_brace(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    for (place, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    text.len()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of our own")
}

static UID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));

/// Cases use the years before 2024 for times of their own.
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"20(?:2[4-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));

static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^(?:\d+[smhd]){1,2}$"));

static REVISION_IN_MESSAGE: LazyLock<Regex> = LazyLock::new(|| regex(r"(ResourceVersion in record \()(\d+)"));

/// Some messages carry the whole object, its members in the order of Go's structures.
static OBJECT_IN_MESSAGE: LazyLock<Regex> = LazyLock::new(|| regex(r#"Invalid value: "\{\\?".*\}":"#));

static CURRENT_REVISION: LazyLock<Regex> = LazyLock::new(|| regex(r"(current: |too old resource version: \d+ \()\d+"));

static GO_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"Invalid value: (?:\[\])?(?:map\[string\]interface \{\}|interface \{\}|[a-z0-9]+\.[A-Z][A-Za-z]*)\{")
});

/// Go prints where a value lies in memory.
static POINTER: LazyLock<Regex> = LazyLock::new(|| regex(r"\(0x[0-9a-f]{6,}\)"));

static FINGERPRINT: LazyLock<Regex> = LazyLock::new(|| regex("X509SHA256=[0-9a-f]{64}"));

static LOOPBACK: LazyLock<Regex> = LazyLock::new(|| regex(r"127\.0\.0\.1:\d{4,5}"));

static PRINTED_REVISION: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(resourceVersion"?: "|Resource Version:\s+)(\d+)("?)"#));

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn normal(answers: &[Value]) -> Vec<Value> {
        let mut steps: Vec<_> =
            answers.iter().map(|answer| Step { title: String::new(), answer: answer.clone() }).collect();
        normalise(&mut steps);
        steps.into_iter().map(|step| step.answer).collect()
    }

    fn object(name: &str, revision: u64) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}})
    }

    #[test]
    fn revisions_keep_their_order_and_lose_their_distance() {
        let list = json!({"metadata": {"resourceVersion": "150"}});
        let answers = [object("a", 100), object("b", 70), list, object("a", 100)];
        let shown: Vec<_> =
            normal(&answers).iter().map(|answer| answer["metadata"]["resourceVersion"].clone()).collect();
        assert_eq!(shown, ["<revision 2>", "<revision 1>", "<since revision 2>", "<revision 2>"]);
    }

    #[test]
    fn identities_are_named_after_their_objects() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let other = "01234567-89ab-cdef-0123-000000000000";
        let answers =
            [json!({"metadata": {"name": "a", "uid": uid}}), json!({"message": format!("uid {uid}, not {other}")})];
        assert_eq!(normal(&answers)[1]["message"], "uid <uid of a>, not <uid>");
    }

    #[test]
    fn times_of_now_are_hidden_and_those_of_cases_are_not() {
        let answers = [json!(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "2001-01-02T03:04:05Z"])];
        assert_eq!(normal(&answers)[0], json!(["<time>", "<time with 6 digits>", "2001-01-02T03:04:05Z"]));
    }

    #[test]
    fn mistakes_are_sorted() {
        let cause = |field: &str| json!({"field": field, "message": "bad"});
        let answers =
            [json!({"message": "X is invalid: [b: bad, a: bad]", "details": {"causes": [cause("b"), cause("a")]}})];
        assert_eq!(normal(&answers)[0]["message"], "X is invalid: [a: bad, b: bad]");
    }

    #[test]
    fn values_in_the_syntax_of_go_are_hidden() {
        let answers = [json!("a: Invalid value: []v1.Owner{v1.Owner{Name:\"}\"}}: no, b: Invalid value: 7: no")];
        assert_eq!(normal(&answers)[0], "a: Invalid value: <a value in Go's syntax>: no, b: Invalid value: 7: no");
    }

    #[test]
    fn generated_names_are_numbered() {
        let answers = [json!({"metadata": {"generateName": "a-", "name": "a-x7k2p"}}), json!("configmaps \"a-x7k2p\"")];
        assert_eq!(normal(&answers)[1], json!("configmaps \"a-<1>\""));
    }

    #[test]
    fn printed_revisions_are_ranked_too() {
        let answers = [json!("resourceVersion: \"9\""), json!("resourceVersion: \"7\"")];
        assert_eq!(normal(&answers)[0], json!("resourceVersion: \"<revision 2>\""));
    }
}
