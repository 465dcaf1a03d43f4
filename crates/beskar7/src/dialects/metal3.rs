//! BareMetalHosts.

use api::beskar7::{Fault, HardwareDetails, NetworkInterface, Processor, Waiting};
use api::capi;
use api::metal3::states::{self, operational};
use api::metal3::{BareMetalHost, BareMetalHostStatus, conditions, names};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use super::{Action, Claimant, Host, HostKind, Life, Manifest, Progress, Request, Simulated, rule};

/// BareMetalHosts.
pub(super) struct BareMetalHosts;

impl HostKind for BareMetalHosts {
    fn resource(&self) -> ApiResource {
        ApiResource::erase::<BareMetalHost>(&())
    }

    fn has_namespaces(&self) -> bool {
        true
    }

    fn states(&self) -> &'static [&'static str] {
        let all: &'static [&'static str] = &states::ALL;
        // The first is that of a host without a status, which has no name.
        all.get(1..).unwrap_or_default()
    }

    fn read(&self, object: &DynamicObject) -> Result<Host, serde_json::Error> {
        let host = typed(object)?;
        let is_seen = host.status.is_some();
        let (spec, status) = (host.spec, host.status.unwrap_or_default());
        let paused = object.annotations().get(names::PAUSED);
        let detached = status.operational_status == operational::DETACHED;
        Ok(Host {
            is_seen,
            progress: progress(&status),
            power: if is_seen { power(status.powered_on) } else { "" }.to_owned(),
            power_request: Some(format!("wanted {}", power(spec.online))),
            health: health(&status).to_owned(),
            claimed_by: spec.consumer_ref.map(|consumer| Claimant {
                kind: consumer.kind.unwrap_or_default(),
                name: consumer.name.unwrap_or_default(),
            }),
            order: spec.image.map(|image| format!("boot {}", image.url)),
            remark: status.condition(conditions::NOTICE).map(|notice| notice.message.clone()),
            maintenance: detached.then(|| format!("detached by its annotation {}", names::DETACHED)),
            paused: paused.map(|_| format!("paused by its annotation {}", names::PAUSED)),
            bmc: spec.bmc.address,
            addresses: status
                .hardware
                .iter()
                .flat_map(|found| &found.nics)
                .map(|nic| nic.ip.clone())
                .filter(|ip| !ip.is_empty())
                .collect(),
            waiting: waiting(&status),
            fault: fault(&status),
            conditions: status.conditions.iter().map(condition).collect(),
            hardware: status.hardware.as_ref().map(hardware),
            state: status.provisioning.state,
            ..Host::default()
        })
    }

    fn obstacle(&self, object: &DynamicObject, action: Action) -> Option<String> {
        let host = match typed(object) {
            Ok(host) => host,
            Err(error) => return Some(format!("cannot be read: {error}")),
        };
        if host.metadata.deletion_timestamp.is_some() {
            return Some("is being deleted".to_owned());
        }
        for annotation in [names::PAUSED, names::DETACHED] {
            if host.annotations().contains_key(annotation) {
                return Some(format!("is left alone until its annotation {annotation} is removed"));
            }
        }
        match action {
            Action::Auto => {
                Some("cannot be left alone: spec.online of a BareMetalHost is always true or false".to_owned())
            }
            Action::Off if host.spec.disable_power_off => {
                Some("may never be powered off (spec.disablePowerOff)".to_owned())
            }
            Action::Cycle if !host.spec.online => Some(
                "cannot be restarted: its power is requested off (spec.online: false); run `beskar7 power on` first"
                    .to_owned(),
            ),
            Action::On | Action::Off | Action::Cycle => None,
        }
    }

    fn request(&self, action: Action, _: &str) -> Value {
        match action {
            Action::On => json!({"spec": {"online": true}}),
            Action::Off => json!({"spec": {"online": false}}),
            Action::Auto => json!({}),
            Action::Cycle => json!({"metadata": {"annotations": {names::REBOOT: ""}}}),
        }
    }

    fn requested(&self, action: Action) -> &'static str {
        match action {
            Action::On => "power on requested (spec.online: true)",
            Action::Off => "power off requested (spec.online: false)",
            Action::Auto => "power left as it is",
            Action::Cycle => "restart requested (annotation reboot.metal3.io)",
        }
    }

    fn has_heeded(&self, object: &DynamicObject, request: &Request) -> bool {
        match request.action {
            Action::Cycle => !object.annotations().contains_key(names::REBOOT),
            Action::On | Action::Off | Action::Auto => true,
        }
    }

    fn register(&self, server: &Simulated<'_>) -> Vec<Manifest> {
        let Simulated { name, namespace, .. } = server;
        let secret = format!("{name}-bmc");
        let (transport, rest) = server.address.split_once("://").unwrap_or(("https", server.address));
        let host = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "online": false,
                "bmc": {
                    "address": format!("redfish-virtualmedia+{transport}://{rest}"),
                    "credentialsName": secret,
                    // Metal3 has no field for a fingerprint, and simulated servers sign for themselves.
                    "disableCertificateVerification": transport == "https",
                },
            },
        });
        let secret = json!({
            "metadata": {"name": secret, "namespace": namespace},
            "stringData": {"username": server.username, "password": server.password},
        });
        vec![Manifest::new::<Secret>(secret), Manifest::new::<BareMetalHost>(host)]
    }

    fn life(&self) -> Life {
        Life {
            registered: "BareMetalHosts",
            claims: "images",
            image: super::ISO,
            way: "by virtual media",
            registration: &[states::REGISTERING, states::INSPECTING, states::AVAILABLE],
            deployment: &[states::PROVISIONING, states::PROVISIONED],
            release: &[states::DEPROVISIONING, states::AVAILABLE],
        }
    }

    fn claim(&self, _: &str, _: &str, _: &str) -> Option<Manifest> {
        None
    }

    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        api::crd::metal3_crds()
    }

    fn rules(&self) -> Vec<PolicyRule> {
        let rival = PolicyRule {
            resource_names: Some(vec!["baremetal-operator".to_owned()]),
            ..rule("coordination.k8s.io", &["leases"], &["list"])
        };
        vec![
            rule(api::metal3::GROUP, &["baremetalhosts"], &["list", "watch", "patch"]),
            rule(api::metal3::GROUP, &["baremetalhosts/status"], &["patch"]),
            rule(api::metal3::GROUP, &["hardwaredata"], &["list", "watch", "create", "patch"]),
            rule("", &["secrets"], &["patch"]),
            rival,
        ]
    }
}

fn typed(object: &DynamicObject) -> Result<BareMetalHost, serde_json::Error> {
    let part = |name: &str| object.data.get(name).cloned().unwrap_or(Value::Null);
    let spec = serde_json::from_value(part("spec"))?;
    let status = serde_json::from_value(part("status"))?;
    Ok(BareMetalHost { metadata: object.metadata.clone(), spec, status })
}

fn power(on: bool) -> &'static str {
    if on { "On" } else { "Off" }
}

fn progress(status: &BareMetalHostStatus) -> Progress {
    match (status.operational_status.as_str(), status.provisioning.state.as_str()) {
        (operational::ERROR, _) => Progress::Failed,
        (operational::DETACHED, _)
        | (
            _,
            states::AVAILABLE
            | states::READY
            | states::PROVISIONED
            | states::EXTERNALLY_PROVISIONED
            | states::UNMANAGED,
        ) => Progress::Resting,
        _ => Progress::UnderWay,
    }
}

/// In the words of Redfish, as other hosts show it.
fn health(status: &BareMetalHostStatus) -> &'static str {
    match status.condition(conditions::HEALTHY).map(|healthy| healthy.reason.as_str()) {
        Some(conditions::reasons::HEALTHY) => "OK",
        Some(conditions::reasons::WARNING) => "Warning",
        Some(conditions::reasons::CRITICAL_ERROR) => "Critical",
        _ => "",
    }
}

fn waiting(status: &BareMetalHostStatus) -> Option<Waiting> {
    let progress = status.condition(conditions::PROGRESSING).filter(|progress| !progress.message.is_empty())?;
    Some(Waiting {
        reason: progress.reason.clone(),
        message: progress.message.clone(),
        since: Some(progress.last_transition_time.clone()),
        deadline: None,
    })
}

fn fault(status: &BareMetalHostStatus) -> Option<Fault> {
    (!status.error_message.is_empty()).then(|| Fault {
        reason: status.error_type.clone(),
        message: status.error_message.clone(),
        count: u32::try_from(status.error_count).ok().filter(|count| *count > 0),
        since: None,
        next_try: None,
    })
}

fn condition(condition: &api::metal3::Condition) -> capi::Condition {
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
fn hardware(found: &api::metal3::HardwareDetails) -> HardwareDetails {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let mut nics: Vec<NetworkInterface> = Vec::new();
    for nic in &found.nics {
        match nics.iter_mut().find(|known| known.mac_address.as_deref() == Some(&nic.mac)) {
            Some(known) => known.ip_addresses.push(nic.ip.clone()),
            None => nics.push(NetworkInterface {
                id: text(&nic.name),
                mac_address: text(&nic.mac),
                ip_addresses: text(&nic.ip).into_iter().collect(),
                ..NetworkInterface::default()
            }),
        }
    }
    let mut details = HardwareDetails {
        manufacturer: text(&found.system_vendor.manufacturer),
        model: text(&found.system_vendor.product_name),
        serial_number: text(&found.system_vendor.serial_number),
        bios_version: text(&found.firmware.bios.version),
        host_name: text(&found.hostname),
        cores: u32::try_from(found.cpu.count).ok().filter(|count| *count > 0),
        processors: vec![Processor { model: text(&found.cpu.model), ..Processor::default() }],
        memory_mib: u64::try_from(found.ram_mebibytes).ok().filter(|mib| *mib > 0),
        drives: found
            .storage
            .iter()
            .map(|disk| api::beskar7::Drive {
                id: text(&disk.name),
                model: text(&disk.model),
                serial_number: text(&disk.serial_number),
                capacity_bytes: u64::try_from(disk.size_bytes).ok(),
                ..api::beskar7::Drive::default()
            })
            .collect(),
        nics,
        ..HardwareDetails::default()
    };
    details.summary = details.summarise();
    details
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_server_is_known_by_a_secret_and_a_host_that_boots_from_virtual_media() {
        let server = Simulated {
            name: "sim-000",
            namespace: "metal",
            address: "https://127.0.0.1:10443",
            username: "admin",
            password: "on",
            fingerprint: Some("AB:CD"),
            device: None,
        };
        let [secret, host] = BareMetalHosts.register(&server).try_into().unwrap();
        assert_eq!(secret.object()["stringData"], json!({"username": "admin", "password": "on"}));
        let bmc = json!({
            "address": "redfish-virtualmedia+https://127.0.0.1:10443", "credentialsName": "sim-000-bmc",
            "disableCertificateVerification": true,
        });
        assert_eq!(host.object()["spec"], json!({"online": false, "bmc": bmc}));
    }

    #[test]
    fn a_host_is_shown_with_what_is_wrong_with_it_and_what_is_asked_of_it() {
        let object = |status: Value| -> DynamicObject {
            serde_json::from_value(json!({
                "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": {"name": "a", "namespace": "b"},
                "spec": {"online": true, "bmc": {"address": "redfish://x", "credentialsName": "y"}, "image": {"url": "http://i/x.iso"}},
                "status": status,
            }))
            .unwrap()
        };
        let host = BareMetalHosts
            .read(&object(json!({
                "operationalStatus": "error", "errorType": "registration error", "errorMessage": "No.", "errorCount": 2,
                "poweredOn": true, "provisioning": {"state": "registering", "ID": ""},
            })))
            .unwrap();
        assert_eq!((host.state.as_str(), host.power.as_str(), host.progress), ("registering", "On", Progress::Failed));
        assert_eq!(
            host.fault.map(|fault| (fault.reason, fault.count)),
            Some(("registration error".to_owned(), Some(2)))
        );
        assert_eq!(host.order.as_deref(), Some("boot http://i/x.iso"));
        let fresh = BareMetalHosts.read(&object(Value::Null)).unwrap();
        assert!(!fresh.is_seen && fresh.fault.is_none() && fresh.power.is_empty());
    }
}
