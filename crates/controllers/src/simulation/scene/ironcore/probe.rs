//! Servers that boot a probe before they are available.

use api::boot::BootSession;
use api::ironcore::ServerMaintenance;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use sim::{BootSource, ResetType};

use super::*;
use crate::clock::Clock as _;
use crate::simulation::probing;

const REPORT: &str = r#"{
    "networkInterfaces": [
        {"name": "eno1", "ipAddresses": ["10.0.0.7"], "macAddress": "MAC", "carrierStatus": "up"},
        {"name": "lo", "ipAddresses": ["127.0.0.1", "no address"], "macAddress": "", "carrierStatus": "up"},
        7
    ],
    "lldp": [{"name": "eno1", "neighbors": [{"chassisId": "aa:bb:cc:dd:ee:ff", "portId": "Ethernet1", "systemName": "leaf-1\u0007"}]}]
}"#;

/// A site whose servers are looked into by a probe. Nobody asks for anything at its boot service's socket.
async fn site(servers: &[&str]) -> Scene {
    let mut scene = prepared(servers).await;
    start(&mut scene);
    scene
}

fn start(scene: &mut Scene) {
    let (boot, probe) = (probing::boot(NAMESPACE), probing::settings(NAMESPACE));
    start_as(scene, vec![Dialect::Beskar7, Dialect::IronCore], Some(boot), |settings| settings.probe = Some(probe));
}

impl Scene {
    /// What the system of the probe is configured with.
    async fn ignition(&self, server: &str) -> String {
        let configuration = self.object::<ServerBootConfiguration>(server);
        let name = configuration["spec"]["ignitionSecretRef"]["name"].as_str().unwrap().to_owned();
        let secret = api::<Secret>(&self.admin, Some(NAMESPACE)).get(&name).await.unwrap();
        let ByteString(ignition) = &secret.data.unwrap()["ignition"];
        String::from_utf8(ignition.clone()).unwrap()
    }

    /// The probe of a server reports, as the registry of any replica keeps it.
    async fn report(&self, bmc: &str) {
        let server = api::<Server>(&self.admin, None).get(&of(bmc)).await.unwrap();
        let ignition = self.ignition(&of(bmc)).await;
        let (_, after) = ignition.split_once(&format!("--registry-url={}/registry/", probing::BOOT_URL)).unwrap();
        let data = REPORT.replace("MAC", &self.servers.hardware(bmc).macs[0]);
        let session = probing::session(&server, after.split('/').next().unwrap(), self.clock.now(), data);
        api::<BootSession>(&self.admin, Some(NAMESPACE)).create(&PostParams::default(), &session).await.unwrap();
    }

    async fn all_of<K: Object>(&self) -> Vec<K> {
        api::<K>(&self.admin, Some(NAMESPACE)).list(&kube::api::ListParams::default()).await.unwrap().items
    }

    /// A server whose probe runs.
    async fn probing(&self, bmc: &str) {
        self.add_bmc(bmc).await;
        self.provide(&of(bmc), "Ready").await;
        self.until_power(bmc, PowerState::On).await;
        self.until_ready::<Server>(&of(bmc), "Probing").await;
    }

    async fn until_tidy(&self, bmc: &str) {
        self.until_server(&of(bmc), "Available").await;
        assert_eq!(self.power(bmc), PowerState::Off);
        let server = of(bmc);
        self.until("nothing of the probe is left", |scene| scene.object::<ServerBootConfiguration>(&server).is_null())
            .await;
        self.until_of::<Server>(&server, "/status/state", "Available").await;
        self.until("no reference is left", |scene| {
            scene.object::<Server>(&server)["spec"]["bootConfigurationRef"].is_null()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_server_boots_its_probe_once_its_boot_provider_is_ready_and_is_available_and_off_with_what_was_told() {
    let scene = site(&["server-0"]).await;
    let name = of("server-0");
    scene.add_bmc("server-0").await;
    scene.until_ready::<Server>(&name, "WaitingForBootPermission").await;
    assert_eq!(scene.object::<Server>(&name)["status"]["state"], "Discovery");
    scene.until_of::<ServerBootConfiguration>(&name, "/status/state", "Pending").await;
    let configuration = scene.object::<ServerBootConfiguration>(&name);
    let marks = &configuration["metadata"]["annotations"];
    assert_eq!(marks["metal.ironcore.dev/type"], "Internal");
    assert_eq!(marks["metal.ironcore.dev/is-default-os-image"], "true");
    let owner = &configuration["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Server"), &json!(name)));
    let spec = &configuration["spec"];
    assert_eq!((&spec["image"], &spec["serverRef"]["name"]), (&json!("registry.example/probe-os:1"), &json!(name)));
    let reference = json!({"namespace": NAMESPACE, "name": name});
    assert_eq!(scene.object::<Server>(&name)["spec"]["bootConfigurationRef"], reference);
    let ignition = scene.ignition(&name).await;
    let uuid = scene.servers.hardware("server-0").uuid.to_ascii_lowercase();
    assert!(ignition.starts_with("run registry.example/probe:1 --registry-url=http://192.0.2.5:8082/registry/"));
    assert!(
        ignition.contains(&format!(" --server-uuid={uuid}\n")) && ignition.contains("\nkey ssh-ed25519 "),
        "{ignition}"
    );
    let secrets = scene.all_of::<Secret>().await;
    let login = secrets.iter().find(|secret| secret.name_any().ends_with("-ssh")).unwrap();
    assert_eq!(login.data.as_ref().unwrap().keys().collect::<Vec<_>>(), ["password", "pem", "pub"]);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off, "its boot configuration is not ready");

    scene.provide(&name, "Ready").await;
    scene.until_power("server-0", PowerState::On).await;
    assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe);
    let told = scene.until_ready::<Server>(&name, "Probing").await;
    assert!(told.contains("waiting for the probe to report"), "{told}");
    scene.report("server-0").await;
    scene.until_tidy("server-0").await;

    let server = scene.object::<Server>(&name);
    let shown = server["status"]["networkInterfaces"].as_array().unwrap();
    let first = json!({
        "name": "eno1",
        "macAddress": scene.servers.hardware("server-0").macs[0],
        "ips": ["10.0.0.7"],
        "carrierStatus": "up",
        "neighbors": [{"macAddress": "aa:bb:cc:dd:ee:ff", "portID": "Ethernet1", "systemName": "leaf-1"}],
    });
    let find = |name: &str| shown.iter().find(|interface| interface["name"] == name);
    assert_eq!(find("eno1"), Some(&first), "{shown:#?}");
    assert_eq!(find("lo").unwrap()["ips"], json!(["127.0.0.1"]));
    assert!(!server["status"]["processors"].as_array().unwrap().is_empty());
    scene.until("the Secrets go", |scene| scene.object::<Secret>(&login.name_any()).is_null()).await;
    assert!(scene.all_of::<BootSession>().await.is_empty());

    // Once it is known, it is known.
    let starts = scene.done("server-0").len();
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(scene.done("server-0").len(), starts);
    let kept = scene.object::<Server>(&name)["status"]["networkInterfaces"].clone();
    assert_eq!(kept.as_array().unwrap(), shown, "the BMC's inventory leaves what the probe has told");
    scene.booted("node").await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_reports_is_a_fault_and_is_tried_again_until_one_does() {
    let scene = site(&["server-0"]).await;
    scene.probing("server-0").await;
    let configuration = scene.object::<ServerBootConfiguration>(&of("server-0"))["metadata"]["uid"].clone();
    tokio::time::sleep(Duration::from_mins(25)).await;
    let told = scene.until_ready::<Server>(&of("server-0"), "ProbeSilent").await;
    assert!(told.contains("has not reported within 30 minutes. Check its console"), "{told}");
    assert_eq!(scene.object::<Server>(&of("server-0"))["status"]["state"], "Error");
    let starts = |scene: &Scene| scene.done("server-0").iter().filter(|act| act.contains("On")).count();
    let before = starts(&scene);
    tokio::time::sleep(Duration::from_hours(3)).await;
    assert!((before + 1..before + 8).contains(&starts(&scene)), "{:?}", scene.done("server-0"));
    assert_eq!(scene.object::<ServerBootConfiguration>(&of("server-0"))["metadata"]["uid"], configuration);
    scene.until_power("server-0", PowerState::On).await;
    scene.report("server-0").await;
    scene.until_tidy("server-0").await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_restarts_goes_on_with_the_probe_that_runs() {
    let mut scene = site(&["server-0"]).await;
    scene.probing("server-0").await;
    let (ignition, acts) = (scene.ignition(&of("server-0")).await, scene.done("server-0").len());
    scene.stop().await;
    start(&mut scene);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.ignition(&of("server-0")).await, ignition);
    assert_eq!(scene.done("server-0").len(), acts, "{:?}", scene.done("server-0"));
    scene.stop().await;
    // It reports while nobody looks, and switches itself off.
    scene.report("server-0").await;
    scene.servers.press("server-0", ResetType::ForceOff);
    scene.until_power("server-0", PowerState::Off).await;
    start(&mut scene);
    scene.until_tidy("server-0").await;
    let shown = scene.object::<Server>(&of("server-0"))["status"]["networkInterfaces"].clone();
    assert!(shown.as_array().unwrap().iter().any(|interface| interface["name"] == "eno1"), "{shown:#}");
}

#[tokio::test(start_paused = true)]
async fn a_boot_provider_that_fails_and_secrets_that_are_gone_keep_the_server_off_and_are_named() {
    let scene = site(&["server-0"]).await;
    let name = of("server-0");
    scene.add_bmc("server-0").await;
    scene.provide(&name, "Error").await;
    scene
        .until("the error is told", |scene| {
            let ready = condition(&scene.object::<Server>(&name), "Ready");
            ready["message"].as_str().unwrap_or_default().contains("boot provider reports an error")
        })
        .await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    // Somebody deletes what we have made: it is made again.
    let secrets =
        || async { scene.all_of::<Secret>().await.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>() };
    let before = secrets().await;
    for secret in before.iter().filter(|secret| secret.starts_with(&name)) {
        api::<Secret>(&scene.admin, Some(NAMESPACE)).delete(secret, &DeleteParams::default()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(secrets().await, before);
    scene.drop_object::<ServerBootConfiguration>(&name).await;
    scene.provide(&name, "Ready").await;
    scene.until_ready::<Server>(&name, "Probing").await;
    scene.report("server-0").await;
    scene.until_tidy("server-0").await;
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_a_server_that_is_looked_into_and_a_server_that_runs_is_left_alone() {
    let scene = site(&["server-0", "server-1"]).await;
    scene.servers.press("server-1", ResetType::On);
    scene.until_power("server-1", PowerState::On).await;
    scene.probing("server-0").await;
    scene.add_bmc("server-1").await;
    scene.until_ready::<Server>(&of("server-1"), "WaitingForServerOff").await;
    scene.claim("node", json!({})).await;
    scene.until_ready::<ServerClaim>("node", "NoServer").await;
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(scene.done("server-1"), [""; 0]);
    assert!(scene.object::<ServerBootConfiguration>(&of("server-1")).is_null());
    scene.report("server-0").await;
    scene.until_bound("node").await;
    let claim = scene.object::<ServerClaim>("node");
    assert_eq!(claim["spec"]["serverRef"]["name"], of("server-0"));
    scene.provide("node", "Ready").await;
    scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
    let reference = scene.object::<Server>(&of("server-0"))["spec"]["bootConfigurationRef"].clone();
    assert_eq!(reference, json!({"namespace": NAMESPACE, "name": "node"}));
}

#[tokio::test(start_paused = true)]
async fn a_free_server_is_looked_into_again_after_a_maintenance_with_another_probe() {
    let scene = site(&["server-0"]).await;
    let name = of("server-0");
    scene.probing("server-0").await;
    let first = scene.ignition(&name).await;
    scene.report("server-0").await;
    scene.until_tidy("server-0").await;
    let spec = json!({"serverRef": {"name": name}, "policy": "Enforced", "serverPower": "Off"});
    scene.make::<ServerMaintenance>(json!({"name": "fan"}), json!({"spec": spec})).await;
    scene.until_server(&name, "Maintenance").await;
    scene.drop_object::<ServerMaintenance>("fan").await;
    scene.provide(&name, "Ready").await;
    scene.until_ready::<Server>(&name, "Probing").await;
    assert_ne!(scene.ignition(&name).await, first, "the ticket of the first probe opens nothing");
    scene.report("server-0").await;
    scene.until_tidy("server-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_server_is_switched_off_if_its_probe_runs() {
    let scene = site(&["server-0"]).await;
    scene.probing("server-0").await;
    let uid = scene.object::<Server>(&of("server-0"))["metadata"]["uid"].clone();
    scene.drop_object::<Server>(&of("server-0")).await;
    scene.until_power("server-0", PowerState::Off).await;
    scene.until("the object is gone", |scene| scene.object::<Server>(&of("server-0"))["metadata"]["uid"] != uid).await;
}
