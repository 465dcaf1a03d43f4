//! A host that goes while it is decided on.

use std::sync::Mutex;
use std::time::Duration;

use api::beskar7::PhysicalHost;
use axum::Router;
use axum::response::IntoResponse as _;
use bmc::{InProcess, Transport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::beskar7::PhysicalHosts;
use crate::clock::TokioClock;
use crate::companions::Companions;
use crate::dialect::HostDialect as _;
use crate::drive::Loop as _;
use crate::host::HostLoop;
use crate::marks::Marks;
use crate::object::ObjectId;
use crate::relatives::Related;
use crate::vault::Vault;
use crate::watches::Change;
use crate::writer::Writer;

/// How long a Secret takes to be read.
const READ: Duration = Duration::from_secs(2);

/// An API server with one host and its Secret.
#[derive(Clone)]
struct Site(Arc<Mutex<Value>>);

impl Site {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "PhysicalHost",
            "metadata": { "name": "host", "namespace": "racks", "uid": "1", "resourceVersion": "1" },
            "spec": { "redfishConnection": { "address": "https://host", "credentialsSecretRef": "bmc" } },
        }))))
    }

    fn host(&self) -> PhysicalHost {
        serde_json::from_value(self.0.lock().unwrap().clone()).unwrap()
    }

    fn client(&self) -> Client {
        let site = self.clone();
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let site = site.clone();
            async move {
                if request.uri().path().contains("/secrets/") {
                    tokio::time::sleep(READ).await;
                    // "admin" and "password" in base64.
                    return axum::Json(json!({
                        "metadata": { "name": "bmc", "namespace": "racks", "uid": "2", "resourceVersion": "1" },
                        "data": { "username": "YWRtaW4=", "password": "cGFzc3dvcmQ=" },
                    }))
                    .into_response();
                }
                if request.method() != http::Method::PATCH {
                    return http::StatusCode::NOT_FOUND.into_response();
                }
                let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
                let patch: Value = serde_json::from_slice(&body).unwrap_or_default();
                let mut host = site.0.lock().unwrap();
                let version: u64 = host["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                merge(&mut host, &patch);
                host["metadata"]["resourceVersion"] = json!((version + 1).to_string());
                axum::Json(host.clone()).into_response()
            }
        });
        Client::new(router, "racks")
    }
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

fn host_loop(site: &Site, bmc: &sim::Bmc) -> (Arc<HostLoop<PhysicalHosts>>, mpsc::UnboundedReceiver<ObjectId>) {
    let (client, metrics) = (site.client(), Metrics::default());
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at("2026-11-17T08:00:00Z".parse().unwrap()));
    let (wake, woken) = mpsc::unbounded_channel();
    let bmc = bmc.clone();
    let dial: Dial = Arc::new(move |_, _| Ok(Arc::new(InProcess::new(bmc.clone())) as Arc<dyn Transport>));
    let observer = Arc::new(metrics.clone());
    let hands = Hands::new(dial, observer, metrics.clone(), clock.clone(), 4, wake, &CancellationToken::new());
    let mut vault = Vault::new(client.clone());
    vault.keep::<Secret>(kube::runtime::reflector::store().0);
    let herald = Arc::new(Herald::new(client.clone()));
    let hosts = HostLoop {
        index: Arc::default(),
        dependents: Arc::default(),
        related: Related::default(),
        companions: Companions::new(client.clone(), metrics.clone(), "beskar7", "beskar7"),
        marks: Marks::new(vault.clone(), Arc::default(), herald.clone(), metrics.clone(), "beskar7"),
        vault,
        hands,
        brake: Arc::new(Brake::new(BrakeConfig::default())),
        clock,
        writer: Writer::new(client.clone(), metrics.clone(), "beskar7", PhysicalHosts::OURS),
        metrics,
        herald,
        roster: Arc::default(),
        cluster_api: false,
        depot: None,
        sessions: Arc::default(),
        settings: Arc::default(),
        client,
    };
    (Arc::new(hosts), woken)
}

/// A host that is registered and at rest.
async fn registered(site: &Site, bmc: &sim::Bmc) -> Arc<HostLoop<PhysicalHosts>> {
    let (hosts, mut woken) = host_loop(site, bmc);
    hosts.take(&Change::Seen(&site.host()));
    loop {
        hosts.decide(Arc::new(site.host())).await.unwrap();
        let state = site.host().status.and_then(|status| status.state);
        if tokio::time::timeout(Duration::from_secs(5), woken.recv()).await.is_err() {
            assert_eq!(state.as_deref(), Some("Available"));
            assert_eq!(bmc.sessions_open(), 1);
            return hosts;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_is_begun_before_its_host_is_gone_opens_no_session_afterwards() {
    // The watch shows the end before the reconcile is polled at all, while it reads a Secret, and after it.
    for after in [0, 1, 3] {
        let (site, bmc) = (Site::new(), sim::Bmc::instant());
        let hosts = registered(&site, &bmc).await;
        // The line is to be opened anew, as after another password.
        hosts.hands.forget(&ObjectId::of(&site.host()));
        hosts.hands.welcome(&ObjectId::of(&site.host()));
        let reconcile = hosts.decide(Arc::new(site.host()));
        let deletion = async {
            tokio::time::sleep(Duration::from_secs(after)).await;
            hosts.take(&Change::Gone(ObjectId::of(&site.host())));
        };
        futures::pin_mut!(reconcile, deletion);
        // In this order.
        let ((), _) = futures::join!(deletion, reconcile);
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(bmc.sessions_open(), 0, "gone after {after} s");
    }
}
