use api::beskar7::{phases, states};

use super::*;
use crate::brake::BrakeConfig;
use crate::dialect::HostDialect as _;
use crate::ironcore::Hosts as Servers;
use crate::metal3::Hosts;
use crate::object::ObjectId;

/// The text with the samples of each family in order: the registry keeps label sets in hash maps.
fn sorted(text: &str) -> String {
    let mut families: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match families.last_mut() {
            Some(family) if !line.starts_with("# HELP") && line != "# EOF" => family.push(line),
            _ => families.push(vec![line]),
        }
    }
    for family in &mut families {
        let head = family.iter().take_while(|line| line.starts_with('#')).count();
        // Buckets stay in their own order.
        let without_bound = |line: &str| match line.split_once("le=\"").and_then(|(_, rest)| rest.split_once("\",")) {
            Some((bound, _)) => line.replace(&format!("le=\"{bound}\","), ""),
            None => line.to_owned(),
        };
        family[head..].sort_by_key(|line| without_bound(line).split(' ').next().map(str::to_owned));
    }
    families.concat().join("\n") + "\n"
}

fn something_of_everything() -> Metrics {
    let metrics = Metrics::new();
    let (_leading, follow) = watch::channel(true);
    metrics.follow_leadership(follow);
    metrics.follow_hosts("metal3", &[], Vec::new);
    metrics.follow_hosts("beskar7", &states::ALL, || {
        [("lab", "Available"), ("lab", "Available"), ("lab", "Provisioned"), ("prod", "Provisioned")]
            .map(|(namespace, state)| (namespace.to_owned(), state))
            .into()
    });
    metrics.follow_claims("beskar7machine", &phases::ALL, || {
        [("lab", "Pending"), ("prod", "Provisioned")].map(|(namespace, phase)| (namespace.to_owned(), phase)).into()
    });
    let id = |name: &str| ObjectId::named::<k8s_openapi::api::core::v1::Node>(None, name);
    let brake = Brake::new(BrakeConfig { disruptions_per_minute: 1, concurrent_deployments: 1, freeze: false });
    brake.resume(&id("a"));
    for host in ["b", "c", "d"] {
        brake.ask(&id(host), Ask::Disrupt);
    }
    brake.ask(&id("e"), Ask::Deploy);
    metrics.follow_brake(Arc::new(brake));

    metrics.left_state("beskar7", "Inspecting", Duration::from_secs(12));
    metrics.left_state("beskar7", "Provisioned", Duration::from_hours(100));
    let took = Duration::from_millis(40);
    metrics.bmc_request(&Method::GET, "ok", took);
    bmc::Observer::request(&metrics, &Method::GET, "ok", Some(200), took);
    bmc::Observer::request(&metrics, &Method::POST, "busy", Some(503), took);
    metrics.bmc_request(&Method::from_bytes(b"GRAB").unwrap(), "refused", took);
    metrics.reconcile("beskar7", true, Duration::from_micros(700));
    metrics.reconcile("beskar7", false, Duration::from_millis(3));
    metrics.act("PowerOff", true);
    metrics.act("PowerOff", false);
    metrics.registry_refused("TicketRefused");
    metrics.boot_step("asked");
    metrics.fault("beskar7", "Unreachable");
    metrics.api_write("beskar7", "status", true);
    metrics.api_write("beskar7", "anchor", false);
    metrics.declare(Hosts::METRICS);
    for metric in Hosts::METRICS {
        metrics.count(&[Count::seconds(metric.name, &[("namespace", "lab")], 12.0)]);
    }
    // Declared again in a new term, they go on.
    metrics.declare(Hosts::METRICS);
    metrics.count(&[
        Count::one("metal3_reconcile", &[("namespace", "lab")]),
        Count::one("metal3_provisioning_state_change", &[("prev_state", "registering"), ("new_state", "inspecting")]),
        Count::one("metal3_operation_power_change", &[("namespace", "lab"), ("on_off", "on")]),
        Count::one("metal3_host_error", &[("error_type", "power management error")]),
        Count::one("never_declared", &[]),
    ]);
    metrics.declare(Servers::METRICS);
    metrics.count(Servers::decided(true).as_slice());
    metrics.count(Servers::decided(false).as_slice());
    metrics.follow_gauges(Servers::GAUGES, || vec![Arc::new(server())]);
    metrics
}

fn server() -> api::ironcore::Server {
    let ready = serde_json::json!({"type": "Ready", "status": "True", "reason": "Reserved", "message": ""});
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": "a"},
        "spec": {"systemUUID": "a"},
        "status": {"state": "Reserved", "powerState": "On", "conditions": [ready]},
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_text_is_as_dashboards_know_it() {
    let text = sorted(&something_of_everything().text());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/metrics/exposition.txt");
    if std::env::var_os("BESKAR7_BLESS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap();
    assert!(text == known, "changed; run with BESKAR7_BLESS=1 if it should be\n{text}");
}

#[tokio::test(start_paused = true)]
async fn no_host_is_named() {
    let metrics = something_of_everything();
    for label in
        metrics.text().lines().flat_map(|line| line.split(['{', ',', '}'])).filter_map(|part| part.split_once('='))
    {
        let known = ["dialect", "namespace", "state", "phase", "verb", "outcome", "act", "reason", "kind", "ask", "le"];
        let known = [&known[..], &["prev_state", "new_state", "on_off", "error_type"]].concat();
        let known = [&known[..], &["power_state", "condition_type", "status", "result", "step"]].concat();
        assert!(known.contains(&label.0), "{label:?}");
    }
}

#[test]
fn a_standby_counts_no_hosts_and_a_new_term_replaces_the_old() {
    let metrics = Metrics::new();
    let (leading, follow) = watch::channel(true);
    metrics.follow_leadership(follow);
    let count = |phase: &'static str| move || vec![("lab".to_owned(), phase)];
    metrics.follow_hosts("beskar7", &states::ALL, count("Available"));
    metrics.follow_hosts("beskar7", &states::ALL, count("Maintenance"));
    metrics.follow_gauges(Servers::GAUGES, || vec![Arc::new(server())]);
    let available = r#"beskar7_hosts{dialect="beskar7",namespace="lab",state="Available"} 0"#;
    let parked = r#"beskar7_hosts{dialect="beskar7",namespace="lab",state="Maintenance"} 1"#;
    let text = metrics.text();
    let reserved = r#"metal_server_state{state="Reserved"} 1"#;
    assert!([available, parked, reserved].iter().all(|line| text.contains(line)), "{text}");

    leading.send_replace(false);
    let text = metrics.text();
    assert!(
        !text.contains("beskar7_hosts{") && !text.contains("metal_server_state{") && text.contains("beskar7_leader 0"),
        "{text}"
    );
}
