//! Tasks of a BMC: 202 and a monitor. Followed for a while, and never trusted blindly: the caller looks again.

use std::time::Duration;

use http::header::LOCATION;
use serde_json::Value;

use crate::client::Client;
use crate::error::Error;
use crate::error_body::Problem;
use crate::resource::{View, path_of};
use crate::retry;
use crate::wire::Answer;

/// After this time, the next look shows the result.
const FOLLOW: Duration = Duration::from_mins(1);
/// At growing intervals, and never earlier than the BMC asks: polling slows it down.
const FIRST_POLL: Duration = Duration::from_secs(2);
const SLOWEST_POLL: Duration = Duration::from_secs(15);
/// A fresh job may be unknown for half a minute (iDRAC).
const UNKNOWN_AT_FIRST: u32 = 3;
const UNKNOWN_PAUSE: Duration = Duration::from_secs(5);

impl Client {
    /// Follows the task of an action. Succeeds if the task does, if it still runs after a minute, and if the BMC has forgotten
    /// it: reading back shows the result.
    pub(crate) async fn follow(&self, answer: Answer) -> Result<(), Error> {
        if answer.status != 202 {
            return Ok(());
        }
        let Some(monitor) = Self::monitor_of(&answer) else { return Ok(()) };
        let watch = self.watch(&monitor, retry::retry_after(&answer.headers));
        tokio::time::timeout(FOLLOW, watch).await.unwrap_or_else(|_| {
            tracing::debug!(monitor, "task still running on {}; no longer waiting", self.origin());
            Ok(())
        })
    }

    fn monitor_of(answer: &Answer) -> Option<String> {
        let body = answer.json().unwrap_or(Value::Null);
        let body = View(&body);
        let from_body = || {
            let is_task = body.text("/@odata.type").is_some_and(|kind| kind.contains("Task"));
            body.link("/TaskMonitor").or_else(|| body.link("").filter(|_| is_task))
        };
        // Supermicro hides the task in the arguments of a message.
        let from_message = || {
            let messages =
                body.list("/Accepted/@Message.ExtendedInfo").iter().chain(body.list("/@Message.ExtendedInfo"));
            messages
                .flat_map(|message| View(message).texts("/MessageArgs"))
                .find(|argument| argument.contains("/Tasks/"))
        };
        let location = answer.header(LOCATION).and_then(path_of);
        location.or_else(from_body).or_else(|| path_of(&from_message()?))
    }

    async fn watch(&self, monitor: &str, first_pause: Option<Duration>) -> Result<(), Error> {
        let mut was_seen = false;
        let mut unknown = 0;
        let mut poll = FIRST_POLL;
        let mut pause = first_pause.unwrap_or_default().max(poll);
        loop {
            tokio::time::sleep(pause.clamp(Duration::from_millis(200), Duration::from_secs(30))).await;
            let answer = self.peek(monitor).await?;
            poll = (poll * 2).min(SLOWEST_POLL);
            pause = retry::retry_after(&answer.headers).unwrap_or_default().max(poll);
            match answer.status {
                // OpenBMC answers 204 once and then forgets the task; iDRAC removes finished tasks after a minute.
                404 | 410 if was_seen || unknown >= UNKNOWN_AT_FIRST => return Ok(()),
                404 | 410 => {
                    unknown += 1;
                    pause = UNKNOWN_PAUSE;
                }
                408 | 429 | 500..=599 => {}
                200..=299 => {
                    was_seen = true;
                    let body = answer.json().unwrap_or(Value::Null);
                    match Progress::of(answer.status, &body) {
                        Progress::Running => {}
                        Progress::Finished => return Ok(()),
                        Progress::Failed(said) => {
                            let said = self.wire().redact(said);
                            return Err(Error::TaskFailed {
                                url: self.origin().to_owned(),
                                task: monitor.to_owned(),
                                said,
                            });
                        }
                    }
                }
                _ => {
                    let said = self.wire().problem(&answer).to_string();
                    return Err(Error::TaskFailed { url: self.origin().to_owned(), task: monitor.to_owned(), said });
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Running,
    Finished,
    Failed(String),
}

impl Progress {
    fn of(status: u16, body: &Value) -> Self {
        let said = || Problem::from_json(body).sentence().to_owned();
        match View(body).text("/TaskState").as_deref() {
            Some("Completed") if View(body).text("/TaskStatus").as_deref() == Some("Critical") => Self::Failed(said()),
            Some("Completed") => Self::Finished,
            Some(state @ ("Exception" | "Killed" | "Cancelled")) => Self::Failed(format!("{state}: {}", said())),
            // New, Starting, Running, Suspended, Interrupted, Pending, Stopping, Service, Cancelling, and what may yet be invented.
            Some(_) => Self::Running,
            None if status == 202 => Self::Running,
            None => Self::Finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_judged_by_its_state_then_by_the_status() {
        let state = |state: &str| json!({"TaskState": state, "Messages": [{"Message": "No route to host."}]});
        for going in [
            "New",
            "Starting",
            "Running",
            "Suspended",
            "Interrupted",
            "Pending",
            "Stopping",
            "Service",
            "Cancelling",
            "Odd",
        ] {
            assert_eq!(Progress::of(200, &state(going)), Progress::Running, "{going}");
        }
        assert_eq!(Progress::of(200, &state("Completed")), Progress::Finished);
        assert_eq!(Progress::of(200, &state("Exception")), Progress::Failed("Exception: No route to host.".into()));
        assert_eq!(Progress::of(202, &Value::Null), Progress::Running);
        assert_eq!(Progress::of(204, &Value::Null), Progress::Finished);
        let critical = json!({"TaskState": "Completed", "TaskStatus": "Critical", "Messages": [{"Message": "Bad."}]});
        assert_eq!(Progress::of(200, &critical), Progress::Failed("Bad.".into()));
    }
}
