//! Sends Events in the background. They may get lost.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio_util::task::TaskTracker;
use tracing::debug;

/// The maximum length of a note.
const NOTE_LIMIT: usize = 1000;
/// Shutdown grace period for Events in flight.
const FAREWELL: Duration = Duration::from_secs(5);

/// Sends Events.
pub(crate) struct Herald {
    client: Client,
    reporter: Reporter,
    tasks: TaskTracker,
}

/// The content of an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Whether somebody should look after it.
    pub warning: bool,
    /// One word, for programs.
    pub reason: String,
    /// A sentence, for people.
    pub message: String,
}

impl Herald {
    pub(crate) fn new(client: Client) -> Self {
        let reporter = Reporter { controller: "beskar7".into(), instance: None };
        Self { client, reporter, tasks: TaskTracker::new() }
    }

    /// Sends an Event about an object.
    pub(crate) fn tell(&self, about: ObjectReference, news: News) {
        let event = Event {
            type_: if news.warning { EventType::Warning } else { EventType::Normal },
            reason: news.reason.clone(),
            note: Some(news.message.chars().take(NOTE_LIMIT).collect()),
            action: news.reason,
            secondary: None,
        };
        // A recorder remembers what it sent, to count repetitions. Nothing is sent twice here, so no recorder is kept.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        self.spawn(async move {
            recorder
                .publish(&event, &about)
                .map(|sent| sent.inspect_err(|error| debug!(%error, "event not sent")).ok())
                .await;
        });
    }

    /// Runs something in the background that nothing depends on.
    pub(crate) fn spawn(&self, errand: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(errand);
    }

    /// Waits for Events in flight.
    pub(crate) async fn stop(&self) {
        self.tasks.close();
        tokio::time::timeout(FAREWELL, self.tasks.wait()).await.ok();
    }
}
