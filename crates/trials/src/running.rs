//! An operator at work, and its end.

use std::sync::{Mutex, Once};
use std::time::Duration;

use controllers::metrics::Metrics;
use controllers::operator::Operator;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;

/// How long its threads may take to end.
const PATIENCE: Duration = Duration::from_mins(2);

/// An operator. When this is gone, so is everything that the operator had begun.
pub struct Running {
    /// Of its own, unless time is paused: that holds for one thread only.
    runtime: Option<Runtime>,
    work: JoinSet<()>,
    stop: CancellationToken,
    gate: Gate,
    metrics: Metrics,
    /// Name of the thread it runs on, and how often something had panicked there before.
    thread: (String, usize),
}

/// Names of threads on which something panicked.
static PANICKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.lock().unwrap().push(own_thread());
            usual(panic);
        }));
    });
}

fn own_thread() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

fn panics(thread: &str) -> usize {
    PANICKED.lock().unwrap().iter().filter(|name| *name == thread).count()
}

impl Running {
    /// Starts an operator on a thread of that name. What makes it is called there.
    pub(crate) fn on_thread(name: &str, gate: Gate, operator: impl FnOnce() -> Operator) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().thread_name(name).build().unwrap();
        let inside = runtime.enter();
        let mut running = Self::start(name.to_owned(), gate, operator());
        drop(inside);
        running.runtime = Some(runtime);
        running
    }

    /// Starts an operator on this thread.
    pub(crate) fn here(gate: Gate, operator: Operator) -> Self {
        Self::start(own_thread(), gate, operator)
    }

    fn start(thread: String, gate: Gate, operator: Operator) -> Self {
        note_panics();
        let (stop, metrics) = (CancellationToken::new(), operator.metrics.clone());
        let (mut work, stopped) = (JoinSet::new(), stop.clone());
        work.spawn(async move { operator.run(stopped).await.unwrap() });
        let before = panics(&thread);
        Self { runtime: None, work, stop, gate, metrics, thread: (thread, before) }
    }

    /// Stops it as SIGTERM does.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.work.join_next().await {
            ended.unwrap();
        }
    }

    /// Stops it as SIGKILL does. When this returns, nothing of it runs any more.
    pub async fn kill(mut self) {
        self.gate.close();
        self.work.shutdown().await;
        if let Some(runtime) = self.runtime.take() {
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await.unwrap();
        }
    }

    /// What its `/metrics` shows.
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gate.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        let (thread, before) = &self.thread;
        let panicked = panics(thread) > *before;
        assert!(std::thread::panicking() || !panicked, "something in the operator panicked");
    }
}
