//! The dialects that this program speaks. Which of them it serves is said by whoever starts it, and never guessed from what is
//! installed.

use std::fmt;
use std::str::FromStr;

use crate::beskar7;
use crate::dialect::HostDialect as _;

/// A family of resources that describe servers, and who wants what of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Our own.
    Beskar7,
}

impl Dialect {
    /// All that there are.
    pub const ALL: [Self; 1] = [Self::Beskar7];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beskar7 => beskar7::Hosts::NAME,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no dialect has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect {0:?}; this version knows: {known}", known = Dialect::ALL.map(Dialect::name).join(", "))]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let is_named = |dialect: &Self| dialect.name() == name;
        Self::ALL.into_iter().find(is_named).ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_known_by_its_name_and_by_no_other() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        for unknown in ["", "Beskar7", "metal3", "beskar7 "] {
            let told = unknown.parse::<Dialect>().unwrap_err().to_string();
            assert_eq!(told, format!("there is no dialect {unknown:?}; this version knows: beskar7"));
        }
    }
}
