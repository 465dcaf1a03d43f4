//! PhysicalHosts.

use api::beskar7::{Beskar7Machine, Inventory, PhysicalHost, PhysicalHostStatus, conditions, names, states};
use api::capi;
use controllers::beskar7 as controller;
use controllers::dialect::HostDialect as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Action, Claimant, Host, HostKind, Life, Manifest, Progress, Request, Simulated};

/// PhysicalHosts.
pub(super) struct PhysicalHosts;

impl HostKind for PhysicalHosts {
    fn resource(&self) -> ApiResource {
        ApiResource::erase::<PhysicalHost>(&())
    }

    fn has_namespaces(&self) -> bool {
        true
    }

    fn states(&self) -> &'static [&'static str] {
        &states::ALL
    }

    fn read(&self, object: &DynamicObject) -> Result<Host, serde_json::Error> {
        let host = typed(object)?;
        let is_seen = host.status.is_some();
        let paused = paused(&host);
        let (spec, status) = (host.spec, host.status.unwrap_or_default());
        let network = spec.network_boot.as_ref().map(|_| "boot from the network".to_owned());
        let order = status.condition(conditions::ORDER_IN_EFFECT).filter(|condition| !condition.is_true());
        Ok(Host {
            is_seen,
            since: status.last_state_transition_time.as_ref().map(|time| time.0),
            progress: progress(status.state.as_deref().unwrap_or_default()),
            power_request: spec.online.map(|online| power_request(online, &status)),
            claimed_by: spec.consumer_ref.map(|consumer| Claimant {
                kind: consumer.kind.unwrap_or_default(),
                name: consumer.name.unwrap_or_default(),
            }),
            order: spec.boot_iso_source.map(|iso| format!("boot {iso}")).or(network),
            remark: order.map(|order| format!("{}: {}", order.reason, order.message)),
            maintenance: spec.maintenance.map(|maintenance| maintenance.reason.unwrap_or_default()),
            paused,
            bmc: spec.redfish_connection.address,
            addresses: status.addresses.iter().map(|it| format!("{:?} {}", it.type_, it.address)).collect(),
            hardware: status.hardware_details.as_ref().map(Inventory::unpack),
            state: status.state.unwrap_or_default(),
            power: status.observed_power_state.unwrap_or_default(),
            health: status.health.unwrap_or_default(),
            waiting: status.waiting,
            fault: status.fault,
            conditions: status.conditions,
            timeline: status.timeline,
        })
    }

    fn obstacle(&self, object: &DynamicObject, action: Action) -> Option<String> {
        match typed(object) {
            Ok(host) => obstacle(&host, action),
            Err(error) => Some(format!("cannot be read: {error}")),
        }
    }

    fn request(&self, action: Action, id: &str) -> Value {
        // With an id of its own: the same value from before a claim or a release would not count.
        let online = |online: Option<bool>, id: Option<&str>| json!({"metadata": {"annotations": {names::POWER_REQUEST: id}}, "spec": {"online": online}});
        match action {
            Action::On => online(Some(true), Some(id)),
            Action::Off => online(Some(false), Some(id)),
            Action::Auto => online(None, None),
            Action::Cycle => json!({"metadata": {"annotations": {names::REBOOT: id}}}),
        }
    }

    fn requested(&self, action: Action) -> &'static str {
        match action {
            Action::On => "power on requested (spec.online: true)",
            Action::Off => "power off requested (spec.online: false)",
            Action::Auto => "power left alone (spec.online unset)",
            Action::Cycle => "restart requested",
        }
    }

    fn has_heeded(&self, object: &DynamicObject, request: &Request) -> bool {
        let Ok(host) = typed(object) else { return false };
        match request.action {
            Action::Cycle => controller::PhysicalHosts::record(&host)
                .and_then(|record| record.rebooted)
                .is_some_and(|rebooted| rebooted == request.id),
            _ => host.status.and_then(|status| status.observed_generation) >= Some(request.generation),
        }
    }

    fn register(&self, server: &Simulated<'_>) -> Vec<Manifest> {
        let Simulated { name, namespace, .. } = server;
        let secret = format!("{name}-bmc");
        let mut host = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"redfishConnection": {"address": server.address, "credentialsSecretRef": secret}},
        });
        if let Some(fingerprint) = server.fingerprint {
            host["spec"]["redfishConnection"]["certificateFingerprint"] = fingerprint.into();
        }
        let secret = json!({
            "metadata": {"name": secret, "namespace": namespace},
            "stringData": {"username": server.username, "password": server.password},
        });
        vec![Manifest::new::<Secret>(secret), Manifest::new::<PhysicalHost>(host)]
    }

    fn life(&self) -> Life {
        Life {
            registered: "PhysicalHosts",
            claims: "Beskar7Machines",
            image: super::ISO,
            way: "by virtual media",
            registration: &[states::ENROLLING, states::INSPECTING, states::AVAILABLE],
            deployment: &[states::CLAIMED, states::PROVISIONING, states::PROVISIONED],
            release: &[states::DEPROVISIONING, states::AVAILABLE],
        }
    }

    fn claim(&self, namespace: &str, name: &str, iso: &str) -> Option<Manifest> {
        let metadata = json!({"name": name, "namespace": namespace});
        Some(Manifest::new::<Beskar7Machine>(json!({"metadata": metadata, "spec": {"imageURL": iso}})))
    }

    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        api::crd::beskar7_crds()
    }

    fn rules(&self) -> Vec<PolicyRule> {
        let infrastructure = |resources: &[&str], verbs: &[&str]| super::rule(GROUP, resources, verbs);
        vec![
            infrastructure(&["physicalhosts", "beskar7clusters"], &["list", "watch", "patch"]),
            infrastructure(&["beskar7machines"], &["get", "list", "watch", "patch"]),
            infrastructure(&["physicalhosts/status", "beskar7machines/status", "beskar7clusters/status"], &["patch"]),
            super::rule("cluster.x-k8s.io", &["clusters", "machines"], &["get", "list", "watch"]),
        ]
    }
}

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// Without a copy of the status, which may be large.
fn typed(object: &DynamicObject) -> Result<PhysicalHost, serde_json::Error> {
    let part = |name: &str| object.data.get(name).unwrap_or(&Value::Null);
    let (spec, status) =
        (api::beskar7::PhysicalHostSpec::deserialize(part("spec"))?, Option::deserialize(part("status"))?);
    Ok(PhysicalHost { metadata: object.metadata.clone(), spec, status })
}

fn progress(state: &str) -> Progress {
    match state {
        states::ERROR => Progress::Failed,
        states::AVAILABLE | states::PROVISIONED | states::READY | states::MAINTENANCE | states::QUARANTINED => {
            Progress::Resting
        }
        _ => Progress::UnderWay,
    }
}

fn has_pause_annotation(host: &PhysicalHost) -> bool {
    host.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(capi::PAUSED_ANNOTATION))
}

fn paused(host: &PhysicalHost) -> Option<String> {
    if has_pause_annotation(host) {
        return Some(format!("paused by its annotation {}", capi::PAUSED_ANNOTATION));
    }
    let condition = host.status.as_ref()?.condition(conditions::PAUSED).filter(|condition| condition.is_true())?;
    Some(condition.message.clone())
}

fn power_request(online: bool, status: &PhysicalHostStatus) -> String {
    match status.condition(conditions::POWER_REQUEST_IN_EFFECT) {
        Some(_) => format!("spec.online: {online} is not applied, see conditions"),
        None => format!("wanted {}", if online { "On" } else { "Off" }),
    }
}

fn obstacle(host: &PhysicalHost, action: Action) -> Option<String> {
    if host.metadata.deletion_timestamp.is_some() {
        return Some("is being deleted".to_owned());
    }
    if let Some(maintenance) = &host.spec.maintenance {
        let why = maintenance.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        return Some(format!("is under maintenance{why} and is left alone until spec.maintenance is removed"));
    }
    if has_pause_annotation(host) {
        let annotation = capi::PAUSED_ANNOTATION;
        return Some(format!("is paused and is left alone until its annotation {annotation} is removed"));
    }
    let quarantine = host.metadata.annotations.as_ref().and_then(|all| all.get(names::QUARANTINE));
    let status = host.status.as_ref();
    let state = status.and_then(|status| status.state.as_deref());
    if matches!(action, Action::On | Action::Off) && state == Some(states::DEPROVISIONING) {
        return Some(
            "is being released: its server is switched off and stays off; ask again when it is Available".to_owned(),
        );
    }
    if let Some(why) = quarantine.filter(|_| state == Some(states::QUARANTINED)) {
        let annotation = names::QUARANTINE;
        return Some(format!(
            "is in quarantine ({why}) and is left alone until its annotation {annotation} is removed"
        ));
    }
    // What was asked before the host was claimed or released does not keep the server off.
    let in_effect = status.and_then(|status| status.condition(conditions::POWER_REQUEST_IN_EFFECT));
    if action == Action::Cycle && host.spec.online == Some(false) && in_effect.is_none() {
        return Some(
            "cannot be restarted: its power is requested off (spec.online: false); run `beskar7 power on` first"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_server_is_known_by_a_secret_and_a_host_that_pins_its_certificate() {
        let server = Simulated {
            name: "sim-000",
            namespace: "metal",
            address: "https://127.0.0.1:10443",
            username: "admin",
            password: "on",
            fingerprint: Some("AB:CD"),
            device: None,
        };
        let written = |server: &Simulated<'_>| -> Vec<Value> {
            let texts =
                PhysicalHosts.register(server).into_iter().map(|it| serde_saphyr::to_string(it.object()).unwrap());
            texts.map(|text| serde_saphyr::from_str(&text).unwrap()).collect()
        };
        let connection = json!({
            "address": "https://127.0.0.1:10443", "credentialsSecretRef": "sim-000-bmc", "certificateFingerprint": "AB:CD",
        });
        let [secret, host] = written(&server).try_into().unwrap();
        assert_eq!(
            secret,
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sim-000-bmc", "namespace": "metal"},
                "stringData": {"username": "admin", "password": "on"},
            })
        );
        assert_eq!(
            host,
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "PhysicalHost",
                "metadata": {"name": "sim-000", "namespace": "metal"}, "spec": {"redfishConnection": connection},
            })
        );
        let [_, host] = written(&Simulated { fingerprint: None, ..server }).try_into().unwrap();
        assert!(host["spec"]["redfishConnection"].get("certificateFingerprint").is_none(), "plain HTTP has none");
    }
}
