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
use tokio::sync::mpsc;

use crate::definition::Fitness;
use crate::object::{Object, ObjectId};
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

    /// An object was decided on.
    fn decided(&self, _is_ok: bool) {}

    /// Nothing may be done to an object for now: whatever is under way for it ends.
    fn halt(&self, _: &ObjectId) {}

    /// Something may be done to an object again; it is decided on after that.
    fn resume(&self, _: &ObjectId) {}
}

/// What all decisions of a loop share.
struct Context<L> {
    work: Arc<L>,
    fitness: Fitness,
}

/// Runs a loop for as long as it is polled. What the watch shows is taken in at all times; it is decided on only while the definition
/// is fit.
pub(crate) async fn drive<L: Loop>(
    work: Arc<L>,
    api: Api<DeserializeGuard<L::Object>>,
    config: watcher::Config,
    woken: impl Stream<Item = ObjectRef<L::Object>> + Send + 'static,
    fitness: Fitness,
) {
    let (store, writer) = reflector::store();
    work.count(store.clone());
    let bystander = work.clone();
    let stream = watches::follow(api, config, move |change| bystander.take(&change)).reflect(writer).applied_objects();
    let (resume, mut resumed) = mpsc::unbounded_channel();
    let context = Arc::new(Context { work, fitness });
    let decide = Controller::for_stream(stream, store.clone())
        .with_config(controller::Config::default().concurrency(DECISIONS_AT_ONCE))
        .reconcile_on(woken)
        .reconcile_all_on(futures::stream::poll_fn(move |context| resumed.poll_recv(context)))
        .run(reconcile, |_, error, _| Action::requeue(error.pause()), context.clone())
        .for_each(|_| std::future::ready(()));
    futures::join!(decide, context.follow_fitness(&store, &resume));
}

impl<L: Loop> Context<L> {
    async fn follow_fitness(&self, store: &Store<L::Object>, resume: &mpsc::UnboundedSender<()>) {
        loop {
            self.fitness.becomes(true).await;
            store.state().iter().for_each(|object| self.work.resume(&ObjectId::of(object.as_ref())));
            // Nobody listens any more only when the loop has stopped.
            resume.send(()).ok();
            self.fitness.becomes(false).await;
            store.state().iter().for_each(|object| self.work.halt(&ObjectId::of(object.as_ref())));
        }
    }
}

async fn reconcile<L: Loop>(object: Arc<L::Object>, context: Arc<Context<L>>) -> Result<Action, WriteError> {
    let Context { work, fitness } = &*context;
    if !fitness.is_fit() {
        return Ok(Action::await_change());
    }
    let started = tokio::time::Instant::now();
    let result = tokio::select! {
        biased;
        // As if the process had ended here.
        () = fitness.becomes(false) => return Ok(Action::await_change()),
        result = work.decide(object) => result,
    };
    work.writer().count_decision(result.is_ok(), started.elapsed());
    work.decided(result.is_ok());
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
        let (client, ours) = (server(), Ownership { manager: "witness", conditions: &[], left_behind: &[] });
        let writer = Writer::new(client.clone(), Metrics::default(), "witness", ours);
        let witness = Arc::new(Witness { gone: Mutex::default(), writer });
        let api = crate::object::api(&client, None);
        let (_, fitness) = Fitness::new(false);
        let driven = drive(witness.clone(), api, watcher::Config::default(), futures::stream::pending(), fitness);
        tokio::time::timeout(Duration::from_mins(2), driven).await.unwrap_err();
        // Once each, however often it is listed; a namesake before the new one is looked at.
        assert_eq!(*witness.gone.lock().unwrap(), ["lab/c 3", "lab/b 2"]);
    }
}
