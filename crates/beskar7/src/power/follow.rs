//! Follows hosts until each is as requested, and tells what happens on the way.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{anyhow, bail};
use controllers::clock::{Clock as _, SystemClock};
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::time::Instant;

use super::verdict::{Verdict, judge};
use crate::dialects::{Found, Request};
use crate::{human, output};

/// An operator that runs has answered by then.
const SILENCE: Duration = Duration::from_secs(10);

/// One host that is followed.
struct Followed {
    target: Found,
    request: Request,
    /// Whether the last list had it.
    known: bool,
    said: Option<String>,
    end: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Failed,
}

/// Waits for all of them; fails if one of them does or if time runs out.
pub(super) async fn until_done(requests: Vec<(Found, Request)>, timeout: Duration) -> anyhow::Result<()> {
    let mut all: Vec<_> = requests
        .into_iter()
        .map(|(target, request)| Followed { target, request, known: true, said: None, end: None })
        .collect();
    let mut events = select_all(watches(&all));
    let deadline = Instant::now() + timeout;
    let mut hint = Some(Instant::now() + SILENCE);
    while all.iter().any(|followed| followed.end.is_none()) {
        let wake = hint.unwrap_or(deadline).min(deadline);
        match tokio::time::timeout_at(wake, events.next()).await {
            Ok(Some((place, event))) => take(&mut all, &place, event)?,
            Ok(None) => bail!("the watch ended"),
            Err(_) if Instant::now() >= deadline => return Err(out_of_time(&all, timeout)),
            Err(_) => {
                hint = None;
                if all.iter().any(|followed| followed.end.is_none() && followed.said.is_none()) {
                    output::remark(
                        "No reaction yet. Is the operator running (`beskar7 run`), and does it watch these hosts?",
                    );
                }
            }
        }
    }
    match all.iter().filter(|followed| followed.end == Some(End::Failed)).count() {
        0 => Ok(()),
        failed => bail!(
            "{} of {} did not reach the requested state",
            human::number(failed),
            human::counted(all.len(), "host")
        ),
    }
}

type Change = Result<Event<DynamicObject>, watcher::Error>;

/// One watch for each kind and namespace, since each takes a connection: of the one host, or of all if there are several.
fn watches(all: &[Followed]) -> Vec<BoxStream<'static, (String, Change)>> {
    let mut places: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
    for followed in all {
        places.entry(followed.place()).or_default().push(&followed.target);
    }
    let watch = |(place, targets): (&str, Vec<&Found>)| {
        let config = match targets.as_slice() {
            [only] => watcher::Config::default().fields(&format!("metadata.name={}", only.name)),
            _ => watcher::Config::default(),
        };
        let (place, api) = (place.to_owned(), targets.first()?.hosts.api.clone());
        Some(watcher(api, config).default_backoff().map(move |event| (place.clone(), event)).boxed())
    };
    places.into_iter().filter_map(watch).collect()
}

/// Takes in what a watch of that place tells.
fn take(all: &mut [Followed], place: &str, change: Change) -> anyhow::Result<()> {
    let mut here = all.iter_mut().filter(|followed| followed.end.is_none() && followed.place() == place);
    match change {
        // A list begins: who is not in it is gone.
        Ok(Event::Init) => here.for_each(|followed| followed.known = false),
        Ok(Event::InitDone) => {
            for followed in here.filter(|followed| !followed.known) {
                followed.judged(Verdict::Failed("is gone".to_owned()))?;
            }
        }
        Ok(Event::InitApply(host) | Event::Apply(host)) => {
            if let Some(followed) = here.find(|followed| host.metadata.name.as_ref() == Some(&followed.target.name)) {
                followed.known = true;
                let verdict = judge(followed.target.hosts.kind, &host, &followed.request, SystemClock.now());
                followed.judged(verdict)?;
            }
        }
        Ok(Event::Delete(host)) => {
            if let Some(followed) = here.find(|followed| host.metadata.name.as_ref() == Some(&followed.target.name)) {
                followed.judged(Verdict::Failed("is gone".to_owned()))?;
            }
        }
        // A watch that broke is taken up again by itself, but for what will not change.
        Err(watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) => {
            if let (kube::Error::Api(status), Some(followed)) = (&error, here.next())
                && matches!(status.code, 401 | 403)
            {
                return Err(followed.target.hosts.explain(error).context("the request was written, but"));
            }
        }
        Err(_) => {}
    }
    Ok(())
}

impl Followed {
    /// Where it is watched: the path of its kind in its namespace.
    fn place(&self) -> &str {
        self.target.hosts.api.resource_url()
    }

    fn judged(&mut self, verdict: Verdict) -> anyhow::Result<()> {
        match verdict {
            Verdict::Waiting(None) => Ok(()),
            Verdict::Waiting(Some(message)) => self.tell(message),
            Verdict::Done(message) => {
                self.end = Some(End::Done);
                self.tell(message)
            }
            Verdict::Failed(message) => {
                self.end = Some(End::Failed);
                self.tell(message)
            }
        }
    }

    fn tell(&mut self, message: String) -> anyhow::Result<()> {
        if self.said.as_ref() == Some(&message) {
            return Ok(());
        }
        output::line(&format!("{}: {}", self.target.label, human::one_line(&message)))?;
        self.said = Some(message);
        Ok(())
    }
}

fn out_of_time(all: &[Followed], timeout: Duration) -> anyhow::Error {
    let late: Vec<_> =
        all.iter().filter(|followed| followed.end.is_none()).map(|followed| followed.target.label.as_str()).collect();
    anyhow!(
        "timed out after {timeout:?}: {}. The request stays in effect; `beskar7 hosts` shows their state.",
        late.join(", ")
    )
}
