//! `metadata.name=a,spec.color!=red`.

use schema::object;
use serde_json::Value;

use crate::catalogue::Served;
use crate::resource::Scope;

/// Requirements on fields; all must hold.
#[derive(Debug, Clone, Default)]
pub struct FieldSelector(Vec<Term>);

#[derive(Debug, Clone)]
struct Term {
    field: Field,
    equal: bool,
    value: String,
}

#[derive(Debug, Clone)]
enum Field {
    Name,
    Namespace,
    Path(Vec<String>),
}

impl FieldSelector {
    /// Reads a selector for a resource; `Err` is the sentence.
    pub fn parse(served: &Served, text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (label, equal, value) =
                split_term(part).ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            let value = unescape(value)?;
            if label.is_empty() && value.is_empty() {
                continue;
            }
            terms.push(Term { field: known_field(served, label)?, equal, value });
        }
        Ok(Self(terms))
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether only `metadata.name` and `metadata.namespace` are looked at.
    pub fn needs_only_names(&self) -> bool {
        self.0.iter().all(|term| !matches!(term.field, Field::Path(_)))
    }

    /// The one name that can match, if the selector asks for one.
    pub fn name(&self) -> Option<&str> {
        self.0.iter().find(|term| term.equal && matches!(term.field, Field::Name)).map(|term| term.value.as_str())
    }

    /// Whether these names fulfil the requirements on names.
    pub fn matches_names(&self, namespace: &str, name: &str) -> bool {
        self.0.iter().all(|term| match term.field {
            Field::Name => (name == term.value) == term.equal,
            Field::Namespace => (namespace == term.value) == term.equal,
            Field::Path(_) => true,
        })
    }

    /// Whether the object fulfils all requirements.
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_names(object::namespace(object), object::name(object))
            && self.0.iter().all(|term| match &term.field {
                Field::Path(path) => (text_at(object, path) == term.value) == term.equal,
                _ => true,
            })
    }
}

fn known_field(served: &Served, label: &str) -> Result<Field, String> {
    let version = served.version();
    for selectable in &version.selectable {
        let (name, path) = selectable.split_once('=').unwrap_or((selectable.trim_start_matches('.'), selectable));
        if name == label {
            return Ok(Field::Path(path.trim_start_matches('.').split('.').map(str::to_owned).collect()));
        }
    }
    match label {
        "metadata.name" => Ok(Field::Name),
        "metadata.namespace" if !served.resource.custom || served.resource.scope == Scope::Namespaced => {
            Ok(Field::Namespace)
        }
        _ if served.resource.custom || !version.selectable.is_empty() => {
            Err(format!("field label not supported: {label}"))
        }
        _ => Err(format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")),
    }
}

/// The value as selectors compare it; what is not there is empty.
fn text_at(object: &Value, path: &[String]) -> String {
    let mut value = object;
    for step in path {
        match value.get(step) {
            Some(inner) => value = inner,
            None => return String::new(),
        }
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(at, _)| {
        [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .find_map(|(operator, equal)| term[at..].strip_prefix(operator).map(|value| (&term[..at], equal, value)))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => return Err(format!("invalid field selector: invalid escape sequence: \\{other}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(c))),
            other => plain.push(other),
        }
    }
    Ok(plain)
}
