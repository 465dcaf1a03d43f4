//! The kinds of metal-operator: Endpoint, BMC, Server, ServerClaim, ServerBootConfiguration, ServerMaintenance and ServerReadinessRule.

mod access;
mod bmc;
mod boot_configuration;
mod claim;
mod counts;
mod endpoint;
mod inventory;
mod keys;
mod labels;
mod maintenance;
mod offer;
mod operation;
mod probe;
mod readiness;
mod server;
mod settings;
mod status;
mod template;
mod words;

use api::ironcore::names::{self, operations};
use api::ironcore::{
    Bmc, BmcSecret, Endpoint, Server, ServerBootConfiguration, ServerClaim, ServerMaintenance, ServerReadinessRule,
    conditions as types,
};
use k8s_openapi::ByteString;
use kube::ResourceExt;

pub(crate) use self::bmc::Bmcs;
pub(crate) use self::boot_configuration::BootConfigurations;
pub(crate) use self::claim::ServerClaims as Claims;
pub(crate) use self::endpoint::Endpoints;
pub(crate) use self::maintenance::Maintenances;
pub use self::probe::ProbeSettings;
pub(crate) use self::readiness::ReadinessRules;
pub(crate) use self::server::Servers as Hosts;
pub use self::settings::{MacPrefixes, Prefix, PrefixError, Settings};
pub use self::template::{Template, TemplateError};

use crate::object::ObjectId;
use crate::relatives::Relative;
use crate::vault::{Data, Keeper};
use crate::writer::Ownership;

/// Field manager of what we write.
const MANAGER: &str = "beskar7";

const OURS: Ownership = Ownership { manager: MANAGER, conditions: &types::OURS, left_behind: &[] };

/// The kinds that depend on each other, and whom a change of one concerns beside those that name it. Each loop uses a part of them, and what
/// concerns whom is said once.
fn relatives() -> Vec<Relative> {
    vec![
        Relative::of::<Endpoint>(|_| Vec::new()),
        Relative::of::<Bmc>(|_| Vec::new()),
        Relative::with_credentials::<BmcSecret>(),
        Relative::of::<Server>(|_| Vec::new()),
        Relative::of::<ServerClaim>(|_| Vec::new()),
        Relative::of::<ServerBootConfiguration>(|configuration| {
            vec![ObjectId::named::<Server>(None, &configuration.spec.server_ref.name)]
        }),
        Relative::of::<ServerMaintenance>(|maintenance| {
            vec![ObjectId::named::<Server>(None, &maintenance.spec.server_ref.name)]
        }),
        Relative::of::<ServerReadinessRule>(|_| Vec::new()),
    ]
}

/// Whether nothing is to be done to an object: its owner says so.
fn is_ignored(object: &impl ResourceExt) -> bool {
    let operation = object.annotations().get(names::OPERATION);
    operation.is_some_and(|value| matches!(value.as_str(), operations::IGNORE | operations::IGNORE_PROPAGATED))
}

impl Keeper for BmcSecret {
    fn into_data(self) -> Data {
        let keys = self.data.keys().chain(self.string_data.keys());
        keys.filter_map(|key| Some((key.clone(), ByteString(self.value(key)?)))).collect()
    }
}

#[cfg(test)]
mod tests;
