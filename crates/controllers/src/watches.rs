//! What every watch needs: patience, tolerance, and no ballast.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::object::{KindId, Object, ObjectId};

/// What is of no use to us is not kept in memory, a thousand times.
pub(crate) fn drop_ballast(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// One object that cannot be read must not hide all others.
pub(crate) fn readable<H: std::fmt::Debug>(event: Event<DeserializeGuard<H>>) -> Option<Event<H>> {
    let read = |object: DeserializeGuard<H>| {
        object.0.inspect_err(|object| warn!(name = object.metadata.name, error = %object.error, "object cannot be read and is left alone")).ok()
    };
    Some(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(read(object)?),
        Event::Apply(object) => Event::Apply(read(object)?),
        Event::Delete(object) => Event::Delete(read(object)?),
    })
}

/// How long the same interruption of a watch is not told again.
const TOLD_FOR: Duration = Duration::from_mins(10);

/// Tells of the interruptions of one watch. It is taken up again by itself, so one line is enough: a CRD that is gone, or an API server that is
/// down, would fill the log with the same one.
pub(crate) struct Interruptions {
    of: &'static str,
    told: Option<(String, Instant)>,
}

impl Interruptions {
    pub(crate) fn of(of: &'static str) -> Self {
        Self { of, told: None }
    }

    /// What the watch shows, if it was not interrupted.
    pub(crate) fn pass<T>(&mut self, event: Result<T, watcher::Error>) -> Option<T> {
        event.map_err(|error| self.tell(&error)).ok()
    }

    /// Answers whether it was worth a line.
    fn tell(&mut self, error: &watcher::Error) -> bool {
        let (why, now) = (error.to_string(), Instant::now());
        let of = self.of;
        if self.told.as_ref().is_some_and(|(told, at)| *told == why && now - *at < TOLD_FOR) {
            debug!(%error, of, "the watch is still interrupted");
            return false;
        }
        if is_not_served(error) {
            warn!(
                of,
                "the API server does not serve this kind (any more): is its CRD installed? It is asked again until it is"
            );
        } else {
            warn!(%error, of, "the watch was interrupted; it is taken up again");
        }
        self.told = Some((why, now));
        true
    }
}

/// Whether the API server has no such kind, or has it no more.
pub(crate) fn is_not_served(error: &watcher::Error) -> bool {
    let not_found = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => not_found(error),
        _ => false,
    }
}

/// Pauses before an interrupted watch is taken up again. We are one client with a few watches: nobody is helped when we stay
/// deaf for a minute after the API server came back, as kube's own default does.
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

/// Which objects a watch has shown. While a watch is interrupted, objects may go without anybody telling: they are missing from the
/// next list.
#[derive(Debug, Default)]
pub(crate) struct Present {
    /// By name: the object that bears it.
    known: HashMap<ObjectId, ObjectId>,
    /// Names not seen yet in a list that is under way.
    unseen: HashSet<ObjectId>,
}

impl Present {
    /// Takes an event in, and tells who is gone by it.
    pub(crate) fn take<K: Resource<DynamicType = ()>>(&mut self, event: &Event<K>) -> Vec<ObjectId> {
        match event {
            Event::Init => {
                self.unseen = self.known.keys().cloned().collect();
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let id = ObjectId::of(object);
                self.unseen.remove(&id.by_name());
                let before = self.known.insert(id.by_name(), id.clone());
                before.filter(|before| *before != id).into_iter().collect()
            }
            Event::InitDone => {
                let gone = std::mem::take(&mut self.unseen);
                gone.into_iter().filter_map(|name| self.known.remove(&name)).collect()
            }
            Event::Delete(object) => {
                let id = ObjectId::of(object);
                self.known.remove(&id.by_name());
                vec![id]
            }
        }
    }
}

/// Passes wake-ups on to the loops of their kinds.
pub(crate) struct Wakeups {
    woken: mpsc::UnboundedReceiver<ObjectId>,
    loops: HashMap<KindId, mpsc::UnboundedSender<ObjectId>>,
}

impl Wakeups {
    /// Nobody's yet, and where they are sent to.
    pub(crate) fn new() -> (mpsc::UnboundedSender<ObjectId>, Self) {
        let (wake, woken) = mpsc::unbounded_channel();
        (wake, Self { woken, loops: HashMap::new() })
    }

    /// Those of one kind.
    pub(crate) fn of<K: Object>(&mut self) -> impl futures::Stream<Item = ObjectRef<K>> + Send + 'static {
        let (wake, mut woken) = mpsc::unbounded_channel::<ObjectId>();
        self.loops.insert(KindId::of::<K>(), wake);
        futures::stream::poll_fn(move |context| woken.poll_recv(context)).map(|id| id.object_ref())
    }

    /// Passes them on for as long as it is polled.
    pub(crate) async fn run(mut self) {
        while let Some(id) = self.woken.recv().await {
            // Nobody listens any more only when the loop has stopped.
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
            let mut gone: Vec<_> =
                present.take(&event).into_iter().map(|key| format!("{key} {}", key.uid.as_deref().unwrap())).collect();
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
