//! What every watch needs: patience, tolerance, and no ballast.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DeserializeGuard;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;
use tracing::warn;

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

/// What a watch shows. That it was interrupted is only worth a line in the log: it is taken up again.
pub(crate) fn uninterrupted<T>(event: Result<T, watcher::Error>, of: &str) -> Option<T> {
    event.inspect_err(|error| warn!(%error, of, "the watch was interrupted; it is taken up again")).ok()
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

/// A channel as a stream.
pub(crate) fn tokio_stream<T: Send + 'static>(
    mut receiver: mpsc::UnboundedReceiver<T>,
) -> impl futures::Stream<Item = T> + Send + 'static {
    futures::stream::poll_fn(move |context| receiver.poll_recv(context))
}
