//! Tasks: work that was accepted and ends later.

use std::time::Duration;

use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::personality::{Monitor, TaskRules};
use crate::place::Places;
use crate::reply::{Problem, Reply};

/// What a task does to a server when it ends.
#[derive(Clone, Debug)]
pub(crate) enum Deferred {
    Nothing,
    /// Index of the system, of the slot, and what goes into it.
    Insert(usize, usize, Medium),
    Eject(usize, usize),
}

/// What InsertMedia asked for.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    pub(crate) image: String,
    pub(crate) inserted: bool,
    pub(crate) write_protected: bool,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) due: Instant,
    /// Taken when it has been done.
    pub(crate) deferred: Option<Deferred>,
    monitor_gone: bool,
}

/// Longer than any test lasts.
const FAR: Duration = Duration::from_hours(24 * 365);

#[derive(Debug, Default)]
pub(crate) struct Tasks {
    list: Vec<Task>,
    next: u32,
}

/// Where the pieces of a task are.
pub(crate) struct Names<'a> {
    pub(crate) places: &'a Places,
    pub(crate) rules: &'a TaskRules,
}

impl Names<'_> {
    fn task(&self, number: u32) -> String {
        format!("{}/{}{number}", self.places.tasks, self.rules.prefix)
    }

    fn monitor(&self, number: u32) -> String {
        format!("{}/{}{number}", self.places.monitors, self.rules.prefix)
    }

    fn body(&self, task: &Task, now: Instant) -> Value {
        let done = task.due <= now;
        json!({
            "@odata.id": self.task(task.number),
            "@odata.type": "#Task.v1_6_0.Task",
            "Id": format!("{}{}", self.rules.prefix, task.number),
            "Name": task.name,
            "TaskState": if done { "Completed" } else { "Running" },
            "TaskStatus": "OK",
            "PercentComplete": if done { 100 } else { 10 },
            "TaskMonitor": self.monitor(task.number),
            "Messages": [],
        })
    }
}

impl Tasks {
    /// Accepts work: 202 with the monitor.
    pub(crate) fn start(
        &mut self,
        name: &'static str,
        now: Instant,
        due: Instant,
        deferred: Deferred,
        names: &Names<'_>,
    ) -> Reply {
        self.next += 1;
        let task = Task { number: self.next, name, due, deferred: Some(deferred), monitor_gone: false };
        let body = if names.rules.hidden_in_message {
            json!({
                "Accepted": {
                    "code": "Base.v1_10_3.Accepted",
                    "Message": "Successfully Accepted Request. Please see the location header and ExtendedInfo.",
                    "@Message.ExtendedInfo": [{
                        "MessageId": "SMC.1.0.OemSimpleupdateAcceptedMessage",
                        "Severity": "Ok",
                        "Resolution": "No resolution was required.",
                        "Message": "Please also check Task Resource.",
                        "MessageArgs": [names.task(task.number)],
                        "RelatedProperties": [],
                    }],
                },
            })
        } else {
            names.body(&task, now)
        };
        let reply = Reply::json(StatusCode::ACCEPTED, body)
            .header(LOCATION, names.monitor(task.number))
            .header(RETRY_AFTER, "1");
        self.list.push(task);
        reply
    }

    pub(crate) fn forget(&mut self, now: Instant, rules: &TaskRules) {
        self.list.retain(|t| now < t.due + rules.kept || t.deferred.is_some());
    }

    /// A task that waits for a reset of the server: it is over when [`Tasks::finish`] says so.
    pub(crate) fn start_waiting(&mut self, name: &'static str, now: Instant, names: &Names<'_>) -> (u32, Reply) {
        let reply = self.start(name, now, now + FAR, Deferred::Nothing, names);
        (self.next, reply)
    }

    pub(crate) fn finish(&mut self, number: u32, now: Instant) {
        if let Some(task) = self.list.iter_mut().find(|t| t.number == number) {
            task.due = now;
        }
    }

    /// Whether an image is on its way into this drive.
    pub(crate) fn inserts(&self, server: usize, slot: usize) -> bool {
        let inserts = |work: &Deferred| matches!(work, Deferred::Insert(its, at, _) if (*its, *at) == (server, slot));
        self.list.iter().any(|task| task.deferred.as_ref().is_some_and(inserts))
    }

    /// The work of the first task that has ended and not been done, with the time at which it ended.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<(Instant, Deferred)> {
        let task = self.list.iter_mut().filter(|t| t.due <= now && t.deferred.is_some()).min_by_key(|t| t.due)?;
        Some((task.due, task.deferred.take()?))
    }

    pub(crate) fn collection(&self, mut body: Value, names: &Names<'_>) -> Value {
        let members: Vec<Value> = self.list.iter().map(|t| json!({ "@odata.id": names.task(t.number) })).collect();
        body["Members@odata.count"] = json!(members.len());
        body["Members"] = json!(members);
        body
    }

    pub(crate) fn get(&self, number: u32, now: Instant, names: &Names<'_>) -> Result<Reply, Problem> {
        let task = self.list.iter().find(|t| t.number == number);
        let task = task.ok_or_else(|| Problem::not_found(&names.task(number)))?;
        Ok(Reply::ok(names.body(task, now)))
    }

    pub(crate) fn monitor(&mut self, number: u32, now: Instant, names: &Names<'_>) -> Result<Reply, Problem> {
        let missing = || Problem::not_found(&names.monitor(number));
        let task = self.list.iter_mut().find(|t| t.number == number && !t.monitor_gone).ok_or_else(missing)?;
        let body = names.body(task, now);
        if now < task.due {
            let reply = Reply::json(StatusCode::ACCEPTED, body);
            return Ok(reply.header(LOCATION, names.monitor(number)).header(RETRY_AFTER, "1"));
        }
        Ok(match names.rules.monitor {
            Monitor::Stays => Reply::ok(body),
            Monitor::Once => {
                task.monitor_gone = true;
                Reply::empty(StatusCode::NO_CONTENT)
            }
            Monitor::DeletesTask => {
                self.list.retain(|t| t.number != number);
                Reply::ok(body)
            }
        })
    }

    pub(crate) fn delete(&mut self, number: u32, names: &Names<'_>) -> Result<Reply, Problem> {
        let before = self.list.len();
        self.list.retain(|t| t.number != number);
        if self.list.len() < before {
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        } else {
            Err(Problem::not_found(&names.task(number)))
        }
    }
}
