//! Where two tellings of one case differ.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// One recorded answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The request, for people.
    pub title: String,
    /// The answer, as it is compared.
    pub answer: Value,
}

/// One place where ours answers otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The number of the step, from 1.
    pub step: usize,
    /// The request.
    pub title: String,
    /// Where in the answer.
    pub pointer: String,
    /// What the real server says; nothing when it says nothing.
    pub real: Option<Value>,
    /// What ours says.
    pub ours: Option<Value>,
}

/// A difference that we live with; documented in `docs/reference/api-server.md`.
#[derive(Debug, Clone, Copy)]
pub struct KnownDifference {
    /// The names of the cases' test functions.
    pub cases: &'static [&'static str],
    /// Where: the JSON pointer of the difference, in which `*` stands for anything.
    pub at: &'static str,
    /// Why, in a sentence that is also in the documentation.
    pub reason: &'static str,
}

/// Marks of sentences that kube-apiserver takes from Go's parsers and printers. Ours are our own: of these, only that
/// there is a sentence is compared, beside code, reason, causes and paths.
const WORDS_OF_GO: [&str; 31] = [
    "<a value in Go's syntax>",
    "+0000 UTC",
    "[]apiextensions.",
    "[]string",
    "\\x",
    "0x0",
    "interface {}",
    "map[",
    "already set in map",
    "accessor error",
    "data does not appear to be a protobuf message",
    "continue key is not valid",
    "empty body",
    "empty data",
    "error parsing regexp",
    "failed to create typed",
    "Go struct field",
    "Go value",
    "illegal base64",
    "invalid character",
    "Object 'Kind' is missing",
    "parsing time",
    "proto: ",
    "scheme.go",
    "strconv.",
    "Syntax error",
    "unexpected EOF",
    "unexpected end of JSON",
    "unknown conversion",
    "yaml: ",
    "(*",
];

/// Whether the real server's sentence is one of Go's, and ours has one in its place.
fn is_in_other_words(difference: &Difference) -> bool {
    let spoken = ["/body/message", "/body/details/causes/*/message", "/headers/warning*", "/stderr*"];
    let texts = (difference.real.as_ref().and_then(Value::as_str), difference.ours.as_ref().and_then(Value::as_str));
    spoken.iter().any(|pattern| fits(pattern, &difference.pointer))
        && matches!(texts, (Some(real), Some(ours)) if !ours.is_empty() && WORDS_OF_GO.iter().any(|mark| real.contains(mark)))
}

/// All differences between two tellings, both normalised.
pub fn differences(real: &[Step], ours: &[Step]) -> Vec<Difference> {
    let mut found = Vec::new();
    for number in 0..real.len().max(ours.len()) {
        let pair = (real.get(number).map(|step| &step.answer), ours.get(number).map(|step| &step.answer));
        let title = real.get(number).or(ours.get(number)).map(|step| step.title.clone()).unwrap_or_default();
        let mut pointers = Vec::new();
        walk(pair.0, pair.1, String::new(), &mut pointers);
        found.extend(pointers.into_iter().map(|(pointer, real, ours)| Difference {
            step: number + 1,
            title: title.clone(),
            pointer,
            real,
            ours,
        }));
    }
    found.retain(|difference| !is_in_other_words(difference));
    found
}

type Found = (String, Option<Value>, Option<Value>);

fn walk(real: Option<&Value>, ours: Option<&Value>, pointer: String, found: &mut Vec<Found>) {
    match (real, ours) {
        (Some(Value::Object(real)), Some(Value::Object(ours))) => {
            let mut keys: Vec<_> = real.keys().chain(ours.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                walk(real.get(key), ours.get(key), pointer, found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(ours))) => {
            for index in 0..real.len().max(ours.len()) {
                walk(real.get(index), ours.get(index), format!("{pointer}/{index}"), found);
            }
        }
        (real, ours) if real != ours => found.push((pointer, real.cloned(), ours.cloned())),
        _ => {}
    }
}

/// Nothing, or a report that fails the test: differences that nobody listed, and listed ones that are no more.
pub fn verdict(case: &str, found: &[Difference], known: &[KnownDifference]) -> Result<(), String> {
    let known: Vec<_> = known.iter().filter(|one| one.cases.contains(&case)).collect();
    let unlisted: Vec<_> = found.iter().filter(|one| !known.iter().any(|entry| fits(entry.at, &one.pointer))).collect();
    let stale: Vec<_> = known.iter().filter(|entry| !found.iter().any(|one| fits(entry.at, &one.pointer))).collect();
    if unlisted.is_empty() && stale.is_empty() {
        return Ok(());
    }
    let mut report = format!("{case}:\n");
    for one in unlisted.iter().take(SHOWN) {
        let _ = writeln!(report, "{one}");
    }
    if unlisted.len() > SHOWN {
        let _ = writeln!(report, "  and {} more differences", unlisted.len() - SHOWN);
    }
    for entry in stale {
        let _ = writeln!(report, "  no longer differs, take it off the list: {} ({})", entry.at, entry.reason);
    }
    Err(report)
}

/// The first differences explain the others.
const SHOWN: usize = 12;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| match value {
            None => "(nothing)".to_owned(),
            Some(value) => cut(&value.to_string()),
        };
        writeln!(f, "  step {} {}\n    at   {}", self.step, self.title, self.pointer)?;
        write!(f, "    real {}\n    ours {}", shown(&self.real), shown(&self.ours))
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(700) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Whether a pointer is what the pattern, in which `*` stands for anything, describes.
fn fits(pattern: &str, pointer: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = pointer.strip_prefix(first) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(answer: Value) -> Step {
        Step { title: "GET /x".to_owned(), answer }
    }

    #[test]
    fn differences_name_their_place() {
        let real = [step(json!({"a": {"b": [1, 2]}, "c": 1}))];
        let ours = [step(json!({"a": {"b": [1, 3]}, "d/e": 1}))];
        let pointers: Vec<_> = differences(&real, &ours).into_iter().map(|one| one.pointer).collect();
        assert_eq!(pointers, ["/a/b/1", "/c", "/d~1e"]);
    }

    #[test]
    fn a_missing_step_is_a_difference() {
        assert_eq!(differences(&[step(json!({}))], &[]).len(), 1);
    }

    #[test]
    fn sentences_of_go_may_be_others_but_not_missing_nor_may_reasons() {
        let status = |message: Value| step(json!({"body": {"message": message, "reason": "BadRequest"}}));
        let real = [status("json: cannot unmarshal number into Go struct field A.b of type string".into())];
        assert_eq!(differences(&real, &[status("b must be a string".into())]), []);
        assert_eq!(differences(&real, &[status("".into())]).len(), 1);
        assert_eq!(differences(&real, &[status(Value::Null)]).len(), 1);
        let other = [step(json!({"body": {"message": "b must be a string", "reason": "Invalid"}}))];
        assert_eq!(differences(&real, &other).len(), 1);
        let real = [status("secrets \"a\" not found".into())];
        assert_eq!(differences(&real, &[status("secrets \"b\" not found".into())]).len(), 1);
    }

    #[test]
    fn patterns_match_anything_at_a_star() {
        assert!(fits("/body/message", "/body/message"));
        assert!(fits("/body/*", "/body/items/0"));
        assert!(fits("/body/*/name", "/body/items/0/name"));
        assert!(!fits("/body/*/name", "/body/items/0/uid"));
        assert!(!fits("/body", "/body/message"));
    }

    #[test]
    fn what_is_listed_is_forgiven_and_what_no_longer_differs_is_told() {
        let found = differences(&[step(json!({"a": 1}))], &[step(json!({"a": 2}))]);
        let listed = |at| [KnownDifference { cases: &["one"], at, reason: "because" }];
        assert_eq!(verdict("one", &found, &listed("/a")), Ok(()));
        assert!(verdict("two", &found, &listed("/a")).is_err());
        assert!(verdict("one", &[], &listed("/a")).unwrap_err().contains("no longer differs"));
    }
}
