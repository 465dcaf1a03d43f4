//! Types of all parts of an expression, and what is wrong with them.

use std::sync::Arc;

use super::ast::{Call, Expr, Fold, Issue, Kind, Literal, Select};
use super::functions::{self, Fun, Overload};
use super::parser::Parsed;
use super::types::{Known, Type};

/// What is known about the nodes of an expression, by their ids.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) types: Vec<Type>,
    /// The overloads that a call can mean; several only if types are dynamic.
    pub(super) calls: Vec<Vec<&'static Overload>>,
    /// Calls whose target is the first part of a function's name, as in `sets.contains(a, b)`.
    pub(super) qualified: Vec<bool>,
    /// Idents and selects that name a type, such as `int`.
    pub(super) type_names: Vec<Option<Type>>,
    pub(super) mentions_old_self: bool,
}

/// Checks an expression. `variables` are the names that it may use.
pub(super) fn check(parsed: &Parsed, variables: &[(&str, Type)]) -> Result<Checked, Vec<Issue>> {
    let mut checker = Checker {
        known: Known::default(),
        scopes: variables.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect(),
        outermost: variables.len(),
        issues: Vec::new(),
        checked: Checked {
            types: vec![Type::Error; parsed.nodes],
            calls: vec![Vec::new(); parsed.nodes],
            qualified: vec![false; parsed.nodes],
            type_names: vec![None; parsed.nodes],
            mentions_old_self: false,
        },
    };
    checker.check(&parsed.expr);
    let Checker { known, mut issues, mut checked, .. } = checker;
    if !issues.is_empty() {
        return Err(issues);
    }
    for of in &mut checked.types {
        *of = known.resolve(of);
    }
    validate(&parsed.expr, &checked, false, &mut issues);
    if issues.is_empty() { Ok(checked) } else { Err(issues) }
}

struct Checker {
    known: Known,
    scopes: Vec<(String, Type)>,
    /// How many of the scopes are variables from outside.
    outermost: usize,
    issues: Vec<Issue>,
    checked: Checked,
}

impl Checker {
    fn issue(&mut self, at: usize, text: String) {
        let issue = Issue { at, text };
        if !self.issues.contains(&issue) {
            self.issues.push(issue);
        }
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type {
        self.issue(at, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn check(&mut self, expr: &Expr) -> Type {
        let of = match &expr.kind {
            Kind::Literal(literal) => type_of_literal(literal),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => {
                let mut items = None;
                for element in elements {
                    let mut of = self.check(&element.value);
                    if element.optional {
                        of = self.unwrapped(&element.value, &of);
                    }
                    items = Some(self.joined(items, of));
                }
                Type::list(items.unwrap_or_else(|| self.known.fresh()))
            }
            Kind::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for entry in entries {
                    let key = self.check(&entry.key);
                    keys = Some(self.joined(keys, key));
                    let mut value = self.check(&entry.value);
                    if entry.optional {
                        value = self.unwrapped(&entry.value, &value);
                    }
                    values = Some(self.joined(values, value));
                }
                let keys = keys.unwrap_or_else(|| self.known.fresh());
                Type::map(keys, values.unwrap_or_else(|| self.known.fresh()))
            }
            Kind::Message(name) => self.undeclared(expr.at, name),
            Kind::Fold(fold) => self.fold(fold),
        };
        if let Some(slot) = self.checked.types.get_mut(expr.id) {
            *slot = of.clone();
        }
        of
    }

    fn joined(&mut self, before: Option<Type>, now: Type) -> Type {
        match before {
            None => now,
            Some(before) if self.known.assign(&before, &now) => {
                let before = self.known.resolve(&before);
                if before == Type::Null { now } else { before }
            }
            Some(_) => Type::Dyn,
        }
    }

    fn unwrapped(&mut self, expr: &Expr, of: &Type) -> Type {
        match self.known.resolve(of) {
            Type::Optional(inner) => inner.as_ref().clone(),
            Type::Dyn => Type::Dyn,
            Type::Error => Type::Error,
            other => {
                self.issue(expr.at, format!("expected type 'optional_type({other})' but found '{other}'"));
                Type::Error
            }
        }
    }

    fn variable(&mut self, name: &str) -> Option<Type> {
        let position = self.scopes.iter().rposition(|(known, _)| known == name)?;
        if position < self.outermost && name == "oldSelf" {
            self.checked.mentions_old_self = true;
        }
        self.scopes.get(position).map(|(_, of)| of.clone())
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Type {
        if let Some(of) = self.variable(name) {
            return of;
        }
        if let Some(of) = type_named(name) {
            return self.type_name(expr, of);
        }
        self.undeclared(expr.at, name)
    }

    fn type_name(&mut self, expr: &Expr, of: Type) -> Type {
        if let Some(slot) = self.checked.type_names.get_mut(expr.id) {
            *slot = Some(of.clone());
        }
        Type::Meta(Arc::new(of))
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> Type {
        if let Some(name) = expr.qualified_name()
            && let Some(of) = type_named(&name)
        {
            return self.type_name(expr, of);
        }
        let operand = self.check(&select.operand);
        let of = self.field(expr.at, &operand, &select.field, false);
        if select.test { Type::Bool } else { of }
    }

    fn field(&mut self, at: usize, operand: &Type, field: &str, optional: bool) -> Type {
        match self.known.resolve(operand) {
            Type::Error => Type::Error,
            Type::Dyn | Type::Var(_) => Type::Dyn,
            Type::Object(decl) => {
                if let Some(field) = decl.0.field(field) {
                    return Type::of(&field.decl);
                }
                self.issue(at, format!("undefined field '{field}'"));
                Type::Error
            }
            Type::Map(_, values) => values.as_ref().clone(),
            Type::Optional(inner) => {
                let of = self.field(at, &inner, field, optional);
                if optional { of } else { Type::optional(of) }
            }
            other => {
                self.issue(at, format!("type '{other}' does not support field selection"));
                Type::Error
            }
        }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Type {
        match (call.function.as_str(), call.args.as_slice()) {
            ("_&&_" | "_||_", args) => {
                for arg in args {
                    let of = self.check(arg);
                    self.expect(arg, &Type::Bool, &of);
                }
                return self.resolved(
                    expr,
                    functions::named(&call.function).unwrap_or_default().iter().collect(),
                    Type::Bool,
                );
            }
            ("_?._", [operand, Expr { kind: Kind::Literal(Literal::Text(field)), .. }]) => {
                let operand = self.check(operand);
                let of = self.field(expr.at, &operand, field, true);
                let overloads = functions::named("_?._").unwrap_or_default().iter().collect();
                return self.resolved(expr, overloads, Type::optional(of));
            }
            _ => {}
        }
        let Some(target) = &call.target else {
            let args: Vec<Type> = call.args.iter().map(|arg| self.check(arg)).collect();
            return match functions::named(&call.function) {
                Some(overloads) => self.overload(expr, &call.function, overloads, false, &args),
                None => self.undeclared(expr.at, &call.function),
            };
        };
        if let Some(qualifier) = target.qualified_name()
            && self.variable(qualifier.split('.').next().unwrap_or_default()).is_none()
        {
            let name = format!("{qualifier}.{}", call.function);
            if let Some(overloads) = functions::named(&name) {
                if let Some(slot) = self.checked.qualified.get_mut(expr.id) {
                    *slot = true;
                }
                let args: Vec<Type> = call.args.iter().map(|arg| self.check(arg)).collect();
                return self.overload(expr, &name, overloads, false, &args);
            }
        }
        let mut args = vec![self.check(target)];
        args.extend(call.args.iter().map(|arg| self.check(arg)));
        match functions::named(&call.function) {
            Some(overloads) if overloads.iter().any(|overload| overload.member || !call.function.contains('.')) => {
                self.overload(expr, &call.function, overloads, true, &args)
            }
            _ => self.undeclared(expr.at, &call.function),
        }
    }

    fn resolved(&mut self, expr: &Expr, overloads: Vec<&'static Overload>, result: Type) -> Type {
        if let Some(slot) = self.checked.calls.get_mut(expr.id) {
            *slot = overloads;
        }
        result
    }

    fn overload(
        &mut self,
        expr: &Expr,
        name: &str,
        overloads: &'static [Overload],
        member: bool,
        args: &[Type],
    ) -> Type {
        let mut fitting = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            let vars: Vec<Type> = (0..overload.vars).map(|_| self.known.fresh()).collect();
            let wanted: Vec<Type> = overload.args.iter().map(|of| instantiated(of, &vars)).collect();
            if !self.known.assign_all(&wanted, args) {
                continue;
            }
            fitting.push(overload);
            let of = self.known.resolve(&instantiated(&overload.result, &vars));
            result = Some(match result {
                None => of,
                Some(before) if before == of => before,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(of) = result {
            return self.resolved(expr, fitting, of);
        }
        if args.contains(&Type::Error) {
            return Type::Error;
        }
        let shown: Vec<String> = args.iter().map(|of| self.known.resolve(of).to_string()).collect();
        let shown = match shown.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.issue(expr.at, format!("found no matching overload for '{name}' applied to '{shown}'"));
        Type::Error
    }

    fn expect(&mut self, expr: &Expr, wanted: &Type, found: &Type) {
        if !self.known.assign(wanted, found) {
            let (wanted, found) = (self.known.resolve(wanted), self.known.resolve(found));
            self.issue(expr.at, format!("expected type '{wanted}' but found '{found}'"));
        }
    }

    fn fold(&mut self, fold: &Fold) -> Type {
        let range = self.check(&fold.range);
        let (key, value) = match self.known.resolve(&range) {
            Type::List(items) => (Type::Int, items.as_ref().clone()),
            Type::Map(keys, values) => (keys.as_ref().clone(), values.as_ref().clone()),
            Type::Dyn | Type::Error | Type::Var(_) => (Type::Dyn, Type::Dyn),
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(fold.range.at, text);
                (Type::Error, Type::Error)
            }
        };
        let accu = self.check(&fold.init);
        let depth = self.scopes.len();
        self.scopes.push((fold.accu.clone(), accu.clone()));
        if let Some(second) = &fold.var2 {
            self.scopes.push((fold.var.clone(), key));
            self.scopes.push((second.clone(), value));
        } else {
            let single = if matches!(self.known.resolve(&range), Type::Map(..)) { key } else { value };
            self.scopes.push((fold.var.clone(), single));
        }
        let cond = self.check(&fold.cond);
        self.expect(&fold.cond, &Type::Bool, &cond);
        let step = self.check(&fold.step);
        self.expect(&fold.step, &accu, &step);
        self.scopes.truncate(depth + 1);
        let result = self.check(&fold.result);
        self.scopes.truncate(depth);
        self.known.resolve(&result)
    }
}

fn instantiated(of: &Type, vars: &[Type]) -> Type {
    match of {
        Type::Var(var) => vars.get(*var).cloned().unwrap_or(Type::Dyn),
        Type::List(items) => Type::list(instantiated(items, vars)),
        Type::Map(keys, values) => Type::map(instantiated(keys, vars), instantiated(values, vars)),
        Type::Meta(inner) => Type::Meta(Arc::new(instantiated(inner, vars))),
        Type::Optional(inner) => Type::optional(instantiated(inner, vars)),
        other => other.clone(),
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::Text(_) => Type::Text,
        Literal::Bytes(_) => Type::Bytes,
    }
}

fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::Meta(Arc::new(Type::Dyn)),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        functions::QUANTITY => Type::Opaque(functions::QUANTITY),
        functions::URL => Type::Opaque(functions::URL),
        functions::IP => Type::Opaque(functions::IP),
        functions::CIDR => Type::Opaque(functions::CIDR),
        functions::NAMED_FORMAT => Type::Opaque(functions::NAMED_FORMAT),
        _ => return None,
    })
}

/// What is wrong although the types are right: literals that cannot be what they are used for, lists of mixed kinds.
fn validate(expr: &Expr, checked: &Checked, in_format: bool, issues: &mut Vec<Issue>) {
    let type_at = |expr: &Expr, optional: bool| match checked.types.get(expr.id) {
        Some(Type::Optional(inner)) if optional => inner.as_ref().clone(),
        Some(of) => of.clone(),
        None => Type::Dyn,
    };
    let mut same = |parts: &mut dyn Iterator<Item = (&Expr, bool)>| {
        let mut first: Option<Type> = None;
        for (part, optional) in parts {
            let of = type_at(part, optional);
            match &first {
                None => first = Some(of),
                Some(first) if *first == of => {}
                Some(first) => {
                    issues.push(Issue { at: part.at, text: format!("expected type '{first}' but found '{of}'") });
                    return;
                }
            }
        }
    };
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) | Kind::Message(_) => {}
        Kind::Select(select) => validate(&select.operand, checked, in_format, issues),
        Kind::Call(call) => {
            let fun = checked.calls.get(expr.id).and_then(|overloads| overloads.first()).map(|overload| overload.fun);
            if let Some(target) = &call.target {
                validate(target, checked, in_format, issues);
            }
            for arg in &call.args {
                validate(arg, checked, in_format || fun == Some(Fun::Format), issues);
            }
            if let (Some(Fun::Format), Some(target), [args]) = (fun, &call.target, call.args.as_slice()) {
                judge_format(expr, target, args, checked, issues);
            }
            if let (Some(fun), Some(Expr { kind: Kind::Literal(Literal::Text(text)), at, .. })) =
                (fun, call.args.last())
            {
                let wrong = match fun {
                    Fun::Matches => schema::pattern::compile(text).is_err().then_some("matches"),
                    Fun::ToTimestamp => super::time::parse_timestamp(text).is_none().then_some("timestamp"),
                    Fun::ToDuration => super::time::parse_duration(text).is_none().then_some("duration"),
                    _ => None,
                };
                if let Some(name) = wrong {
                    issues.push(Issue { at: *at, text: format!("invalid {name} argument") });
                }
            }
        }
        Kind::List(elements) => {
            if !in_format {
                same(&mut elements.iter().map(|element| (&element.value, element.optional)));
            }
            for element in elements {
                validate(&element.value, checked, in_format, issues);
            }
        }
        Kind::Map(entries) => {
            if !in_format {
                same(&mut entries.iter().map(|entry| (&entry.key, false)));
                same(&mut entries.iter().map(|entry| (&entry.value, entry.optional)));
            }
            for entry in entries {
                validate(&entry.key, checked, in_format, issues);
                validate(&entry.value, checked, in_format, issues);
            }
        }
        Kind::Fold(fold) => {
            for part in [&fold.range, &fold.init, &fold.cond, &fold.step, &fold.result] {
                validate(part, checked, in_format, issues);
            }
        }
    }
}

/// A template that is a literal, with its arguments in a list.
fn judge_format(expr: &Expr, template: &Expr, args: &Expr, checked: &Checked, issues: &mut Vec<Issue>) {
    let (Kind::Literal(Literal::Text(template)), Kind::List(args)) = (&template.kind, &args.kind) else { return };
    let types: Vec<Type> =
        args.iter().map(|arg| checked.types.get(arg.value.id).cloned().unwrap_or(Type::Dyn)).collect();
    if let Err((arg, text)) = super::format::judge(template, &types) {
        let at = arg.and_then(|arg| args.get(arg)).map_or(expr.at, |arg| arg.value.at);
        issues.push(Issue { at, text });
    }
}
