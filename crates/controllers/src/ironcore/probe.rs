//! Discovery by a probe: what a server boots to be looked into, who prepares that, and what the probe tells.

use std::collections::BTreeMap;

use ::boot::serve::registry;
use ::boot::ticket::Holder;
use api::ironcore::states::boot;
use api::ironcore::{
    LocalObjectReference, ObjectReference, Server, ServerBootConfiguration, ServerBootConfigurationSpec,
    conditions as types, names,
};
use engine::host::{Boot, Gate, NetworkProtocol, Payload, Phase, Probe, Recipe, Starts};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ApiResource;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tracing::warn;

use super::server::Servers;
use super::template::{Template, Values};
use super::{Settings, keys};
use crate::companions::Companion;
use crate::depot::{BootState, Depot, Probed};
use crate::dialect::{HostDialect as _, Outcome, known_anchor};
use crate::fingerprint::digest;
use crate::object::ObjectId;
use crate::relatives::Related;

/// How servers are looked into by a probe.
#[derive(Debug, Clone)]
pub struct ProbeSettings {
    /// Container image of the probe.
    pub image: String,
    /// Image of the system that it runs in, for the boot provider.
    pub os_image: String,
    /// Where its boot configurations and Secrets are.
    pub namespace: String,
    /// What that system is configured with.
    pub template: Template,
}

/// The probe that a server nobody has is to be looked into by.
pub(super) fn wish(server: &Server, related: &Related, settings: &Settings) -> Option<Probe> {
    let settings = settings.probe.as_ref()?;
    let last = known_anchor::<Servers>(server).and_then(|anchor| anchor.probe);
    let id = digest(&format!("probe {} {}", server.uid().unwrap_or_default(), last.as_deref().unwrap_or_default()));
    let recipe = Recipe::Network { protocol: NetworkProtocol::Pxe, payload: Payload::Site, starts: Starts::First };
    // The gate is that of the probe under way; a new one is announced first.
    Some(Probe { id, boot: Boot { gate: gate(server, last.as_deref(), related, settings), recipe } })
}

fn gate(server: &Server, probe: Option<&str>, related: &Related, settings: &ProbeSettings) -> Gate {
    if plain_uuid(server).is_none() {
        return Gate { keeper: "a spec.systemUUID of hexadecimal digits".to_owned(), open: false };
    }
    let name = server.name_any();
    let keeper = format!("ServerBootConfiguration {}/{name}", settings.namespace);
    let Some(probe) = probe else { return Gate { keeper, open: false } };
    let wanted = configuration(server, probe, settings);
    let known = related
        .get::<ServerBootConfiguration>(Some(&settings.namespace), &name)
        .filter(|known| known.spec == wanted.spec && known.metadata.deletion_timestamp.is_none());
    let state = known.as_ref().and_then(|known| known.status.as_ref()).map_or("", |status| status.state.as_str());
    let secret = secret_id(settings, &secret_name(server, probe));
    match state {
        boot::ERROR => Gate { keeper: format!("{keeper}, whose boot provider reports an error,"), open: false },
        state => Gate { keeper, open: state == boot::READY && related.has_kept(&secret) },
    }
}

/// It becomes part of a command line that runs as root.
fn plain_uuid(server: &Server) -> Option<&str> {
    let uuid = server.spec.system_uuid.as_str();
    (!uuid.is_empty() && uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')).then_some(uuid)
}

/// The Secrets of a probe bear its id: what an earlier one was given is not used again.
fn secret_name(server: &Server, probe: &str) -> String {
    format!("{}-{}", server.name_any(), probe.chars().take(8).collect::<String>())
}

/// What the system is configured with, and how to log in on it.
fn all_secret_names(server: &Server, probe: &str) -> [String; 2] {
    let name = secret_name(server, probe);
    [format!("{name}-ssh"), name]
}

fn secret_id(settings: &ProbeSettings, name: &str) -> ObjectId {
    ObjectId::named::<Secret>(Some(&settings.namespace), name)
}

/// The Secrets that the boot of the probe waits for.
pub(super) fn depends_on(server: &Server, settings: &Settings) -> Vec<ObjectId> {
    let probe = known_anchor::<Servers>(server).and_then(|anchor| anchor.probe);
    let (Some(settings), Some(probe)) = (&settings.probe, probe) else { return Vec::new() };
    all_secret_names(server, &probe).map(|name| secret_id(settings, &name)).into()
}

fn configuration(server: &Server, probe: &str, settings: &ProbeSettings) -> ServerBootConfiguration {
    let spec = ServerBootConfigurationSpec {
        server_ref: LocalObjectReference::new(server.name_any()),
        image: settings.os_image.clone(),
        ignition_secret_ref: Some(LocalObjectReference::new(secret_name(server, probe))),
    };
    let mut configuration = ServerBootConfiguration::new(&server.name_any(), spec);
    configuration.metadata.namespace = Some(settings.namespace.clone());
    let marks = [(names::TYPE, names::TYPE_INTERNAL), (names::IS_DEFAULT_OS_IMAGE, "true")];
    configuration.metadata.annotations =
        Some(marks.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    configuration.metadata.owner_references = server.controller_owner_ref(&()).map(|owner| vec![owner]);
    configuration
}

/// The probe that the server boots or runs now.
fn current(outcome: &Outcome<'_, Server>) -> Option<String> {
    let record = &outcome.step.record;
    let is_wanted = outcome.goal.probe.is_some()
        && outcome.goal.claim.is_none()
        && record.phase == Phase::Inspecting
        && !record.probed;
    record.anchor.probe.clone().filter(|_| is_wanted || record.anchor.probing)
}

/// What is beside a server while a probe looks into it, and nothing of that afterwards.
pub(super) fn companions(outcome: &Outcome<'_, Server>) -> Vec<Companion> {
    let (server, related) = (outcome.host, outcome.related);
    let settings = outcome.settings.ironcore.probe.as_ref();
    let probe = current(outcome).filter(|_| plain_uuid(server).is_some());
    let (Some(settings), Some(probe), Some(depot)) = (settings, probe, outcome.depot) else {
        let left = internal(server, related, settings);
        return left
            .map(|id| Companion::without::<ServerBootConfiguration>(Some(&id.namespace), &id.name))
            .into_iter()
            .collect();
    };
    let wanted = configuration(server, &probe, settings);
    let mut all = vec![Companion::renewed(&wanted)];
    // The Secrets go with it.
    let known = related
        .get::<ServerBootConfiguration>(Some(&settings.namespace), &server.name_any())
        .filter(|known| known.spec == wanted.spec && known.metadata.deletion_timestamp.is_none());
    if let Some(owner) = known.and_then(|known| known.controller_owner_ref(&()))
        && !all_secret_names(server, &probe).iter().all(|name| related.has_kept(&secret_id(settings, name)))
    {
        match secrets(server, &probe, settings, depot, &owner) {
            Ok(secrets) => all.extend(secrets.iter().map(Companion::once)),
            Err(why) => warn!(server = server.name_any(), why, "cannot make the Secrets of a probe"),
        }
    }
    all
}

/// What the system of the probe is configured with, and how to log in on it.
fn secrets(
    server: &Server,
    probe: &str,
    settings: &ProbeSettings,
    depot: &Depot,
    owner: &OwnerReference,
) -> Result<[Secret; 2], String> {
    let holder = holder(server, probe);
    let url = depot.registry_url(&holder).map_err(|error| error.to_string())?;
    let uuid = plain_uuid(server).ok_or("spec.systemUUID is no UUID")?.to_ascii_lowercase();
    let login = keys::Login::from_seed(depot.secret("probe", &holder), &server.name_any())?;
    let ignition = settings.template.render(&Values {
        image: &settings.image,
        flags: &format!("--registry-url={url} --server-uuid={uuid}"),
        ssh_public_key: &login.public,
        password_hash: &|| login.password_hash(),
    })?;
    let named = |name: String, data: &[(&str, &str)]| {
        let data: BTreeMap<_, _> =
            data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect();
        let mut secret = Secret { data: Some(data), type_: Some("Opaque".to_owned()), ..Secret::default() };
        secret.metadata.name = Some(name);
        secret.metadata.namespace = Some(settings.namespace.clone());
        secret.metadata.owner_references = Some(vec![owner.clone()]);
        secret
    };
    let [login_name, name] = all_secret_names(server, probe);
    let format = names::IGNITION_FORMAT_BUTANE;
    Ok([
        named(login_name, &[("pem", &login.private), ("pub", &login.public), ("password", &login.password)]),
        named(name, &[(names::IGNITION_FORMAT_KEY, format), (names::IGNITION_KEY, &ignition)]),
    ])
}

fn holder(server: &Server, probe: &str) -> Holder {
    Holder {
        kind: Server::kind(&()).into_owned(),
        namespace: String::new(),
        host: server.name_any(),
        claim: String::new(),
        deployment: probe.to_owned(),
    }
}

/// The boot configuration of a probe that is over, ours or metal-operator's.
fn internal(server: &Server, related: &Related, settings: Option<&ProbeSettings>) -> Option<ObjectReference> {
    let ours =
        settings.map(|settings| ObjectReference { namespace: settings.namespace.clone(), name: server.name_any() });
    let named = server.spec.boot_configuration_ref.clone();
    named.into_iter().chain(ours).find(|id| is_internal(server, related, id))
}

/// Whether a boot configuration is one of a probe.
fn is_internal(server: &Server, related: &Related, id: &ObjectReference) -> bool {
    let known = related.get::<ServerBootConfiguration>(Some(&id.namespace), &id.name);
    known.is_some_and(|known| marked_internal(&known) && known.spec.server_ref.name == server.name_any())
}

pub(super) fn marked_internal(configuration: &ServerBootConfiguration) -> bool {
    configuration.annotations().get(names::TYPE).is_some_and(|kind| kind == names::TYPE_INTERNAL)
}

/// What `spec.bootConfigurationRef` is to be changed to because of a probe, if it is to be changed.
pub(super) fn reference(outcome: &Outcome<'_, Server>) -> Option<Value> {
    let server = outcome.host;
    let settings = outcome.settings.ironcore.probe.as_ref();
    let shown = &server.spec.boot_configuration_ref;
    let ours =
        settings.map(|settings| ObjectReference { namespace: settings.namespace.clone(), name: server.name_any() });
    if outcome.depot.is_some() && current(outcome).is_some() && ours.is_some() {
        return (*shown != ours).then(|| json!(ours));
    }
    let shown = shown.as_ref()?;
    let is_dangling = ours.as_ref() == Some(shown)
        && outcome.goal.claim.is_none()
        && outcome.related.get::<ServerBootConfiguration>(Some(&shown.namespace), &shown.name).is_none();
    (is_dangling || is_internal(server, outcome.related, shown)).then_some(Value::Null)
}

/// Who may report about a server.
pub(super) fn probed(server: &Server) -> Option<Probed> {
    let anchor = known_anchor::<Servers>(server)?;
    let has_reported = Servers::record(server).is_some_and(|record| record.probed);
    let boots = server.spec.boot_configuration_ref.as_ref().map(|reference| BootState {
        id: ObjectId::named::<ServerBootConfiguration>(Some(&reference.namespace), &reference.name),
        resource: ApiResource::erase::<ServerBootConfiguration>(&()),
        condition: types::BOOT_STATE_RECEIVED,
    });
    let probe = registry::Probe {
        holder: holder(server, anchor.probe.as_deref()?),
        system: server.spec.system_uuid.clone(),
        open: anchor.probing && !has_reported,
    };
    Some(Probed { probe, boots })
}
