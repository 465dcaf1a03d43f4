//! What all loops over objects have in common: a watch, wake-ups, and a retry after an error.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::Api;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher;

use crate::object::Object;
use crate::watches::{self, Change};
use crate::writer::{WriteError, Writer};

/// How many objects are reconciled at once. Each takes milliseconds, most of them in writes to the API server.
const DECISIONS_AT_ONCE: u16 = 12;

/// A loop over the objects of one kind.
pub(crate) trait Loop: Send + Sync + 'static {
    /// The resource.
    type Object: Object;

    /// What writes its objects.
    fn writer(&self) -> &Writer<Self::Object>;

    /// Reconciles one object, and returns when to do so again if nothing changes before. Takes milliseconds.
    fn decide(&self, object: Arc<Self::Object>) -> impl Future<Output = Result<Option<Duration>, WriteError>> + Send;

    /// Handles what the watch shows, before the object is reconciled.
    fn take(&self, change: &Change<'_, Self::Object>) {
        if let Change::Gone(id) = change {
            self.writer().forget(id);
        }
    }

    /// What metrics are counted from: the watch's own store, so that they cannot drift.
    fn count(&self, _: Store<Self::Object>) {}
}

/// Runs a loop for as long as it is polled.
pub(crate) async fn drive<L: Loop>(
    work: Arc<L>,
    api: Api<DeserializeGuard<L::Object>>,
    config: watcher::Config,
    woken: impl Stream<Item = ObjectRef<L::Object>> + Send + 'static,
) {
    let (store, writer) = reflector::store();
    work.count(store.clone());
    let bystander = work.clone();
    let stream = watches::follow(api, config, move |change| bystander.take(&change)).reflect(writer).applied_objects();
    Controller::for_stream(stream, store)
        .with_config(controller::Config::default().concurrency(DECISIONS_AT_ONCE))
        .reconcile_on(woken)
        .run(reconcile, |_, error, _| Action::requeue(error.pause()), work)
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile<L: Loop>(object: Arc<L::Object>, work: Arc<L>) -> Result<Action, WriteError> {
    let started = tokio::time::Instant::now();
    let result = work.decide(object).await;
    work.writer().count_decision(result.is_ok(), started.elapsed());
    result.map(|again| again.map_or_else(Action::await_change, Action::requeue))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use api::beskar7::Beskar7Machine;
    use axum::Router;
    use axum::response::IntoResponse as _;
    use kube::Client;
    use serde_json::json;

    use super::*;
    use crate::metrics::Metrics;
    use crate::writer::Ownership;

    /// A loop that only remembers what it is shown.
    struct Witness {
        gone: Mutex<Vec<String>>,
        writer: Writer<Beskar7Machine>,
    }

    impl Loop for Witness {
        type Object = Beskar7Machine;

        fn writer(&self) -> &Writer<Beskar7Machine> {
            &self.writer
        }

        async fn decide(&self, _: Arc<Beskar7Machine>) -> Result<Option<Duration>, WriteError> {
            Ok(None)
        }

        fn take(&self, change: &Change<'_, Beskar7Machine>) {
            if let Change::Gone(id) = change {
                self.gone.lock().unwrap().push(format!("{id} {}", id.uid.as_deref().unwrap()));
            }
        }
    }

    /// An API server whose watches are too old at once, and whose second list has lost a machine and has another one under an old name.
    fn server() -> Client {
        let lists = Arc::new(AtomicUsize::new(0));
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let lists = lists.clone();
            async move {
                if request.uri().query().unwrap_or_default().contains("watch=") {
                    let status = json!({ "status": "Failure", "reason": "Expired", "message": "too old", "code": 410 });
                    return axum::Json(json!({ "type": "ERROR", "object": status })).into_response();
                }
                let first = lists.fetch_add(1, Ordering::Relaxed) == 0;
                let shown = if first { vec![("a", "1"), ("b", "2"), ("c", "3")] } else { vec![("a", "1"), ("c", "4")] };
                let machine = |(name, uid): (&str, &str)| {
                    json!({
                        "metadata": { "name": name, "namespace": "lab", "uid": uid, "resourceVersion": "5" },
                        "spec": { "imageURL": "http://a/b.iso" },
                    })
                };
                let items: Vec<_> = shown.into_iter().map(machine).collect();
                axum::Json(json!({ "metadata": { "resourceVersion": "5" }, "items": items })).into_response()
            }
        });
        Client::new(router, "lab")
    }

    #[tokio::test(start_paused = true)]
    async fn claims_that_went_while_the_watch_was_interrupted_are_told_as_gone() {
        let (client, ours) = (server(), Ownership { manager: "witness", conditions: &[] });
        let writer = Writer::new(client.clone(), Metrics::default(), "witness", ours);
        let witness = Arc::new(Witness { gone: Mutex::default(), writer });
        let api = crate::object::api(&client, None);
        let driven = drive(witness.clone(), api, watcher::Config::default(), futures::stream::pending());
        tokio::time::timeout(Duration::from_mins(2), driven).await.unwrap_err();
        // Once each, however often it is listed; a namesake before the new one is looked at.
        assert_eq!(*witness.gone.lock().unwrap(), ["lab/c 3", "lab/b 2"]);
    }
}
