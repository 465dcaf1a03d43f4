//! Computes expressions, and counts what it costs as Kubernetes does.

use std::collections::HashMap;
use std::rc::Rc;

use regex::Regex;

use super::ast::{Call, Element, Entry, Expr, Fold, Kind, Literal, Select, Shape};
use super::checker::Checked;
use super::functions::Fun;
use super::library;
use super::types::Type;
use super::value::{Entries, Evaluated, Fault, Val, Work};

/// What one expression may cost.
pub(super) const CALL_LIMIT: u64 = 1_000_000;
/// So many comparisons inside of containers, or pieces of texts that are made, count as one unit of cost: Kubernetes does
/// not count them.
const WORK_PER_COST: u64 = 20;

/// How many bytes of a text are copied in the time of one comparison.
const PIECE: u64 = 16;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// An expression that is ready to run.
#[derive(Debug)]
pub(super) struct Program {
    expr: Expr,
    nodes: Vec<Node>,
}

/// What a node needs at run time.
#[derive(Debug, Default)]
struct Node {
    fun: Option<Fun>,
    /// The target is a part of the function's name.
    qualified: bool,
    names_type: Option<Type>,
    /// The pattern of a regular expression that is a literal.
    regex: Option<Regex>,
}

impl Program {
    /// `Err` is why a part of it that is known already cannot be computed.
    pub(super) fn new(expr: Expr, checked: Checked) -> Result<Self, String> {
        let Checked { calls, qualified, type_names, .. } = checked;
        let mut nodes: Vec<Node> = calls
            .into_iter()
            .zip(qualified)
            .zip(type_names)
            .map(|((overloads, qualified), names_type)| Node {
                fun: overloads.first().map(|overload| overload.fun),
                qualified,
                names_type,
                regex: None,
            })
            .collect();
        prepare(&expr, &mut nodes)?;
        Ok(Self { expr, nodes })
    }

    /// Computes the value and what it cost.
    pub(super) fn run<'a>(&'a self, variables: &[(&'a str, Val<'a>)]) -> (Evaluated<Val<'a>>, u64) {
        let mut run = Run {
            nodes: &self.nodes,
            scopes: variables.iter().map(|(name, value)| (*name, Ok(value.clone()))).collect(),
            spent: 0,
            work: Work::default(),
            patterns: HashMap::new(),
        };
        let value = run.eval(&self.expr);
        (value, run.total())
    }
}

/// Compiles patterns and tries conversions, where they are literals.
fn prepare(expr: &Expr, nodes: &mut [Node]) -> Result<(), String> {
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) | Kind::Message(_) => Ok(()),
        Kind::Select(select) => prepare(&select.operand, nodes),
        Kind::Call(call) => {
            for part in call.target.iter().map(AsRef::as_ref).chain(&call.args) {
                prepare(part, nodes)?;
            }
            prepare_call(expr, call, nodes)
        }
        Kind::List(elements) => elements.iter().try_for_each(|element| prepare(&element.value, nodes)),
        Kind::Map(entries) => entries.iter().try_for_each(|entry| {
            prepare(&entry.key, nodes)?;
            prepare(&entry.value, nodes)
        }),
        Kind::Fold(fold) => [&fold.range, &fold.init, &fold.cond, &fold.step, &fold.result]
            .iter()
            .try_for_each(|part| prepare(part, nodes)),
    }
}

fn prepare_call(expr: &Expr, call: &Call, nodes: &mut [Node]) -> Result<(), String> {
    let Some(node) = nodes.get_mut(expr.id) else { return Ok(()) };
    let literal = |arg: Option<&'_ Expr>| match arg.map(|arg| &arg.kind) {
        Some(Kind::Literal(literal)) => Some(literal.clone()),
        _ => None,
    };
    match node.fun {
        Some(Fun::Matches | Fun::Find | Fun::FindAll) => {
            let pattern = if call.target.is_some() { call.args.first() } else { call.args.get(1) };
            if let Some(Literal::Text(pattern)) = literal(pattern) {
                node.regex = Some(schema::pattern::compile(&pattern)?);
            }
        }
        Some(
            fun @ (Fun::ToInt
            | Fun::ToUint
            | Fun::ToDouble
            | Fun::ToText
            | Fun::ToBytes
            | Fun::ToBool
            | Fun::ToTimestamp
            | Fun::ToDuration),
        ) => {
            if let Some(literal) = literal(call.args.first())
                && let Err(Fault::Error(why)) = library::call(fun, &[value_of(&literal)], &Work::default())
            {
                return Err(why);
            }
        }
        _ => {}
    }
    Ok(())
}

fn value_of(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(flag) => Val::Bool(*flag),
        Literal::Int(number) => Val::Int(*number),
        Literal::Uint(number) => Val::Uint(*number),
        Literal::Double(number) => Val::Double(*number),
        Literal::Text(text) => Val::text(text.as_str()),
        Literal::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
    }
}

struct Run<'a> {
    nodes: &'a [Node],
    /// A variable can be an error: `all` and `exists` get over errors of single items.
    scopes: Vec<(&'a str, Evaluated<Val<'a>>)>,
    spent: u64,
    work: Work,
    /// Patterns that are not literals.
    patterns: HashMap<String, Regex>,
}

impl<'a> Run<'a> {
    fn charge(&mut self, cost: u64) -> Evaluated<()> {
        self.spent = self.spent.saturating_add(cost);
        if self.total() > CALL_LIMIT { Err(Fault::OverBudget) } else { Ok(()) }
    }

    fn total(&self) -> u64 {
        self.spent.saturating_add(self.work.done() / WORK_PER_COST)
    }

    fn node(&self, expr: &Expr) -> Option<&'a Node> {
        self.nodes.get(expr.id)
    }

    fn eval(&mut self, expr: &'a Expr) -> Evaluated<Val<'a>> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(value_of(literal)),
            Kind::Ident(name) => {
                self.charge(1)?;
                if let Some((_, value)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
                    return value.clone();
                }
                self.type_name(expr).ok_or_else(|| Fault::new(format!("no such attribute(s): {name}")))
            }
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Message(name) => Err(Fault::new(format!("no such attribute(s): {name}"))),
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn type_name(&self, expr: &Expr) -> Option<Val<'a>> {
        self.node(expr).and_then(|node| node.names_type.clone()).map(Val::Type)
    }

    fn select(&mut self, expr: &'a Expr, select: &'a Select) -> Evaluated<Val<'a>> {
        if let Some(named) = self.type_name(expr) {
            return Ok(named);
        }
        let operand = self.eval(&select.operand)?;
        if select.test {
            let (operand, optional) = match operand {
                Val::Optional(None) => return Ok(Val::Bool(false)),
                Val::Optional(Some(inner)) => (inner.as_ref().clone(), true),
                other => (other, false),
            };
            return match operand {
                Val::Map(_) | Val::JsonMap(..) => Ok(Val::Bool(operand.field(&select.field).is_some())),
                _ if optional => Ok(Val::Bool(false)),
                _ => Err(Fault::no_such_overload()),
            };
        }
        self.charge(1)?;
        match operand {
            Val::Optional(inner) => optional_field(inner.as_deref(), &select.field),
            operand => operand.field(&select.field).unwrap_or_else(|| no_such_key(&operand, &select.field)),
        }
    }

    fn list(&mut self, elements: &'a [Element]) -> Evaluated<Val<'a>> {
        let mut items = Vec::with_capacity(elements.len());
        let mut constant = true;
        for element in elements {
            constant &= matches!(element.value.kind, Kind::Literal(_));
            let value = self.eval(&element.value)?;
            match value {
                Val::Optional(inner) if element.optional => items.extend(inner.map(|inner| inner.as_ref().clone())),
                _ if element.optional => return Err(Fault::no_such_overload()),
                value => items.push(value),
            }
        }
        if !constant {
            self.charge(LIST_COST)?;
        }
        Ok(Val::list(items))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Evaluated<Val<'a>> {
        self.charge(MAP_COST)?;
        let mut map = Entries::default();
        for entry in entries {
            let (key, value) = (self.eval(&entry.key)?, self.eval(&entry.value)?);
            let value = match value {
                Val::Optional(None) if entry.optional => continue,
                Val::Optional(Some(inner)) if entry.optional => inner.as_ref().clone(),
                _ if entry.optional => return Err(Fault::no_such_overload()),
                value => value,
            };
            check_key(&key)?;
            map.insert(key, value);
        }
        Ok(Val::Map(Rc::new(map)))
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Evaluated<Val<'a>> {
        let node = self.node(expr);
        let Some(fun) = node.and_then(|node| node.fun) else {
            return Err(Fault::no_such_overload());
        };
        match (fun, call.args.as_slice()) {
            (Fun::And, [left, right]) => return self.logical(left, right, false),
            (Fun::Or, [left, right]) => return self.logical(left, right, true),
            (Fun::Conditional, [cond, yes, no]) => {
                return match self.eval(cond)? {
                    Val::Bool(true) => self.eval(yes),
                    Val::Bool(false) => self.eval(no),
                    _ => Err(Fault::no_such_overload()),
                };
            }
            (Fun::NotStrictlyFalse, [flag]) => {
                let flag = self.eval(flag);
                self.charge(1)?;
                return match flag {
                    Err(Fault::OverBudget) => Err(Fault::OverBudget),
                    Ok(Val::Bool(flag)) => Ok(Val::Bool(flag)),
                    _ => Ok(Val::Bool(true)),
                };
            }
            // These two look at their second argument only if they need it.
            (Fun::OrOptional | Fun::OrValue, [other]) => {
                let target = call.target.as_deref().ok_or_else(Fault::no_such_overload)?;
                let target = self.eval(target)?;
                self.charge(1)?;
                return match (target, fun) {
                    (Val::Optional(None), _) => self.eval(other),
                    (Val::Optional(Some(inner)), Fun::OrValue) => Ok(inner.as_ref().clone()),
                    (some @ Val::Optional(_), _) => Ok(some),
                    _ => Err(Fault::no_such_overload()),
                };
            }
            _ => {}
        }
        let mut args = Vec::with_capacity(call.args.len() + 1);
        if let Some(target) = &call.target
            && !node.is_some_and(|node| node.qualified)
        {
            args.push(self.eval(target)?);
        }
        for arg in &call.args {
            args.push(self.eval(arg)?);
        }
        self.charge(super::cost::of_call(fun, &args))?;
        let value = match fun {
            Fun::Equals => Val::Bool(two(&args)?.0.equals(two(&args)?.1, &self.work)?),
            Fun::NotEquals => Val::Bool(!two(&args)?.0.equals(two(&args)?.1, &self.work)?),
            Fun::In => library::is_in(two(&args)?.0, two(&args)?.1, &self.work)?,
            Fun::OptionalSelect => match two(&args)? {
                (Val::Optional(inner), Val::Text(field)) => optional_field(inner.as_deref(), field)?,
                (operand, Val::Text(field)) => optional_field(Some(operand), field)?,
                _ => return Err(Fault::no_such_overload()),
            },
            Fun::Matches | Fun::Find | Fun::FindAll => {
                let [Val::Text(text), Val::Text(pattern), most @ ..] = args.as_slice() else {
                    return Err(Fault::no_such_overload());
                };
                let regex = match node.and_then(|node| node.regex.as_ref()) {
                    Some(regex) => regex,
                    None => self.pattern(pattern)?,
                };
                library::search(fun, regex, text, most.first())?
            }
            fun => library::call(fun, &args, &self.work)?,
        };
        if let Val::Text(text) = &value {
            self.work.count(text.len() as u64 / PIECE);
        }
        self.charge(super::cost::of_result(fun, &value))?;
        Ok(value)
    }

    fn pattern(&mut self, pattern: &str) -> Evaluated<&Regex> {
        if !self.patterns.contains_key(pattern) {
            // A pattern is expensive to read; what is in the object need not be cheap.
            self.charge(pattern.len() as u64)?;
            let compiled = schema::pattern::compile_sized(pattern).map_err(Fault::new)?;
            self.charge((compiled.size / 16) as u64)?;
            self.patterns.insert(pattern.to_owned(), compiled.regex);
        }
        self.patterns.get(pattern).ok_or_else(Fault::no_such_overload)
    }

    /// `&&` and `||`: an error counts only if the other side does not decide.
    fn logical(&mut self, left: &'a Expr, right: &'a Expr, decides: bool) -> Evaluated<Val<'a>> {
        let left = self.eval(left);
        match &left {
            Ok(Val::Bool(flag)) if *flag == decides => return left,
            Err(Fault::OverBudget) => return left,
            _ => {}
        }
        let right = self.eval(right);
        match (left, right) {
            (_, Err(Fault::OverBudget)) => Err(Fault::OverBudget),
            (_, Ok(Val::Bool(flag))) if flag == decides => Ok(Val::Bool(decides)),
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => Ok(Val::Bool(!decides)),
            (Err(fault), _) | (Ok(Val::Bool(_)), Err(fault)) => Err(fault),
            _ => Err(Fault::no_such_overload()),
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Evaluated<Val<'a>> {
        let depth = self.scopes.len();
        let value = self.fold_in_scope(fold);
        self.scopes.truncate(depth);
        value
    }

    fn fold_in_scope(&mut self, fold: &'a Fold) -> Evaluated<Val<'a>> {
        if fold.shape == Shape::Bind {
            let value = self.eval(&fold.init)?;
            self.scopes.push((&fold.accu, Ok(value)));
            return self.eval(&fold.result);
        }
        let range = self.eval(&fold.range)?;
        let keys = match range {
            Val::Map(_) | Val::JsonMap(..) => Some(range.keys()),
            _ => None,
        };
        let length = match &keys {
            Some(keys) => keys.len(),
            None => range.list_len().ok_or_else(Fault::no_such_overload)?,
        };
        let accu = match fold.shape {
            Shape::Plain | Shape::Bind => self.eval(&fold.init)?,
            Shape::Append | Shape::Insert => Val::Null,
        };
        let accu_at = self.scopes.len();
        self.scopes.push((&fold.accu, Ok(accu)));
        let (mut list, mut map) = (Vec::new(), Entries::default());
        for index in 0..length {
            self.scopes.truncate(accu_at + 1);
            let key = match keys.as_ref().and_then(|keys| keys.get(index)) {
                Some(key) => key.clone(),
                None => Val::Int(i64::try_from(index).unwrap_or(i64::MAX)),
            };
            let item = || range.item(index).unwrap_or_else(|| Err(Fault::no_such_overload()));
            match &fold.var2 {
                Some(second) => {
                    let value = match &keys {
                        Some(_) => range.entry(&key).unwrap_or_else(|| Err(Fault::no_such_overload())),
                        None => item(),
                    };
                    self.scopes.push((&fold.var, Ok(key)));
                    self.scopes.push((second, value));
                }
                None if keys.is_some() => self.scopes.push((&fold.var, Ok(key))),
                None => self.scopes.push((&fold.var, item())),
            }
            match fold.shape {
                Shape::Append => self.append(&fold.step, &mut list)?,
                Shape::Insert => self.insert(&fold.step, &mut map)?,
                Shape::Plain | Shape::Bind => {
                    if let Val::Bool(false) = self.eval(&fold.cond)? {
                        break;
                    }
                    let step = self.eval(&fold.step);
                    if matches!(step, Err(Fault::OverBudget)) {
                        return step;
                    }
                    if let Some(slot) = self.scopes.get_mut(accu_at) {
                        slot.1 = step;
                    }
                }
            }
        }
        self.scopes.truncate(accu_at + 1);
        match fold.shape {
            Shape::Append => {
                self.charge(1)?;
                Ok(Val::list(list))
            }
            Shape::Insert => {
                self.charge(1)?;
                Ok(Val::Map(Rc::new(map)))
            }
            Shape::Plain | Shape::Bind => self.eval(&fold.result),
        }
    }

    /// The part of a step that makes something, if its filter lets it.
    fn grown(&mut self, step: &'a Expr) -> Evaluated<Option<&'a [Expr]>> {
        let Kind::Call(call) = &step.kind else { return Err(Fault::no_such_overload()) };
        match call.args.as_slice() {
            [filter, grown, _] if call.function == "_?_:_" => match self.eval(filter)? {
                Val::Bool(true) => self.grown(grown),
                Val::Bool(false) => {
                    self.charge(1)?;
                    Ok(None)
                }
                _ => Err(Fault::no_such_overload()),
            },
            // Naming the value so far, and the call.
            args => {
                self.charge(2)?;
                Ok(args.get(1..))
            }
        }
    }

    fn append(&mut self, step: &'a Expr, list: &mut Vec<Val<'a>>) -> Evaluated<()> {
        if let Some([Expr { kind: Kind::List(elements), .. }]) = self.grown(step)? {
            for element in elements {
                list.push(self.eval(&element.value)?);
            }
            self.charge(LIST_COST)?;
        }
        Ok(())
    }

    fn insert(&mut self, step: &'a Expr, map: &mut Entries<'a>) -> Evaluated<()> {
        match self.grown(step)? {
            Some([key, value]) => {
                let (key, value) = (self.eval(key)?, self.eval(value)?);
                insert_new(map, key, value)
            }
            Some([entries]) => {
                let entries = self.eval(entries)?;
                for key in entries.keys() {
                    let value = entries.entry(&key).unwrap_or_else(|| Err(Fault::no_such_overload()))?;
                    insert_new(map, key, value)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn two<'v, 'a>(args: &'v [Val<'a>]) -> Evaluated<(&'v Val<'a>, &'v Val<'a>)> {
    match args {
        [first, second] => Ok((first, second)),
        _ => Err(Fault::no_such_overload()),
    }
}

fn check_key(key: &Val<'_>) -> Evaluated<()> {
    if matches!(key, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Text(_) | Val::Double(_)) {
        return Ok(());
    }
    Err(Fault::new(format!("unsupported key type: {}", super::value::type_name(&key.type_of()))))
}

fn insert_new<'a>(map: &mut Entries<'a>, key: Val<'a>, value: Val<'a>) -> Evaluated<()> {
    check_key(&key)?;
    let shown = library::show(&key);
    if map.insert(key, value) { Err(Fault::new(format!("insert failed: key {shown} already exists"))) } else { Ok(()) }
}

fn optional_field<'a>(operand: Option<&Val<'a>>, field: &str) -> Evaluated<Val<'a>> {
    match operand {
        None => Ok(Val::NONE),
        Some(operand @ (Val::Map(_) | Val::JsonMap(..))) => match operand.field(field) {
            Some(value) => value.map(Val::some),
            None => Ok(Val::NONE),
        },
        Some(operand) => no_such_key(operand, field),
    }
}

fn no_such_key<'a>(operand: &Val<'a>, field: &str) -> Evaluated<Val<'a>> {
    match operand {
        Val::Map(_) | Val::JsonMap(..) => Err(Fault::new(format!("no such key: {field}"))),
        _ => Err(Fault::no_such_overload()),
    }
}
