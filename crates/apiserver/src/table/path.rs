//! The JSON paths of CustomResourceDefinitions, as Kubernetes' own evaluator understands them:
//! `.spec.color`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.labels.example\.com/role`.

use std::cmp::Ordering;
use std::str::Chars;

use serde_json::Value;

/// Filters and unions hold paths that may hold filters again.
const DEEPEST: usize = 8;

/// A path, read once and evaluated often.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// `.*`: all values of an object or items of a list.
    Each,
    /// `..`: everything below.
    Below,
    /// `[3]`.
    Item(i64),
    /// `[*]`, `[1:3]`, `[::2]`.
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        stride: i64,
    },
    /// `['a','b']`.
    Union(Vec<JsonPath>),
    /// `[?(@.a == 1)]`.
    Filter {
        left: Operand,
        comparison: Option<(Comparison, Operand)>,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a path; `Err` is what cannot be understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text, 0)
    }

    /// The first thing that the path leads to. `None` also if the path does not fit the object.
    pub fn first<'a>(&'a self, root: &'a Value) -> Option<&'a Value> {
        self.find(root)?.into_iter().next()
    }

    /// All things that the path leads to; `None` if the path does not fit the object.
    fn find<'a>(&'a self, root: &'a Value) -> Option<Vec<&'a Value>> {
        self.steps.iter().try_fold(vec![root], |found, step| {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next)?;
            }
            Some(next)
        })
    }
}

fn parse(text: &str, depth: usize) -> Result<JsonPath, String> {
    if depth > DEEPEST {
        return Err("the path is nested too deeply".to_owned());
    }
    let mut steps = Vec::new();
    let mut rest = text.trim().trim_start_matches(['$', '@']).chars();
    loop {
        match rest.next() {
            None => return Ok(JsonPath { steps }),
            Some('.') => {
                if rest.as_str().starts_with('.') {
                    rest.next();
                    steps.push(Step::Below);
                }
                match field(&mut rest).as_str() {
                    "" => {}
                    "*" => steps.push(Step::Each),
                    name => steps.push(Step::Field(name.replace('\\', ""))),
                }
            }
            Some('[') => steps.push(bracket(&inside(&mut rest)?, depth)?),
            Some(' ') => {}
            Some(other) => return Err(format!("unexpected {other:?} in {text:?}")),
        }
    }
}

/// Up to where the next step begins.
fn field(rest: &mut Chars<'_>) -> String {
    let mut name = String::new();
    let mut ahead = rest.clone();
    while let Some(char) = ahead.next() {
        match char {
            '\\' => {
                name.push(char);
                name.extend(ahead.next());
            }
            ' ' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => break,
            _ => name.push(char),
        }
        *rest = ahead.clone();
    }
    name
}

/// What stands between the brackets. Quotes and parentheses may hold brackets.
fn inside(rest: &mut Chars<'_>) -> Result<String, String> {
    let mut text = String::new();
    let mut quote = None;
    let mut open = 0_usize;
    for char in rest {
        match (quote, char) {
            (Some(mark), _) if mark == char => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            (None, '[') => open += 1,
            (None, ']') if open == 0 => return Ok(text),
            (None, ']') => open -= 1,
            _ => {}
        }
        text.push(char);
    }
    Err(format!("unterminated array: [{text}"))
}

fn bracket(text: &str, depth: usize) -> Result<Step, String> {
    let text = text.trim();
    if let Some(condition) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return filter(condition, depth);
    }
    if text == "*" {
        return Ok(Step::Slice { from: None, to: None, stride: 1 });
    }
    if let Ok(index) = text.parse() {
        return Ok(Step::Item(index));
    }
    if text.contains(':') && text.chars().all(|char| matches!(char, '0'..='9' | '-' | ':')) {
        let mut numbers = text.split(':').map(|number| number.parse::<i64>().ok());
        let (from, to) = (numbers.next().flatten(), numbers.next().flatten());
        let stride = numbers.next().flatten().unwrap_or(1);
        if stride < 1 {
            return Err("step must be > 0".to_owned());
        }
        return Ok(Step::Slice { from, to, stride });
    }
    let keys = text.split(',').map(str::trim);
    let keys = keys.map(|key| key.strip_prefix('\'')?.strip_suffix('\'')).collect::<Option<Vec<_>>>();
    let keys = keys.ok_or_else(|| format!("invalid array index {text}"))?;
    let paths = keys.into_iter().map(|key| parse(&format!(".{key}"), depth + 1)).collect::<Result<Vec<_>, _>>()?;
    Ok(Step::Union(paths))
}

fn filter(condition: &str, depth: usize) -> Result<Step, String> {
    let Some(start) = condition.find(['!', '<', '>', '=']) else {
        return Ok(Step::Filter { left: operand(condition, depth)?, comparison: None });
    };
    let (left, rest) = condition.split_at(start);
    let length = rest.find(|char| !matches!(char, '!' | '<' | '>' | '=')).unwrap_or(rest.len());
    let (sign, right) = rest.split_at(length);
    let comparison = match sign {
        "==" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        other => return Err(format!("unrecognized filter operator {other}")),
    };
    Ok(Step::Filter { left: operand(left, depth)?, comparison: Some((comparison, operand(right, depth)?)) })
}

fn operand(text: &str, depth: usize) -> Result<Operand, String> {
    let text = text.trim();
    for mark in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark)) {
            return Ok(Operand::Literal(quoted.replace('\\', "").into()));
        }
    }
    match serde_json::from_str(text) {
        Ok(literal @ (Value::Bool(_) | Value::Number(_))) => Ok(Operand::Literal(literal)),
        _ => Ok(Operand::Path(parse(text, depth + 1)?)),
    }
}

impl Step {
    /// Follows the step from one value. `None` if it does not fit the value.
    fn take<'a>(&'a self, value: &'a Value, found: &mut Vec<&'a Value>) -> Option<()> {
        match self {
            Self::Field(name) => found.extend(value.as_object().and_then(|fields| fields.get(name))),
            Self::Each => match value {
                Value::Object(fields) => found.extend(fields.values()),
                Value::Array(items) => found.extend(items),
                _ => {}
            },
            Self::Below => below(value, found),
            Self::Item(index) => {
                let items = value.as_array()?;
                let index = usize::try_from(*index).ok().or_else(|| {
                    let from_end = usize::try_from(index.checked_neg()?).ok()?;
                    items.len().checked_sub(from_end)
                });
                found.push(items.get(index?)?);
            }
            Self::Slice { from, to, stride } => {
                let items = value.as_array()?;
                let length = i64::try_from(items.len()).ok()?;
                let place = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
                let from = usize::try_from(place(from.unwrap_or(0))).unwrap_or(0);
                let to = usize::try_from(place(to.unwrap_or(length)).min(length)).unwrap_or(0);
                if from < to {
                    found.extend(items[from..to].iter().step_by(usize::try_from(*stride).ok()?));
                }
            }
            Self::Union(paths) => {
                for path in paths {
                    found.extend(path.find(value)?);
                }
            }
            Self::Filter { left, comparison } => {
                for item in value.as_array()? {
                    if holds(item, left, comparison.as_ref())? {
                        found.push(item);
                    }
                }
            }
        }
        Some(())
    }
}

fn below<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| below(value, found)),
        Value::Array(items) => items.iter().for_each(|value| below(value, found)),
        _ => {}
    }
}

fn holds(item: &Value, left: &Operand, comparison: Option<&(Comparison, Operand)>) -> Option<bool> {
    let left = left.find(item)?;
    let Some((comparison, right)) = comparison else { return Some(!left.is_empty()) };
    let right = right.find(item)?;
    let (left, right) = match (&left[..], &right[..]) {
        ([left], [right]) => (left, right),
        ([], _) | (_, []) => return Some(false),
        _ => return None,
    };
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
        (Value::Bool(left), Value::Bool(right)) if matches!(comparison, Comparison::Equal | Comparison::Unequal) => {
            left.cmp(right)
        }
        _ => return None,
    };
    Some(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::Unequal => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}

impl Operand {
    fn find<'a>(&'a self, item: &'a Value) -> Option<Vec<&'a Value>> {
        match self {
            Self::Path(path) => path.find(item),
            Self::Literal(value) => Some(vec![value]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_where_kubernetes_leads() {
        let widget = json!({
            "metadata": { "name": "w1", "namespace": "n", "labels": { "example.com/a": "A" } },
            "status": { "conditions": [
                { "type": "Init", "status": "False", "n": 1 },
                { "type": "Ready", "status": "True", "n": 2, "b": true },
            ] },
        });
        for (path, expected) in [
            (".metadata.name", json!("w1")),
            ("$.metadata.name", json!("w1")),
            (r".metadata.labels.example\.com/a", json!("A")),
            (r".metadata.labels['example\.com/a']", json!("A")),
            (".metadata.labels.*", json!("A")),
            (".metadata['name','namespace']", json!("w1")),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
            (r#".status.conditions[?(@.type != "Ready")].type"#, json!("Init")),
            (".status.conditions[?(@.n>1)].type", json!("Ready")),
            (".status.conditions[?(@.n==2)].type", json!("Ready")),
            (".status.conditions[?(@.b==true)].type", json!("Ready")),
            (".status.conditions[?(@.n)].type", json!("Init")),
            (".status.conditions[*].type", json!("Init")),
            (".status.conditions[0].type", json!("Init")),
            (".status.conditions[-1].type", json!("Ready")),
            (".status.conditions[-1:].type", json!("Ready")),
            (".status.conditions[1:2].type", json!("Ready")),
            ("..type", json!("Init")),
            (".status.conditions[9].type", Value::Null),
            (".status.conditions[-3].type", Value::Null),
            (".status.conditions[?(@.type==1)].type", Value::Null),
            (".status.none[0]", Value::Null),
            (".metadata[0]", Value::Null),
        ] {
            let found = JsonPath::parse(path).unwrap();
            assert_eq!(found.first(&widget).unwrap_or(&Value::Null), &expected, "{path}");
        }
    }

    #[test]
    fn nonsense_is_no_path() {
        for path in [".a[", ".a[b]", ".a[?(@.b~1)", ".a[::0]", "a", r#".a["b"]"#, ".a[?(@.b=!1)]", ".a]"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
        let deep = format!(".a{}", "[?(@.b".repeat(100)) + &")]".repeat(100);
        assert!(JsonPath::parse(&deep).is_err());
    }
}
