//! This version, started on what others have stored: nothing is done to a server that was not due, nobody tries a refused password
//! before its time, no clock starts anew, and what was under way goes on to its end.
//!
//! Each test brings one situation about, which `BESKAR7_BLESS=1` records if it never was (see [`trials::stored`]), and then starts
//! the operator on all that were recorded.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use api::beskar7::PhysicalHost;
use boot::fetch::{Fetcher, Guard, Patience};
use boot::links::Links;
use controllers::depot::BootConfig;
use controllers::operator::Config;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use sim::{BootSource, Effect, Kind, PowerState, Verb};
use testkit::{WebServer, build_menu_iso, wait_for, wait_ok};
use trials::served::{MENU, SERVER, get};
use trials::stored::{Situation, Upgrade};
use trials::story::{HOST, ISO, assert_tidy, resets, running_bmc, runs, unclaimed, waits_for};
use trials::world::{EVER, World, anchor, claim, condition, fault_of, state_of};

mod deployments;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
/// How late what is due may be: hosts that wait are looked at every half minute and more often.
const LATE: SignedDuration = SignedDuration::from_secs(90);

/// As everybody runs it, without Cluster API.
fn alone(_: &World, config: &mut Config) {
    config.cluster_api = false;
}

fn frozen(world: &World, config: &mut Config) {
    alone(world, config);
    config.brake.freeze = true;
}

const fn situation(name: &'static str) -> Situation {
    Situation { name, bmc: running_bmc, config: alone }
}

/// A registered server that runs something of its own.
async fn available(world: &World, bmc: &sim::Bmc) {
    world.register(bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
}

/// A server that was provisioned for somebody who has claimed it by hand.
async fn provisioned(world: &World, bmc: &sim::Bmc) {
    available(world, bmc).await;
    world.provision(bmc).await;
    tokio::time::sleep(5 * MINUTE).await;
}

/// A server that was switched off for its order, with an image that its BMC is inserting.
async fn preparing(world: &World, bmc: &sim::Bmc) {
    available(world, bmc).await;
    bmc.faults().add(Effect::Latency(Duration::from_secs(40)).always().kind(Kind::InsertMedia).times(1));
    world.patch_spec(HOST, claim("me", ISO)).await;
    wait_for("the insertion", EVER, async || bmc.first().media().map(drop)).await;
}

/// Since when it waits, of a host as it was stored.
fn since(host: &PhysicalHost) -> Timestamp {
    host.status.as_ref().unwrap().waiting.as_ref().unwrap().since.as_ref().unwrap().0
}

async fn thaw(upgrade: &Upgrade<'_>) {
    upgrade.world.stop_operator().await;
    upgrade.world.start_operator_with(upgrade.world.clock(), |config| config.cluster_api = false);
}

fn assert_runs_the_order(upgrade: &Upgrade<'_>) {
    assert_eq!(runs(&upgrade.bmc), Some(BootSource::Cd(ISO.into())));
    assert_eq!(upgrade.bmc.first().boots, 1);
}

/// A release that waits for leave to switch the server off.
async fn releasing_under_frost(world: &World, bmc: &sim::Bmc) {
    provisioned(world, bmc).await;
    world.stop_operator().await;
    world.start_operator_with(world.clock(), |config| frozen(world, config));
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_until(HOST, "the fleet brake", |host| waits_for(host, "FleetBrake")).await;
    tokio::time::sleep(3 * MINUTE).await;
}

async fn assert_goes_on_releasing(upgrade: &Upgrade<'_>) {
    assert_eq!(state_of(upgrade.stored()), "Deprovisioning");
    upgrade.world.start_operator_with(upgrade.world.clock(), |config| frozen(&upgrade.world, config));
    tokio::time::sleep(20 * MINUTE).await;
    upgrade.assert_same().await;
    thaw(upgrade).await;
    upgrade.world.wait_for_state(HOST, "Available").await;
    assert_tidy(&upgrade.bmc);
    assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On", "ForceOff"]);
}

#[tokio::test(start_paused = true)]
async fn a_free_host_is_left_alone_and_can_be_claimed() {
    let it = situation("available");
    it.record(async |world, bmc| {
        available(world, bmc).await;
        tokio::time::sleep(5 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        upgrade.world.provision(&upgrade.bmc).await;
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_could_not_be_reached_before_is_the_same_trouble_as_before() {
    let it = situation("unreachable");
    it.record(async |world, bmc| {
        bmc.faults().add(Effect::Refuse.always());
        world.register(bmc, json!({})).await;
        world.wait_for_fault(HOST, "Unreachable").await;
        tokio::time::sleep(3 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.bmc.faults().add(Effect::Refuse.always());
        upgrade.assert_rests(10 * MINUTE).await;
        upgrade.bmc.faults().clear();
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_password_that_was_refused_is_not_tried_before_its_time_unless_it_changes() {
    let it = situation("refused-password");
    it.record(async |world, _| {
        world.create_secret("bmc", "admin", "guessed").await;
        world.create_host(HOST, json!({})).await;
        world.wait_for_fault(HOST, "AuthenticationFailed").await;
        tokio::time::sleep(2 * MINUTE).await;
        Value::Null
    })
    .await;
    let hold = |host: &PhysicalHost| {
        let hold = anchor(host)["hold"].clone();
        Some((hold["count"].as_u64()?, hold["until"].as_str()?.parse::<Timestamp>().unwrap()))
    };
    for upgrade in it.upgrades().await {
        let (count, until) = hold(upgrade.stored()).unwrap();
        let left = until.duration_since(upgrade.world.clock().now());
        assert!(left > SignedDuration::from_mins(5), "worth the test: {left}");
        upgrade.start();
        tokio::time::sleep((left - SignedDuration::from_secs(1)).unsigned_abs()).await;
        assert_eq!(upgrade.logins(), 0, "the hold was lifted");
        upgrade.assert_same().await;
        let again = |host: &PhysicalHost| hold(host).is_some_and(|(now, _)| now == count + 1);
        upgrade.world.wait_until(HOST, "the next try", again).await;
        assert_eq!(upgrade.logins(), 1);
        assert!(upgrade.world.clock().now() <= until + LATE);
    }
    for upgrade in it.upgrades().await {
        upgrade.start();
        upgrade.world.create_secret("bmc", "admin", "password").await;
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_eq!(upgrade.logins(), 1);
    }
}

/// What an earlier version would have stored: before there was more than one recipe, nothing said what a release must undo.
async fn rewrite_in_format_1(world: &World) {
    world.kill_operator().await;
    let mut host = world.host(HOST).await;
    let mut old = anchor(&host);
    let fields = old.as_object_mut().unwrap();
    fields.insert("v".into(), json!(1));
    for later in ["undo", "sum"] {
        assert!(fields.remove(later).is_some(), "{later}");
    }
    host.annotations_mut().insert("beskar7.io/anchor".into(), old.to_string());
    let stored = world.hosts().replace(HOST, &PostParams::default(), &host).await.unwrap();
    let mut host = stored;
    let record = host.status.as_mut().unwrap().record.as_mut().unwrap();
    let mut remembered: Value = serde_json::from_str(record).unwrap();
    remembered["anchor"] = old;
    *record = remembered.to_string();
    world.hosts().replace_status(HOST, &PostParams::default(), &host).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_anchor_of_format_1_protects_a_running_server_and_is_undone_as_the_cd_boot_that_it_was() {
    let it = situation("format-1-provisioned");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        rewrite_in_format_1(world).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_eq!(anchor(upgrade.stored())["v"], 1);
        upgrade.assert_rests(HOUR).await;
        upgrade.world.release(&upgrade.bmc).await;
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On", "ForceOff"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_anchor_of_format_1_in_the_middle_of_a_preparation_or_a_release_goes_on() {
    let armed = situation("format-1-armed");
    armed
        .record(async |world, bmc| {
            preparing(world, bmc).await;
            rewrite_in_format_1(world).await;
            Value::Null
        })
        .await;
    for upgrade in armed.upgrades().await {
        upgrade.start();
        upgrade.world.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On"]);
        upgrade.world.release(&upgrade.bmc).await;
    }
    let releasing = situation("format-1-releasing");
    releasing
        .record(async |world, bmc| {
            releasing_under_frost(world, bmc).await;
            rewrite_in_format_1(world).await;
            Value::Null
        })
        .await;
    for upgrade in releasing.upgrades().await {
        assert_goes_on_releasing(&upgrade).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_under_maintenance_stays_so_and_is_provisioned_afterwards() {
    let it = situation("parked");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        world.patch_spec(HOST, json!({ "maintenance": { "reason": "fan swap" } })).await;
        world.wait_for_state(HOST, "Maintenance").await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        upgrade.world.patch_spec(HOST, json!({ "maintenance": null })).await;
        upgrade.world.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

/// What no PhysicalHost asks for, but this version knows: a host that is neither watched nor touched.
async fn rewrite_as_detached(world: &World) {
    world.kill_operator().await;
    let mut host = world.host(HOST).await;
    let status = host.status.as_mut().unwrap();
    let mut remembered: Value = serde_json::from_str(status.record.as_ref().unwrap()).unwrap();
    assert_eq!((&remembered["phase"], &remembered["left"]), (&json!("Parked"), &json!("Provisioned")));
    remembered["phase"] = json!("Detached");
    (status.record, status.state) = (Some(remembered.to_string()), Some("Detached".to_owned()));
    world.hosts().replace_status(HOST, &PostParams::default(), &host).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_host_stays_so_until_it_is_let_out() {
    let it = situation("quarantined");
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.annotate(HOST, "beskar7.io/quarantine", Some("smoke")).await;
        world.wait_for_state(HOST, "Quarantined").await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        upgrade.world.annotate(HOST, "beskar7.io/quarantine", None).await;
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_waits_for_the_end_of_the_claim_waits_on_and_ends() {
    let it = situation("deleting");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        world.hosts().delete(HOST, &DeleteParams::default()).await.unwrap();
        world.wait_for_state(HOST, "Deleting").await;
        tokio::time::sleep(MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        upgrade.world.patch_spec(HOST, unclaimed()).await;
        upgrade.world.wait_gone(HOST).await;
        assert_tidy(&upgrade.bmc);
    }
}

#[tokio::test(start_paused = true)]
async fn an_act_that_was_refused_is_tried_again_at_its_time() {
    let refusal = || Effect::RefusesMedia("The image server cannot be resolved.".into()).always();
    let it = situation("media-refused");
    it.record(async |world, bmc| {
        available(world, bmc).await;
        bmc.faults().add(refusal());
        world.patch_spec(HOST, claim("me", ISO)).await;
        let is_slow = |host: &PhysicalHost| {
            let fault = host.status.as_ref().and_then(|status| status.fault.as_ref());
            fault.is_some_and(|fault| fault.reason == "MediaRefused" && fault.count >= Some(4))
        };
        world.wait_until(HOST, "a longer wait", is_slow).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let next = upgrade.stored().status.clone().unwrap().fault.unwrap().next_try.unwrap().0;
        let left = next.duration_since(upgrade.world.clock().now());
        assert!(left > SignedDuration::from_secs(20), "worth the test: {left}");
        upgrade.bmc.faults().add(refusal());
        upgrade.start();
        tokio::time::sleep((left - SignedDuration::from_secs(1)).unsigned_abs()).await;
        upgrade.assert_same().await;
        let tried = || upgrade.bmc.counters().of(Verb::Post, Kind::InsertMedia);
        wait_for("the next try", EVER, async || (tried() > 0).then_some(())).await;
        assert!(upgrade.world.clock().now() <= next + LATE);
        upgrade.bmc.faults().clear();
        upgrade.world.wait_for_state(HOST, "Provisioned").await;
        assert_runs_the_order(&upgrade);
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On"]);
    }
}

fn machine_ref(name: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": name })
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_vanished_before_is_still_no_release() {
    fn with_cluster_api(_: &World, _: &mut Config) {}
    let it = Situation { config: with_cluster_api, ..situation("consumer-mismatch") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        let machine = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Beskar7Machine\nmetadata: {name: m-0, annotations: {beskar7.io/claim-id: first}}\nspec: {imageURL: http://images.test/os.iso}\n";
        world.apply(machine).await;
        world.annotate(HOST, "beskar7.io/claim-id", Some("first")).await;
        let order = json!({ "consumerRef": machine_ref("m-0"), "bootIsoSource": ISO, "claimableWhileRunning": true });
        world.patch_spec(HOST, order).await;
        world.wait_for_state(HOST, "Provisioned").await;
        world.patch_spec(HOST, unclaimed()).await;
        world.wait_for_fault(HOST, "ConsumerMismatch").await;
        tokio::time::sleep(2 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        let order = json!({ "consumerRef": machine_ref("m-0"), "bootIsoSource": ISO });
        upgrade.world.patch_spec(HOST, order).await;
        let host = upgrade.world.wait_until(HOST, "no fault", |host| fault_of(host).is_none()).await;
        assert_eq!(state_of(&host), "Provisioned");
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_nobody_is_taken_off_when_it_would_have_been() {
    let it = situation("consumer-gone");
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.annotate(HOST, "beskar7.io/claim-id", Some("of-old")).await;
        let order = json!({ "consumerRef": machine_ref("node"), "bootIsoSource": ISO });
        world.patch_spec(HOST, order).await;
        world.wait_until(HOST, "nobody to be found", |host| waits_for(host, "ConsumerGone")).await;
        tokio::time::sleep(4 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let since = since(upgrade.stored());
        upgrade.start();
        upgrade.world.wait_until(HOST, "no claim", |host| host.spec.consumer_ref.is_none()).await;
        let waited = upgrade.world.clock().now().duration_since(since);
        let ten = SignedDuration::from_mins(10);
        assert!(waited >= ten && waited <= ten + LATE, "{waited}");
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_power_that_a_release_has_outdated_stays_so() {
    let it = situation("outdated-power");
    it.record(async |world, bmc| {
        world.register(bmc, json!({ "online": true })).await;
        world.wait_for_state(HOST, "Available").await;
        world.provision(bmc).await;
        world.release(bmc).await;
        tokio::time::sleep(5 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert!(anchor(upgrade.stored())["outdated"].is_object());
        upgrade.assert_rests(HOUR).await;
        upgrade.world.annotate(HOST, "beskar7.io/power-request", Some("now")).await;
        let is_on = async || (upgrade.bmc.first().power() == PowerState::On).then_some(());
        wait_for("power", EVER, is_on).await;
        assert_eq!(upgrade.changes(), ["On"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_adopted_is_never_acted_on() {
    let it = situation("adopted");
    it.record(async |world, bmc| {
        world.register(bmc, claim("me", ISO)).await;
        world.wait_for_state(HOST, "Provisioned").await;
        tokio::time::sleep(MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_eq!(anchor(upgrade.stored())["adopted"], true);
        upgrade.assert_rests(HOUR).await;
        assert!(upgrade.logins() > 0, "it was looked at");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_detached_comes_back_without_an_act() {
    let it = situation("detached");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        world.patch_spec(HOST, json!({ "maintenance": { "reason": "fan swap" } })).await;
        world.wait_for_state(HOST, "Maintenance").await;
        rewrite_as_detached(world).await;
        Value::Null
    })
    .await;
    for under_maintenance in [true, false] {
        for upgrade in it.upgrades().await {
            assert_eq!(state_of(upgrade.stored()), "Detached");
            if !under_maintenance {
                upgrade.world.patch_spec(HOST, json!({ "maintenance": null })).await;
            }
            upgrade.start();
            let state = if under_maintenance { "Maintenance" } else { "Provisioned" };
            upgrade.world.wait_for_state(HOST, state).await;
            tokio::time::sleep(HOUR).await;
            let host = upgrade.host().await;
            assert_eq!((state_of(&host).as_str(), upgrade.changes()), (state, Vec::new()));
            for field in ["claim", "deployment", "milestone", "uuid"] {
                assert_eq!(anchor(&host)[field], anchor(upgrade.stored())[field], "{field}");
            }
            upgrade.world.patch_spec(HOST, json!({ "maintenance": null })).await;
            upgrade.world.release(&upgrade.bmc).await;
        }
    }
}

const CERTIFICATE: &str = "the certificate of the BMC";
const OTHER_CERTIFICATE: &str = "a certificate of somebody else";

fn trusting_the_first() -> Value {
    json!({ "redfishConnection": { "trustOnFirstUse": true } })
}

/// A provisioned host whose BMC's certificate was pinned on first use.
async fn pinned(world: &World, bmc: &sim::Bmc) {
    world.show_certificate(HOST, CERTIFICATE);
    world.register(bmc, trusting_the_first()).await;
    world.wait_for_state(HOST, "Available").await;
    world.provision(bmc).await;
    tokio::time::sleep(5 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_was_pinned_on_first_use_stays_pinned() {
    let it = situation("pinned");
    it.record(async |world, bmc| {
        pinned(world, bmc).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let pin = upgrade.world.show_certificate(HOST, CERTIFICATE);
        assert_eq!(anchor(upgrade.stored())["pin"], pin.to_hex());
        upgrade.assert_rests(HOUR).await;
        assert!(upgrade.logins() > 0, "it was looked at");
        upgrade.world.release(&upgrade.bmc).await;
        assert_eq!(anchor(&upgrade.host().await)["pin"], pin.to_hex());
    }
    for upgrade in it.upgrades().await {
        let other = upgrade.world.show_certificate(HOST, OTHER_CERTIFICATE);
        upgrade.start();
        let host = upgrade.world.wait_for_fault(HOST, "CertificateChanged").await;
        tokio::time::sleep(HOUR).await;
        assert_eq!((state_of(&host).as_str(), upgrade.bmc.counters().total()), ("Provisioned", 0));
        assert_eq!(anchor(&upgrade.host().await)["pin"], anchor(upgrade.stored())["pin"], "not pinned anew");
        let trusted = json!({ "redfishConnection": { "certificateFingerprint": other.to_hex() } });
        upgrade.world.patch_spec(HOST, trusted).await;
        upgrade.world.wait_until(HOST, "recovery", |host| fault_of(host).is_none()).await;
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_was_refused_before_is_still_refused() {
    let it = situation("certificate-changed");
    it.record(async |world, bmc| {
        pinned(world, bmc).await;
        world.show_certificate(HOST, OTHER_CERTIFICATE);
        world.stop_operator().await;
        it.start(world);
        world.wait_for_fault(HOST, "CertificateChanged").await;
        tokio::time::sleep(3 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.world.show_certificate(HOST, OTHER_CERTIFICATE);
        upgrade.assert_rests(HOUR).await;
        assert_eq!(upgrade.bmc.counters().total(), 0, "nothing is said to a stranger");
        upgrade.world.show_certificate(HOST, CERTIFICATE);
        upgrade.world.wait_until(HOST, "recovery", |host| fault_of(host).is_none()).await;
        assert_eq!((state_of(&upgrade.host().await).as_str(), upgrade.changes()), ("Provisioned", Vec::new()));
    }
}

/// Where images come from in this situation. Image URLs are part of what is stored.
const IMAGES: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 77, 7, 7), 17_077);
/// The address of the boot service that BMCs and servers were given.
const BOOT_URL: &str = "http://boot.test:8082";

/// Serves images; waits for whoever runs the same test on this machine.
async fn images() -> (WebServer, String) {
    let depot = wait_ok("the address of the images", MINUTE, async || WebServer::start_at(IMAGES)).await;
    let image = depot.put("os.iso", build_menu_iso(MENU));
    (depot, image)
}

/// A boot service behind that URL, and where it really is.
fn boot_service() -> (BootConfig, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let guard = Guard::allowing(["127.0.0.0/8".parse().unwrap()]);
    let config = BootConfig {
        network: None,
        links: Links::new(BOOT_URL).unwrap(),
        listener: Arc::new(listener),
        tls: None,
        fetcher: Fetcher::new(guard, None, Patience::default()).unwrap(),
        key_namespace: "racks".to_owned(),
    };
    (config, format!("http://{address}"))
}

async fn serve(world: &World) -> String {
    let (boot, address) = boot_service();
    world.stop_operator().await;
    world.start_operator_with(world.clock(), |config| {
        config.cluster_api = false;
        config.boot = Some(boot);
    });
    address
}

/// In the time of the wall: sockets have no other.
#[tokio::test]
async fn tickets_that_were_issued_before_open_the_same_and_a_boot_session_counts_on() {
    let (_images, image) = images().await;
    let it = situation("tickets");
    it.record(async |world, bmc| {
        let address = serve(world).await;
        available(world, bmc).await;
        world.create_bootstrap_data("data", "hostname=one").await;
        let mut order = claim("me", &image);
        order["remoteConfig"] = json!({ "osFamily": "talos" });
        order["userDataSecretRef"] = json!({ "name": "data" });
        world.patch_spec(HOST, order).await;
        world.wait_for_state(HOST, "Provisioned").await;
        let image = bmc.first().media().unwrap().to_owned();
        let config = trials::served::config_url(&image.replace(BOOT_URL, &address)).await;
        assert_eq!(get(SERVER, &config.replace(BOOT_URL, &address)).await.status(), StatusCode::OK);
        world.wait_until(HOST, "who fetched", |host| condition(host, "BootServed").0 == "True").await;
        json!({ "image": image, "config": config })
    })
    .await;
    for upgrade in it.upgrades().await {
        let url = |name: &str, address: &str| upgrade.notes[name].as_str().unwrap().replace(BOOT_URL, address);
        assert_eq!(upgrade.bmc.first().media(), upgrade.notes["image"].as_str());
        let sessions = upgrade.world.sessions().await;
        assert_eq!(sessions.len(), 1);
        let address = serve(&upgrade.world).await;
        wait_for("the boot service", MINUTE, async || {
            (get(SERVER, &url("image", &address)).await.status() == StatusCode::OK).then_some(())
        })
        .await;
        let line = trials::served::kernel_line(&url("image", &address)).await;
        assert!(line.contains(upgrade.notes["config"].as_str().unwrap()), "{line}");
        let data = get(SERVER, &url("config", &address)).await;
        assert_eq!((data.status(), data.body().as_ref()), (StatusCode::OK, &b"hostname=one"[..]));
        let stranger = Ipv4Addr::new(127, 0, 0, 6);
        assert_eq!(
            get(stranger, &url("config", &address)).await.status(),
            StatusCode::NOT_FOUND,
            "who was first counts"
        );
        wait_for("a look at the server", MINUTE, async || (upgrade.logins() > 0).then_some(())).await;
        let host = upgrade.host().await;
        for field in ["claim", "deployment", "milestone"] {
            assert_eq!(anchor(&host)[field], anchor(upgrade.stored())[field], "{field}");
        }
        assert_eq!((state_of(&host), upgrade.changes().len()), ("Provisioned".to_owned(), 0));
        assert_eq!(upgrade.world.sessions().await[0].name_any(), sessions[0].name_any());
    }
}
