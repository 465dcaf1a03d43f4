//! What must not be shown.

use std::io;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use sim::{Credentials, Effect, FaultBody, Kind, Verb};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use trials::world::{World, assert_told, spec};

#[tokio::test]
async fn credentials_are_shown_nowhere() {
    let (user, wrong, right) = ("op-Kx7wq2", "wrong-Zt5vb9Lm", "right-Hj3nd8Pq");
    let log = Log::capture("hush-hush");
    let world = World::new("hush-hush").await;
    let mut plan = spec("server-01").timing(sim::Timing::INSTANT);
    plan.credentials = Credentials::new(user, right);
    let bmc = sim::Bmc::new(plan);
    // A BMC may quote what it was sent.
    let quote = json!({ "error": { "@Message.ExtendedInfo": [{
        "MessageId": "Base.1.8.PropertyValueError", "Message": format!("The value {wrong} of Password is wrong."),
    }] } });
    let quotes = Effect::Status { code: 401, body: FaultBody::Json(quote.to_string()) }.always();
    bmc.faults().add(quotes.kind(Kind::Sessions).method(Verb::Post).times(1));
    let serving = sim::Fleet::from_bmcs(vec![bmc.clone()]).serve(sim::ServeSpec::default()).await.unwrap();
    let connection = json!({ "address": serving.endpoints()[0].url(), "insecureSkipVerify": true });
    world.create_secret("bmc", user, wrong).await;
    world.create_host("server-01", json!({ "redfishConnection": connection })).await;
    let host = world.wait_for_fault("server-01", "AuthenticationFailed").await;
    assert_told(&host, "AuthenticationFailed", &["[password]"]);
    let mut shown = serde_json::to_string(&host).unwrap();
    world.create_secret("bmc", user, right).await;
    world.wait_for_state("server-01", "Available").await;
    // Without a session, Basic: the password goes over the wire each time.
    bmc.drop_sessions();
    world.annotate("server-01", "beskar7.io/inspect", Some("again")).await;
    world.wait_for_event_of("server-01", "Inspected").await;
    world.stop_operator().await;
    shown += &serde_json::to_string(&world.host("server-01").await).unwrap();
    let events: Api<Event> = Api::namespaced(world.admin(), &world.namespace);
    shown += &serde_json::to_string(&events.list(&ListParams::default()).await.unwrap().items).unwrap();
    let logged = log.text();
    assert!(logged.contains("server-01") && logged.contains("AuthenticationFailed"), "{logged}");
    shown += &logged;
    let endpoint = bmc::Endpoint {
        address: "https://server-01".parse().unwrap(),
        credentials: bmc::Credentials::new(user, right),
        family: None,
    };
    shown.extend([format!("{endpoint:?}"), format!("{:?}", endpoint.credentials)]);
    let encoded = [format!("{user}:{wrong}"), format!("{user}:{right}")].map(|pair| base64(pair.as_bytes()));
    for secret in [user, wrong, right, &encoded[0], &encoded[1]] {
        if let Some(at) = shown.find(secret) {
            let from = shown.floor_char_boundary(at.saturating_sub(300));
            panic!("{secret} is shown: {}", &shown[from..shown.ceil_char_boundary(at + 100)]);
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap().as_str().unwrap().to_owned()
}

/// Everything that is logged, down to the last detail, by one operator.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Operators run on threads that are called after their namespace. There can be one such log in a process.
    fn capture(thread: &'static str) -> Self {
        let log = Self::default();
        let writer = log.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let ours = move || std::thread::current().name().is_some_and(|name| name.starts_with(thread));
        let subscriber = tracing_subscriber::registry().with(layer.with_filter(dynamic_filter_fn(move |_, _| ours())));
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
