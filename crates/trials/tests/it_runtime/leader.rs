//! Elections with the role that we ship.

use std::sync::Arc;
use std::time::Duration;

use controllers::clock::SystemClock;
use controllers::leader::{Elector, Outcome, Timing};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use testkit::{Account, Cluster, wait_for};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const ROLE: &str = include_str!("../../../../config/rbac/leader_election_role.yaml");
const BINDING: &str = "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: beskar7-leader-election}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: beskar7-leader-election}
subjects: [{kind: ServiceAccount, name: beskar7}]
";

/// Long enough for a busy machine to renew in, short enough to wait for.
const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(6),
    renew_deadline: Duration::from_secs(4),
    retry_period: Duration::from_millis(500),
    jitter: 1.2,
};
const SOON: Duration = Duration::from_mins(2);
/// The only one that the role allows.
const LEASE: &str = "beskar7.infrastructure.cluster.x-k8s.io";

struct Replica {
    elector: Arc<Elector>,
    shutdown: CancellationToken,
    term: JoinSet<Outcome<()>>,
}

impl Replica {
    fn start(account: &Account, namespace: &str, identity: &str) -> Self {
        let clock = Arc::new(SystemClock);
        let elector = Elector::new(account.client(), namespace, LEASE, identity, TIMING, clock).unwrap();
        let (elector, shutdown, mut term) = (Arc::new(elector), CancellationToken::new(), JoinSet::new());
        let (candidate, token) = (Arc::clone(&elector), shutdown.clone());
        term.spawn(async move { candidate.lead(token, |term| async move { term.cancelled().await }).await.unwrap() });
        Self { elector, shutdown, term }
    }

    async fn leads(&self) {
        tokio::time::timeout(SOON, self.elector.leading().wait_for(|leads| *leads))
            .await
            .expect("never leads")
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_followed_when_its_lease_ran_out_and_a_stopped_one_at_once() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("election").await;
    let roles = ROLE.replace("beskar7-system", &namespace) + BINDING;
    let account = cluster.service_account(&namespace, "beskar7", &roles).await;
    let leases: Api<Lease> = Api::namespaced(cluster.admin(), &namespace);
    let spec = async || -> LeaseSpec { leases.get(LEASE).await.unwrap().spec.unwrap() };

    let mut a = Replica::start(&account, &namespace, "a");
    a.leads().await;
    let mut b = Replica::start(&account, &namespace, "b");
    let first = spec().await;
    wait_for("a few renewals", SOON, async || {
        (spec().await.renew_time.map(|t| t.0) > first.renew_time.as_ref().map(|t| t.0)).then_some(())
    })
    .await;
    let held = spec().await;
    assert_eq!(held.holder_identity.as_deref(), Some("a"));
    assert_eq!((held.lease_duration_seconds, held.lease_transitions), (Some(6), Some(0)));
    assert_eq!(held.acquire_time, first.acquire_time);
    assert!(!b.elector.is_leader());

    a.term.shutdown().await;
    let killed = Instant::now();
    b.leads().await;
    // Its last renewal may have been a retry period old, and a little more on a busy machine.
    let waited = killed.elapsed() + TIMING.retry_period + Duration::from_millis(500);
    assert!(waited >= TIMING.lease_duration, "{waited:?}");
    assert_eq!(spec().await.lease_transitions, Some(1));

    b.shutdown.cancel();
    assert_eq!(b.term.join_next().await.unwrap().unwrap(), Outcome::Done(()));
    let free = spec().await;
    assert_eq!((free.holder_identity.as_deref(), free.lease_duration_seconds), (Some(""), Some(1)));
    let stopped = Instant::now();
    let c = Replica::start(&account, &namespace, "c");
    c.leads().await;
    assert!(stopped.elapsed() < TIMING.renew_deadline, "{:?}", stopped.elapsed());
    assert_eq!(spec().await.lease_transitions, Some(2));
}
