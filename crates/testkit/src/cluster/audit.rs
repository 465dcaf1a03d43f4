//! Counting writes: the API server's own log of who changed what.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde::Deserialize;

use super::Cluster;
use crate::wait::wait_for;

pub(super) const LOG: &str = "audit.log";

/// Among everything else that it logs.
const EMBEDDED_LOG: &str = "beskar7.log";
const EMBEDDED_WRITE: &str = r#""target":"apiserver::audit""#;

pub(super) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  # Reviews are questions, although they are asked by creating them.
  - level: None
    resources: [{group: authorization.k8s.io}]
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
";

/// One request that changed something, or tried to. What does not apply is empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuditWrite {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the kind.
    pub resource: String,
    /// `status` and the like.
    pub subresource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for `create`, where the name is not part of the address.
    pub name: String,
    /// Who did it.
    pub user: String,
    /// What the API server answered; 4xx changed nothing.
    pub code: u16,
}

impl Cluster {
    /// All writes so far of users whose name contains `user`, oldest first, without those to the resources in
    /// `ignored` (say, `&["events", "leases"]`).
    ///
    /// The log of the shared cluster has the writes of all tests: pass a service account's own name.
    pub async fn writes(&self, user: &str, ignored: &[&str]) -> Vec<AuditWrite> {
        let barrier = self.write_barrier().await;
        let log = self.home.join(if self.embedded { EMBEDDED_LOG } else { LOG });
        let lines = wait_for("the audit log to be complete", Duration::from_secs(10), || async {
            let log = std::fs::read_to_string(&log).ok()?;
            log.contains(&barrier).then_some(log)
        })
        .await;
        // What follows the barrier belongs to somebody else, and its last line may be half written.
        lines
            .lines()
            .take_while(|line| !line.contains(&barrier))
            .filter(|line| !self.embedded || line.contains(EMBEDDED_WRITE))
            .map(if self.embedded { parse_embedded } else { parse })
            .filter(|write| write.user.contains(user) && !ignored.contains(&write.resource.as_str()))
            .collect()
    }

    /// The log runs a little behind the answers: a write that changes nothing marks the place up to which to wait.
    async fn write_barrier(&self) -> String {
        let name = format!("audit-barrier-{:016x}", fastrand::u64(..));
        let maps: Api<ConfigMap> = Api::namespaced(self.admin(), "default");
        let answer = maps.delete(&name, &DeleteParams::default()).await;
        assert!(matches!(&answer, Err(kube::Error::Api(status)) if status.code == 404), "unexpected: {answer:?}");
        name
    }
}

fn parse_embedded(line: &str) -> AuditWrite {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("no write ({error}): {line}"))
}

fn parse(line: &str) -> AuditWrite {
    let event: Event = serde_json::from_str(line).unwrap_or_else(|error| panic!("no audit event ({error}): {line}"));
    let object = event.object_ref.unwrap_or_default();
    AuditWrite {
        verb: event.verb,
        group: object.api_group,
        resource: object.resource,
        subresource: object.subresource,
        namespace: object.namespace,
        name: object.name,
        user: event.user.username,
        code: event.response_status.unwrap_or_default().code,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}
