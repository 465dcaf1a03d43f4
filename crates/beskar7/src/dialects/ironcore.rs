//! metal-operator's Servers.

use api::beskar7::{Drive, Fault, HardwareDetails, NetworkInterface, Processor, Waiting};
use api::capi;
use api::ironcore::names::{self, operations};
use api::ironcore::states::{power, protocol, server as states};
use api::ironcore::{Bmc, BmcSecret, Condition, Endpoint, Server, ServerClaim, ServerStatus, conditions};
use controllers::dialect::{GivenCredentials, Settings};
use controllers::ironcore::Prefix;
use engine::failure::Kind;
use engine::host::Waiting as Awaited;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{
    Action, Claimant, Devices, Host, HostKind, Life, Manifest, Progress, Request, Simulated, boot_provider, rule,
};

/// Servers.
pub(super) struct Servers;

impl HostKind for Servers {
    fn resource(&self) -> ApiResource {
        ApiResource::erase::<Server>(&())
    }

    fn has_namespaces(&self) -> bool {
        false
    }

    fn states(&self) -> &'static [&'static str] {
        &states::ALL
    }

    fn read(&self, object: &DynamicObject) -> Result<Host, serde_json::Error> {
        let server = typed(object)?;
        let is_seen = server.status.is_some();
        let (spec, status) = (server.spec, server.status.unwrap_or_default());
        let ignored = object.annotations().get(names::OPERATION).filter(|value| *value == operations::IGNORE);
        let bmc = match (&spec.bmc_ref, &spec.bmc) {
            (Some(reference), _) => format!("BMC {}", reference.name),
            (None, Some(inline)) => inline.address.clone(),
            (None, None) => String::new(),
        };
        Ok(Host {
            is_seen,
            progress: progress(&spec.power, &status),
            power: status.power_state.clone(),
            power_request: Some(spec.power.as_str())
                .filter(|power| !power.is_empty())
                .map(|power| format!("wanted {power}")),
            claimed_by: spec.server_claim_ref.map(|claim| Claimant {
                kind: "ServerClaim".to_owned(),
                name: format!("{}/{}", claim.namespace, claim.name),
            }),
            order: spec
                .boot_configuration_ref
                .map(|boot| format!("boot ServerBootConfiguration {}/{}", boot.namespace, boot.name)),
            maintenance: (status.state == states::PARKED)
                .then(|| format!("parked; annotate it with {}: {}", names::OPERATION, operations::UNPARK)),
            paused: ignored.map(|_| format!("ignored by its annotation {}", names::OPERATION)),
            bmc,
            addresses: status.network_interfaces.iter().flat_map(|nic| nic.ips.clone()).collect(),
            waiting: waiting(&status),
            fault: fault(&status),
            conditions: status.conditions.iter().map(condition).collect(),
            hardware: is_seen.then(|| hardware(&spec.system_uuid, &status)),
            state: status.state,
            ..Host::default()
        })
    }

    fn obstacle(&self, object: &DynamicObject, action: Action) -> Option<String> {
        let server = match typed(object) {
            Ok(server) => server,
            Err(error) => return Some(format!("cannot be read: {error}")),
        };
        let annotated =
            |value: &str| object.annotations().get(names::OPERATION).is_some_and(|operation| operation == value);
        if server.metadata.deletion_timestamp.is_some() {
            return Some("is being deleted".to_owned());
        }
        if annotated(operations::IGNORE) {
            return Some(format!("is left alone until its annotation {} is removed", names::OPERATION));
        }
        if object.annotations().contains_key(names::PARKED) {
            return Some(format!("is parked: annotate it with {}: {} first", names::OPERATION, operations::UNPARK));
        }
        match (action, server.spec.server_claim_ref) {
            (Action::Cycle, None) => Some("is not claimed, and servers that nobody has are kept off".to_owned()),
            (Action::Cycle, Some(_)) => None,
            (_, None) => {
                Some("is not claimed, and servers that nobody has are kept off; create a ServerClaim".to_owned())
            }
            (_, Some(claim)) => Some(format!(
                "follows its ServerClaim: set spec.power of {}/{} to On or Off",
                claim.namespace, claim.name
            )),
        }
    }

    fn request(&self, action: Action, _: &str) -> Value {
        match action {
            Action::Cycle => {
                json!({"metadata": {"annotations": {names::OPERATION: operations::GRACEFUL_RESTART_SERVER}}})
            }
            Action::On | Action::Off | Action::Auto => json!({}),
        }
    }

    fn requested(&self, action: Action) -> &'static str {
        match action {
            Action::Cycle => "restart requested (annotation metal.ironcore.dev/operation)",
            Action::On | Action::Off | Action::Auto => "power left as it is",
        }
    }

    fn has_heeded(&self, object: &DynamicObject, request: &Request) -> bool {
        request.action != Action::Cycle || !object.annotations().contains_key(names::OPERATION)
    }

    /// An Endpoint, from which the operator finds out the rest; or what it would make of one, where each BMC has a port of its own.
    fn register(&self, server: &Simulated<'_>) -> Vec<Manifest> {
        if let Some(device) = server.device {
            let spec = json!({"macAddress": device.mac, "ip": device.ip});
            return vec![Manifest::new::<Endpoint>(json!({"metadata": {"name": server.name}, "spec": spec}))];
        }
        let (scheme, rest) = server.address.split_once("://").unwrap_or(("https", server.address));
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().unwrap_or(443)),
            None => (rest, 443_u16),
        };
        let trust = server.fingerprint.unwrap_or("insecure");
        let bmc = json!({
            "metadata": {"name": server.name, "annotations": {"beskar7.io/bmc-trust": trust}},
            "spec": {
                "access": {"ip": host},
                "bmcSecretRef": {"name": server.name},
                "protocol": {"name": "Redfish", "port": port, "scheme": scheme},
            },
        });
        let secret = json!({
            "metadata": {"name": server.name},
            "stringData": {"username": server.username, "password": server.password},
        });
        vec![Manifest::new::<BmcSecret>(secret), Manifest::new::<Bmc>(bmc)]
    }

    fn life(&self) -> Life {
        Life {
            registered: "Endpoints",
            claims: "ServerClaims",
            image: "registry.example/os:1",
            way: "from the network",
            registration: &[states::INITIAL, states::DISCOVERY, states::AVAILABLE],
            deployment: &[states::RESERVED],
            release: &[states::CLEANUP, states::AVAILABLE],
        }
    }

    fn introduce(&self, devices: &Devices, settings: &mut Settings) {
        let Devices { mac_prefix, username, password } = devices.clone();
        let prefix = Prefix {
            digits: mac_prefix,
            device: "bmc".to_owned(),
            protocol: protocol::REDFISH.to_owned(),
            scheme: "https".to_owned(),
            port: 443,
            credentials: vec![GivenCredentials { username, password }],
            console: None,
        };
        settings.ironcore.prefixes = std::mem::take(&mut settings.ironcore.prefixes).with(prefix);
    }

    fn others(&self, client: &Client) -> Option<BoxFuture<'static, ()>> {
        Some(boot_provider::provide(client.clone()).boxed())
    }

    fn finds_systems(&self) -> bool {
        true
    }

    fn first_host(&self, bmc: &str) -> String {
        format!("{bmc}-system-0")
    }

    fn claim(&self, namespace: &str, name: &str, image: &str) -> Option<Manifest> {
        let metadata = json!({"name": name, "namespace": namespace});
        let spec = json!({"power": power::ON, "image": image});
        Some(Manifest::new::<ServerClaim>(json!({"metadata": metadata, "spec": spec})))
    }

    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        api::crd::ironcore_crds()
    }

    fn rules(&self) -> Vec<PolicyRule> {
        let looked_after = [
            "endpoints",
            "bmcs",
            "servers",
            "serverclaims",
            "serverbootconfigurations",
            "servermaintenances",
            "serverreadinessrules",
        ];
        let statuses = looked_after.map(|plural| format!("{plural}/status"));
        let statuses: Vec<_> = statuses.iter().map(String::as_str).collect();
        let rival = PolicyRule {
            resource_names: Some(vec!["f26702e4.ironcore.dev".to_owned()]),
            ..rule("coordination.k8s.io", &["leases"], &["list"])
        };
        vec![
            rule(api::ironcore::GROUP, &looked_after, &["get", "list", "watch", "patch"]),
            rule(api::ironcore::GROUP, &statuses, &["patch"]),
            rule(api::ironcore::GROUP, &["bmcsecrets"], &["get", "list", "watch", "create"]),
            rule(api::ironcore::GROUP, &["bmcs", "servers"], &["create"]),
            rule(api::ironcore::GROUP, &["serverbootconfigurations"], &["create", "delete"]),
            rival,
        ]
    }
}

fn typed(object: &DynamicObject) -> Result<Server, serde_json::Error> {
    let part = |name: &str| object.data.get(name).cloned().unwrap_or(Value::Null);
    let spec = serde_json::from_value(part("spec"))?;
    let status = serde_json::from_value(part("status"))?;
    Ok(Server { metadata: object.metadata.clone(), spec, status })
}

fn progress(wanted: &str, status: &ServerStatus) -> Progress {
    let has_power = wanted.is_empty() || wanted == status.power_state;
    match status.state.as_str() {
        states::ERROR => Progress::Failed,
        _ if fault(status).is_some() => Progress::Failed,
        states::AVAILABLE | states::RELEASED | states::PARKED => Progress::Resting,
        states::RESERVED if waiting(status).is_none() && has_power => Progress::Resting,
        _ => Progress::UnderWay,
    }
}

/// What Ready says, if it is not true.
fn unready(status: &ServerStatus) -> Option<&Condition> {
    status.condition(conditions::READY).filter(|ready| ready.status == Condition::FALSE)
}

fn waiting(status: &ServerStatus) -> Option<Waiting> {
    let unready = unready(status).filter(|ready| Awaited::NAMES.contains(&ready.reason.as_str()))?;
    Some(Waiting {
        reason: unready.reason.clone(),
        message: unready.message.clone(),
        since: Some(unready.last_transition_time.clone()),
        deadline: None,
    })
}

fn fault(status: &ServerStatus) -> Option<Fault> {
    let unready = unready(status).filter(|ready| Kind::named(&ready.reason).is_some())?;
    Some(Fault {
        reason: unready.reason.clone(),
        message: unready.message.clone(),
        count: None,
        since: Some(unready.last_transition_time.clone()),
        next_try: None,
    })
}

fn condition(condition: &Condition) -> capi::Condition {
    capi::Condition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        severity: String::new(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_transition_time: condition.last_transition_time.clone(),
    }
}

/// As much of the inventory as the commands show.
fn hardware(uuid: &str, status: &ServerStatus) -> HardwareDetails {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let gib = status.total_system_memory.as_ref().and_then(|memory| memory.0.strip_suffix("Gi")?.parse::<u64>().ok());
    let drives = status.storages.iter().flat_map(|storage| &storage.drives);
    let mut details = HardwareDetails {
        manufacturer: text(&status.manufacturer),
        model: text(&status.model),
        serial_number: text(&status.serial_number),
        sku: text(&status.sku),
        uuid: text(uuid),
        bios_version: text(&status.bios_version),
        processors: status
            .processors
            .iter()
            .map(|cpu| Processor {
                model: text(&cpu.model),
                cores: u32::try_from(cpu.total_cores).ok().filter(|cores| *cores > 0),
                ..Processor::default()
            })
            .collect(),
        memory_mib: gib.map(|gib| gib << 10),
        drives: drives
            .map(|drive| Drive {
                id: text(&drive.name),
                model: text(&drive.model),
                capacity_bytes: drive.capacity.as_ref().and_then(|capacity| capacity.0.parse().ok()),
                ..Drive::default()
            })
            .collect(),
        nics: status
            .network_interfaces
            .iter()
            .map(|nic| NetworkInterface {
                id: text(&nic.name),
                mac_address: text(&nic.mac_address),
                ip_addresses: nic.ips.clone(),
                ..NetworkInterface::default()
            })
            .collect(),
        ..HardwareDetails::default()
    };
    details.summary = details.summarise();
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Device;

    #[test]
    fn a_simulated_server_is_known_by_a_secret_and_a_bmc() {
        let server = Simulated {
            name: "sim-000",
            namespace: "metal",
            address: "https://127.0.0.1:10443",
            username: "admin",
            password: "on",
            fingerprint: None,
            device: None,
        };
        let [secret, bmc] = Servers.register(&server).try_into().unwrap();
        assert_eq!(secret.object()["stringData"], json!({"username": "admin", "password": "on"}));
        let spec = json!({
            "access": {"ip": "127.0.0.1"}, "bmcSecretRef": {"name": "sim-000"},
            "protocol": {"name": "Redfish", "port": 10443, "scheme": "https"},
        });
        assert_eq!(bmc.object()["spec"], spec);
        assert_eq!(bmc.object()["metadata"]["annotations"]["beskar7.io/bmc-trust"], "insecure");
    }

    #[test]
    fn a_simulated_server_on_a_management_network_is_known_by_an_endpoint() {
        let device = Device { ip: [198, 18, 0, 1].into(), mac: "02:be:07:00:00:00".to_owned() };
        let server = Simulated {
            name: "sim-000",
            namespace: "default",
            address: "https://198.18.0.1",
            username: "admin",
            password: "password",
            fingerprint: None,
            device: Some(&device),
        };
        let [endpoint] = Servers.register(&server).try_into().unwrap();
        assert_eq!(endpoint.object()["spec"], json!({"macAddress": "02:be:07:00:00:00", "ip": "198.18.0.1"}));
        assert_eq!(endpoint.object()["kind"], "Endpoint");
    }

    #[test]
    fn a_server_is_shown_with_who_has_it_and_what_it_waits_for() {
        let object = |status: Value| -> DynamicObject {
            let claim = json!({"namespace": "team", "name": "node"});
            serde_json::from_value(json!({
                "apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "Server", "metadata": {"name": "a"},
                "spec": {"systemUUID": "u", "bmcRef": {"name": "b"}, "serverClaimRef": claim, "power": power::ON},
                "status": status,
            }))
            .unwrap()
        };
        let ready = |reason: &str| json!({"type": "Ready", "status": "False", "reason": reason, "message": "Why.", "lastTransitionTime": "2026-11-18T08:00:00Z"});
        let status =
            json!({"state": "Reserved", "powerState": "Off", "conditions": [ready("WaitingForBootPermission")]});
        let host = Servers.read(&object(status)).unwrap();
        assert_eq!((host.state.as_str(), host.power.as_str(), host.progress), ("Reserved", "Off", Progress::UnderWay));
        assert_eq!(host.claimed_by.unwrap().to_string(), "ServerClaim team/node");
        assert_eq!((host.waiting.map(|wait| wait.message), host.fault.is_none()), (Some("Why.".to_owned()), true));
        let status = json!({"state": "Error", "conditions": [ready("Unreachable")]});
        let host = Servers.read(&object(status)).unwrap();
        assert_eq!(
            (host.progress, host.fault.map(|fault| fault.reason)),
            (Progress::Failed, Some("Unreachable".to_owned()))
        );
        assert!(!Servers.read(&object(Value::Null)).unwrap().is_seen);
        let told = Servers.obstacle(&object(Value::Null), Action::On).unwrap();
        assert_eq!(told, "follows its ServerClaim: set spec.power of team/node to On or Off");
        assert_eq!(Servers.obstacle(&object(Value::Null), Action::Cycle), None);
    }
}
