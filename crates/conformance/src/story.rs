//! The words in which cases are told.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::answer::Answer;
use crate::compare::Step;
use crate::shell::{Desk, Run};
use crate::target::Target;
use crate::watching::Watching;
use crate::wire::{Reply, Wire};

/// How long something that happens by itself may take on the real server; ours gets the same.
const EVENTUALLY: Duration = Duration::from_mins(1);

const JSON: &str = "application/json";

/// One case as told to one server: its requests and what was answered.
///
/// In paths, `{ns}` stands for the case's namespace and `{group}` for its API group; both are named after the case, so that
/// cases can be told at the same time.
pub struct Story {
    namespace: String,
    wire: Wire,
    steps: Vec<Step>,
    desk: Option<Desk>,
}

impl Story {
    /// Begins a case named after a test function.
    pub fn new(case: &str, target: Target) -> Self {
        Story { namespace: label(case), wire: Wire::new(target), steps: Vec::new(), desk: None }
    }

    /// What was recorded.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// What was recorded, when the story was broken off.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The case's namespace.
    pub fn ns(&self) -> &str {
        &self.namespace
    }

    /// The case's API group.
    pub fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    /// The server that this is told to, as the admin.
    pub fn target(&self) -> &Target {
        self.wire.target()
    }

    /// Creates the case's namespace; not recorded.
    pub async fn make_namespace(&mut self) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let answer = self.ask("POST", "/api/v1/namespaces", &[], body.to_string()).await;
        answer.is(201);
    }

    // --- requests -----------------------------------------------------------------------------------------

    /// GET.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], Bytes::new()).await
    }

    /// GET with an `Accept` header.
    pub async fn get_as(&mut self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], Bytes::new()).await
    }

    /// POST of JSON.
    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[("content-type", JSON)], body.to_string()).await
    }

    /// PUT of JSON.
    pub async fn put(&mut self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, &[("content-type", JSON)], body.to_string()).await
    }

    /// PATCH with a JSON patch.
    pub async fn json_patch(&mut self, path: &str, body: Value) -> Answer {
        self.patch(path, "application/json-patch+json", body).await
    }

    /// PATCH with a merge patch.
    pub async fn merge_patch(&mut self, path: &str, body: Value) -> Answer {
        self.patch(path, "application/merge-patch+json", body).await
    }

    /// PATCH with a strategic merge patch.
    pub async fn strategic_patch(&mut self, path: &str, body: Value) -> Answer {
        self.patch(path, "application/strategic-merge-patch+json", body).await
    }

    /// PATCH with an apply configuration; the path names the field manager.
    pub async fn apply(&mut self, path: &str, body: Value) -> Answer {
        self.patch(path, "application/apply-patch+yaml", body).await
    }

    /// PATCH of any type.
    pub async fn patch(&mut self, path: &str, patch_type: &str, body: Value) -> Answer {
        self.send("PATCH", path, &[("content-type", patch_type)], body.to_string()).await
    }

    /// DELETE without options.
    pub async fn delete(&mut self, path: &str) -> Answer {
        self.send("DELETE", path, &[], Bytes::new()).await
    }

    /// DELETE with options in the body.
    pub async fn delete_with(&mut self, path: &str, mut options: Value) -> Answer {
        options["apiVersion"] = "v1".into();
        options["kind"] = "DeleteOptions".into();
        self.send("DELETE", path, &[("content-type", JSON)], options.to_string()).await
    }

    /// Any request, recorded.
    pub async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let answer = self.ask(method, path, headers, body).await;
        self.note(&answer);
        answer
    }

    /// Any request, not recorded.
    pub async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let request = self.request(method, path, headers, body.into());
        let reply = self.wire.ask(&request).await;
        self.answer(method, path, reply)
    }

    /// A request with a bearer token instead of the admin's certificate, recorded.
    pub async fn send_with_token(&mut self, token: &str, method: &str, path: &str) -> Answer {
        let target = self.target().with_token(token);
        self.send_to(target, method, path).await
    }

    /// A request without any identity, recorded.
    pub async fn send_anonymously(&mut self, method: &str, path: &str) -> Answer {
        let target = self.target().anonymous();
        self.send_to(target, method, path).await
    }

    async fn send_to(&mut self, target: Target, method: &str, path: &str) -> Answer {
        let request = self.request(method, path, &[], Bytes::new());
        let reply = Wire::new(target).ask(&request).await;
        let answer = self.answer(method, path, reply);
        self.note(&answer);
        answer
    }

    /// Begins a watch; the path says `watch=true`.
    pub async fn watch(&mut self, path: &str) -> Watching {
        self.watch_as(path, JSON).await
    }

    /// Begins a watch with an `Accept` header.
    pub async fn watch_as(&mut self, path: &str, accept: &str) -> Watching {
        let request = self.request("GET", path, &[("accept", accept)], Bytes::new());
        Watching::begin(self.wire.another(), &request, path).await
    }

    // --- what happens by itself ---------------------------------------------------------------------------

    /// Asks until the answer is as described, and records that answer only.
    pub async fn eventually(&mut self, path: &str, what: &str, holds: impl Fn(&Answer) -> bool) -> Answer {
        let answer = self.until(path, what, holds).await;
        self.note(&answer);
        answer
    }

    /// Asks until the answer is as described, and records nothing.
    pub async fn until(&mut self, path: &str, what: &str, holds: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + EVENTUALLY;
        let mut pause = Duration::from_millis(5);
        loop {
            let answer = self.ask("GET", path, &[], Bytes::new()).await;
            if holds(&answer) {
                return answer;
            }
            if Instant::now() > deadline {
                answer.holds(&format!("{what} within {EVENTUALLY:?}"), |_| false);
                return answer;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// Asks until the object is gone, and records that it is.
    pub async fn gone(&mut self, path: &str) -> Answer {
        self.eventually(path, "gone", |answer| answer.code() == 404).await
    }

    /// Creates a definition in the case's group and waits until its kind is served; not recorded. Returns the path of the
    /// collection (of the first version, in the case's namespace unless it is of the cluster).
    pub async fn define(&mut self, definition: Value) -> String {
        let created = self.ask("POST", DEFINITIONS, &[("content-type", JSON)], definition.to_string()).await;
        created.is(201);
        self.served(&definition).await
    }

    /// The same for a definition that the cases of several processes share: whoever comes first creates it.
    pub async fn define_once(&mut self, definition: Value) -> String {
        let answer = self.ask("POST", DEFINITIONS, &[("content-type", JSON)], definition.to_string()).await;
        assert!([201, 409].contains(&answer.code()), "{}", answer.body());
        self.served(&definition).await
    }

    /// Waits until a definition's kind is served; see [`Story::define`].
    pub async fn served(&mut self, definition: &Value) -> String {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        self.until(&format!("{DEFINITIONS}/{name}"), "established", established).await;
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&spec["versions"][0]["name"]);
        let plural = text(&spec["names"]["plural"]);
        let scope = if spec["scope"] == "Cluster" { String::new() } else { format!("namespaces/{}/", self.namespace) };
        let path = format!("/apis/{}/{version}/{scope}{plural}", text(&spec["group"]));
        self.until(&path, "served", |answer| answer.code() == 200).await;
        path
    }

    // --- programs ---------------------------------------------------------------------------------------------

    /// Writes a file that the story's programs find in their directory; `{ns}` and `{group}` are filled in.
    pub fn file(&mut self, name: &str, content: &str) {
        let content = self.filled(content);
        self.desk().write(name, &content);
    }

    /// Runs a shell script with kubectl and the other tools at hand, and records what it printed. The current context is
    /// the admin's, in the case's namespace.
    pub async fn run(&mut self, script: &str) -> Run {
        let script = self.filled(script);
        let judge = self.target().is_judge();
        let run = self.desk().run(&script, judge).await;
        self.record(&format!("$ {script}"), run.record());
        run
    }

    fn desk(&mut self) -> &Desk {
        let target = self.wire.target().clone();
        self.desk.get_or_insert_with(|| Desk::new(&target, &self.namespace))
    }

    // --- recording ----------------------------------------------------------------------------------------

    /// Records something that was made of answers.
    pub fn record(&mut self, title: &str, value: Value) {
        self.steps.push(Step { title: title.to_owned(), answer: value });
    }

    fn note(&mut self, answer: &Answer) {
        self.record(&answer.title.clone(), answer.record());
    }

    fn answer(&self, method: &str, path: &str, reply: Reply) -> Answer {
        Answer {
            title: format!("{method} {}", self.filled(path)),
            judge: self.target().is_judge(),
            code: reply.status.as_u16(),
            headers: reply.headers,
            body: parsed(&reply.body),
        }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Bytes) -> Request<Bytes> {
        let method: Method = method.parse().expect("a method");
        let mut request =
            Request::builder().method(method).uri(self.filled(path)).header(header::USER_AGENT, "suite/1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !headers.iter().any(|(name, _)| *name == "accept") {
            request = request.header(header::ACCEPT, JSON);
        }
        request.body(body).unwrap_or_else(|error| panic!("{path} is no path: {error}"))
    }

    fn filled(&self, path: &str) -> String {
        path.replace("{ns}", &self.namespace).replace("{group}", &self.group())
    }
}

/// Where definitions of custom resources live.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn established(answer: &Answer) -> bool {
    let conditions = answer.at("/status/conditions").as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Established" && one["status"] == "True")
}

/// The body as JSON, or as text where it is none.
pub(crate) fn parsed(body: &Bytes) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into())
}

/// A DNS label made of the name of a test function.
fn label(case: &str) -> String {
    let name = case.rsplit("::").next().unwrap_or(case).replace('_', "-");
    name[..name.len().min(60)].trim_end_matches('-').to_owned()
}
