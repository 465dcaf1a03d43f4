//! What happens to objects whose owners are gone, as kube-controller-manager does it.
//!
//! - Background: an object goes when none of its owners is left. Whether an owner is left is always read from the store
//!   before something is deleted.
//! - Foreground: an object with the finalizer `foregroundDeletion` waits for the dependents that block it.
//! - Orphan: an object with the finalizer `orphan` waits until its dependents no longer name it.
//!
//! Only objects that have owners, or wait, are remembered ([`graph`]): a few hundred bytes each. Everything else comes from
//! the store's history, so at rest nothing runs.

mod attend;
mod events;
mod graph;
mod queue;

#[cfg(test)]
mod tests;

pub use events::expire_events;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use store::{Event, Revision, Scan, Store, StoreError, Watch};
use tokio_util::sync::CancellationToken;

use self::attend::{Outcome, attend};
use self::graph::{Facts, Graph};
use self::queue::Queue;
use crate::verbs::Api;

/// Where all objects are.
const EVERYTHING: &str = "/registry/";
/// How many entries are read before others get a turn.
const CHUNK: usize = 200;
/// How many objects are attended to at once: writes that wait for the disk together share its time.
const HANDS: usize = 16;

/// Collects garbage until told to stop. Begins with what was left when the last process ended.
pub async fn run(api: Api, stop: CancellationToken) {
    while let Some(Err(error)) = stop.run_until_cancelled(collect(&api)).await {
        // Compacted: we were too slow, or the store was rolled back. Read everything again.
        tracing::debug!(%error, "the garbage collector begins anew");
        tokio::task::yield_now().await;
    }
}

async fn collect(api: &Api) -> Result<(), StoreError> {
    let store = api.store();
    let mut catalogue = api.shelf().changes();
    // The watch begins before the scan, so nothing is missed; what is seen twice does no harm.
    let mut watch = store.watch(EVERYTHING, store.revision())?;
    let mut graph = Graph::default();
    let mut queue = Queue::default();
    for key in load(store, &mut graph).await? {
        queue.add(key);
    }
    let mut hands = FuturesUnordered::new();
    loop {
        // A store in memory never waits; others want their turn.
        tokio::task::coop::consume_budget().await;
        while hands.len() < HANDS {
            catch_up(&mut watch, &mut graph, &mut queue)?;
            let Some(key) = queue.take() else { break };
            match graph.view(&key) {
                None => queue.done(&key),
                // It is looked at again when a dependent is gone.
                Some(view) if view.blocked && view.orphans.is_empty() => queue.done(&key),
                Some(view) => hands.push(async move {
                    let outcome = attend(api, &key, view).await;
                    (key, outcome)
                }),
            }
        }
        tokio::select! {
            event = watch.next() => note(&*event?, &mut graph, &mut queue),
            Some((key, outcome)) = hands.next(), if !hands.is_empty() => match outcome {
                Outcome::Done => queue.done(&key),
                Outcome::Unknown => queue.park(&key),
                Outcome::Failed(why) => {
                    tracing::warn!(key = &*key, %why, "garbage could not be collected, trying again later");
                    queue.retry(&key);
                }
            },
            Ok(()) = catalogue.changed() => queue.unpark(),
            () = queue.due() => {}
        }
    }
}

fn catch_up(watch: &mut Watch, graph: &mut Graph, queue: &mut Queue) -> Result<(), StoreError> {
    while let Some(event) = watch.try_next() {
        note(&*event?, graph, queue);
    }
    Ok(())
}

fn note(event: &Event, graph: &mut Graph, queue: &mut Queue) {
    let facts = Facts::read(&event.value);
    let affected = match facts {
        Some(facts) if !event.deleted => graph.put(&event.key, facts),
        facts => graph.remove(&event.key, facts.as_ref().map(|facts| &*facts.uid)),
    };
    for key in affected {
        queue.add(key);
    }
}

/// Reads all objects, one at a time, and returns those that need attention.
async fn load(store: &Store, graph: &mut Graph) -> Result<Vec<Arc<str>>, StoreError> {
    let mut alive: HashMap<Box<str>, Box<str>> = HashMap::new();
    let mut after: Option<String> = None;
    loop {
        let (mut seen, mut last) = (0, None);
        let scan = Scan { prefix: EVERYTHING, after: after.as_deref(), at: None };
        let _: Revision = store.scan(scan, &mut |key, _, value| {
            if let Some(facts) = Facts::read(value) {
                alive.insert(facts.uid.clone(), facts.namespace.clone());
                graph.put(key, facts);
            }
            seen += 1;
            last = Some(key.to_owned());
            if seen < CHUNK { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if seen < CHUNK {
            return Ok(graph.in_need(&alive));
        }
        after = last;
        tokio::task::yield_now().await;
    }
}
