//! ServerBootConfiguration: shown as Pending until a boot provider says something else.

use api::ironcore::states::boot;
use api::ironcore::{ServerBootConfiguration, ServerBootConfigurationStatus, names};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::{OURS, is_ignored};
use crate::dialect::{View, Writes};
use crate::objects::{Decision, Look, ObjectDialect};
use crate::writer::Ownership;

/// A boot provider that answers within this time need not wait for our word, which would be a write more.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// ServerBootConfigurations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BootConfigurations;

impl ObjectDialect for BootConfigurations {
    type Object = ServerBootConfiguration;

    const NAME: &'static str = "serverbootconfiguration";
    // It is never set: nobody has to be asked before such an object goes.
    const FINALIZER: &'static str = names::SERVER_FINALIZER;
    const OURS: Ownership = OURS;
    const SECRET_FIELDS: [&'static str; 2] = ["", ""];

    fn step(view: &View<'_, ServerBootConfiguration>, _: &Look<'_>) -> Decision {
        let configuration = view.object;
        let before = configuration.status.clone().unwrap_or_default();
        let is_going = configuration.metadata.deletion_timestamp.is_some();
        if is_going || is_ignored(configuration) || !before.state.is_empty() {
            return Decision::default();
        }
        let silent_until = configuration.creation_timestamp().map(|time| time.0 + PATIENCE);
        // The API server may have another time.
        let is_soon = |until: &Timestamp| view.now < *until && *until <= view.now + PATIENCE;
        if let Some(until) = silent_until.filter(is_soon) {
            return Decision { again: Some(until), ..Decision::default() };
        }
        let status = ServerBootConfigurationStatus { state: boot::PENDING.to_owned(), ..before };
        Decision {
            writes: Writes { status: serde_json::to_value(status).ok(), ..Writes::default() },
            ..Decision::default()
        }
    }
}
