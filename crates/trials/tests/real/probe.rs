//! metal-operator's own probe, which looks into a server before it is free.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use controllers::dialect::Settings;
use controllers::ironcore::{ProbeSettings, Template};
use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use sim::{BootSource, PowerState};
use testkit::{Metalprobe, send_from, wait_for};
use trials::ironcore::{BootProvider, Objects as _, condition_of, ironcore};
use trials::served::boot_service;
use trials::world::{SOON, World, instant_bmc};

use crate::ironcore::quiet_world;

/// A probe says again what it has found after half a minute.
const AGAIN: Duration = Duration::from_secs(90);
const SERVER: &str = "bmc-system-0";

/// An operator whose servers boot a probe.
async fn probing_world() -> (World, BootProvider) {
    let world = quiet_world("probe").await;
    let roles = BootProvider::ROLES.replace("NAMESPACE", &world.namespace);
    let account = world.cluster().service_account(&world.namespace, "boot-provider", &roles).await;
    let mut settings = Settings::default();
    settings.ironcore.probe = Some(ProbeSettings {
        image: "registry.example/metalprobe:1".to_owned(),
        os_image: "registry.example/os:1".to_owned(),
        namespace: world.namespace.clone(),
        template: Template::default(),
    });
    let boot = boot_service(&world);
    world.start_operator_with(world.clock(), |config| {
        ironcore(config);
        config.settings = Arc::new(settings);
        config.boot = Some(boot);
    });
    (world, BootProvider::start(account.client()))
}

/// What the system of the probe is configured with.
async fn ignition(world: &World) -> String {
    let configuration = world.boot_configurations().show(SERVER).await;
    let secrets: Api<Secret> = Api::namespaced(world.admin(), &world.namespace);
    let secret = secrets.get(configuration["spec"]["ignitionSecretRef"]["name"].as_str().unwrap()).await.unwrap();
    String::from_utf8(secret.data.unwrap()["ignition"].0.clone()).unwrap()
}

/// The interfaces that a probe tells of this machine.
fn interfaces() -> Vec<String> {
    let all =
        std::fs::read_dir("/sys/class/net").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_told = |name: &String| !["lo", "docker0"].contains(&name.as_str()) && !name.starts_with("tun");
    all.filter(is_told).collect()
}

#[tokio::test]
async fn metal_operators_own_probe_registers_the_server_that_was_booted_for_it_and_says_so_again_without_effect() {
    let (world, _boot) = probing_world().await;
    let bmc = world.add_bmc("bmc", instant_bmc("bmc"));
    world.create_bmc("bmc", "bmc").await;
    world.until_ready(world.servers(), SERVER, "Probing").await;
    assert_eq!(bmc.first().booted.map(|booted| booted.from), Some(BootSource::Pxe));
    let ignition = ignition(&world).await;
    let unit = ignition.lines().find(|line| line.contains("ExecStart=")).unwrap();
    let flags: Vec<_> =
        unit.split(' ').filter(|word| word.starts_with("--re") || word.starts_with("--server")).collect();
    assert!(unit.ends_with(&flags.join(" ")), "{unit}");
    let [url, uuid] = flags[..] else { panic!("{unit}") };
    let url = url.strip_prefix("--registry-url=").unwrap();

    // Whoever has no ticket, or tells nonsense, is not heard.
    let uuid = uuid.strip_prefix("--server-uuid=").unwrap();
    let report = json!({ "systemUUID": uuid, "data": {} }).to_string();
    let other = url.replace(&url[url.len() - 4..], if url.ends_with("0000") { "1111" } else { "0000" });
    let tell = async |url: &str, body: &str| {
        let url = format!("{url}/register");
        send_from(Ipv4Addr::LOCALHOST, "POST", &url, &[], body.to_owned()).await.unwrap().status()
    };
    assert_eq!(tell(&other, &report).await, StatusCode::NOT_FOUND);
    assert_eq!(tell(url, &report.replace(uuid, "00000000-0000-0000-0000-000000000000")).await, StatusCode::NOT_FOUND);
    assert_eq!(tell(url, "garbage").await, StatusCode::BAD_REQUEST);
    let text = world.metrics();
    for reason in ["TicketRefused", "OtherSystem", "Malformed"] {
        let line = format!("beskar7_registry_refusals_total{{reason=\"{reason}\"}} 1");
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert!(world.sessions().await.is_empty(), "nothing is kept");

    // What runs may tell that it has booted.
    let booted = json!({ "systemUUID": uuid, "booted": true }).to_string();
    let answer = send_from(Ipv4Addr::LOCALHOST, "POST", &format!("{url}/bootstate"), &[], booted).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let configuration = world.boot_configurations().show(SERVER).await;
    assert_eq!(condition_of(&configuration, "BootStateReceived")["status"], "True", "{configuration:#}");

    let probe = Metalprobe::start(&flags);
    let server = world.until_server(SERVER, "Available").await;
    wait_for("the server to be off", SOON, async || (bmc.first().power() == PowerState::Off).then_some(())).await;
    let shown = server["status"]["networkInterfaces"].as_array().unwrap();
    let of_probe = interfaces();
    for name in &of_probe {
        assert!(shown.iter().any(|interface| interface["name"] == name.as_str()), "{name}: {shown:#?}");
    }
    assert!(shown.len() > of_probe.len(), "what only the BMC knows is there, too: {shown:#?}");
    world.until_gone(world.boot_configurations(), SERVER).await;
    world.wait_for_no_session().await;

    // It runs here although its server is off, as one whose server takes its time would.
    let rested = world
        .until(world.servers(), SERVER, "at rest", |server| server["spec"]["bootConfigurationRef"].is_null())
        .await;
    wait_for("the probe to say it again", AGAIN, async || probe.says().contains("Re-registering Server").then_some(()))
        .await;
    wait_for("the probe to be answered", SOON, async || {
        let said = probe.says();
        let (_, after) = said.split_once("Re-registering Server")?;
        after.contains("Server registered").then_some(())
    })
    .await;
    assert!(!probe.says().contains("Failed to re-register"), "{}", probe.says());
    probe.assert_runs();
    assert!(world.sessions().await.is_empty());
    let after = world.servers().show(SERVER).await;
    assert_eq!((&after["spec"], &after["status"]["state"]), (&rested["spec"], &json!("Available")));
    assert_eq!(after["status"]["networkInterfaces"], Value::Array(shown.clone()));
    assert_eq!(condition_of(&after, "Ready")["status"], "True");
    world.stop_operator().await;
}
