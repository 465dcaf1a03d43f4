//! How objects are watched.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::object::{self, KindId, Object, ObjectId, Reach};

/// Which objects are looked after.
#[derive(Clone)]
pub(crate) struct Selection {
    pub(crate) client: Client,
    /// Only those of this namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    /// Only those whose watch-filter label has this value.
    pub(crate) filter: Option<String>,
}

impl Selection {
    /// Where the objects of a kind are asked for.
    pub(crate) fn api<K: Resource<DynamicType = (), Scope: Reach>>(&self) -> Api<K> {
        object::api(&self.client, self.namespace.as_deref())
    }

    /// How they are watched.
    pub(crate) fn watch(&self) -> watcher::Config {
        let config = watcher::Config::default();
        match &self.filter {
            Some(filter) => config.labels(&format!("{}={filter}", api::capi::WATCH_FILTER_LABEL)),
            None => config,
        }
    }
}

/// Unused fields are removed: with thousands of objects they would fill the memory.
fn drop_ballast(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// An object that cannot be read must not hide all others.
fn readable<H: std::fmt::Debug>(event: Event<DeserializeGuard<H>>) -> Option<Event<H>> {
    let read = |object: DeserializeGuard<H>| {
        object
            .0
            .inspect_err(
                |object| warn!(name = object.metadata.name, error = %object.error, "object cannot be read, ignored"),
            )
            .ok()
    };
    Some(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(read(object)?),
        Event::Apply(object) => Event::Apply(read(object)?),
        Event::Delete(object) => Event::Delete(read(object)?),
    })
}

/// How long the same interruption of a watch is not logged again.
const TOLD_FOR: Duration = Duration::from_mins(10);

/// Logs the interruptions of one watch. The watch is retried, so one line is enough: a missing CRD, or an API server that is
/// down, would otherwise fill the log.
pub(crate) struct Interruptions {
    of: Cow<'static, str>,
    told: Option<(String, Instant)>,
}

impl Interruptions {
    pub(crate) fn of(of: impl Into<Cow<'static, str>>) -> Self {
        Self { of: of.into(), told: None }
    }

    /// The event of the watch, if it was not interrupted.
    pub(crate) fn pass<T>(&mut self, event: Result<T, watcher::Error>) -> Option<T> {
        event.map_err(|error| self.tell(&error)).ok()
    }

    /// Returns whether it was logged as a warning.
    fn tell(&mut self, error: &watcher::Error) -> bool {
        let (why, now) = (error.to_string(), Instant::now());
        let of = &*self.of;
        if self.told.as_ref().is_some_and(|(told, at)| *told == why && now - *at < TOLD_FOR) {
            debug!(%error, of, "watch still interrupted");
            return false;
        }
        if is_not_served(error) {
            warn!(of, "the API server does not serve this kind: is its CRD installed? Retrying");
        } else {
            warn!(%error, of, "watch interrupted, retrying");
        }
        self.told = Some((why, now));
        true
    }
}

/// Whether the API server does not serve the kind.
pub(crate) fn is_not_served(error: &watcher::Error) -> bool {
    let not_found = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => not_found(error),
        _ => false,
    }
}

/// Pauses before an interrupted watch is retried. The operator is one client with a few watches: it need not wait up to a minute
/// after the API server is back, as kube's default does.
pub(crate) fn pauses() -> ResetTimerBackoff<Pauses> {
    ResetTimerBackoff::new(Pauses(SHORTEST_PAUSE), 4 * LONGEST_PAUSE)
}

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

pub(crate) struct Pauses(Duration);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0.mul_f64(0.5 + 0.5 * fastrand::f64());
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = SHORTEST_PAUSE;
    }
}

/// What a watch has shown.
#[derive(Debug)]
pub(crate) enum Change<'a, K> {
    /// All objects are being listed again.
    Begin,
    /// An object exists, and looks like this.
    Seen(&'a K),
    /// An object is gone, perhaps since before the watch was interrupted.
    Gone(ObjectId),
    /// All objects have been listed.
    Complete,
}

/// Which objects a watch has shown. Objects that are deleted while a watch is interrupted are noticed because they are missing
/// from the next list.
#[derive(Debug, Default)]
pub(crate) struct Present {
    /// By name: the uid.
    known: HashMap<ObjectId, Option<String>>,
    /// Names not seen yet in the list in progress.
    unseen: HashSet<ObjectId>,
}

impl Present {
    /// Handles an event, and returns what has changed.
    pub(crate) fn take<'a, K>(&mut self, event: &'a Event<K>, id_of: impl Fn(&K) -> ObjectId) -> Vec<Change<'a, K>> {
        match event {
            Event::Init => {
                self.unseen = self.known.keys().cloned().collect();
                vec![Change::Begin]
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let id = id_of(object);
                let name = id.by_name();
                self.unseen.remove(&name);
                let before = self.known.insert(name.clone(), id.uid.clone()).filter(|uid| *uid != id.uid);
                let namesake = before.map(|uid| Change::Gone(ObjectId { uid, ..name }));
                namesake.into_iter().chain([Change::Seen(object)]).collect()
            }
            Event::InitDone => {
                let gone = std::mem::take(&mut self.unseen).into_iter();
                let gone = gone.filter_map(|name| Some(ObjectId { uid: self.known.remove(&name)?, ..name }));
                gone.map(Change::Gone).chain([Change::Complete]).collect()
            }
            Event::Delete(object) => {
                let id = id_of(object);
                self.known.remove(&id.by_name());
                vec![Change::Gone(id)]
            }
        }
    }
}

/// Watches the objects of a kind, and reports changes before anybody else sees them. Objects that cannot be read hide no others.
/// An interruption is logged once, and the watch is retried.
pub(crate) fn follow<K: Object>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    mut tell: impl FnMut(Change<'_, K>) + Send,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send {
    let (mut interruptions, mut present) = (Interruptions::of(K::kind(&())), Present::default());
    watcher(api, config)
        .backoff(pauses())
        // Passed on, an interruption would delay every wake-up of an object, not only the watch.
        .filter_map(move |event| ready(interruptions.pass(event).and_then(readable).map(Ok)))
        .modify(|object| drop_ballast(object.meta_mut()))
        .inspect_ok(move |event| present.take(event, ObjectId::of).into_iter().for_each(&mut tell))
}

/// Passes wake-ups on to the loops of their kinds.
pub(crate) struct Wakeups {
    woken: mpsc::UnboundedReceiver<ObjectId>,
    loops: HashMap<KindId, mpsc::UnboundedSender<ObjectId>>,
}

impl Wakeups {
    /// Wake-ups that no loop takes yet, and their sender.
    pub(crate) fn new() -> (mpsc::UnboundedSender<ObjectId>, Self) {
        let (wake, woken) = mpsc::unbounded_channel();
        (wake, Self { woken, loops: HashMap::new() })
    }

    /// Those of one kind.
    pub(crate) fn of<K: Object>(&mut self) -> impl Stream<Item = ObjectRef<K>> + Send + 'static {
        let (wake, mut woken) = mpsc::unbounded_channel::<ObjectId>();
        self.loops.insert(KindId::of::<K>(), wake);
        futures::stream::poll_fn(move |context| woken.poll_recv(context)).map(|id| id.object_ref())
    }

    /// Passes them on while it is polled.
    pub(crate) async fn run(mut self) {
        while let Some(id) = self.woken.recv().await {
            // Fails only during shutdown.
            self.loops.get(&id.kind).map(|wake| wake.send(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use api::beskar7::Beskar7Machine;
    use serde_json::json;

    use super::*;

    fn machine(name: &str, uid: &str) -> Beskar7Machine {
        let metadata = json!({"name": name, "namespace": "lab", "uid": uid});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"imageURL": "http://a/b.iso"}})).unwrap()
    }

    #[test]
    fn what_is_missing_from_a_new_list_is_gone() {
        let mut present = Present::default();
        let gone = |present: &mut Present, event: Event<Beskar7Machine>| -> Vec<String> {
            let changes = present.take(&event, ObjectId::of).into_iter();
            let mut gone: Vec<_> = changes
                .filter_map(|change| match change {
                    Change::Gone(id) => Some(format!("{id} {}", id.uid.as_deref().unwrap())),
                    _ => None,
                })
                .collect();
            gone.sort();
            gone
        };
        for event in [
            Event::Init,
            Event::InitApply(machine("a", "1")),
            Event::InitApply(machine("b", "2")),
            Event::InitDone,
            Event::Apply(machine("c", "3")),
            Event::Apply(machine("d", "4")),
            Event::Apply(machine("a", "1")),
        ] {
            assert_eq!(gone(&mut present, event), [""; 0]);
        }
        assert_eq!(gone(&mut present, Event::Delete(machine("d", "4"))), ["lab/d 4"]);
        assert_eq!(gone(&mut present, Event::Init), [""; 0]);
        assert_eq!(gone(&mut present, Event::InitApply(machine("a", "1"))), [""; 0]);
        let namesake = Event::InitApply(machine("b", "5"));
        assert_eq!(gone(&mut present, namesake), ["lab/b 2"], "before its namesake is looked at");
        assert_eq!(gone(&mut present, Event::InitDone), ["lab/c 3"]);
        assert_eq!(gone(&mut present, Event::Init), [""; 0]);
        assert_eq!(gone(&mut present, Event::InitDone), ["lab/a 1", "lab/b 5"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_interruption_is_told_once_and_not_at_every_try() {
        let mut watch = Interruptions::of("PhysicalHosts");
        let gone = || {
            let status = kube::core::Status { code: 404, ..kube::core::Status::default() };
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        assert!(is_not_served(&gone()));
        assert!(watch.tell(&gone()));
        for _ in 0..50 {
            // Each try begins well.
            assert_eq!(watch.pass(Ok(7)), Some(7));
            tokio::time::advance(Duration::from_secs(8)).await;
            assert!(!watch.tell(&gone()));
        }
        assert!(watch.tell(&watcher::Error::NoResourceVersion), "another one is news");
        tokio::time::advance(TOLD_FOR).await;
        assert!(watch.tell(&watcher::Error::NoResourceVersion), "and so is one that lasts");
    }
}
