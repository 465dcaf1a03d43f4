//! Rules on objects.

use serde_json::Value;

use schema::{FieldError, FieldFault};
use schema::{NIL, Path};

use super::compile::{CompiledRule, Reason, Site};
use super::value::{Fault, Val};

/// What all rules together may cost on one object.
const OBJECT_LIMIT: u64 = 10_000_000;
/// How long a computed message may be, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;

const NO_BUDGET: &str = "validation failed due to running out of cost budget, no further validation rules will be run";

pub(super) fn check(root: &Site, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut checker = Checker { errors: Vec::new(), left: OBJECT_LIMIT };
    let before = Before { old, current: old.map(|old| Pair { new, old }), nearest: None };
    // Running out of budget ends it all; what was found is said.
    let _ = checker.site(root, &Path::ROOT, new, before);
    checker.errors
}

/// The same place in both objects.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    new: &'a Value,
    old: &'a Value,
}

impl Pair<'_> {
    fn is_same(self) -> bool {
        self.new == self.old
    }
}

/// What was at a place before.
#[derive(Debug, Clone, Copy)]
struct Before<'a> {
    /// `oldSelf`.
    old: Option<&'a Value>,
    current: Option<Pair<'a>>,
    /// The nearest place above of which it is known what it was.
    nearest: Option<Pair<'a>>,
}

impl<'a> Before<'a> {
    /// Whether a rule that fails has failed before, on the same value.
    fn is_untouched(&self) -> bool {
        self.current.or(self.nearest).is_some_and(Pair::is_same)
    }

    fn below(&self, new: &'a Value, old: Option<&'a Value>) -> Self {
        match self.current {
            Some(current) => Self { old, current: old.map(|old| Pair { new, old }), nearest: Some(current) },
            None => Self { old, current: None, nearest: self.nearest },
        }
    }
}

/// No further rules are run.
struct Stop;

struct Checker {
    errors: Vec<FieldError>,
    left: u64,
}

impl Checker {
    fn site(&mut self, site: &Site, path: &Path<'_>, new: &Value, before: Before<'_>) -> Result<(), Stop> {
        if new.is_null() {
            return Ok(());
        }
        if !site.rules.is_empty() {
            self.rules(site, path, new, before)?;
        }
        match new {
            Value::Array(items) => {
                let Some(below) = site.items.as_deref() else { return Ok(()) };
                for (index, item) in items.iter().enumerate() {
                    let old = site.keys.as_ref().and_then(|keys| same_keys(keys, item, before.old?));
                    self.site(below, &path.index(index), item, before.below(item, old))?;
                }
                Ok(())
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = before.old.and_then(|old| old.get(name));
                    if let Some(below) = site.values.as_deref() {
                        self.site(below, &path.key(name), value, before.below(value, old))?;
                    }
                    if let Some(below) = site.properties.get(name) {
                        let mut before = before.below(value, old);
                        if path.is_root() && matches!(name.as_str(), "apiVersion" | "kind") {
                            (before.current, before.nearest) = (None, None);
                        }
                        self.site(below, &path.field(name), value, before)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn rules(&mut self, site: &Site, path: &Path<'_>, new: &Value, before: Before<'_>) -> Result<(), Stop> {
        if self.left == 0 {
            self.errors.push(invalid(path, site, NO_BUDGET));
            return Err(Stop);
        }
        let own = Val::from_json(new, &site.decl);
        let old = before.old.filter(|old| !old.is_null()).map(|old| Val::from_json(old, &site.decl));
        for rule in &site.rules {
            if rule.mentions_old_self && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let (verdict, cost) = match variables(rule.optional_old_self, &own, old.as_ref()) {
                Ok(variables) => rule.program.run(&variables),
                Err(fault) => (Err(fault), 0),
            };
            let limit_exceeded = matches!(verdict, Err(Fault::OverBudget));
            if cost > self.left {
                self.errors.push(invalid(path, site, NO_BUDGET));
                return Err(Stop);
            }
            self.left -= cost;
            if limit_exceeded {
                let why = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to \
                     call cost exceeds limit for rule: {}",
                    rule.name
                );
                self.errors.push(invalid(path, site, why));
                return Err(Stop);
            }
            match verdict {
                Ok(Val::Bool(true)) => {}
                Err(Fault::Error(why)) if why.starts_with("no such overload") => {
                    let why = format!(
                        "'{why}': call arguments did not match a supported operator, function or macro signature for \
                         rule: {}",
                        rule.name
                    );
                    self.errors.push(invalid(path, site, why));
                }
                Err(Fault::Error(why)) => {
                    self.errors.push(invalid(path, site, format!("{why} evaluating rule: {}", rule.name)));
                }
                _ => self.broken(site, rule, path, before, &own, old.as_ref())?,
            }
        }
        Ok(())
    }

    /// A rule says no.
    fn broken<'a>(
        &mut self,
        site: &'a Site,
        rule: &'a CompiledRule,
        path: &Path<'_>,
        before: Before<'_>,
        own: &Result<Val<'a>, Fault>,
        old: Option<&Result<Val<'a>, Fault>>,
    ) -> Result<(), Stop> {
        let untouched = !rule.mentions_old_self && before.is_untouched();
        let place = place(path, &rule.field_path);
        let mut message = rule.message.clone();
        if let Some((program, source)) = &rule.message_expression {
            let (computed, cost) = match variables(false, own, old) {
                Ok(variables) => program.run(&variables),
                Err(fault) => (Err(fault), 0),
            };
            let over = if cost > self.left {
                Some(
                    "messageExpression evaluation failed due to running out of cost budget, no further validation \
                      rules will be run"
                        .to_owned(),
                )
            } else if matches!(computed, Err(Fault::OverBudget)) {
                Some(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source:?}"
                ))
            } else {
                None
            };
            if let Some(why) = over {
                if !untouched {
                    let fault = FieldFault::Invalid(site.kind.into());
                    self.errors.push(FieldError::new(fault, place, why));
                }
                return Err(Stop);
            }
            self.left -= cost;
            if let Ok(Val::Text(text)) = computed {
                let text = text.trim();
                if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
                    text.clone_into(&mut message);
                }
            }
        }
        if untouched {
            return Ok(());
        }
        self.errors.push(match rule.reason {
            Reason::Invalid => FieldError::invalid(place, site.kind, message),
            Reason::Forbidden => FieldError::forbidden(place, message),
            Reason::Required => FieldError::required(place, message),
            Reason::Duplicate => FieldError::new(FieldFault::Duplicate(site.kind.into()), place, ""),
        });
        Ok(())
    }
}

/// `self` and `oldSelf`.
fn variables<'a>(
    optional_old_self: bool,
    own: &Result<Val<'a>, Fault>,
    old: Option<&Result<Val<'a>, Fault>>,
) -> Result<Vec<(&'a str, Val<'a>)>, Fault> {
    let mut variables = vec![("self", own.clone()?)];
    match (old, optional_old_self) {
        (Some(old), true) => variables.push(("oldSelf", Val::some(old.clone()?))),
        (Some(old), false) => variables.push(("oldSelf", old.clone()?)),
        (None, true) => variables.push(("oldSelf", Val::NONE)),
        (None, false) => {}
    }
    Ok(variables)
}

fn invalid(path: &Path<'_>, site: &Site, why: impl Into<String>) -> FieldError {
    FieldError::invalid(place(path, ""), site.kind, why)
}

/// Where an error is shown. What is said of the object itself has no place.
fn place(path: &Path<'_>, field_path: &str) -> String {
    match (path.is_root(), field_path) {
        (true, "") => NIL.to_owned(),
        (true, below) => below.to_owned(),
        (false, "") => path.to_string(),
        (false, below) => format!("{path}.{below}"),
    }
}

/// The item of the old list with the same keys.
fn same_keys<'a>(keys: &[String], item: &Value, old: &'a Value) -> Option<&'a Value> {
    old.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}
