//! `a=b,c!=d,e in (f,g),!h`.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::Value;

use schema::names;
use schema::object;

/// Requirements on labels; all must hold.
#[derive(Debug, Clone, Default)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone)]
struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `=`, `==` and `in`.
    In,
    /// `!=` and `notin`.
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Reads a selector; `Err` is the sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        Parser { tokens: scan(text), position: 0 }.requirements().map(Self)
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the labels of an object fulfil all requirements.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let label = object::labels(object).find(|(key, _)| *key == requirement.key).map(|(_, value)| value);
            requirement.holds(label)
        })
    }
}

impl Requirement {
    fn new(key: String, operator: Operator, values: BTreeSet<String>) -> Result<Self, String> {
        if matches!(operator, Operator::GreaterThan | Operator::LessThan)
            && let Some(value) = values.iter().find(|value| value.parse::<i64>().is_err())
        {
            return Err(format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ));
        }
        for (index, value) in values.iter().enumerate() {
            if let Some(why) = names::label_value_faults(value).into_iter().next() {
                return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}"));
            }
        }
        Ok(Self { key, operator, values })
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let compare = |wanted: fn(&i64, &i64) -> bool| {
            let label = label.and_then(|label| label.parse::<i64>().ok());
            let bound = self.values.first().and_then(|bound| bound.parse::<i64>().ok());
            label.zip(bound).is_some_and(|(label, bound)| wanted(&label, &bound))
        };
        match self.operator {
            Operator::In => label.is_some_and(|label| self.values.contains(label)),
            Operator::NotIn => !label.is_some_and(|label| self.values.contains(label)),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compare(i64::gt),
            Operator::LessThan => compare(i64::lt),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    Error,
    Identifier,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    NotEquals,
    In,
    NotIn,
    Greater,
    Less,
}

/// Symbols as Kubernetes' scanner takes them: the longest that it knows.
fn symbol(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "=" | "==" => Token::Equals,
        ">" => Token::Greater,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "(" => Token::Open,
        _ => return None,
    })
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn scan(text: &str) -> Vec<(Token, String)> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some(&(start, c)) = rest.peek() {
        if is_space(c) {
            rest.next();
        } else if is_symbol(c) {
            tokens.push(scan_symbol(&mut rest));
        } else {
            let end = text[start..].find(|c| is_symbol(c) || is_space(c)).map_or(text.len(), |length| start + length);
            while rest.next_if(|(at, _)| *at < end).is_some() {}
            let word = &text[start..end];
            let token = match word {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Identifier,
            };
            tokens.push((token, word.to_owned()));
        }
    }
    tokens.push((Token::End, String::new()));
    tokens
}

fn scan_symbol(rest: &mut Peekable<CharIndices<'_>>) -> (Token, String) {
    let mut literal = String::new();
    let mut known = None;
    while let Some(&(_, c)) = rest.peek() {
        if !is_symbol(c) {
            break;
        }
        literal.push(c);
        match symbol(&literal) {
            Some(token) => known = Some(token),
            None if known.is_some() => {
                literal.pop();
                break;
            }
            None => {}
        }
        rest.next();
    }
    match known {
        Some(token) => (token, literal),
        None => (Token::Error, format!("error expected: keyword found '{literal}'")),
    }
}

struct Parser {
    tokens: Vec<(Token, String)>,
    position: usize,
}

impl Parser {
    /// The next token. Where a value may stand, `in` and `notin` are values.
    fn peek(&self) -> (Token, &str) {
        let (token, literal) = self.peek_operator();
        match token {
            Token::In | Token::NotIn => (Token::Identifier, literal),
            other => (other, literal),
        }
    }

    fn peek_operator(&self) -> (Token, &str) {
        self.tokens.get(self.position).map_or((Token::End, ""), |(token, literal)| (*token, literal.as_str()))
    }

    fn take(&mut self) -> (Token, String) {
        let (token, literal) = self.peek();
        let next = (token, literal.to_owned());
        self.position += 1;
        next
    }

    fn requirements(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::Not, _) => {
                    let requirement =
                        self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                    requirements.push(requirement);
                    match self.take() {
                        (Token::End, _) => return Ok(requirements),
                        (Token::Comma, _) => {
                            let (token, literal) = self.peek();
                            if !matches!(token, Token::Identifier | Token::Not) {
                                return Err(format!("found '{literal}', expected: identifier after ','"));
                            }
                        }
                        (_, literal) => return Err(format!("found '{literal}', expected: ',' or 'end of string'")),
                    }
                }
                (Token::End, _) => return Ok(requirements),
                (_, literal) => {
                    return Err(format!("found '{literal}', expected: !, identifier, or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.take();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.take();
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(why) = names::qualified_faults(&key).into_iter().next() {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, BTreeSet::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, BTreeSet::new());
        }
        let (token, literal) = self.peek_operator();
        let operator = match token {
            Token::In | Token::Equals => Operator::In,
            Token::NotIn | Token::NotEquals => Operator::NotIn,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            _ => return Err(format!("found '{literal}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        self.position += 1;
        let values = if matches!(token, Token::In | Token::NotIn) { self.set()? } else { self.single()? };
        Requirement::new(key, operator, values)
    }

    fn single(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(BTreeSet::from([String::new()]));
        }
        match self.take() {
            (Token::Identifier, literal) => Ok(BTreeSet::from([literal])),
            (_, literal) => Err(format!("found '{literal}', expected: identifier")),
        }
    }

    fn set(&mut self) -> Result<BTreeSet<String>, String> {
        let (token, literal) = self.take();
        if token != Token::Open {
            return Err(format!("found '{literal}' expected: '('"));
        }
        match self.peek() {
            (Token::Identifier | Token::Comma, _) => {
                let values = self.members()?;
                // The members end before a closing parenthesis.
                self.take();
                Ok(values)
            }
            (Token::Close, _) => {
                self.take();
                Ok(BTreeSet::from([String::new()]))
            }
            (_, literal) => Err(format!("found '{literal}', expected: ',', ')' or identifier")),
        }
    }

    fn members(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.take() {
                (Token::Identifier, literal) => {
                    values.insert(literal);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, literal) => return Err(format!("found '{literal}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek().0 {
                        Token::Close => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            self.take();
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                (_, literal) => return Err(format!("found '{literal}', expected: ',', or identifier")),
            }
        }
    }
}
