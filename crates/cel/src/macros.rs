//! Macros: calls that are another expression in truth.

use super::ast::{ACCU, Call, Element, Expr, Fold, Kind, Literal, Select, Shape};
use super::parser::Builder;

/// A call without a target.
pub(super) fn global(build: &mut Builder, at: usize, function: String, mut args: Vec<Expr>) -> Expr {
    if function == "has" && args.len() == 1 {
        let arg = args.remove(0);
        let arg_at = arg.at;
        if let Kind::Select(select) = arg.kind
            && !select.test
        {
            let Select { operand, field, .. } = *select;
            return build.node(at, Kind::Select(Box::new(Select { operand, field, test: true })));
        }
        build.issue(arg_at, "invalid argument to has() macro");
        return build.node(at, Kind::Literal(Literal::Null));
    }
    build.node(at, Kind::Call(Call { target: None, function, args }))
}

/// A call with a target.
pub(super) fn member(build: &mut Builder, at: usize, target: Expr, function: String, args: Vec<Expr>) -> Expr {
    let made = match (function.as_str(), args.len()) {
        ("all" | "exists" | "exists_one" | "map" | "filter", 2) | ("map", 3) => one_variable,
        ("all" | "exists" | "exists_one" | "existsOne" | "transformList" | "transformMap" | "transformMapEntry", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 4) => two_variables,
        ("optMap" | "optFlatMap", 2) => optional,
        _ => {
            return build.node(at, Kind::Call(Call { target: Some(Box::new(target)), function, args }));
        }
    };
    made(build, at, target, &function, args)
}

fn one_variable(build: &mut Builder, at: usize, range: Expr, function: &str, args: Vec<Expr>) -> Expr {
    let mut args = args.into_iter();
    let Some(var) = args.next().and_then(|name| simple_name(build, &name, "argument must be a simple name")) else {
        return build.node(at, Kind::Literal(Literal::Null));
    };
    if var == ACCU {
        build.issue(at, "iteration variable overwrites accumulator variable");
    }
    let (Some(first), second) = (args.next(), args.next()) else {
        return build.node(at, Kind::Literal(Literal::Null));
    };
    let fold = match (function, second) {
        ("filter", _) => {
            let item = build.node(at, Kind::Ident(var.clone()));
            append(build, at, Some(first), item)
        }
        ("map", Some(mapped)) => append(build, at, Some(first), mapped),
        ("map", None) => append(build, at, None, first),
        _ => quantifier(build, at, function, first),
    };
    finish(build, at, range, var, None, fold)
}

fn two_variables(build: &mut Builder, at: usize, range: Expr, function: &str, args: Vec<Expr>) -> Expr {
    let mut args = args.into_iter();
    let names: Vec<Option<String>> =
        args.by_ref().take(2).map(|name| simple_name(build, &name, "argument must be a simple name")).collect();
    let [Some(var), Some(var2)] = names.as_slice() else {
        return build.node(at, Kind::Literal(Literal::Null));
    };
    if var == var2 {
        build.issue(at, "duplicate variable name: ".to_owned() + var);
    }
    let (Some(first), second) = (args.next(), args.next()) else {
        return build.node(at, Kind::Literal(Literal::Null));
    };
    let (filter, value) = match second {
        Some(second) => (Some(first), second),
        None => (None, first),
    };
    let fold = match function {
        "transformList" => append(build, at, filter, value),
        "transformMap" => {
            let key = build.node(at, Kind::Ident(var.clone()));
            insert(build, at, filter, vec![key, value])
        }
        "transformMapEntry" => insert(build, at, filter, vec![value]),
        _ => quantifier(build, at, function, value),
    };
    finish(build, at, range, var.clone(), Some(var2.clone()), fold)
}

/// `target.hasValue() ? optional.of(bind(var, target.value(), mapped)) : optional.none()`.
fn optional(build: &mut Builder, at: usize, target: Expr, function: &str, args: Vec<Expr>) -> Expr {
    let mut args = args.into_iter();
    let wrong = "optMap() variable name must be a simple identifier";
    let Some(var) = args.next().and_then(|name| simple_name(build, &name, wrong)) else {
        return build.node(at, Kind::Literal(Literal::Null));
    };
    let Some(mapped) = args.next() else { return build.node(at, Kind::Literal(Literal::Null)) };
    let again = renumbered(build, &target);
    let has = on(build, at, target, "hasValue");
    let value = on(build, at, again, "value");
    let (range, cond, step) = (
        build.node(at, Kind::List(Vec::new())),
        build.node(at, Kind::Literal(Literal::Bool(false))),
        build.node(at, Kind::Ident(var.clone())),
    );
    let bind = build.node(
        at,
        Kind::Fold(Box::new(Fold {
            shape: Shape::Bind,
            range,
            var: "#unused".to_owned(),
            var2: None,
            accu: var,
            init: value,
            cond,
            step,
            result: mapped,
        })),
    );
    let some = if function == "optMap" { build.call(at, "optional.of", vec![bind]) } else { bind };
    let none = build.call(at, "optional.none", Vec::new());
    build.call(at, "_?_:_", vec![has, some, none])
}

/// What the fold is without its range and variables.
struct Body {
    shape: Shape,
    init: Expr,
    cond: Expr,
    step: Expr,
    result: Expr,
}

fn finish(build: &mut Builder, at: usize, range: Expr, var: String, var2: Option<String>, body: Body) -> Expr {
    let Body { shape, init, cond, step, result } = body;
    let fold = Fold { shape, range, var, var2, accu: ACCU.to_owned(), init, cond, step, result };
    build.node(at, Kind::Fold(Box::new(fold)))
}

fn accu(build: &mut Builder, at: usize) -> Expr {
    build.node(at, Kind::Ident(ACCU.to_owned()))
}

fn literal(build: &mut Builder, at: usize, literal: Literal) -> Expr {
    build.node(at, Kind::Literal(literal))
}

fn quantifier(build: &mut Builder, at: usize, function: &str, predicate: Expr) -> Body {
    let so_far = accu(build, at);
    let result = accu(build, at);
    let (init, cond, step, result) = match function {
        "all" => {
            let running = accu(build, at);
            let cond = build.call(at, "@not_strictly_false", vec![running]);
            let step = build.call(at, "_&&_", vec![so_far, predicate]);
            (Literal::Bool(true), cond, step, result)
        }
        "exists" => {
            let running = accu(build, at);
            let not_yet = build.call(at, "!_", vec![running]);
            let cond = build.call(at, "@not_strictly_false", vec![not_yet]);
            let step = build.call(at, "_||_", vec![so_far, predicate]);
            (Literal::Bool(false), cond, step, result)
        }
        _ => {
            let cond = literal(build, at, Literal::Bool(true));
            let one = literal(build, at, Literal::Int(1));
            let more = build.call(at, "_+_", vec![so_far, one]);
            let same = accu(build, at);
            let step = build.call(at, "_?_:_", vec![predicate, more, same]);
            let one = literal(build, at, Literal::Int(1));
            let result = build.call(at, "_==_", vec![result, one]);
            (Literal::Int(0), cond, step, result)
        }
    };
    let init = literal(build, at, init);
    Body { shape: Shape::Plain, init, cond, step, result }
}

fn append(build: &mut Builder, at: usize, filter: Option<Expr>, value: Expr) -> Body {
    let init = build.node(at, Kind::List(Vec::new()));
    let so_far = accu(build, at);
    let one = build.node(at, Kind::List(vec![Element { value, optional: false }]));
    let grown = build.call(at, "_+_", vec![so_far, one]);
    growing(build, at, Shape::Append, init, filter, grown)
}

fn insert(build: &mut Builder, at: usize, filter: Option<Expr>, entry: Vec<Expr>) -> Body {
    let init = build.node(at, Kind::Map(Vec::new()));
    let mut args = vec![accu(build, at)];
    args.extend(entry);
    let grown = build.call(at, "cel.@mapInsert", args);
    growing(build, at, Shape::Insert, init, filter, grown)
}

fn growing(build: &mut Builder, at: usize, shape: Shape, init: Expr, filter: Option<Expr>, grown: Expr) -> Body {
    let cond = literal(build, at, Literal::Bool(true));
    let step = match filter {
        Some(filter) => {
            let same = accu(build, at);
            build.call(at, "_?_:_", vec![filter, grown, same])
        }
        None => grown,
    };
    let result = accu(build, at);
    Body { shape, init, cond, step, result }
}

fn on(build: &mut Builder, at: usize, target: Expr, function: &str) -> Expr {
    let call = Call { target: Some(Box::new(target)), function: function.to_owned(), args: Vec::new() };
    build.node(at, Kind::Call(call))
}

fn simple_name(build: &mut Builder, expr: &Expr, wrong: &str) -> Option<String> {
    if let Kind::Ident(name) = &expr.kind {
        return Some(name.clone());
    }
    build.issue(expr.at, wrong);
    None
}

/// The same expression once more; nodes are numbered once each. A chain of `optMap`s doubles with each link, so this
/// is where an expression that is short to write can become too big.
fn renumbered(build: &mut Builder, expr: &Expr) -> Expr {
    if build.is_full() {
        return build.node(expr.at, Kind::Literal(Literal::Null));
    }
    let kind = match &expr.kind {
        Kind::Select(select) => Kind::Select(Box::new(Select {
            operand: renumbered(build, &select.operand),
            field: select.field.clone(),
            test: select.test,
        })),
        Kind::Call(call) => Kind::Call(Call {
            target: call.target.as_ref().map(|target| Box::new(renumbered(build, target))),
            function: call.function.clone(),
            args: call.args.iter().map(|arg| renumbered(build, arg)).collect(),
        }),
        Kind::List(elements) => Kind::List(
            elements
                .iter()
                .map(|element| Element { value: renumbered(build, &element.value), optional: element.optional })
                .collect(),
        ),
        Kind::Map(entries) => Kind::Map(
            entries
                .iter()
                .map(|entry| super::ast::Entry {
                    key: renumbered(build, &entry.key),
                    value: renumbered(build, &entry.value),
                    optional: entry.optional,
                })
                .collect(),
        ),
        Kind::Fold(fold) => Kind::Fold(Box::new(Fold {
            shape: fold.shape,
            range: renumbered(build, &fold.range),
            var: fold.var.clone(),
            var2: fold.var2.clone(),
            accu: fold.accu.clone(),
            init: renumbered(build, &fold.init),
            cond: renumbered(build, &fold.cond),
            step: renumbered(build, &fold.step),
            result: renumbered(build, &fold.result),
        })),
        leaf => leaf.clone(),
    };
    build.node(expr.at, kind)
}
