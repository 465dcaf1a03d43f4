//! Who may have which names. Within a group, plural, singular and short names are of one kind; kinds and kinds of lists
//! of another.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::conditions::Condition;

/// The names that are in use in a group.
#[derive(Debug, Default)]
pub(super) struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Adds the names that a definition has been granted.
    pub(super) fn add(&mut self, accepted: &Value) {
        for key in ["plural", "singular", "shortNames"] {
            self.resources.extend(texts(accepted, key).map(str::to_owned));
        }
        for key in ["kind", "listKind"] {
            self.kinds.extend(texts(accepted, key).map(str::to_owned));
        }
    }
}

/// The names that a definition gets of those that it wants, and whether it gets all.
pub(super) fn accept(wanted: &Value, accepted: &Value, taken: &Taken) -> (Value, Condition) {
    let mut names: Map<String, Value> = accepted.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    // Of several conflicts the last one is told.
    for (key, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let has: Vec<&str> = texts(accepted, key).collect();
        let refused = texts(wanted, key).filter(|name| !has.contains(name) && used.contains(*name));
        let refused: Vec<String> = refused.map(|name| format!("{name:?} is already in use")).collect();
        match &refused[..] {
            [] => take_over(&mut names, wanted, key),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    take_over(&mut names, wanted, "categories");
    for required in ["plural", "kind"] {
        names.entry(required).or_insert_with(|| "".into());
    }
    let condition = match conflict {
        Some((reason, message)) => Condition::new("NamesAccepted", false, reason, message),
        None => Condition::new("NamesAccepted", true, "NoConflicts", "no conflicts found"),
    };
    (Value::Object(names), condition)
}

fn take_over(names: &mut Map<String, Value>, wanted: &Value, key: &str) {
    match wanted.get(key) {
        Some(value) => names.insert(key.to_owned(), value.clone()),
        None => names.remove(key),
    };
}

/// A name, or a list of names.
fn texts<'a>(names: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    let one = names[key].as_str().filter(|name| !name.is_empty());
    one.into_iter().chain(names[key].as_array().into_iter().flatten().filter_map(Value::as_str))
}
