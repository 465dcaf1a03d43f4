//! Endpoint: a device on the management network. If it is a BMC by its MAC address, it becomes a BMC object with a BMCSecret.

use api::ironcore::conditions::{self as types, reasons};
use api::ironcore::{
    Bmc, BmcSecret, BmcSpec, ConsoleProtocol, Endpoint, EndpointStatus, LocalObjectReference, Protocol, names,
};
use engine::discovery::Tries;
use engine::failure::{Class, Failure};
use engine::server::Scope;
use jiff::SignedDuration;
use kube::ResourceExt;

use super::settings::{Prefix, digits};
use super::{OURS, access, is_ignored};
use crate::companions::Companion;
use crate::conditions::{Finding, finding, put};
use crate::dialect::{Connection, GivenCredentials, Login, View};
use crate::hands::Job;
use crate::object::ObjectId;
use crate::objects::{Decision, Look, ObjectDialect};
use crate::relatives::Relative;
use crate::writer::Ownership;

/// How often a device that does not answer is tried.
const AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Endpoints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoints;

impl ObjectDialect for Endpoints {
    type Object = Endpoint;

    const NAME: &'static str = "endpoint";
    const FINALIZER: &'static str = names::ENDPOINT_FINALIZER;
    const OURS: Ownership = OURS;
    const SECRET_FIELDS: [&'static str; 2] = ["its name", access::TRUST];

    fn relatives() -> Vec<Relative> {
        super::relatives()
    }

    fn depends_on(view: &View<'_, Endpoint>) -> Vec<ObjectId> {
        let elder = elder(view).map(|elder| ObjectId::named::<Endpoint>(None, &elder));
        let name = view.object.name_any();
        elder
            .into_iter()
            .chain([ObjectId::named::<Bmc>(None, &name), ObjectId::named::<BmcSecret>(None, &name)])
            .collect()
    }

    fn connection(view: &View<'_, Endpoint>) -> Option<Result<Connection, Failure>> {
        let Standing::Unknown(prefix, login) = standing(view) else { return None };
        Some(access::of_device(view.object, &view.object.spec.ip, &protocol(prefix), login, &view.settings.ironcore))
    }

    fn step(view: &View<'_, Endpoint>, look: &Look<'_>) -> Decision {
        let endpoint = view.object;
        if endpoint.metadata.deletion_timestamp.is_some() {
            return Decision { finished: true, ..Decision::default() };
        }
        if is_ignored(endpoint) {
            return Decision::default();
        }
        let mut decision = Decision::default();
        let mut tries = tries(endpoint);
        let ready = |reason: &'static str, message: String| finding(types::READY, false, reason).saying(message);
        let found = match standing(view) {
            Standing::Nothing(reason, message) => Some(ready(reason, message)),
            Standing::Known => Some(finding(types::READY, true, reasons::BMC_CREATED)),
            Standing::Exhausted(prefix) => Some(ready(reasons::AUTHENTICATION_FAILED, exhausted(endpoint, prefix))),
            Standing::Unknown(prefix, login) => match look.sight.map(|sight| &sight.seen) {
                None => {
                    decision.job = Some(Job { number: 0, acts: Vec::new(), look: Scope::Service });
                    None
                }
                Some(Ok(seen)) => {
                    let uuid = seen.service.as_ref().and_then(|service| service.managers.first()?.uuid.clone());
                    decision.writes.companions = discovered(endpoint, prefix, &login, uuid);
                    Some(finding(types::READY, true, reasons::BMC_CREATED))
                }
                Some(Err(failure)) if failure.kind.class() == Class::Auth && matches!(login, Login::Given(_)) => {
                    tries = tries.refuse(&prefix.list());
                    decision.again = Some(view.now);
                    None
                }
                Some(Err(failure)) => {
                    // A BMCSecret that was refused is tried again when it has changed.
                    if failure.kind.class() != Class::Auth {
                        decision.job = Some(Job { number: 0, acts: Vec::new(), look: Scope::Service });
                        decision.again = Some(view.now + AGAIN);
                    }
                    Some(ready(super::bmc::reason(failure), failure.to_string()))
                }
            },
        };
        decision.writes.status = status(endpoint, found, &tries, view);
        decision
    }
}

/// How it stands with a device.
enum Standing<'a> {
    /// It is not, or cannot be known to be, a BMC; why.
    Nothing(&'static str, String),
    /// It is a BMC, and there is an object for it.
    Known,
    /// It is a BMC, to be spoken to with these credentials.
    Unknown(&'a Prefix, Login),
    /// It is a BMC, and has refused all credentials that are known.
    Exhausted(&'a Prefix),
}

fn standing<'a>(view: &View<'a, Endpoint>) -> Standing<'a> {
    let (endpoint, name) = (view.object, view.object.name_any());
    let mac = &endpoint.spec.mac_address;
    let digits = digits(mac);
    if digits.len() != 12 || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        let what = format!("spec.macAddress is {mac:?}, which is no MAC address. Write it like 00:11:22:33:44:55.");
        return Standing::Nothing(reasons::MAC_ADDRESS_INVALID, what);
    }
    if let Some(elder) = elder(view) {
        let what = format!("Endpoint {elder} has the same spec.macAddress and is older. Delete one of them.");
        return Standing::Nothing(reasons::MAC_ADDRESS_TAKEN, what);
    }
    if let Some(bmc) = view.related.get::<Bmc>(None, &name) {
        let is_ours = bmc.spec.endpoint_ref.as_ref().is_some_and(|reference| reference.name == name);
        if is_ours || bmc.spec.access.is_some() {
            return Standing::Known;
        }
        let what = format!("There is a BMC {name} that belongs to another Endpoint. Give one of the two another name.");
        return Standing::Nothing(reasons::NAME_TAKEN, what);
    }
    let prefixes = &view.settings.ironcore.prefixes;
    let Some(prefix) = prefixes.of(mac).filter(|prefix| prefix.is_bmc()) else {
        let what = if prefixes.is_empty() {
            "No MAC prefixes are known. Start the operator with --mac-prefixes-file, or create a BMC with spec.access."
                .to_owned()
        } else {
            format!(
                "No BMC is known by the prefix of {mac}. Add it to the file of --mac-prefixes-file and restart the operator, or create a BMC with spec.access."
            )
        };
        return Standing::Nothing(reasons::PREFIX_UNKNOWN, what);
    };
    let secret = ObjectId::named::<BmcSecret>(None, &name);
    if view.related.has_kept(&secret) {
        return Standing::Unknown(prefix, secret.into());
    }
    match tries(endpoint).next(&prefix.list(), prefix.credentials.len()).and_then(|next| prefix.credentials.get(next)) {
        Some(given) => Standing::Unknown(prefix, Login::Given(given.clone())),
        None => Standing::Exhausted(prefix),
    }
}

/// The Endpoint that had the MAC address before.
fn elder(view: &View<'_, Endpoint>) -> Option<String> {
    let age = |endpoint: &Endpoint| (endpoint.creation_timestamp().map(|time| time.0), endpoint.name_any());
    let (own, own_age) = (digits(&view.object.spec.mac_address), age(view.object));
    let all = view.related.all::<Endpoint>();
    let same = all.iter().filter(|other| digits(&other.spec.mac_address) == own && other.uid() != view.object.uid());
    same.map(|other| age(other)).filter(|other| *other < own_age).min().map(|(_, name)| name)
}

fn exhausted(endpoint: &Endpoint, prefix: &Prefix) -> String {
    let name = endpoint.name_any();
    match prefix.credentials.len() {
        0 => format!(
            "No default credentials are known for {}. Create a BMCSecret {name} with username and password; it is noticed at once.",
            endpoint.spec.mac_address
        ),
        _ => format!(
            "The BMC has refused all default credentials, each once. Create a BMCSecret {name} with username and password; it is tried at once."
        ),
    }
}

fn protocol(prefix: &Prefix) -> Protocol {
    Protocol { name: prefix.protocol.clone(), port: prefix.port.into(), scheme: prefix.scheme.clone() }
}

/// What is made of a device that has turned out to be a BMC. Both belong to others from then on.
fn discovered(endpoint: &Endpoint, prefix: &Prefix, login: &Login, uuid: Option<String>) -> Vec<Companion> {
    let name = endpoint.name_any();
    let secret = match login {
        Login::Given(GivenCredentials { username, password }) => {
            let values = [(names::USERNAME_KEY, username.as_str()), (names::PASSWORD_KEY, password.as_str())];
            Some(Companion::once(&BmcSecret::new(&name, values)))
        }
        Login::Kept(_) => None,
    };
    let console = prefix.console.as_ref().and_then(|(kind, port)| {
        let known = ["IPMI", "SSH", "SSHLenovo"].into_iter().find(|known| known.eq_ignore_ascii_case(kind))?;
        Some(ConsoleProtocol { name: known.to_owned(), port: (*port).into() })
    });
    let spec = BmcSpec {
        bmc_uuid: uuid.unwrap_or_default(),
        endpoint_ref: Some(LocalObjectReference::new(&name)),
        bmc_secret_ref: LocalObjectReference::new(&name),
        protocol: protocol(prefix),
        console_protocol: console,
        ..BmcSpec::default()
    };
    let mut bmc = Bmc::new(&name, spec);
    bmc.metadata.annotations =
        endpoint.annotations().get(access::TRUST).map(|trust| [(access::TRUST.to_owned(), trust.clone())].into());
    secret.into_iter().chain([Companion::once(&bmc)]).collect()
}

fn tries(endpoint: &Endpoint) -> Tries {
    let record = endpoint.status.as_ref().and_then(|status| status.record.as_deref());
    record.and_then(|record| serde_json::from_str(record).ok()).unwrap_or_default()
}

/// The new status, if it says something new.
fn status(
    endpoint: &Endpoint,
    found: Option<Finding>,
    tries: &Tries,
    view: &View<'_, Endpoint>,
) -> Option<serde_json::Value> {
    let before = endpoint.status.clone().unwrap_or_default();
    let mut status = EndpointStatus { record: before.record.clone(), ..before.clone() };
    if *tries != Tries::default() {
        status.record = serde_json::to_string(tries).ok();
    }
    if let Some(found) = found {
        put(&mut status.conditions, &found, view.now);
    }
    (status != before).then(|| serde_json::to_value(status).ok()).flatten()
}
