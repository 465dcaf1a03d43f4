//! Follows hosts until each is as wished, and tells what happens on the way.

use std::time::Duration;

use anyhow::{anyhow, bail};
use controllers::clock::{Clock as _, SystemClock};
use futures::StreamExt as _;
use futures::stream::select_all;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object};
use tokio::time::Instant;

use super::verdict::{Verdict, judge};
use super::{Target, Wish};
use crate::{human, output};

/// An operator that runs has answered by then.
const SILENCE: Duration = Duration::from_secs(10);

/// One host that is followed.
struct Followed {
    target: Target,
    wish: Wish,
    said: Option<String>,
    end: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Failed,
}

/// Waits for all of them; fails if one of them does or if time runs out.
pub(super) async fn until_done(wishes: Vec<(Target, Wish)>, timeout: Duration) -> anyhow::Result<()> {
    let mut all: Vec<_> =
        wishes.into_iter().map(|(target, wish)| Followed { target, wish, said: None, end: None }).collect();
    let streams = all.iter().enumerate().map(|(at, followed)| {
        let stream = watch_object(followed.target.hosts.api.clone(), &followed.target.name).default_backoff();
        stream.map(move |event| (at, event)).boxed()
    });
    let mut events = select_all(streams);
    let deadline = Instant::now() + timeout;
    let mut hint = Some(Instant::now() + SILENCE);
    while all.iter().any(|followed| followed.end.is_none()) {
        let wake = hint.unwrap_or(deadline).min(deadline);
        match tokio::time::timeout_at(wake, events.next()).await {
            Ok(Some((at, event))) => all[at].take(event)?,
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
        failed => bail!("{} of {} not as wished", human::number(failed), human::counted(all.len(), "host")),
    }
}

impl Followed {
    fn take(&mut self, event: Result<Option<api::beskar7::PhysicalHost>, watcher::Error>) -> anyhow::Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
        let verdict = match event {
            Ok(Some(host)) => judge(&host, &self.wish, SystemClock.now()),
            Ok(None) => Verdict::Failed("is gone".to_owned()),
            // Taken up again by itself, but for what will not change.
            Err(error) => return self.interrupted(error),
        };
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

    fn interrupted(&self, error: watcher::Error) -> anyhow::Result<()> {
        match error {
            watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => match error {
                kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
                    Err(self.target.hosts.explain(kube::Error::Api(status)).context("the wish was written, but"))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn tell(&mut self, message: String) -> anyhow::Result<()> {
        if self.said.as_ref() == Some(&message) {
            return Ok(());
        }
        output::line(&format!("{}: {message}", self.target.label))?;
        self.said = Some(message);
        Ok(())
    }
}

fn out_of_time(all: &[Followed], timeout: Duration) -> anyhow::Error {
    let late: Vec<_> =
        all.iter().filter(|followed| followed.end.is_none()).map(|followed| followed.target.label.as_str()).collect();
    anyhow!(
        "not as wished after {timeout:?}: {}. The wish stands; `beskar7 hosts` shows how they are.",
        late.join(", ")
    )
}
