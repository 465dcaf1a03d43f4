//! Whom to believe that it is the BMC, over real sockets.

use serde_json::{Value, json};
use sim::{Fleet, PowerState, ServeSpec, Serving};
use trials::world::{Hurry, World, anchor, assert_told, claim, condition, instant_bmc, is_well, state_of};

const ISO: &str = "http://images.test/os.iso";

/// A BMC behind a socket on loopback.
async fn serve(name: &str, tls: bool, port: u16) -> Serving {
    let spec = ServeSpec { tls, base_port: port, ..ServeSpec::default() };
    Fleet::from_bmcs(vec![instant_bmc(name)]).serve(spec).await.unwrap()
}

fn url(serving: &Serving) -> String {
    serving.endpoints()[0].url()
}

fn fingerprint(serving: &Serving) -> String {
    serving.endpoints()[0].certificate().unwrap().fingerprint()
}

/// A connection with these settings and no others that decide on trust.
fn trusting(address: &str, trust: &Value) -> Value {
    let mut connection = json!({
        "address": address,
        "insecureSkipVerify": null,
        "caBundleSecretRef": null,
        "certificateFingerprint": null,
        "trustOnFirstUse": null,
    });
    connection.as_object_mut().unwrap().extend(trust.as_object().unwrap().clone());
    json!({ "redfishConnection": connection })
}

async fn world(prefix: &str) -> World {
    let world = World::quiet(prefix).await;
    world.create_secret("bmc", "admin", "password").await;
    world
}

#[tokio::test]
async fn an_unknown_certificate_is_shown_ready_to_be_pinned() {
    let world = world("untrusted").await;
    world.start_operator();
    let serving = serve("server-01", true, 0).await;
    world.create_host("server-01", trusting(&url(&serving), &json!({}))).await;
    let host = world.wait_for_fault("server-01", "CertificateUntrusted").await;
    let pin = format!("sha256:{}", fingerprint(&serving));
    assert_told(&host, "CertificateUntrusted", &[&url(&serving), &pin, "certificateFingerprint"]);
    assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), "CertificateUntrusted".into()));
    assert_eq!(serving.endpoints()[0].bmc().counters().total(), 0, "nothing is said to a stranger");

    world.patch_spec("server-01", trusting(&url(&serving), &json!({ "certificateFingerprint": pin }))).await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
    // Other ways to trust, on a host that works already, change nothing for its user.
    world.patch_spec("server-01", trusting(&url(&serving), &json!({ "insecureSkipVerify": true }))).await;
    world.annotate("server-01", "beskar7.io/inspect", Some("again")).await;
    world
        .wait_until("server-01", "the inventory to be taken again", |host| {
            host.status
                .as_ref()
                .is_some_and(|s| s.record.as_ref().is_some_and(|r| r.contains(r#""inspection":"again""#)))
        })
        .await;
    assert!(is_well(&world.host("server-01").await));
}

#[tokio::test]
async fn a_ca_bundle_is_believed_and_a_bad_one_is_told() {
    let world = world("ca-bundle").await;
    world.start_operator();
    let serving = serve("server-01", true, 0).await;
    let bundle = json!({ "caBundleSecretRef": { "name": "our-ca" } });
    world.create_host("server-01", trusting(&url(&serving), &bundle)).await;
    let secret = format!("{}/our-ca", world.namespace);
    let host = world.wait_for_fault("server-01", "SecretNotFound").await;
    assert_told(&host, "SecretNotFound", &[&secret, "caBundleSecretRef", "Create it"]);

    let store = async |data: Value| {
        let secret =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "our-ca" }, "stringData": data });
        world.apply(&secret.to_string()).await;
    };
    store(json!({ "wrong-key": "x" })).await;
    let host = world.wait_for_fault("server-01", "MissingSecretData").await;
    assert_told(&host, "MissingSecretData", &[&secret, "ca.crt"]);
    store(json!({ "ca.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" })).await;
    let host = world.wait_for_fault("server-01", "TrustInvalid").await;
    assert_told(&host, "TrustInvalid", &["CA bundle", &secret]);
    // An authority, but another one.
    let other = sim::Certificate::self_signed("other", [127, 0, 0, 1].into()).unwrap();
    store(json!({ "ca.crt": other.pem() })).await;
    world.wait_for_fault("server-01", "CertificateUntrusted").await;

    store(json!({ "ca.crt": serving.endpoints()[0].certificate().unwrap().pem() })).await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
}

#[tokio::test]
async fn a_certificate_that_was_pinned_on_first_use_must_not_change() {
    let world = world("first-use").await;
    world.start_operator();
    let serving = serve("server-01", true, 0).await;
    let bmc = serving.endpoints()[0].bmc();
    let first = fingerprint(&serving);
    world.create_host("server-01", trusting(&url(&serving), &json!({ "trustOnFirstUse": true }))).await;
    world.wait_for_state("server-01", "Available").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    let host = world.wait_for_state("server-01", "Provisioned").await;
    assert_eq!(anchor(&host)["pin"], json!(first));
    let (resets, boots) = (bmc.first().resets, bmc.first().boots);

    // A new process knows the pin from the anchor, whatever became of the status.
    world.stop_operator().await;
    serving.endpoints()[0].rotate_certificate().unwrap();
    let second = fingerprint(&serving);
    bmc.reset_counters();
    world.start_operator_with(Hurry::by(20), |_| {});
    let host = world.wait_for_fault("server-01", "CertificateChanged").await;
    let advice = format!("certificateFingerprint: sha256:{second}");
    assert_told(&host, "CertificateChanged", &[&format!("pinned is sha256:{first}"), &advice]);
    assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), "CertificateChanged".into()));
    assert_eq!((state_of(&host).as_str(), &anchor(&host)["pin"]), ("Provisioned", &json!(first)));
    assert_eq!(bmc.counters().total(), 0, "nothing is said to a stranger");

    world.patch_spec("server-01", trusting(&url(&serving), &json!({ "certificateFingerprint": second }))).await;
    let host = world.wait_until("server-01", "recovery", is_well).await;
    assert_eq!(state_of(&host), "Provisioned");
    assert_eq!((bmc.first().power(), bmc.first().resets, bmc.first().boots), (PowerState::On, resets, boots));
}

#[tokio::test]
async fn whoever_skips_verification_gets_in_and_is_not_bothered_by_a_new_certificate() {
    let world = world("skip-verify").await;
    world.start_operator();
    let serving = serve("server-01", true, 0).await;
    world.create_host("server-01", trusting(&url(&serving), &json!({ "insecureSkipVerify": true }))).await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert_eq!(anchor(&host).get("pin"), None, "nobody asked for a pin");
    world.stop_operator().await;
    serving.endpoints()[0].rotate_certificate().unwrap();
    world.start_operator();
    world.annotate("server-01", "beskar7.io/inspect", Some("again")).await;
    let shows = |host: &api::beskar7::PhysicalHost| {
        let details = host.status.as_ref().and_then(|status| status.hardware_details.clone()).unwrap().unpack();
        details
            .bmc
            .and_then(|bmc| bmc.certificate_fingerprint)
            .is_some_and(|shown| shown.contains(&fingerprint(&serving)))
    };
    let host = world.wait_until("server-01", "the new certificate to be shown", shows).await;
    assert!(is_well(&host), "{:?}", host.status);
}

#[tokio::test]
async fn tls_and_plain_http_in_each_others_place_get_a_sentence() {
    let world = world("mixed-up").await;
    world.start_operator_with(Hurry::by(20), |_| {});
    let (plain, secure) = (serve("plain", false, 0).await, serve("secure", true, 0).await);
    world.create_host("plain", trusting(&url(&plain).replace("http:", "https:"), &json!({}))).await;
    world.create_host("secure", trusting(&url(&secure).replace("https:", "http:"), &json!({}))).await;
    let host = world.wait_for_fault("plain", "NotRedfish").await;
    assert_told(&host, "NotRedfish", &["does not speak TLS", "write http://"]);
    let host = world.wait_for_fault("secure", "NotRedfish").await;
    assert_told(&host, "NotRedfish", &["does not speak HTTP", "write https://"]);

    // What the sentences advise works.
    world.patch_spec("plain", trusting(&url(&plain), &json!({}))).await;
    world.patch_spec("secure", trusting(&url(&secure), &json!({ "insecureSkipVerify": true }))).await;
    for name in ["plain", "secure"] {
        let host = world.wait_for_state(name, "Available").await;
        assert!(is_well(&host), "{:?}", host.status);
    }
}

#[tokio::test]
async fn a_bmc_that_is_not_there_yet_is_found_when_it_comes() {
    let world = world("refused").await;
    world.start_operator();
    let port = testkit::free_port();
    world.create_host("server-01", trusting(&format!("http://127.0.0.1:{port}"), &json!({}))).await;
    let host = world.wait_for_fault("server-01", "Unreachable").await;
    assert_told(&host, "Unreachable", &[&format!("http://127.0.0.1:{port}"), "was refused"]);
    assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), "Unreachable".into()));
    let _serving = serve("server-01", false, port).await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
}
