//! ServerMaintenance: somebody needs a server for a while. The Server itself says who has it; this says what has become of the request.

use api::ironcore::states::{boot, maintenance as states, policy, power, server as server_states};
use api::ironcore::{
    LocalObjectReference, ObjectReference, Server, ServerBootConfiguration, ServerBootConfigurationSpec, ServerClaim,
    ServerMaintenance, ServerMaintenanceStatus, names,
};
use engine::host::{Boot, Gate, Maintenance, NetworkProtocol, Payload, Recipe, Starts};
use engine::maintenance::{Request, Turn, User, turn};
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};

use super::{OURS, is_ignored};
use crate::companions::Companion;
use crate::dialect::{News, View, Writes};
use crate::object::ObjectId;
use crate::objects::{Decision, Look, ObjectDialect};
use crate::relatives::{Related, Relative};
use crate::writer::Ownership;

/// ServerMaintenances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maintenances;

impl ObjectDialect for Maintenances {
    type Object = ServerMaintenance;

    const NAME: &'static str = "servermaintenance";
    const FINALIZER: &'static str = names::SERVER_MAINTENANCE_FINALIZER;
    const OURS: Ownership = OURS;
    const SECRET_FIELDS: [&'static str; 2] = ["", ""];

    fn relatives() -> Vec<Relative> {
        super::relatives()
    }

    fn depends_on(view: &View<'_, ServerMaintenance>) -> Vec<ObjectId> {
        let maintenance = view.object;
        vec![
            ObjectId::named::<Server>(None, &maintenance.spec.server_ref.name),
            ObjectId::named::<ServerBootConfiguration>(maintenance.namespace().as_deref(), &maintenance.name_any()),
        ]
    }

    fn step(view: &View<'_, ServerMaintenance>, _: &Look<'_>) -> Decision {
        let maintenance = view.object;
        let server = view.related.get::<Server>(None, &maintenance.spec.server_ref.name);
        let has_it = server.as_ref().is_some_and(|server| is_held_by(server, maintenance));
        if maintenance.metadata.deletion_timestamp.is_some() {
            // The Server lets go first: until then, what it boots for this stays what it is.
            return Decision { finished: !has_it, ..Decision::default() };
        }
        if is_ignored(maintenance) {
            return Decision::default();
        }
        let mut writes = Writes::default();
        let configuration = configuration(maintenance, view.related);
        if let Some(server) = server.as_ref().filter(|_| has_it) {
            writes.companions.extend(wanted_configuration(maintenance, &server.name_any()));
        }
        let is_under_way = has_it
            && server
                .as_ref()
                .and_then(|server| server.status.as_ref())
                .is_some_and(|status| status.state == server_states::MAINTENANCE);
        let state = match configuration.filter(|_| is_under_way) {
            Some(state) if state == boot::ERROR => states::FAILED,
            _ if is_under_way => states::IN_MAINTENANCE,
            _ => states::PENDING,
        };
        let shown = maintenance.status.as_ref().map_or("", |status| status.state.as_str());
        if shown != state {
            let status = ServerMaintenanceStatus { state: state.to_owned() };
            writes.status = serde_json::to_value(status).ok();
            writes.events.push(news(maintenance, server.as_deref(), state, view.related));
        }
        Decision { protect: true, writes, ..Decision::default() }
    }
}

/// What has just become of a request.
fn news(maintenance: &ServerMaintenance, server: Option<&Server>, state: &str, related: &Related) -> News {
    let name = &maintenance.spec.server_ref.name;
    let message = match (state, server) {
        (states::FAILED, _) => {
            format!(
                "The boot provider reports an error of ServerBootConfiguration {}. Server {name} is not started.",
                id(maintenance)
            )
        }
        (states::IN_MAINTENANCE, _) => format!("Server {name} is under maintenance until this object is deleted."),
        (_, None) => format!("Waiting for Server {name}, which does not exist."),
        (_, Some(server)) => match whose_turn(server, related) {
            Some(Next { maintenance: next, .. }) if id(&next) != id(maintenance) => {
                format!("Waiting for ServerMaintenance {}, which has Server {name} or comes first.", id(&next))
            }
            Some(Next { approved: false, .. }) => {
                let claim = server.spec.server_claim_ref.as_ref();
                let claim = claim.map(|claim| format!("{}/{}", claim.namespace, claim.name)).unwrap_or_default();
                format!(
                    "Waiting for the owner of ServerClaim {claim}, which has Server {name}, to label it with {}.",
                    names::MAINTENANCE_APPROVED_LABEL
                )
            }
            _ => format!("Waiting until nothing else is under way on Server {name}."),
        },
    };
    News { warning: state == states::FAILED, reason: state.to_owned(), message }
}

/// The boot configuration of a server while it is under maintenance.
fn wanted_configuration(maintenance: &ServerMaintenance, server: &str) -> Option<Companion> {
    let template = maintenance.spec.server_boot_configuration_template.as_ref()?;
    // It is this server that is under maintenance, whatever else the template says.
    let spec = ServerBootConfigurationSpec { server_ref: LocalObjectReference::new(server), ..template.spec.clone() };
    let mut configuration = ServerBootConfiguration::new(&maintenance.name_any(), spec);
    configuration.metadata.namespace = maintenance.namespace();
    configuration.metadata.owner_references = maintenance.controller_owner_ref(&()).map(|owner| vec![owner]);
    Some(Companion::renewed(&configuration))
}

/// The state of the boot configuration of a maintenance, if it is there and says what it is to say.
fn configuration(maintenance: &ServerMaintenance, related: &Related) -> Option<String> {
    let template = maintenance.spec.server_boot_configuration_template.as_ref()?;
    let known = related
        .get::<ServerBootConfiguration>(maintenance.namespace().as_deref(), &maintenance.name_any())
        .filter(|known| known.metadata.deletion_timestamp.is_none())?;
    let is_meant = known.spec.server_ref.name == maintenance.spec.server_ref.name
        && known.spec.image == template.spec.image
        && known.spec.ignition_secret_ref == template.spec.ignition_secret_ref;
    is_meant.then(|| known.status.as_ref().map(|status| status.state.clone()).unwrap_or_default())
}

/// Distinguishes a maintenance from every other one.
fn id(maintenance: &ServerMaintenance) -> String {
    format!("{}/{}", maintenance.namespace().unwrap_or_default(), maintenance.name_any())
}

pub(super) fn reference(maintenance: &ServerMaintenance) -> ObjectReference {
    ObjectReference { namespace: maintenance.namespace().unwrap_or_default(), name: maintenance.name_any() }
}

fn is_held_by(server: &Server, maintenance: &ServerMaintenance) -> bool {
    server.spec.server_maintenance_ref.as_ref() == Some(&reference(maintenance))
}

/// All that somebody needs this server for.
pub(super) fn all_of(server: &str, related: &Related) -> Vec<std::sync::Arc<ServerMaintenance>> {
    let mut all = related.all::<ServerMaintenance>();
    all.retain(|maintenance| {
        maintenance.spec.server_ref.name == server
            && maintenance.metadata.deletion_timestamp.is_none()
            && !is_ignored(maintenance.as_ref())
    });
    all
}

/// The maintenance that has a server, or is the next to have it.
pub(super) struct Next {
    pub(super) maintenance: std::sync::Arc<ServerMaintenance>,
    /// Whether it may have the server now.
    pub(super) approved: bool,
}

/// Which maintenance has a server, or is the next.
pub(super) fn whose_turn(server: &Server, related: &Related) -> Option<Next> {
    let all = all_of(&server.name_any(), related);
    let requests: Vec<_> = all.iter().map(|maintenance| request(maintenance)).collect();
    let holder = server.spec.server_maintenance_ref.as_ref();
    let holder = holder.map(|reference| format!("{}/{}", reference.namespace, reference.name));
    let (found, approved) = match turn(holder.as_deref(), &requests, user(server, related)) {
        Turn::Nobody => return None,
        Turn::Has(found) => (found, true),
        Turn::Awaits(found) => (found, false),
    };
    let maintenance = all.iter().find(|maintenance| id(maintenance) == found.id)?.clone();
    Some(Next { maintenance, approved })
}

fn request(maintenance: &ServerMaintenance) -> Request {
    Request {
        id: id(maintenance),
        priority: maintenance.spec.priority,
        enforced: maintenance.spec.policy == policy::ENFORCED,
        since: maintenance.creation_timestamp().map_or(Timestamp::MIN, |time| time.0),
    }
}

fn user(server: &Server, related: &Related) -> User {
    let Some(reference) = &server.spec.server_claim_ref else { return User::Nobody };
    let claim = related.get::<ServerClaim>(Some(&reference.namespace), &reference.name);
    User::Somebody { agrees: claim.is_some_and(|claim| claim.labels().contains_key(names::MAINTENANCE_APPROVED_LABEL)) }
}

/// What the maintenance that has a server wants of it.
pub(super) fn wish(maintenance: &ServerMaintenance, related: &Related) -> Maintenance {
    let online = match maintenance.spec.server_power.as_str() {
        power::ON => Some(true),
        power::OFF => Some(false),
        _ => None,
    };
    let boot = maintenance.spec.server_boot_configuration_template.as_ref().map(|_| {
        let state = configuration(maintenance, related).unwrap_or_default();
        let error = if state == boot::ERROR { ", whose boot provider reports an error," } else { "" };
        let keeper = format!("ServerBootConfiguration {}{error}", id(maintenance));
        Boot {
            gate: Gate { keeper, open: state == boot::READY },
            recipe: Recipe::Network { protocol: NetworkProtocol::Pxe, payload: Payload::Site, starts: Starts::First },
        }
    });
    Maintenance { online, boot }
}
