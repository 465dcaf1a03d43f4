//! Claims for tests of the dialect whose hosts are Nodes: PersistentVolumeClaims, which have a namespace and no Machine of Cluster API.

use std::collections::BTreeMap;

use engine::claim::{Binds, Goal, Host, Leave, Memory, Road, Standing};
use engine::host::{Milestone, Phase};
use engine::placement::{Availability, BootWay, Candidate, Pool, Request, Requirements, Selector};
use engine::server::PowerState;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{ClaimDialect, ClaimView, Decided};
use crate::companions::Companion;
use crate::depot::Question;
use crate::dialect::HostDialect as _;
use crate::dialect::foreign::ForeignHosts;
use crate::herald::News;
use crate::object::ObjectId;
use crate::relatives::Relative;
use crate::roster::{Holding, Offer};
use crate::writer::Ownership;

/// Annotation of a host: who claims it.
pub(crate) const CLAIMANT: &str = "example.com/claimant";
/// Annotation of a claim: the host that it runs on.
pub(crate) const PROVIDER: &str = "example.com/provider";

pub(crate) struct ForeignClaims;

impl ClaimDialect for ForeignClaims {
    type Claim = PersistentVolumeClaim;
    type Hosts = ForeignHosts;

    const NAME: &'static str = "foreignclaim";
    const PHASES: &'static [&'static str] = &["Unknown"];
    const FINALIZER: &'static str = "example.com/claim";
    const OURS: Ownership = Ownership { manager: "foreign", conditions: &[], left_behind: &[] };
    const DOMAIN_KEYS: &'static [&'static str] = &[];
    const CLUSTER_API: bool = false;

    fn relatives() -> Vec<Relative> {
        vec![Relative::of::<ConfigMap>(|_| Vec::new())]
    }

    fn depends_on(view: &ClaimView<'_, PersistentVolumeClaim>) -> Vec<ObjectId> {
        vec![ObjectId::named::<ConfigMap>(view.claim.namespace().as_deref(), &view.claim.name_any())]
    }

    fn companions(view: &ClaimView<'_, PersistentVolumeClaim>, decided: &Decided<'_>) -> Vec<Companion> {
        let (namespace, name) = (view.claim.namespace(), view.claim.name_any());
        let Some(holding) = decided.holding else {
            return vec![Companion::without::<ConfigMap>(namespace.as_deref(), &name)];
        };
        let metadata = ObjectMeta { name: Some(name), namespace, ..ObjectMeta::default() };
        let data = BTreeMap::from([("host".to_owned(), holding.host.name.clone())]);
        vec![Companion::like(&ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })]
    }

    fn bearers(_: &ObjectId) -> ListParams {
        ListParams::default()
    }

    fn pool(_: &PersistentVolumeClaim) -> Pool {
        Pool::Everything
    }

    fn phase(_: &PersistentVolumeClaim) -> &'static str {
        "Unknown"
    }

    fn goal(view: &ClaimView<'_, PersistentVolumeClaim>) -> Goal {
        let is_leaving = view.claim.metadata.deletion_timestamp.is_some();
        Goal {
            road: if is_leaving { Road::Leave(Leave::Release) } else { Road::Keep },
            unservable: None,
            blocked: None,
            needs_bootstrap: None,
            needs_image: false,
            quarantine: false,
            binds: Binds::WhenBooted,
            order: String::new(),
        }
    }

    fn image(_: &ClaimView<'_, PersistentVolumeClaim>) -> Option<Question> {
        None
    }

    fn memory(view: &ClaimView<'_, PersistentVolumeClaim>) -> Memory {
        let annotations = view.claim.annotations();
        let (id, provider) = (annotations.get(ForeignHosts::CLAIM_ID).cloned(), annotations.get(PROVIDER).cloned());
        Memory { id, provider, refusals: Vec::new() }
    }

    fn request(view: &ClaimView<'_, PersistentVolumeClaim>) -> Request {
        Request {
            claimant: ObjectId::of(view.claim).to_string(),
            since: Timestamp::MIN,
            pool: Self::pool(view.claim),
            named: None,
            tolerations: Vec::new(),
            selector: Selector::default(),
            failure_domain: None,
            domain_keys: view.domain_keys.clone(),
            requirements: Requirements::default(),
            way: BootWay::Any,
            refused_by: BTreeMap::new(),
            group: String::new(),
        }
    }

    fn order(view: &ClaimView<'_, PersistentVolumeClaim>, id: &str) -> Value {
        let claimant = ObjectId::of(view.claim).to_string();
        json!({ "metadata": { "annotations": { ForeignHosts::CLAIM_ID: id, CLAIMANT: claimant } } })
    }

    fn is_ordered(_: &ClaimView<'_, PersistentVolumeClaim>, _: &str) -> bool {
        true
    }

    fn reorder(_: &ClaimView<'_, PersistentVolumeClaim>) -> Value {
        json!({})
    }

    fn release(_: &ClaimView<'_, PersistentVolumeClaim>, _: &str, _: Timestamp, _: Option<&str>) -> Value {
        json!({ "metadata": { "annotations": { ForeignHosts::CLAIM_ID: null, CLAIMANT: null } } })
    }

    fn quarantine(_: &str) -> Value {
        json!({})
    }

    fn provider(provider: &str) -> Value {
        json!({ "metadata": { "annotations": { PROVIDER: provider } } })
    }

    fn status(view: &ClaimView<'_, PersistentVolumeClaim>, decided: &Decided<'_>) -> Option<Value> {
        let phase = match decided.standing {
            Standing::Provisioned { .. } => "Bound",
            _ => "Pending",
        };
        let shown = view.claim.status.as_ref().and_then(|status| status.phase.as_deref());
        (shown != Some(phase)).then(|| json!({ "phase": phase }))
    }

    fn news(_: &ClaimView<'_, PersistentVolumeClaim>, _: &Decided<'_>) -> Option<News> {
        None
    }
}

/// A host runs for its claim as soon as it bears it.
pub(crate) fn offer(host: &Node) -> Offer {
    let holding = holding(host);
    let availability = match &holding {
        Some(holding) => Availability::Claimed { holder: holding.claimant.to_string(), group: None },
        None => Availability::Free,
    };
    let candidate = Candidate {
        namespace: String::new(),
        name: host.name_any(),
        taints: Vec::new(),
        labels: host.labels().clone(),
        availability,
        rack: None,
        capacity: None,
        media: None,
        network_boot: None,
        released: None,
    };
    Offer { candidate, holdings: holding.into_iter().collect(), free: None }
}

fn holding(host: &Node) -> Option<Holding> {
    let id = host.annotations().get(ForeignHosts::CLAIM_ID)?.clone();
    let (namespace, name) = host.annotations().get(CLAIMANT)?.split_once('/')?;
    Some(Holding {
        id,
        claimant: ObjectId::named::<PersistentVolumeClaim>(Some(namespace), name),
        host: Host {
            name: host.name_any(),
            provider: format!("foreign://{}", host.name_any()),
            claimed: true,
            bound: true,
            phase: Phase::Provisioned,
            milestone: Milestone::Provisioned,
            ordered: true,
            fault: None,
            refusal: None,
            wait: None,
            power: PowerState::On,
        },
        addresses: Vec::new(),
        labels: host.labels().clone(),
        uuid: Some("uuid".to_owned()),
        order: String::new(),
        waiting: None,
        next_try: None,
        assumed_booted: false,
    })
}
