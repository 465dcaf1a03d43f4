//! Events are forgotten an hour after they were last written.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use schema::object;
use serde_json::Value;
use store::Scan;
use tokio_util::sync::CancellationToken;

use super::CHUNK;
use crate::catalogue::Served;
use crate::status::Failure;
use crate::verbs::{Api, DeleteOptions};

const LIFE: SignedDuration = SignedDuration::from_hours(1);
/// How often they are looked at, at most.
const PERIOD: Duration = Duration::from_mins(5);

/// Deletes old Events until told to stop. While there are none, it waits for the first.
pub async fn expire_events(api: Api, stop: CancellationToken) {
    stop.run_until_cancelled(async {
        loop {
            let news = first_event(&api);
            match sweep(&api).await {
                Ok(Some(oldest)) => {
                    let due = (oldest + LIFE).duration_since(api.now());
                    tokio::time::sleep(Duration::try_from(due).unwrap_or_default().max(PERIOD)).await;
                }
                Ok(None) => news.await,
                Err(failure) => {
                    tracing::warn!(%failure, "old events could not be deleted, trying again later");
                    tokio::time::sleep(PERIOD).await;
                }
            }
        }
    })
    .await;
}

/// Ends when an Event is written after now.
fn first_event(api: &Api) -> impl Future<Output = ()> {
    let watch = events(api).map(|served| api.store().watch(&served.resource.prefix, api.store().revision()));
    let mut catalogue = api.shelf().changes();
    catalogue.mark_unchanged();
    async move {
        match watch {
            Some(Ok(mut watch)) => drop(watch.next().await),
            Some(Err(_)) => {}
            None => drop(catalogue.changed().await),
        }
    }
}

fn events(api: &Api) -> Option<Served> {
    api.catalogue().find("", "v1", "events")
}

/// Deletes what is old; tells since when the oldest of the others is there.
async fn sweep(api: &Api) -> Result<Option<Timestamp>, Failure> {
    let Some(served) = events(api) else { return Ok(None) };
    let limit = api.now() - LIFE;
    let mut oldest: Option<Timestamp> = None;
    let mut after: Option<String> = None;
    loop {
        let (mut seen, mut last, mut old) = (0, None, Vec::new());
        let scan = Scan { prefix: &served.resource.prefix, after: after.as_deref(), at: None };
        api.store()
            .scan(scan, &mut |key, _, stored| {
                let event: Value = serde_json::from_slice(stored).unwrap_or_default();
                match written(&event) {
                    Some(time) if time > limit => oldest = Some(oldest.map_or(time, |oldest| oldest.min(time))),
                    _ => old.push(event),
                }
                seen += 1;
                last = Some(key.to_owned());
                if seen < CHUNK { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(Failure::internal)?;
        for event in old {
            // Whoever has written it again gives it another hour.
            let options = DeleteOptions {
                resource_version: Some(object::resource_version(&event).to_owned()),
                ..DeleteOptions::default()
            };
            let deleted = api.delete(&served, object::namespace(&event), object::name(&event), &options).await;
            if let Err(failure) = deleted
                && !matches!(failure.code.as_u16(), 404 | 409)
            {
                return Err(failure);
            }
        }
        if seen < CHUNK {
            return Ok(oldest);
        }
        after = last;
        tokio::task::yield_now().await;
    }
}

/// When an Event was last written, as far as it tells.
fn written(event: &Value) -> Option<Timestamp> {
    let managed = event.pointer("/metadata/managedFields").and_then(Value::as_array);
    let times = managed.into_iter().flatten().map(|entry| &entry["time"]);
    let pointers = ["/metadata/creationTimestamp", "/lastTimestamp", "/series/lastObservedTime"];
    let others = pointers.iter().filter_map(|pointer| event.pointer(pointer));
    times.chain(others).filter_map(|time| time.as_str()?.parse::<Timestamp>().ok()).max()
}
