//! What an expression can cost at most, from the limits that the schema sets. Kubernetes refuses rules on this
//! estimate, so it is computed exactly as there, oddities included.

use std::collections::HashMap;
use std::sync::Arc;

use super::ast::{Call, Expr, Fold, Kind, Literal, Shape};
use super::checker::Checked;
use super::cost::{REGEX, TRAVERSAL};
use super::decl::{self, Decl};
use super::functions::{Fun, Overload};
use super::types::Type;

/// The most that the expression can cost on values of this declaration.
pub(super) fn most(expr: &Expr, checked: &Checked, root: &Arc<Decl>) -> u64 {
    let mut estimator = Estimator { checked, root, paths: HashMap::new(), sizes: HashMap::new(), locals: Vec::new() };
    estimator.cost(expr)
}

/// How many items, entries, code points or bytes.
#[derive(Debug, Clone, Copy)]
struct Size {
    min: u64,
    max: u64,
}

impl Size {
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    fn exactly(size: u64) -> Self {
        Self { min: size, max: size }
    }

    fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The cost of looking at it.
    fn cost(self, factor: f64) -> u64 {
        times(self.max, factor)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the reference computes in doubles, and a cast from a double saturates"
)]
fn times(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// Where in the schema a value comes from.
#[derive(Debug, Clone)]
enum Path {
    /// From nowhere: it was computed.
    Empty,
    At(Arc<Decl>),
    /// The key of a map, which counts as having no size.
    Key,
    /// From somewhere that the schema does not know.
    Lost,
}

struct Local {
    name: String,
    path: Path,
    size: Option<Size>,
}

struct Estimator<'a> {
    checked: &'a Checked,
    root: &'a Arc<Decl>,
    paths: HashMap<usize, Path>,
    sizes: HashMap<usize, Size>,
    locals: Vec<Local>,
}

impl Estimator<'_> {
    fn type_of(&self, expr: &Expr) -> &Type {
        self.checked.types.get(expr.id).unwrap_or(&Type::Dyn)
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or(Path::Empty)
    }

    /// One step down. The first step of any path is taken for the name of the root.
    fn step(&self, path: Path, step: Step<'_>) -> Path {
        let decl = match path {
            Path::Empty => return Path::At(Arc::clone(self.root)),
            Path::Key | Path::Lost => return Path::Lost,
            Path::At(decl) => decl,
        };
        let below = match (step, &decl.shape) {
            (Step::Items, decl::Shape::List { items, .. }) => Some(items),
            (Step::Items, decl::Shape::Map { values }) => Some(values),
            (Step::Keys, decl::Shape::Map { .. }) => return Path::Key,
            (Step::Field(name), decl::Shape::Object { fields }) => fields.get(name).map(|field| &field.decl),
            _ => None,
        };
        below.map_or(Path::Lost, |below| Path::At(Arc::clone(below)))
    }

    fn size(&self, expr: &Expr) -> Option<Size> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        match &expr.kind {
            Kind::Literal(Literal::Text(text)) => return Some(Size::exactly(text.chars().count() as u64)),
            Kind::Literal(Literal::Bytes(bytes)) => return Some(Size::exactly(bytes.len() as u64)),
            Kind::Literal(_) => return Some(Size::exactly(1)),
            Kind::List(elements) => return Some(Size::exactly(elements.len() as u64)),
            Kind::Map(entries) => return Some(Size::exactly(entries.len() as u64)),
            _ => {}
        }
        match self.path(expr) {
            Path::At(decl) => return Some(Size { min: 0, max: decl.most }),
            Path::Key => return Some(Size::exactly(0)),
            Path::Empty | Path::Lost => {}
        }
        if is_scalar(self.type_of(expr)) {
            return Some(Size::exactly(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&self, expr: &Expr) -> Size {
        self.size(expr).unwrap_or(Size::UNKNOWN)
    }

    fn cost(&mut self, expr: &Expr) -> u64 {
        match &expr.kind {
            Kind::Literal(_) | Kind::Message(_) => 0,
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Path::At(Arc::clone(self.root)),
                };
                self.paths.insert(expr.id, path);
                1
            }
            // A type's name is one name, dots or not.
            Kind::Select(_) if self.checked.type_names.get(expr.id).is_some_and(Option::is_some) => {
                self.paths.insert(expr.id, Path::At(Arc::clone(self.root)));
                1
            }
            Kind::Select(select) => {
                let operand = self.cost(&select.operand);
                if select.test {
                    return operand;
                }
                let path = self.step(self.path(&select.operand), Step::Field(&select.field));
                self.paths.insert(expr.id, path);
                operand
                    + u64::from(matches!(self.type_of(&select.operand), Type::Map(..) | Type::Object(_) | Type::Var(_)))
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => {
                elements.iter().map(|element| self.cost(&element.value)).fold(10, u64::saturating_add)
            }
            Kind::Map(entries) => entries
                .iter()
                .map(|entry| self.cost(&entry.key).saturating_add(self.cost(&entry.value)))
                .fold(30, u64::saturating_add),
            Kind::Fold(fold) if fold.shape == Shape::Bind => self.bind(expr, fold),
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn bind(&mut self, expr: &Expr, fold: &Fold) -> u64 {
        let cost = self.cost(&fold.range).saturating_add(self.cost(&fold.init));
        let local = Local { name: fold.accu.clone(), path: self.path(&fold.init), size: self.size(&fold.init) };
        self.locals.push(local);
        let result = self.cost(&fold.result);
        let size = self.size(&fold.result);
        self.locals.pop();
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        cost.saturating_add(result)
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> u64 {
        let before = self.cost(&fold.range).saturating_add(self.cost(&fold.init));
        let depth = self.locals.len();
        let accu = Local { name: fold.accu.clone(), path: self.path(&fold.init), size: self.size(&fold.init) };
        self.locals.push(accu);
        let range = self.path(&fold.range);
        let is_list = matches!(self.type_of(&fold.range), Type::List(_));
        // The type of a dynamic range is not known; its items then count as keys.
        let (first, second) = if is_list { (Step::Field("@indices"), Step::Items) } else { (Step::Keys, Step::Items) };
        if let Some(name) = &fold.var2 {
            let (key, value) = (self.step(range.clone(), first), self.step(range, second));
            self.locals.push(Local { name: fold.var.clone(), path: key, size: None });
            self.locals.push(Local { name: name.clone(), path: value, size: None });
        } else {
            let path = self.step(range, if is_list { Step::Items } else { Step::Keys });
            self.locals.push(Local { name: fold.var.clone(), path, size: None });
        }
        let each = self.cost(&fold.cond).saturating_add(self.cost(&fold.step));
        self.locals.truncate(depth + 1);
        let result = self.cost(&fold.result);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                self.sizes.insert(expr.id, Size::exactly(1));
            }
            _ => {
                self.sizes.insert(expr.id, count);
            }
        }
        before.saturating_add(result).saturating_add(count.max.saturating_mul(each))
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> u64 {
        let qualified = self.checked.qualified.get(expr.id).copied().unwrap_or(false);
        let args: Vec<u64> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let target = call.target.as_deref().filter(|_| !qualified);
        let target_cost = target.map_or(0, |target| self.cost(target));
        let checked = self.checked;
        let overloads: &[&'static Overload] = checked.calls.get(expr.id).map(Vec::as_slice).unwrap_or_default();
        let mut most = 0;
        let mut size: Option<Size> = None;
        for overload in overloads {
            let (cost, result) = self.overload(overload, target, &call.args, &args);
            most = most.max(cost);
            size = match (size, result) {
                (Some(before), Some(now)) => Some(before.union(now)),
                (before, now) => before.or(now),
            };
            if overload.fun == Fun::Index
                && let Some(of) = call.args.first()
                && matches!(overload.args.first(), Some(Type::List(_) | Type::Map(..)))
            {
                let path = self.step(self.path(of), Step::Items);
                self.paths.insert(expr.id, path);
            }
        }
        if let Some(size) = size.or_else(|| self.size(expr)) {
            self.sizes.insert(expr.id, size);
        }
        target_cost.saturating_add(most)
    }

    /// The cost of the call with its arguments, and the size of the result.
    fn overload(
        &self,
        overload: &Overload,
        target: Option<&Expr>,
        args: &[Expr],
        costs: &[u64],
    ) -> (u64, Option<Size>) {
        let all = costs.iter().copied().fold(0, u64::saturating_add);
        let of = |index: usize| args.get(index).map_or(Size::UNKNOWN, |arg| self.size_or_unknown(arg));
        let on = target.map(|target| self.size_or_unknown(target));
        let on_text = matches!(overload.args.first(), Some(Type::Text | Type::Bytes));
        let simple = |cost: u64| (cost.saturating_add(all), None);
        let sized = |cost: u64, size: Size| (cost.saturating_add(all), Some(size));
        match (overload.fun, on) {
            (Fun::And | Fun::Or, _) => (all, None),
            (Fun::Conditional, _) => {
                let branch = |index: usize| costs.get(index).copied().unwrap_or(0);
                (branch(0).saturating_add(branch(1).max(branch(2))), Some(of(1).union(of(2))))
            }
            (Fun::ToDyn, _) => (all.saturating_add(1), args.first().and_then(|arg| self.size(arg))),
            (Fun::IsSorted | Fun::Sum | Fun::Max | Fun::Min | Fun::IndexOf | Fun::LastIndexOf, Some(on)) => {
                let each = match target.map(|target| (target, self.type_of(target))) {
                    Some((target, Type::List(items))) => match items.as_ref() {
                        Type::Text | Type::Bytes => self.items_of(target).cost(TRAVERSAL).saturating_add(1),
                        _ => 1,
                    },
                    _ => return simple(on.cost(TRAVERSAL)),
                };
                simple(on.max.saturating_mul(each))
            }
            (Fun::Url | Fun::Cidr | Fun::IsIp | Fun::IsCidr | Fun::Ip | Fun::Quantity | Fun::IsQuantity, _) => {
                simple(of(0).cost(TRAVERSAL))
            }
            (Fun::IpIsCanonical, _) => simple(of(0).cost(2.0 * TRAVERSAL)),
            (Fun::LowerAscii | Fun::UpperAscii | Fun::Substring | Fun::Trim, Some(on)) => sized(on.cost(TRAVERSAL), on),
            (Fun::Replace, Some(on)) => sized(on.cost(2.0 * TRAVERSAL), replaced(on, of(0), of(1))),
            (Fun::Split, Some(on)) => {
                let most = match args.get(1).map(|arg| &arg.kind) {
                    Some(Kind::Literal(Literal::Int(most))) => u64::try_from(*most).unwrap_or(on.max),
                    _ => on.max,
                };
                sized(on.cost(2.0 * TRAVERSAL), Size { min: 0, max: most })
            }
            (Fun::Join, Some(on)) => {
                let mut size = match target {
                    Some(target) => on.times(self.items_of(target)),
                    None => Size::exactly(0),
                };
                if !args.is_empty() {
                    let between = Size { min: on.min.saturating_sub(1), max: on.max.saturating_sub(1) };
                    size = size.plus(of(0).times(between));
                }
                sized(size.cost(TRAVERSAL), size)
            }
            (Fun::Find | Fun::FindAll, Some(on)) => sized(matching(on, of(0)), Size { min: 0, max: on.max }),
            (Fun::Matches, Some(on)) => simple(matching(on, of(0))),
            (Fun::Contains, Some(on)) => simple(on.cost(TRAVERSAL).saturating_mul(of(0).cost(TRAVERSAL))),
            (Fun::ContainsIp | Fun::ContainsCidr, _) => {
                let address = if overload.fun == Fun::ContainsIp { 4 } else { 4 + 2 + 1 };
                let parse = if overload.args.get(1) == Some(&Type::Text) { of(0).cost(TRAVERSAL) } else { 0 };
                simple(parse.saturating_add(address))
            }
            (Fun::Validate, _) => simple(matching(of(0), Size::exactly(128))),
            (Fun::SetsContains | Fun::SetsIntersects, _) => simple(of(0).times(of(1)).max.saturating_add(1)),
            (Fun::SetsEquivalent, _) => simple(of(0).times(of(1)).max.saturating_mul(2).saturating_add(1)),
            (Fun::Format, Some(on)) => simple(on.cost(TRAVERSAL)),
            (Fun::Quote, _) => {
                let size = of(0);
                let quoted =
                    Size { min: size.min.saturating_add(2), max: size.max.saturating_mul(2).saturating_add(2) };
                sized(size.cost(TRAVERSAL), quoted)
            }
            (Fun::ToBytes, _) if on_text && overload.args.first() == Some(&Type::Text) => {
                let size = of(0);
                sized(size.cost(TRAVERSAL), Size { min: size.min, max: size.max.saturating_mul(4) })
            }
            (Fun::ToText, _) if overload.args.first() == Some(&Type::Bytes) => {
                let size = of(0);
                sized(size.cost(TRAVERSAL), Size { min: size.min / 4, max: size.max })
            }
            (Fun::StartsWith | Fun::EndsWith, _) => simple(of(0).cost(TRAVERSAL)),
            (Fun::In, _) if matches!(overload.args.get(1), Some(Type::List(_))) => simple(of(1).max),
            (Fun::Add, _) if on_text => {
                let size = of(0).plus(of(1));
                sized(size.cost(TRAVERSAL), size)
            }
            (Fun::Add, _) if matches!(overload.args.first(), Some(Type::List(_))) => sized(1, of(0).plus(of(1))),
            (Fun::Less | Fun::LessEquals | Fun::Greater | Fun::GreaterEquals, _) if on_text => {
                simple(times(of(0).max.min(of(1).max), TRAVERSAL))
            }
            (Fun::Equals, _) if args.iter().all(|arg| matches!(self.type_of(arg), Type::Opaque(_))) => simple(1),
            (Fun::Equals | Fun::NotEquals, _) => simple(times(of(0).max.min(of(1).max), TRAVERSAL)),
            _ => simple(1),
        }
    }

    /// The size of the items of a list.
    fn items_of(&self, list: &Expr) -> Size {
        match self.path(list) {
            Path::Empty => Size::UNKNOWN,
            path => match self.step(path, Step::Items) {
                Path::At(decl) => Size { min: 0, max: decl.most },
                _ => Size::UNKNOWN,
            },
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Items,
    Keys,
    Field(&'a str),
}

fn matching(text: Size, pattern: Size) -> u64 {
    text.plus(Size::exactly(1)).cost(TRAVERSAL).saturating_mul(pattern.cost(REGEX))
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

/// The size of a string after a replacement: the shortest parts by the longest replacement, as often as they fit.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let (most, kept_of_most) = if from.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if to.max <= from.min {
        (0, text.max)
    } else {
        (text.max.div_ceil(from.min), 0)
    };
    let (least, kept_of_least) = if from.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if from.max <= to.min {
        (0, text.min)
    } else {
        (text.min.div_ceil(from.max), 0)
    };
    Size { min: least, max: most }.times(to).plus(Size { min: kept_of_least, max: kept_of_most })
}
