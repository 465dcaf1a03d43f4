//! Reasons to do nothing to the objects of a dialect: that another operator looks after them (see [`crate::rival`]), and that the installed
//! CRD of its hosts does not keep the field in which a host's record is stored.
//!
//! An API server silently drops fields that a CRD does not declare. Without its record, the operator would not know after a
//! restart what it has done to a host. So nothing is done to hosts of a kind whose CRD is older than the operator, until it is
//! replaced.
//!
//! The schema is read from the API server's OpenAPI document, which every authenticated user may read: an operator of one
//! namespace may not read CRDs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Request, StatusCode};
use kube::api::{ListParams, ObjectList};
use kube::client::Body;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use serde_json::Value;
use tokio::sync::watch;
use tracing::{debug, error, info, warn};

use crate::dialect::HostDialect;
use crate::herald::{Herald, News};
use crate::watches::pauses;

/// How often the document is checked while nothing is wrong. The API server answers 304 if it has not changed.
const AGAIN: Duration = Duration::from_mins(1);
/// How often it is checked while hosts are blocked.
const SOON_AGAIN: Duration = Duration::from_secs(10);
/// Reason of the Event on each host.
const REASON: &str = "RecordNotKept";
/// How many hosts are listed at once.
const PAGE: u32 = 500;

/// What the installed CRD does with the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    /// The API server does not serve the kind, or no such document.
    Untold,
}

/// Whether the objects of a dialect may be looked after: nobody else does that, and the definition of its hosts is known to be fit. While
/// that is not so, nothing is done to any object of that dialect.
#[derive(Debug, Clone)]
pub(crate) struct Fitness(watch::Receiver<Findings>);

/// What was found out so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Findings {
    keeps_record: bool,
    is_alone: bool,
}

impl Findings {
    fn are_fit(self) -> bool {
        self.keeps_record && self.is_alone
    }
}

/// Where it is told what was found out.
#[derive(Debug, Clone)]
pub(crate) struct Verdict(Arc<watch::Sender<Findings>>);

impl Verdict {
    fn keeps_record(&self, keeps_record: bool) {
        self.0.send_modify(|findings| findings.keeps_record = keeps_record);
    }

    pub(crate) fn is_alone(&self, is_alone: bool) {
        self.0.send_modify(|findings| findings.is_alone = is_alone);
    }
}

impl Fitness {
    /// Not fit yet, and where it is told. A dialect that replaces no other operator is alone.
    pub(crate) fn new(has_rival: bool) -> (Verdict, Self) {
        let (told, fitness) = watch::channel(Findings { keeps_record: false, is_alone: !has_rival });
        (Verdict(Arc::new(told)), Self(fitness))
    }

    pub(crate) fn is_fit(&self) -> bool {
        self.0.borrow().are_fit()
    }

    /// Waits until it is fit, or until it is not.
    pub(crate) async fn becomes(&self, fit: bool) {
        if self.0.clone().wait_for(|findings| findings.are_fit() == fit).await.is_err() {
            // Whoever tells it has stopped: it stays as it is.
            std::future::pending::<()>().await;
        }
    }
}

/// The installed CRD of a dialect's hosts.
pub(crate) struct Definition {
    client: Client,
    notices: Notices,
    /// The last answer, and its ETag.
    known: Option<(HeaderValue, Fate)>,
    warned: bool,
}

impl Definition {
    pub(crate) fn new(client: Client, herald: Arc<Herald>) -> Self {
        Self { client, notices: Notices::new(herald), known: None, warned: false }
    }

    /// Follows the definition for as long as it is polled, and tells whether it is fit.
    pub(crate) async fn follow<D: HostDialect>(mut self, hosts: Api<D::Host>, verdict: Verdict) {
        loop {
            self.is_fit::<D>(&hosts).await;
            verdict.keeps_record(true);
            self.is_unfit::<D>().await;
            verdict.keeps_record(false);
        }
    }

    /// Returns when the record is kept, or when that cannot be found out. Until then, it reports the problem in the log and on
    /// each host.
    async fn is_fit<D: HostDialect>(&mut self, hosts: &Api<D::Host>) {
        while self.first_look::<D>().await == Fate::Dropped {
            if !std::mem::replace(&mut self.warned, true) {
                error!("{} Nothing is done to {} until then.", sentence::<D>(), D::Host::plural(&()));
            }
            let message = format!("{} Nothing is done to the host until then.", sentence::<D>());
            self.notices.tell::<D>(hosts, REASON, &message).await;
            tokio::time::sleep(SOON_AGAIN).await;
        }
        if std::mem::take(&mut self.warned) {
            info!("the CustomResourceDefinition of {} keeps {} now", D::Host::plural(&()), path::<D>());
        }
        self.notices.forget();
    }

    /// Returns when the record is no longer kept.
    async fn is_unfit<D: HostDialect>(&mut self) {
        loop {
            match self.look::<D>().await {
                Fate::Dropped => return,
                Fate::Kept => tokio::time::sleep(AGAIN).await,
                Fate::Untold => tokio::time::sleep(SOON_AGAIN).await,
            }
        }
    }

    /// Asks until there is an answer: nothing starts before that.
    async fn first_look<D: HostDialect>(&mut self) -> Fate {
        let mut pauses = pauses();
        loop {
            match self.ask::<D>().await {
                Ok(fate) => return fate,
                Err(error) => warn!(%error, "the API server does not answer, retrying"),
            }
            tokio::time::sleep(pauses.next().unwrap_or(SOON_AGAIN)).await;
        }
    }

    /// Asks once. Without an answer, the last one stays valid.
    async fn look<D: HostDialect>(&mut self) -> Fate {
        self.ask::<D>().await.unwrap_or_else(|error| {
            debug!(%error, "the API server's OpenAPI document cannot be read");
            self.known.as_ref().map_or(Fate::Untold, |(_, fate)| *fate)
        })
    }

    async fn ask<D: HostDialect>(&mut self) -> kube::Result<Fate> {
        let (group, version) = (D::Host::group(&()), D::Host::version(&()));
        let group = if group.is_empty() { "api".to_owned() } else { format!("apis/{group}") };
        let mut request = Request::get(format!("/openapi/v3/{group}/{version}"));
        if let Some((mark, _)) = &self.known {
            request = request.header(IF_NONE_MATCH, mark);
        }
        let request = request.body(Body::empty()).map_err(kube::Error::HttpError)?;
        let answer = self.client.send(request).await?;
        match (answer.status(), &self.known) {
            (StatusCode::NOT_MODIFIED, Some((_, fate))) => return Ok(*fate),
            (StatusCode::OK, _) => {}
            (status, _) => {
                if status != StatusCode::NOT_FOUND && self.known.is_none() && !std::mem::replace(&mut self.warned, true)
                {
                    warn!(%status, "cannot check whether the CustomResourceDefinition of {} fits this version: the API server does not serve its OpenAPI document", D::Host::plural(&()));
                }
                return Ok(Fate::Untold);
            }
        }
        let mark = answer.headers().get(ETAG).cloned();
        let body = answer.into_body().collect_bytes().await?;
        let document: Value = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
        let fate = fate::<D>(&document);
        self.known = mark.map(|mark| (mark, fate));
        Ok(fate)
    }
}

/// Events on all hosts of a dialect that nothing is done to.
pub(crate) struct Notices {
    herald: Arc<Herald>,
    /// Hosts that were told.
    told: HashSet<String>,
}

impl Notices {
    pub(crate) fn new(herald: Arc<Herald>) -> Self {
        Self { herald, told: HashSet::new() }
    }

    /// It is over: the next time is news again.
    pub(crate) fn forget(&mut self) {
        self.told.clear();
    }

    /// Sends one event per host that says what is wrong.
    pub(crate) async fn tell<D: HostDialect>(&mut self, hosts: &Api<D::Host>, reason: &str, message: &str) {
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let listed: kube::Result<ObjectList<_>> = hosts.list_metadata(&page).await;
            let Ok(listed) = listed.inspect_err(|error| debug!(%error, "cannot list hosts")) else { return };
            for host in &listed.items {
                if self.told.insert(host.metadata.uid.clone().unwrap_or_default()) {
                    let news = News { warning: true, reason: reason.to_owned(), message: message.to_owned() };
                    self.herald.tell(reference::<D>(host), news);
                }
            }
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return,
            }
        }
    }
}

fn reference<D: HostDialect>(host: &PartialObjectMeta<D::Host>) -> k8s_openapi::api::core::v1::ObjectReference {
    k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(D::Host::api_version(&()).into_owned()),
        kind: Some(D::Host::kind(&()).into_owned()),
        name: host.metadata.name.clone(),
        namespace: host.metadata.namespace.clone(),
        uid: host.metadata.uid.clone(),
        ..Default::default()
    }
}

fn path<D: HostDialect>() -> String {
    D::RECORD.join(".")
}

fn sentence<D: HostDialect>() -> String {
    let (plural, group) = (D::Host::plural(&()), D::Host::group(&()));
    format!(
        "The installed CustomResourceDefinition {plural}.{group} drops {}, in which the operator remembers what it has done to a server: it is of another version. Apply the one of this version (beskar7 crds | kubectl apply --server-side -f -).",
        path::<D>()
    )
}

/// What a document says about the record of a dialect's hosts.
fn fate<D: HostDialect>(document: &Value) -> Fate {
    let kind = serde_json::json!({
        "group": D::Host::group(&()), "version": D::Host::version(&()), "kind": D::Host::kind(&()),
    });
    let is_ours = |schema: &&Value| {
        schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&kind))
    };
    let schemas = document["components"]["schemas"].as_object();
    match schemas.and_then(|schemas| schemas.values().find(is_ours)) {
        None => Fate::Untold,
        Some(schema) if keeps(schema, D::RECORD) => Fate::Kept,
        Some(_) => Fate::Dropped,
    }
}

/// Whether a structural schema keeps the text at this path.
fn keeps(schema: &Value, path: &[&str]) -> bool {
    let Some((field, rest)) = path.split_first() else {
        let is_free = schema["x-kubernetes-preserve-unknown-fields"] == true;
        return is_free || schema["type"] == "string" || schema["type"].is_null();
    };
    match &schema["properties"][field] {
        Value::Null => {
            let others = &schema["additionalProperties"];
            let is_free = schema["x-kubernetes-preserve-unknown-fields"] == true || *others == true;
            is_free || (others.is_object() && keeps(others, rest))
        }
        inner => keeps(inner, rest),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::beskar7::PhysicalHosts;

    #[test]
    fn a_schema_keeps_what_it_names_or_what_it_leaves_open() {
        let object = |fields: Value| json!({ "type": "object", "properties": fields });
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let table = [
            ("as ours", object(json!({ "status": object(json!({ "record": { "type": "string" } })) })), true),
            ("of before there was a record", object(json!({ "status": object(json!({ "state": {} })) })), false),
            ("without a status", object(json!({})), false),
            ("an open status", object(json!({ "status": open })), true),
            ("open altogether", open.clone(), true),
            (
                "a status with a map",
                object(json!({ "status": { "additionalProperties": { "type": "string" } } })),
                true,
            ),
            ("a map of numbers", object(json!({ "status": { "additionalProperties": { "type": "integer" } } })), false),
            ("another record", object(json!({ "status": object(json!({ "record": object(json!({})) })) })), false),
        ];
        for (what, schema, expected) in table {
            assert_eq!(keeps(&schema, PhysicalHosts::RECORD), expected, "{what}");
        }
    }

    #[test]
    fn our_own_definition_keeps_the_record_in_every_version() {
        let definitions = api::crds();
        let name = "physicalhosts.infrastructure.cluster.x-k8s.io";
        let ours = definitions.iter().find(|definition| definition.metadata.name.as_deref() == Some(name)).unwrap();
        assert!(!ours.spec.versions.is_empty());
        for version in &ours.spec.versions {
            let schema = serde_json::to_value(version.schema.as_ref().unwrap().open_api_v3_schema.as_ref()).unwrap();
            assert!(keeps(&schema, PhysicalHosts::RECORD), "{}", version.name);
        }
    }
}
