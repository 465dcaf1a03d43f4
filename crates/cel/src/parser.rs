//! Tokens to expressions.

use super::ast::{Call, Element, Entry, Expr, Issue, Kind, Literal, Select, Shape};
use super::lexer::{Lexeme, SMALLEST_INT, Token, lex};
use super::macros;

/// How deep an expression may be nested; chains such as `a + b + c` nest as well.
const DEEPEST: u16 = 100;
/// How long an expression may be, in code points.
const LONGEST: usize = 100_000;

/// Words that name nothing, though no rule of the grammar uses them.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// An expression and how many nodes were numbered in it.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) expr: Expr,
    pub(super) nodes: usize,
    /// Whether it iterates, so that its cost does not depend on its own length alone.
    pub(super) loops: bool,
}

pub(super) fn parse(source: &str) -> Result<Parsed, Vec<Issue>> {
    let length = source.chars().count();
    if length > LONGEST {
        let text = format!("expression code point size exceeds limit: size: {length}, limit {LONGEST}");
        return Err(vec![Issue { at: 0, text }]);
    }
    let (lexemes, mut issues) = lex(source);
    let mut parser = Parser { lexemes, next: 0, nesting: 0, build: Builder::default() };
    let parsed = parser.whole();
    issues.append(&mut parser.build.issues);
    match parsed {
        Ok(expr) if issues.is_empty() => Ok(Parsed { expr, nodes: parser.build.nodes, loops: parser.build.loops }),
        Ok(_) => Err(issues),
        Err(Stop(issue)) => {
            issues.push(issue);
            Err(issues)
        }
    }
}

/// The parser cannot go on.
struct Stop(Issue);

type Step<T> = Result<T, Stop>;

struct Parser {
    lexemes: Vec<Lexeme>,
    next: usize,
    nesting: u16,
    build: Builder,
}

/// Makes nodes and keeps what is wrong with them.
#[derive(Default)]
pub(super) struct Builder {
    nodes: usize,
    loops: bool,
    issues: Vec<Issue>,
}

impl Builder {
    pub(super) fn node(&mut self, at: usize, kind: Kind) -> Expr {
        let below = match &kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Message(_) => 0,
            Kind::Select(select) => select.operand.depth,
            Kind::Call(call) => {
                call.target.iter().map(AsRef::as_ref).chain(&call.args).map(|e| e.depth).max().unwrap_or(0)
            }
            Kind::List(elements) => elements.iter().map(|element| element.value.depth).max().unwrap_or(0),
            Kind::Map(entries) => entries.iter().map(|e| e.key.depth.max(e.value.depth)).max().unwrap_or(0),
            Kind::Fold(fold) => [&fold.range, &fold.init, &fold.cond, &fold.step, &fold.result]
                .iter()
                .map(|part| part.depth)
                .max()
                .unwrap_or(0),
        };
        self.loops |= matches!(&kind, Kind::Fold(fold) if fold.shape != Shape::Bind);
        let id = self.nodes;
        self.nodes += 1;
        Expr { id, at, depth: below.saturating_add(1), kind }
    }

    pub(super) fn call(&mut self, at: usize, function: &str, args: Vec<Expr>) -> Expr {
        self.node(at, Kind::Call(Call { target: None, function: function.to_owned(), args }))
    }

    /// Whether the expression has as many nodes as one may have; it is refused then.
    pub(super) fn is_full(&mut self) -> bool {
        /// As many as an expression of the longest length has without macros.
        const MOST: usize = LONGEST;
        let full = self.nodes >= MOST;
        if full && self.issues.is_empty() {
            self.issue(0, "expression is too big once its macros are written out");
        }
        full
    }

    pub(super) fn issue(&mut self, at: usize, text: impl Into<String>) {
        self.issues.push(Issue { at, text: text.into() });
    }
}

impl Parser {
    fn whole(&mut self) -> Step<Expr> {
        let expr = self.expression()?;
        if self.peek() == &Token::End {
            return Ok(expr);
        }
        Err(self.unexpected("the end of the expression"))
    }

    fn peek(&self) -> &Token {
        self.lexemes.get(self.next).map_or(&Token::End, |lexeme| &lexeme.token)
    }

    fn at(&self) -> usize {
        self.lexemes.get(self.next).map_or(0, |lexeme| lexeme.at)
    }

    fn text(&self) -> &str {
        self.lexemes.get(self.next).map_or("", |lexeme| &lexeme.text)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(here) if *here == sign)
    }

    /// Steps over the sign if it is here, and says where it was.
    fn take(&mut self, sign: &str) -> Option<usize> {
        let at = self.at();
        self.is(sign).then(|| {
            self.next += 1;
            at
        })
    }

    fn unexpected(&self, expected: &str) -> Stop {
        let found = if self.peek() == &Token::End { "the end" } else { &format!("'{}'", self.text()) };
        Stop(Issue { at: self.at(), text: format!("Syntax error: {found} stands where {expected} should be") })
    }

    /// The closing sign of something.
    fn close(&mut self, sign: &'static str) -> Step<()> {
        self.take(sign).map(|_| ()).ok_or_else(|| self.unexpected(&format!("'{sign}'")))
    }

    fn checked(expr: Expr) -> Step<Expr> {
        if expr.depth > DEEPEST {
            return Err(Stop(Issue { at: 0, text: format!("expression recursion limit exceeded: {DEEPEST}") }));
        }
        Ok(expr)
    }

    fn expression(&mut self) -> Step<Expr> {
        self.nesting += 1;
        if self.nesting > DEEPEST {
            return Err(Stop(Issue { at: 0, text: format!("expression recursion limit exceeded: {DEEPEST}") }));
        }
        let cond = self.logical()?;
        let expr = if let Some(at) = self.take("?") {
            let yes = self.logical()?;
            self.close(":")?;
            let no = self.expression()?;
            let expr = self.build.call(at, "_?_:_", vec![cond, yes, no]);
            Self::checked(expr)?
        } else {
            cond
        };
        self.nesting -= 1;
        Ok(expr)
    }

    /// `||` over `&&` over relations. Both are balanced, so that a long chain is not deep.
    fn logical(&mut self) -> Step<Expr> {
        let (mut ors, mut or_signs) = (Vec::new(), Vec::new());
        loop {
            let (mut ands, mut and_signs) = (vec![self.binary(0)?], Vec::new());
            while let Some(at) = self.take("&&") {
                and_signs.push(at);
                ands.push(self.binary(0)?);
            }
            let and = self.balanced("_&&_", ands, &and_signs);
            ors.push(Self::checked(and)?);
            match self.take("||") {
                Some(at) => or_signs.push(at),
                None => break,
            }
        }
        let or = self.balanced("_||_", ors, &or_signs);
        Self::checked(or)
    }

    fn balanced(&mut self, function: &str, mut terms: Vec<Expr>, signs: &[usize]) -> Expr {
        let middle = signs.len() / 2;
        let Some(at) = signs.get(middle) else {
            return terms.pop().unwrap_or_else(|| self.build.node(0, Kind::Literal(Literal::Null)));
        };
        let right = terms.split_off(middle + 1);
        let left = self.balanced(function, terms, signs.get(..middle).unwrap_or_default());
        let right = self.balanced(function, right, signs.get(middle + 1..).unwrap_or_default());
        self.build.call(*at, function, vec![left, right])
    }

    /// Relations, sums and products, all of them from left to right; those of a lower level are left to the caller.
    fn binary(&mut self, lowest: u8) -> Step<Expr> {
        const OPERATORS: [(&str, &str, u8); 12] = [
            ("<", "_<_", 0),
            ("<=", "_<=_", 0),
            (">", "_>_", 0),
            (">=", "_>=_", 0),
            ("==", "_==_", 0),
            ("!=", "_!=_", 0),
            ("in", "@in", 0),
            ("+", "_+_", 1),
            ("-", "_-_", 1),
            ("*", "_*_", 2),
            ("/", "_/_", 2),
            ("%", "_%_", 2),
        ];
        let mut left = self.unary()?;
        while let Some((sign, function, level)) =
            OPERATORS.iter().find(|(sign, _, level)| *level >= lowest && self.is(sign))
        {
            let at = self.take(sign).unwrap_or_default();
            let right = self.binary(level + 1)?;
            let expr = self.build.call(at, function, vec![left, right]);
            left = Self::checked(expr)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Step<Expr> {
        for (sign, function) in [("!", "!_"), ("-", "-_")] {
            let Some(at) = self.take(sign) else { continue };
            if sign == "-"
                && let Some(number) = self.negative_number(at)
            {
                return self.member(number);
            }
            let mut negated = true;
            while self.take(sign).is_some() {
                negated = !negated;
            }
            let operand = self.primary()?;
            let operand = self.member(operand)?;
            if !negated {
                return Ok(operand);
            }
            let expr = self.build.call(at, function, vec![operand]);
            return Self::checked(expr);
        }
        let operand = self.primary()?;
        self.member(operand)
    }

    fn negative_number(&mut self, at: usize) -> Option<Expr> {
        let literal = match self.peek() {
            Token::Literal(Literal::Int(number)) => Literal::Int(-number),
            Token::Literal(Literal::Double(number)) => Literal::Double(-number),
            Token::Invalid(SMALLEST_INT) => Literal::Int(i64::MIN),
            Token::Invalid(text) => {
                let text = *text;
                self.build.issue(at, text);
                Literal::Null
            }
            _ => return None,
        };
        self.next += 1;
        Some(self.build.node(at, Kind::Literal(literal)))
    }

    /// What follows an operand: fields, indices, calls.
    fn member(&mut self, mut operand: Expr) -> Step<Expr> {
        loop {
            operand = if let Some(at) = self.take(".") {
                let optional = self.take("?").is_some();
                let Token::Ident(field) = self.peek().clone() else {
                    return Err(self.unexpected("the name of a field"));
                };
                let field_at = self.at();
                self.next += 1;
                if optional {
                    let field = self.build.node(field_at, Kind::Literal(Literal::Text(field)));
                    self.build.call(at, "_?._", vec![operand, field])
                } else if let Some(open) = self.take("(") {
                    let args = self.arguments(")")?;
                    macros::member(&mut self.build, open, operand, field, args)
                } else {
                    self.build.node(at, Kind::Select(Box::new(Select { operand, field, test: false })))
                }
            } else if let Some(at) = self.take("[") {
                let function = if self.take("?").is_some() { "_[?_]" } else { "_[_]" };
                let index = self.expression()?;
                self.close("]")?;
                self.build.call(at, function, vec![operand, index])
            } else {
                return Ok(operand);
            };
            operand = Self::checked(operand)?;
        }
    }

    fn primary(&mut self) -> Step<Expr> {
        let at = self.at();
        match self.peek().clone() {
            Token::Literal(literal) => {
                self.next += 1;
                Ok(self.build.node(at, Kind::Literal(literal)))
            }
            Token::Invalid(text) => {
                self.next += 1;
                self.build.issue(at, text.trim_end());
                Ok(self.build.node(at, Kind::Literal(Literal::Null)))
            }
            Token::Ident(name) => self.name(at, name),
            Token::Sign(".")
                if matches!(self.lexemes.get(self.next + 1), Some(Lexeme { token: Token::Ident(_), .. })) =>
            {
                self.next += 1;
                let Token::Ident(name) = self.peek().clone() else {
                    return Err(self.unexpected("a value"));
                };
                self.name(at, name)
            }
            Token::Sign("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.close(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                self.next += 1;
                self.list(at)
            }
            Token::Sign("{") => {
                self.next += 1;
                self.map(at)
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    fn name(&mut self, at: usize, name: String) -> Step<Expr> {
        self.next += 1;
        if let Some(open) = self.take("(") {
            let args = self.arguments(")")?;
            let expr = macros::global(&mut self.build, open, name, args);
            return Self::checked(expr);
        }
        if let Some(message) = self.message_name(&name) {
            let open = self.at();
            while !self.is("}") && self.peek() != &Token::End {
                self.next += 1;
            }
            self.close("}")?;
            return Ok(self.build.node(open, Kind::Message(message)));
        }
        if RESERVED.contains(&name.as_str()) {
            self.build.issue(at, format!("reserved identifier: {name}"));
        }
        Ok(self.build.node(at, Kind::Ident(name)))
    }

    /// `name` or `name.other` before a brace, stepping to the brace.
    fn message_name(&mut self, first: &str) -> Option<String> {
        let (mut name, mut next) = (first.to_owned(), self.next);
        loop {
            match (self.lexemes.get(next).map(|l| &l.token), self.lexemes.get(next + 1).map(|l| &l.token)) {
                (Some(Token::Sign("{")), _) => {
                    self.next = next;
                    return Some(name);
                }
                (Some(Token::Sign(".")), Some(Token::Ident(part))) => {
                    name.push('.');
                    name.push_str(part);
                    next += 2;
                }
                _ => return None,
            }
        }
    }

    fn arguments(&mut self, end: &'static str) -> Step<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(end).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.take(",").is_none() {
                self.close(end)?;
                return Ok(args);
            }
        }
    }

    fn list(&mut self, at: usize) -> Step<Expr> {
        let mut elements = Vec::new();
        while self.take("]").is_none() {
            let optional = self.take("?").is_some();
            elements.push(Element { value: self.expression()?, optional });
            if self.take(",").is_none() {
                if self.take("]").is_some() {
                    break;
                }
                return Err(self.unexpected("',' or ']'"));
            }
        }
        let expr = self.build.node(at, Kind::List(elements));
        Self::checked(expr)
    }

    fn map(&mut self, at: usize) -> Step<Expr> {
        let mut entries = Vec::new();
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            self.close(":")?;
            entries.push(Entry { key, value: self.expression()?, optional });
            if self.take(",").is_none() {
                if self.take("}").is_some() {
                    break;
                }
                return Err(self.unexpected("',' or '}'"));
            }
        }
        let expr = self.build.node(at, Kind::Map(entries));
        Self::checked(expr)
    }
}
