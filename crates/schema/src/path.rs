//! Where something is: grown on the way down without allocating, written only when there is something to say.

use std::fmt;

/// A place in an object or in a schema, as a chain of steps on the stack.
#[derive(Debug, Clone, Copy)]
pub enum Path<'a> {
    /// Where it begins; empty is the object itself.
    Base(&'a str),
    /// A field: `.name`.
    Field(&'a Path<'a>, &'a str),
    /// A field of a map, which has its dot even at the beginning.
    Dotted(&'a Path<'a>, &'a str),
    /// A key of a map: `[name]`.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list: `[0]`.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const ROOT: Path<'static> = Path::Base("");

    /// A field below.
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// A key of a map below.
    pub fn key(&'a self, name: &'a str) -> Path<'a> {
        Path::Key(self, name)
    }

    /// An item below.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        matches!(self, Path::Base(""))
    }
}

/// How Kubernetes writes the path of an error that belongs to no field.
pub const NIL: &str = "<nil>";

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Base(text) => f.write_str(text),
            Path::Field(parent, name) if parent.is_root() => f.write_str(name),
            Path::Field(parent, name) | Path::Dotted(parent, name) => write!(f, "{parent}.{name}"),
            Path::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
