//! Whether another operator that looks after the same objects is running, as its Lease shows.
//!
//! Two operators on one server would each undo what the other does. So nothing is done to the objects of a dialect while the Lease of the
//! operator that it replaces is held, in whatever namespace.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tracing::{debug, error, info, warn};

use crate::clock::Clock;
use crate::definition::{Notices, Verdict};
use crate::dialect::HostDialect;

/// How often the Leases are looked at.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a Lease lasts that does not say it: the default of client-go.
const DURATION: i32 = 15;
/// Reason of the Event on each host.
const REASON: &str = "OtherOperatorRuns";

/// Who else looks after the objects of a dialect.
pub(crate) struct Rival {
    client: Client,
    clock: Arc<dyn Clock>,
    /// Where Leases are listed if it may not be done everywhere.
    namespace: String,
    is_confined: bool,
    /// When each Lease was last renewed, by its own account.
    renewed: HashMap<String, Timestamp>,
    /// What the log says.
    told: Option<String>,
}

impl Rival {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, namespace: Option<String>) -> Self {
        let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        Self { client, clock, namespace, is_confined: false, renewed: HashMap::new(), told: None }
    }

    /// Looks for as long as it is polled, and tells whether we are alone. What could not be found out yet counts as no.
    pub(crate) async fn follow<D: HostDialect>(mut self, hosts: Api<D::Host>, mut notices: Notices, verdict: Verdict) {
        let Some(name) = D::RIVAL_LEASE else { return };
        loop {
            match self.look(name).await {
                Ok(None) => {
                    if self.told.take().is_some() {
                        info!(
                            "no other operator holds the Lease {name} any more; looking after {}",
                            D::Host::plural(&())
                        );
                    }
                    notices.forget();
                    verdict.is_alone(true);
                }
                Ok(Some(holder)) => {
                    verdict.is_alone(false);
                    let why = format!(
                        "{holder}: another operator looks after {}. Stop it (scale its Deployment to 0); this is checked every {} s.",
                        D::Host::plural(&()),
                        AGAIN.as_secs()
                    );
                    self.say(&format!("{why} Nothing is done to them until then."));
                    notices.tell::<D>(&hosts, REASON, &format!("{why} Nothing is done to the host until then.")).await;
                }
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    verdict.is_alone(false);
                    let plural = D::Host::plural(&());
                    self.say(&format!("Not allowed to list the Leases {name}, so it cannot be known whether another operator looks after {plural}. Nothing is done to them until the role of the operator allows it (beskar7 roles)."));
                }
                // The last answer stays valid.
                Err(error) => debug!(%error, "Leases cannot be listed"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Which Lease of this name is held, and by whom.
    async fn look(&mut self, name: &str) -> kube::Result<Option<String>> {
        let leases = self.list(name).await?;
        let now = self.clock.now();
        let mut renewed = HashMap::new();
        let mut holder = None;
        for lease in leases {
            let namespace = lease.namespace().unwrap_or_default();
            let before = self.renewed.get(&namespace).copied();
            if let Some(at) = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()) {
                renewed.insert(namespace.clone(), at.0);
            }
            if let Some(held) = holder_of(&lease, before, now) {
                holder.get_or_insert(format!("Lease {name} in namespace {namespace} is held by {held}"));
            }
        }
        self.renewed = renewed;
        Ok(holder)
    }

    /// Everywhere, or where we are if nothing else is allowed.
    async fn list(&mut self, name: &str) -> kube::Result<Vec<Lease>> {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        if !self.is_confined {
            match Api::<Lease>::all(self.client.clone()).list(&named).await {
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    warn!(
                        "not allowed to list Leases in all namespaces: only namespace {} is searched for a Lease {name} of another operator",
                        self.namespace
                    );
                    self.is_confined = true;
                }
                listed => return Ok(listed?.items),
            }
        }
        Ok(Api::<Lease>::namespaced(self.client.clone(), &self.namespace).list(&named).await?.items)
    }

    /// Writes to the log what was not written there before.
    fn say(&mut self, what: &str) {
        if self.told.as_deref() != Some(what) {
            error!("{what}");
            self.told = Some(what.to_owned());
        }
    }
}

/// Who holds a Lease now. One that was renewed since the last look is held, whatever our clock says.
fn holder_of(lease: &Lease, before: Option<Timestamp>, now: Timestamp) -> Option<&str> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time.as_ref()?.0;
    let lasts = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(DURATION).into());
    let until = renewed.saturating_add(lasts).unwrap_or(Timestamp::MAX);
    (until >= now || before.is_some_and(|before| before != renewed)).then_some(holder)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_lease_is_held_until_it_has_expired_or_was_given_back() {
        let time = |text: &str| -> Timestamp { format!("2026-11-18T08:{text}Z").parse().unwrap() };
        let spec = |holder: &str, renewed: &str, lasts: Value| json!({ "holderIdentity": holder, "renewTime": format!("2026-11-18T08:{renewed}.000000Z"), "leaseDurationSeconds": lasts });
        let table = [
            ("held", spec("a", "00:00", json!(15)), None, true),
            ("expired", spec("a", "00:00", json!(9)), None, false),
            ("just not expired", spec("a", "00:00", json!(10)), None, true),
            ("given back", spec("", "00:00", json!(15)), None, false),
            ("without a duration", spec("a", "00:00", Value::Null), None, true),
            ("expired, and as it was", spec("a", "00:00", json!(9)), Some("00:00"), false),
            ("renewed by a clock that is behind", spec("a", "00:00", json!(9)), Some("00:50"), true),
            ("never renewed", json!({ "holderIdentity": "a" }), None, false),
            ("empty", json!({}), None, false),
        ];
        for (what, spec, before, is_held) in table {
            let lease = serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": spec })).unwrap();
            let holder = holder_of(&lease, before.map(time), time("00:10"));
            assert_eq!(holder, is_held.then_some("a"), "{what}");
        }
    }
}
