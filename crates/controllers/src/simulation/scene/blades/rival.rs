//! The operator that was there before: as long as it holds its Lease, nothing is done.

use axum::Router;
use axum::response::IntoResponse as _;
use http::StatusCode;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use tower_service::Service as _;

use super::*;
use crate::clock::Clock as _;
use crate::simulation::whole::wire::Wire;

const LEASE: &str = "rack-operator";

impl Scene {
    fn leases(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// Somebody takes the Lease, or renews it.
    async fn hold(&self, namespace: &str, span: Duration) {
        let renewed = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let spec = json!({"holderIdentity": "them", "renewTime": renewed, "leaseDurationSeconds": span.as_secs()});
        let metadata = json!({"name": LEASE});
        let lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
        let params = PatchParams::apply("them").force();
        self.leases(namespace).patch(LEASE, &params, &Patch::Apply(lease)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_while_the_operator_before_us_holds_its_lease() {
    let mut scene = prepared(&["server-0", "server-1"]).await;
    scene.hold("kube-system", Duration::from_mins(5)).await;
    scene.add_key("password").await;
    scene.add_console("server-0").await;
    scene.add::<Blade>("server-0", json!({"console": "server-0"})).await;
    scene.add_host_as("server-1", json!({})).await;
    let shown = |scene: &Scene| {
        [scene.object::<Blade>("server-0"), scene.object::<Console>("server-0"), scene.object::<Key>("all")]
    };
    let before = shown(&scene);
    start(&mut scene);
    // Other dialects go on.
    scene.until_state("server-1", "Available").await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(shown(&scene), before);
    let events = Api::<Event>::all(scene.admin.clone()).list(&ListParams::default()).await.unwrap();
    let told = events.items.iter().filter(|event| event.reason.as_deref() == Some("OtherOperatorRuns"));
    let notes: Vec<_> = told.filter_map(|event| event.note.as_deref()).collect();
    assert_eq!(
        notes,
        [
            "Lease rack-operator in namespace kube-system is held by them: another operator looks after blades. Stop it (scale its Deployment to 0); this is checked every 10 s. Nothing is done to the host until then."
        ]
    );

    // It has expired.
    let until = scene.clock.now() + SignedDuration::from_mins(4);
    scene.until_blade("server-0", "state", "Available").await;
    assert!(scene.clock.now() < until);

    // It comes back.
    scene.hold("kube-system", Duration::from_hours(1)).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    scene.add::<Permit>("let-it", json!({"blade": "server-0"})).await;
    scene.order("server-0").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.object::<Blade>("server-0")["status"]["state"], "Available");
    assert_eq!(scene.servers.server("server-0").power(), PowerState::Off);

    // It is stopped, and clears up behind itself.
    scene.leases("kube-system").delete(LEASE, &DeleteParams::default()).await.unwrap();
    let took = scene.until("it is on", |scene| scene.servers.server("server-0").power() == PowerState::On).await;
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_operator_of_one_namespace_looks_for_the_lease_there() {
    let mut scene = prepared(&["server-0"]).await;
    let others = scene.server.router();
    let confined = Router::new().fallback(move |request: axum::extract::Request| {
        let mut others = others.clone();
        async move {
            if request.uri().path() == "/apis/coordination.k8s.io/v1/leases" {
                let status = json!({"status": "Failure", "reason": "Forbidden", "message": "no", "code": 403});
                return (StatusCode::FORBIDDEN, axum::Json(status)).into_response();
            }
            others.call(request).await.into_response()
        }
    });
    scene.wire = Wire::new(confined);
    scene.hold(NAMESPACE, Duration::from_mins(2)).await;
    scene.start(|config| config.dialects = vec![Dialect::Blades]);
    scene.add_key("password").await;
    scene.add_console("server-0").await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(scene.object::<Console>("server-0")["status"], Value::Null);
    scene.until_blade("server-0", "state", "Available").await;
}
