//! What a schema says against a value, in the words and in the order of Kubernetes.
//!
//! Each check also counts what it found good. Where none of several alternatives holds, the complaints of the one that
//! came furthest are shown, and the count is how that is decided.

use serde_json::{Map, Number, Value};

use super::node::{Additional, Kind, Limits, Node};
use super::path::{NIL, Path};
use super::ratchet::Old;
use crate::{FieldError, FieldFault, quoted};

/// Nobody reads more complaints about one object than this; those after it are left out.
const MOST: usize = 1_000;

/// Collects what is wrong with `value`. `base` stands before each path of an error, but not in its sentence.
pub(crate) fn validate(node: &Node, value: &Value, old: Old<'_>, base: &str) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new(), base, of_default: false };
    check.ratcheted(node, value, old, &Path::ROOT);
    check.errors
}

/// The same for a default in a schema.
pub(crate) fn validate_default(node: &Node, default: &Value, base: &str) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new(), base, of_default: true };
    check.ratcheted(node, default, Old::None, &Path::ROOT);
    check.errors
}

struct Check<'b> {
    errors: Vec<FieldError>,
    base: &'b str,
    /// Kubernetes does not look at `x-kubernetes-int-or-string` in defaults.
    of_default: bool,
}

/// How many checks were passed.
type Count = u32;

impl Check<'_> {
    /// What was wrong before and has not been touched is let pass.
    fn ratcheted(&mut self, node: &Node, value: &Value, old: Old<'_>, path: &Path<'_>) -> Count {
        let before = self.errors.len();
        let count = self.value(node, value, old, path);
        if self.errors.len() > before && old.is_same(node, value) {
            self.errors.truncate(before);
        }
        count
    }

    fn value(&mut self, node: &Node, value: &Value, old: Old<'_>, path: &Path<'_>) -> Count {
        let limits = &node.limits;
        let mut count = 0;
        if value.is_null() {
            count += self.kind(node, value, path);
            self.listed(limits, value, path);
            return count;
        }
        let typed = node.kind.is_some() || node.int_or_string && !self.of_default;
        if typed || limits.checked_format.is_some() {
            count += self.kind(node, value, path) + 1;
        }
        count += self.alternatives(limits, value, path) + 1;
        match value {
            Value::String(text) => {
                self.text(limits, text, path);
                count += 1;
                if let Some(format) = limits.checked_format {
                    if !format.accepts(text) {
                        self.mistyped(path, &limits.format, text);
                    }
                    count += 1;
                }
            }
            Value::Number(number) => {
                self.number(limits, number, path);
                count += 2;
            }
            Value::Array(items) => count += self.items(node, items, old, path) + 2,
            _ => {}
        }
        self.listed(limits, value, path);
        count += 1;
        if let Value::Object(fields) = value {
            count += self.fields(node, fields, old, path) + 1;
        }
        count + 1
    }

    fn kind(&mut self, node: &Node, value: &Value, path: &Path<'_>) -> Count {
        let allows = |kind: Kind| {
            node.kind == Some(kind) && !node.int_or_string
                || node.int_or_string && matches!(kind, Kind::Integer | Kind::String)
        };
        let expected = || match (node.int_or_string, node.kind) {
            (true, _) => "integer,string",
            (false, Some(kind)) => kind.name(),
            (false, None) => "",
        };
        let actual = match value {
            Value::Null => {
                let untyped = node.kind.is_none() && !node.int_or_string;
                if untyped || node.nullable {
                    return 1;
                }
                self.mistyped(path, expected(), "null");
                return 0;
            }
            Value::Bool(_) => Kind::Boolean,
            Value::Number(number) if number.is_i64() => Kind::Integer,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        };
        let fits = allows(actual)
            || actual == Kind::Integer && allows(Kind::Number)
            || actual == Kind::Number && allows(Kind::Integer) && value.as_f64().is_some_and(is_integral);
        let formatted = node.limits.checked_format.is_some();
        let sequence = matches!(actual, Kind::String | Kind::Array);
        if formatted && !sequence && !fits {
            let actual_format = match actual {
                Kind::Integer => "int64",
                Kind::Number => "float64",
                _ => "",
            };
            self.mistyped(path, &node.limits.format, actual_format);
            return 0;
        }
        // A format makes Kubernetes forget the type of strings and lists.
        if formatted && sequence && !allows(Kind::Number) && !allows(Kind::Integer) {
            return 1;
        }
        if fits {
            return 1;
        }
        self.mistyped(path, expected(), actual.name());
        0
    }

    fn alternatives(&mut self, limits: &Limits, value: &Value, path: &Path<'_>) -> Count {
        let mut count = 1;
        if !limits.any_of.is_empty() {
            count += self.any_of(&limits.any_of, value, path);
        }
        if !limits.one_of.is_empty() {
            count += self.one_of(&limits.one_of, value, path);
        }
        if !limits.all_of.is_empty() {
            count += self.all_of(&limits.all_of, value, path);
        }
        if let Some(not) = &limits.not
            && self.aside(not, value, path).1.is_empty()
        {
            self.composite(format!("{} must not validate the schema (not)", quoted(&path.to_string())));
        }
        count
    }

    fn any_of(&mut self, nodes: &[Node], value: &Value, path: &Path<'_>) -> Count {
        let mut best: Option<(Count, Vec<FieldError>)> = None;
        for node in nodes {
            let (count, errors) = self.aside(node, value, path);
            if errors.is_empty() {
                return count;
            }
            if best.as_ref().is_none_or(|(most, _)| count > *most) {
                best = Some((count, errors));
            }
        }
        self.composite(format!("{} must validate at least one schema (anyOf)", quoted(&path.to_string())));
        let (count, errors) = best.unwrap_or_default();
        self.merge(errors);
        count
    }

    fn one_of(&mut self, nodes: &[Node], value: &Value, path: &Path<'_>) -> Count {
        let mut best: Option<(Count, Vec<FieldError>)> = None;
        let mut valid = 0;
        let mut first = 0;
        for node in nodes {
            let (count, errors) = self.aside(node, value, path);
            if errors.is_empty() {
                if valid == 0 {
                    first = count;
                }
                valid += 1;
                best = None;
            } else if valid == 0 && best.as_ref().is_none_or(|(most, _)| count > *most) {
                best = Some((count, errors));
            }
        }
        if valid == 1 {
            return first;
        }
        let found =
            if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
        self.composite(format!("{} must validate one and only one schema (oneOf). {found}", quoted(&path.to_string())));
        let (count, errors) = best.unwrap_or_default();
        self.merge(errors);
        count
    }

    fn all_of(&mut self, nodes: &[Node], value: &Value, path: &Path<'_>) -> Count {
        let mut total = 0;
        let mut valid = 0;
        for node in nodes {
            let (count, errors) = self.aside(node, value, path);
            total += count;
            valid += usize::from(errors.is_empty());
            self.merge(errors);
        }
        if valid != nodes.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.composite(format!("{} must validate all the schemas (allOf){none}", quoted(&path.to_string())));
        }
        total
    }

    /// Checks without collecting. Nothing is let pass for being old inside of alternatives.
    fn aside(&self, node: &Node, value: &Value, path: &Path<'_>) -> (Count, Vec<FieldError>) {
        let mut check = Check { errors: Vec::new(), ..*self };
        let count = check.value(node, value, Old::None, path);
        (count, check.errors)
    }

    fn text(&mut self, limits: &Limits, text: &str, path: &Path<'_>) {
        if limits.max_length.is_some() || limits.min_length.is_some() {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if let Some(most) = limits.max_length
                && length > most
            {
                return self.add(FieldFault::TooLong(usize::try_from(most).unwrap_or_default()), path, String::new());
            }
            if let Some(least) = limits.min_length
                && length < least
            {
                return self.invalid(path, text, format!("{path} in body should be at least {least} chars long"));
            }
        }
        if let Some(pattern) = &limits.pattern
            && !pattern.regex.is_match(text)
        {
            self.invalid(path, text, format!("{path} in body should match '{}'", pattern.source));
        }
    }

    fn number(&mut self, limits: &Limits, number: &Number, path: &Path<'_>) {
        match number.as_i64() {
            Some(integer) => self.integer(limits, integer, path),
            None => self.float(limits, number.as_f64().unwrap_or_default(), path),
        }
    }

    fn integer(&mut self, limits: &Limits, integer: i64, path: &Path<'_>) {
        if let Some(factor) = limits.multiple_of.map(truncated) {
            if factor <= 0 {
                let sentence = format!("factor MultipleOf declared for {path} must be positive: {factor}");
                self.invalid(path, factor, sentence);
            } else if integer % factor != 0 {
                self.invalid(path, integer, format!("{path} in body should be a multiple of {factor}"));
            }
        }
        if let Some(least) = limits.minimum.map(truncated)
            && (integer < least || limits.exclusive_minimum && integer == least)
        {
            let than = if limits.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            self.invalid(path, integer, format!("{path} in body should be {than} {least}"));
        }
        if let Some(most) = limits.maximum.map(truncated)
            && (integer > most || limits.exclusive_maximum && integer == most)
        {
            let than = if limits.exclusive_maximum { "less than" } else { "less than or equal to" };
            self.invalid(path, integer, format!("{path} in body should be {than} {most}"));
        }
    }

    fn float(&mut self, limits: &Limits, float: f64, path: &Path<'_>) {
        if let Some(factor) = limits.multiple_of {
            let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            if factor <= 0.0 {
                let sentence = format!("factor MultipleOf declared for {path} must be positive: {factor}");
                self.invalid(path, factor, sentence);
            } else if !is_integral(times) {
                self.invalid(path, float, format!("{path} in body should be a multiple of {factor}"));
            }
        }
        if let Some(least) = limits.minimum
            && (float < least || limits.exclusive_minimum && float <= least)
        {
            let than = if limits.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            self.invalid(path, float, format!("{path} in body should be {than} {least}"));
        }
        if let Some(most) = limits.maximum
            && (float > most || limits.exclusive_maximum && float >= most)
        {
            let than = if limits.exclusive_maximum { "less than" } else { "less than or equal to" };
            self.invalid(path, float, format!("{path} in body should be {than} {most}"));
        }
    }

    fn items(&mut self, node: &Node, items: &[Value], old: Old<'_>, path: &Path<'_>) -> Count {
        let mut count = 0;
        if let Some(below) = node.items.as_deref() {
            let old = old.list(node);
            for (index, item) in items.iter().enumerate() {
                count += self.ratcheted(below, item, old.item(item), &path.index(index));
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = node.limits.min_items
            && size < least
        {
            self.invalid(path, size, format!("{path} in body should have at least {least} items"));
        }
        if let Some(most) = node.limits.max_items
            && size > most
        {
            self.too_many(path, items.len(), most);
        }
        if node.limits.unique_items && (1..items.len()).any(|index| items[..index].contains(&items[index])) {
            self.invalid(path, "", format!("{path} in body shouldn't contain duplicates"));
        }
        count
    }

    fn fields(&mut self, node: &Node, fields: &Map<String, Value>, old: Old<'_>, path: &Path<'_>) -> Count {
        let limits = &node.limits;
        let mut count = 0;
        let size = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(least) = limits.min_properties
            && size < least
        {
            self.invalid(path, size, format!("{path} in body should have at least {least} properties"));
        }
        if let Some(most) = limits.max_properties
            && size > most
        {
            self.too_many(path, fields.len(), most);
        }
        match &node.additional {
            Some(Additional::Any(false)) => {
                for key in fields.keys().filter(|key| !node.properties.contains_key(*key)) {
                    self.invalid(path, key.as_str(), format!("{path}.{key} in body is a forbidden property"));
                }
            }
            Some(Additional::Of(below)) => {
                for (key, field) in fields.iter().filter(|(key, _)| !node.properties.contains_key(*key)) {
                    count += self.ratcheted(below, field, old.field(key), &Path::Dotted(path, key));
                }
            }
            Some(Additional::Any(true)) | None => {}
        }
        for (key, field, property) in node.pairs(fields) {
            // Both sides carry the version that was asked for, so a change of it would not be seen.
            let fixed = path.is_root() && matches!(key, "apiVersion" | "kind");
            let old = if fixed { Old::None } else { old.field(key) };
            count += self.ratcheted(property, field, old, &path.field(key));
        }
        for key in &limits.required {
            if !fields.contains_key(key) {
                self.add(FieldFault::Required, &path.field(key), String::new());
            }
        }
        count
    }

    /// `enum`. Null is in no list, not even in one that has it.
    fn listed(&mut self, limits: &Limits, value: &Value, path: &Path<'_>) {
        if limits.values.is_empty() || limits.values.iter().any(|one| !value.is_null() && is_equal(one, value)) {
            return;
        }
        let supported =
            limits.values.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
        self.add(FieldFault::Unsupported(value.clone(), supported), path, String::new());
    }

    fn too_many(&mut self, path: &Path<'_>, actual: usize, most: i64) {
        let most = usize::try_from(most).unwrap_or_default();
        self.add(FieldFault::TooMany { actual: Some(actual), most }, path, String::new());
    }

    fn mistyped(&mut self, path: &Path<'_>, expected: &str, actual: &str) {
        let sentence = format!("{path} in body must be of type {expected}: {}", quoted(actual));
        self.add(FieldFault::TypeInvalid(actual.into()), path, sentence);
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, sentence: String) {
        self.add(FieldFault::Invalid(value.into()), path, sentence);
    }

    fn add(&mut self, fault: FieldFault, path: &Path<'_>, sentence: String) {
        if self.errors.len() >= MOST {
            return;
        }
        let path = path.to_string();
        let path = match (self.base, path.strip_prefix('.').unwrap_or(&path)) {
            ("", "") => NIL.to_owned(),
            (base, "") => base.to_owned(),
            ("", path) => path.to_owned(),
            (base, path) => format!("{base}.{path}"),
        };
        self.errors.push(FieldError::new(fault, path, sentence));
    }

    /// A sentence about alternatives belongs to no field.
    fn composite(&mut self, sentence: String) {
        let path = if self.base.is_empty() { NIL } else { self.base };
        self.merge(vec![FieldError::invalid(path, "", sentence)]);
    }

    /// Alternatives repeat what others have said; once is enough.
    fn merge(&mut self, errors: Vec<FieldError>) {
        for error in errors {
            if self.errors.len() >= MOST {
                return;
            }
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
    }
}

/// Whether they are equal after converting one to the type of the other.
fn is_equal(listed: &Value, value: &Value) -> bool {
    match (listed, value) {
        (Value::Number(listed), Value::Number(value)) => match (listed.as_i64(), value.as_i64()) {
            (Some(listed), Some(value)) => listed == value,
            (Some(listed), None) => value.as_f64().is_some_and(|value| truncated(value) == listed),
            #[allow(clippy::float_cmp, reason = "these are the same number or not")]
            _ => listed.as_f64() == value.as_f64(),
        },
        _ => listed == value,
    }
}

/// The conversion that Kubernetes uses from a float to an integer.
#[allow(clippy::cast_possible_truncation, reason = "that is the point")]
fn truncated(float: f64) -> i64 {
    float as i64
}

/// Whether a float is an integer that JSON can hold exactly.
fn is_integral(float: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    const NEGLIGIBLE: f64 = 1e-9;
    if !float.is_finite() || !(-MOST - 1.0..=MOST).contains(&float) {
        return false;
    }
    let whole = float.trunc();
    let difference = (float - whole).abs();
    difference == 0.0 || whole != 0.0 && difference / (float.abs() + whole.abs()) < NEGLIGIBLE
}
