//! The dialects that this program speaks. Which of them it serves is said by whoever starts it, and never guessed from what is
//! installed.

use std::fmt;
use std::str::FromStr;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::beskar7;
use crate::claims::ClaimDialect as _;
#[cfg(test)]
use crate::claims::foreign::ForeignClaims;
use crate::depot::Deliveries;
use crate::dialect::HostDialect as _;
#[cfg(test)]
use crate::dialect::foreign::ForeignHosts;
use crate::ironcore;
use crate::marks::Mark;
use crate::metal3;
#[cfg(test)]
use crate::objects::ObjectDialect as _;
use crate::relatives::Relative;
#[cfg(test)]
use crate::simulation::{Blades, Consoles};
use crate::watches::Selection;
use crate::wiring::Wiring;

/// A family of resources that describe servers, and who wants what of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Our own.
    Beskar7,
    /// Metal3's.
    Metal3,
    /// metal-operator's.
    IronCore,
    /// One of other people, in tests.
    #[cfg(test)]
    Foreign,
    /// One that is made of several kinds, in tests.
    #[cfg(test)]
    Blades,
}

impl Dialect {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Beskar7, Self::Metal3, Self::IronCore];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beskar7 => beskar7::Hosts::NAME,
            Self::Metal3 => metal3::Hosts::NAME,
            Self::IronCore => ironcore::Hosts::NAME,
            #[cfg(test)]
            Self::Foreign => ForeignHosts::NAME,
            #[cfg(test)]
            Self::Blades => Blades::NAME,
        }
    }

    /// The kinds of objects that its own depend on, beside Secrets.
    pub(crate) fn relatives(self) -> Vec<Relative> {
        match self {
            Self::Beskar7 => {
                [beskar7::Hosts::relatives(), beskar7::Claims::relatives()].into_iter().flatten().collect()
            }
            Self::Metal3 => metal3::Hosts::relatives(),
            Self::IronCore => ironcore::Hosts::relatives(),
            #[cfg(test)]
            Self::Foreign => [ForeignHosts::relatives(), ForeignClaims::relatives()].into_iter().flatten().collect(),
            #[cfg(test)]
            Self::Blades => [Blades::relatives(), Consoles::relatives()].into_iter().flatten().collect(),
        }
    }

    /// How it marks the objects that its hosts need.
    pub(crate) fn mark(self) -> Option<Mark> {
        match self {
            Self::Beskar7 => beskar7::Hosts::MARK,
            Self::Metal3 => metal3::Hosts::MARK,
            Self::IronCore => ironcore::Hosts::MARK,
            #[cfg(test)]
            Self::Foreign => ForeignHosts::MARK,
            #[cfg(test)]
            Self::Blades => Blades::MARK,
        }
    }

    /// Puts its loops together: it has hosts, and may have claims on them and clusters.
    pub(crate) fn wire(self, wiring: &mut Wiring<'_>) {
        match self {
            Self::Beskar7 => {
                let hosts = wiring.hosts::<beskar7::Hosts>();
                wiring.claims::<beskar7::Claims>(&hosts);
                wiring.clusters::<beskar7::Clusters, _>(&hosts);
            }
            Self::Metal3 => {
                wiring.hosts::<metal3::Hosts>();
            }
            Self::IronCore => {
                let hosts = wiring.hosts::<ironcore::Hosts>();
                wiring.claims::<ironcore::Claims>(&hosts);
                wiring.objects::<ironcore::Endpoints, _>(&hosts);
                wiring.objects::<ironcore::Bmcs, _>(&hosts);
                wiring.objects::<ironcore::BootConfigurations, _>(&hosts);
                wiring.objects::<ironcore::Maintenances, _>(&hosts);
                wiring.objects::<ironcore::ReadinessRules, _>(&hosts);
            }
            #[cfg(test)]
            Self::Foreign => {
                let hosts = wiring.hosts::<ForeignHosts>();
                wiring.claims::<ForeignClaims>(&hosts);
            }
            #[cfg(test)]
            Self::Blades => {
                let hosts = wiring.hosts::<Blades>();
                wiring.objects::<Consoles, _>(&hosts);
            }
        }
    }

    /// Has the boot service follow its hosts for as long as it is polled.
    pub(crate) fn deliver<'a>(self, deliveries: &'a Deliveries, selection: &'a Selection) -> BoxFuture<'a, ()> {
        match self {
            Self::Beskar7 => deliveries.follow::<beskar7::Hosts>(selection).boxed(),
            Self::Metal3 => deliveries.follow::<metal3::Hosts>(selection).boxed(),
            Self::IronCore => deliveries.follow::<ironcore::Hosts>(selection).boxed(),
            #[cfg(test)]
            Self::Foreign => deliveries.follow::<ForeignHosts>(selection).boxed(),
            #[cfg(test)]
            Self::Blades => deliveries.follow::<Blades>(selection).boxed(),
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
        for unknown in ["", "Beskar7", "metal", "beskar7 "] {
            let told = unknown.parse::<Dialect>().unwrap_err().to_string();
            assert_eq!(told, format!("there is no dialect {unknown:?}; this version knows: beskar7, metal3, ironcore"));
        }
    }
}
