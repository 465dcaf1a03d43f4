//! Expressions as they are read: macros are already spelt out as folds, as the language's definition has it.

/// A mistake in an expression, at a code point of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Issue {
    pub(super) at: usize,
    pub(super) text: String,
}

/// One node. `id` numbers the nodes of an expression from 0, so that what is learnt about a node fits into a `Vec`.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) id: usize,
    /// Where it stands, in code points: the operator, the dot, the bracket, or the first letter.
    pub(super) at: usize,
    /// How many levels are below, itself included.
    pub(super) depth: u16,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    Ident(String),
    Select(Box<Select>),
    Call(Call),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// A message literal, `Foo{a: 1}`; there are no messages in Kubernetes, but the mistake has its own words.
    Message(String),
    Fold(Box<Fold>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(super) struct Select {
    pub(super) operand: Expr,
    pub(super) field: String,
    /// `has(operand.field)`.
    pub(super) test: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) target: Option<Box<Expr>>,
    pub(super) function: String,
    pub(super) args: Vec<Expr>,
}

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) value: Expr,
    /// `[?value]`: left out when the optional is empty.
    pub(super) optional: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Expr,
    pub(super) value: Expr,
    pub(super) optional: bool,
}

/// What a fold builds up, so that it can be done in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `all`, `exists`, `exists_one`: a plain value.
    Plain,
    /// `map`, `filter`, `transformList`: a list that grows at its end.
    Append,
    /// `transformMap`, `transformMapEntry`: a map that grows.
    Insert,
    /// `optMap`: a name for a value, no iteration at all.
    Bind,
}

/// A loop over a list or a map.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    pub(super) shape: Shape,
    pub(super) range: Expr,
    pub(super) var: String,
    pub(super) var2: Option<String>,
    pub(super) accu: String,
    pub(super) init: Expr,
    pub(super) cond: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

/// The name of the value that a fold builds up; no source can spell it.
pub(super) const ACCU: &str = "@result";

impl Expr {
    /// `a.b.c` as a name with dots; `None` for anything else.
    pub(super) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select(select) if !select.test => {
                let mut name = select.operand.qualified_name()?;
                name.push('.');
                name.push_str(&select.field);
                Some(name)
            }
            _ => None,
        }
    }
}

/// Shows issues under the lines that they are about, as the Go implementation does.
pub(super) fn display(source: &str, issues: &mut [Issue]) -> String {
    /// More than that help nobody.
    const MOST: usize = 100;
    issues.sort_by_key(|issue| issue.at);
    let mut shown: Vec<String> = issues.iter().take(MOST).map(|issue| display_one(source, issue)).collect();
    if issues.len() > MOST {
        shown.push(format!("{} more errors were truncated", issues.len() - MOST));
    }
    shown.join("\n")
}

fn display_one(source: &str, issue: &Issue) -> String {
    let (mut line_number, mut rest) = (1, issue.at);
    let mut line = "";
    for candidate in source.split('\n') {
        line = candidate;
        let length = candidate.chars().count();
        if rest <= length {
            break;
        }
        rest -= length + 1;
        line_number += 1;
    }
    let line = line.replace('\t', " ");
    let wide = |letter: char| letter.len_utf8() > 1;
    let mut pointer: String = line.chars().take(rest).map(|letter| if wide(letter) { '．' } else { '.' }).collect();
    pointer.push(if line.chars().nth(rest).is_some_and(wide) { '＾' } else { '^' });
    format!("ERROR: <input>:{line_number}:{}: {}\n | {line}\n | {pointer}", rest + 1, issue.text)
}
