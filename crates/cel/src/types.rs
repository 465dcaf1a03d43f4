//! Types of expressions, and when one fits another.

use std::fmt;
use std::sync::Arc;

use super::decl::{Decl, Shape};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Dyn,
    /// Of an expression that is wrong already, so that one mistake is told once.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Object(Same),
    /// The type of a type.
    Meta(Arc<Type>),
    Optional(Arc<Type>),
    /// A type of a library, by name.
    Opaque(&'static str),
    /// A type that is not known yet.
    Var(usize),
}

/// An object type is equal to itself only: two fields of the same form are of different types.
#[derive(Debug, Clone)]
pub(super) struct Same(pub(super) Arc<Decl>);

impl PartialEq for Same {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Type {
    pub(super) fn list(items: Type) -> Self {
        Self::List(Arc::new(items))
    }

    pub(super) fn map(keys: Type, values: Type) -> Self {
        Self::Map(Arc::new(keys), Arc::new(values))
    }

    pub(super) fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    pub(super) fn of(decl: &Arc<Decl>) -> Self {
        match &decl.shape {
            Shape::IntOrString => Self::Dyn,
            Shape::Bool => Self::Bool,
            Shape::Int => Self::Int,
            Shape::Double => Self::Double,
            Shape::Text => Self::Text,
            Shape::Bytes => Self::Bytes,
            Shape::Duration => Self::Duration,
            Shape::Date | Shape::DateTime => Self::Timestamp,
            Shape::List { items, .. } => Self::list(Self::of(items)),
            Shape::Map { values } => Self::map(Self::Text, Self::of(values)),
            Shape::Object { .. } => Self::Object(Same(Arc::clone(decl))),
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Duration
                | Self::Timestamp
                | Self::Object(_)
                | Self::Optional(_)
                | Self::Opaque(_)
                | Self::Dyn
                | Self::Error
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Var(_) => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            // Kubernetes gives such types a name that changes with each attempt.
            Self::Object(_) => f.write_str("object"),
            Self::Meta(inner) => write!(f, "type({inner})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Opaque(name) => f.write_str(name),
        }
    }
}

/// What is known of the types that were not known at first.
#[derive(Debug, Default)]
pub(super) struct Known {
    vars: Vec<Option<Type>>,
    /// What was known before, to go back when a guess does not fit.
    trail: Vec<(usize, Option<Type>)>,
}

impl Known {
    pub(super) fn fresh(&mut self) -> Type {
        self.vars.push(None);
        Type::Var(self.vars.len() - 1)
    }

    fn get(&self, var: usize) -> Option<&Type> {
        self.vars.get(var).and_then(Option::as_ref)
    }

    fn set(&mut self, var: usize, to: Type) {
        if let Some(slot) = self.vars.get_mut(var) {
            self.trail.push((var, slot.replace(to)));
        }
    }

    fn undo_to(&mut self, mark: usize) {
        for (var, before) in self.trail.drain(mark..).rev() {
            if let Some(slot) = self.vars.get_mut(var) {
                *slot = before;
            }
        }
    }

    /// The type with everything filled in that is known; what is not is `Var`.
    pub(super) fn resolve(&self, unresolved: &Type) -> Type {
        match unresolved {
            Type::Var(var) => self.get(*var).map_or(Type::Var(*var), |known| self.resolve(known)),
            Type::List(items) => Type::list(self.resolve(items)),
            Type::Map(keys, values) => Type::map(self.resolve(keys), self.resolve(values)),
            Type::Meta(inner) => Type::Meta(Arc::new(self.resolve(inner))),
            Type::Optional(inner) => Type::optional(self.resolve(inner)),
            other => other.clone(),
        }
    }

    /// Whether a value of type `from` can stand where `to` is wanted; learns on the way only if it can.
    pub(super) fn assign(&mut self, to: &Type, from: &Type) -> bool {
        self.assign_all(std::slice::from_ref(to), std::slice::from_ref(from))
    }

    /// The same for several at once.
    pub(super) fn assign_all(&mut self, to: &[Type], from: &[Type]) -> bool {
        let mark = self.trail.len();
        let fits = to.len() == from.len() && to.iter().zip(from).all(|(to, from)| self.fits(to, from));
        if !fits {
            self.undo_to(mark);
        }
        fits
    }

    fn fits(&mut self, to: &Type, from: &Type) -> bool {
        match (to, from) {
            (Type::Var(a), Type::Var(b)) if a == b => true,
            (_, Type::Var(var)) => match self.get(*var).cloned() {
                Some(known) => self.fits(to, &known) && self.widen(*var, &known, to),
                None => self.bind(*var, to),
            },
            (Type::Var(var), _) => match self.get(*var).cloned() {
                Some(known) => self.fits(&known, from) && self.widen(*var, &known, from),
                None => self.bind(*var, from),
            },
            _ if to.is_dyn() || from.is_dyn() => true,
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.fits(a, b),
            (Type::Map(a, b), Type::Map(c, d)) => self.fits(a, c) && self.fits(b, d),
            (Type::Meta(_), Type::Meta(_)) => true,
            (a, b) => a == b,
        }
    }

    fn bind(&mut self, var: usize, to: &Type) -> bool {
        if self.resolve(to) == Type::Var(var) {
            return true;
        }
        if self.occurs(var, to) {
            return false;
        }
        self.set(var, to.clone());
        true
    }

    /// A variable that was bound to null or to something narrower takes the more general of two types that fit.
    fn widen(&mut self, var: usize, known: &Type, other: &Type) -> bool {
        if matches!(known, Type::Null) && !matches!(other, Type::Var(_)) || (other.is_dyn() && !known.is_dyn()) {
            self.set(var, other.clone());
        }
        true
    }

    fn occurs(&self, var: usize, within: &Type) -> bool {
        match within {
            Type::Var(other) => *other == var || self.get(*other).is_some_and(|known| self.occurs(var, known)),
            Type::List(inner) | Type::Meta(inner) | Type::Optional(inner) => self.occurs(var, inner),
            Type::Map(keys, values) => self.occurs(var, keys) || self.occurs(var, values),
            _ => false,
        }
    }
}
