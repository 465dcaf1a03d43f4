//! Beskar7Cluster: where an API server is reached, and which hosts may fail together.

use api::beskar7::conditions::{self as types, reason};
use api::beskar7::{Beskar7Cluster, Beskar7ClusterStatus, names};
use api::capi::{self, ApiEndpoint, Condition, FailureDomain, Initialization};
use engine::cluster::{Endpoint, Goal, Missing, Standing};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::OURS;
use super::findings::{Finding, holds, not, put};
use crate::clusters::ClusterDialect;
use crate::writer::Ownership;

/// Beskar7Clusters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beskar7Clusters;

impl ClusterDialect for Beskar7Clusters {
    type Cluster = Beskar7Cluster;

    const NAME: &'static str = "beskar7cluster";
    const FINALIZER: &'static str = names::CLUSTER_FINALIZER;
    const OURS: Ownership = OURS;

    fn goal(cluster: &Beskar7Cluster) -> Goal {
        let endpoint = cluster.spec.endpoint();
        Goal {
            external: cluster.annotations().contains_key(capi::MANAGED_BY_ANNOTATION),
            leaving: cluster.metadata.deletion_timestamp.is_some(),
            endpoint: endpoint
                .and_then(|given| Some(Endpoint { host: given.host.clone(), port: u16::try_from(given.port).ok()? })),
        }
    }

    fn endpoint(endpoint: &Endpoint) -> Value {
        json!({ "spec": { "controlPlaneEndpoint": { "host": endpoint.host, "port": endpoint.port } } })
    }

    fn status(cluster: &Beskar7Cluster, standing: &Standing, now: Timestamp) -> Option<Value> {
        let mut status = cluster.status.clone().unwrap_or_default();
        match standing {
            Standing::Aside => return None,
            Standing::NoClusterApi => {
                let missing = not(types::READY, Condition::INFO, reason::CLUSTER_API_MISSING, CLUSTER_API_MISSING);
                put(&mut status.conditions, missing, now);
            }
            // Cluster API has come: what was said before is not true any more. Else a cluster without an owner is not written to.
            Standing::AwaitsOwner => {
                let told = status.conditions.iter().any(|told| told.reason == reason::CLUSTER_API_MISSING);
                if !told {
                    return None;
                }
                let awaited = not(types::READY, Condition::INFO, reason::WAITING_FOR_OWNER, WAITING_FOR_OWNER);
                put(&mut status.conditions, awaited, now);
            }
            Standing::Paused(why) => put(&mut status.conditions, holds(types::PAUSED, reason::PAUSED, why), now),
            Standing::Provisioned { endpoint, domains } => {
                status.ready = Some(true);
                status.initialization = Some(Initialization { provisioned: Some(true) });
                status.observed_generation = cluster.metadata.generation;
                status.control_plane_endpoint = endpoint
                    .as_ref()
                    .ok()
                    .map(|endpoint| ApiEndpoint { host: endpoint.host.clone(), port: endpoint.port.into() });
                let everywhere = || FailureDomain { control_plane: Some(true), ..FailureDomain::default() };
                status.failure_domains = domains.iter().map(|name| (name.clone(), everywhere())).collect();
                let ready = holds(types::READY, reason::READY, "The infrastructure of the cluster is there.");
                let not_paused = not(types::PAUSED, "", reason::NOT_PAUSED, "");
                for finding in [ready, endpoint_known(endpoint), domains_known(&status, cluster), not_paused] {
                    put(&mut status.conditions, finding, now);
                }
            }
        }
        if cluster.status.as_ref() == Some(&status) {
            return None;
        }
        // Plain data with string keys: it cannot fail, and an empty status would be refused.
        serde_json::to_value(status).ok()
    }

    fn domain_keys(cluster: &Beskar7Cluster) -> Vec<String> {
        cluster.spec.failure_domain_keys().into_iter().map(str::to_owned).collect()
    }
}

const CLUSTER_API_MISSING: &str = "Cluster API is not installed: the kinds Machine and Cluster of cluster.x-k8s.io are not served, so this Beskar7Cluster has no owner and nothing is done for it. Install Cluster API (that is noticed within seconds), or start the operator with --without-cluster-api to have machines provisioned without it.";

const WAITING_FOR_OWNER: &str =
    "Waiting for a Cluster of Cluster API whose spec.infrastructureRef names this Beskar7Cluster.";

fn endpoint_known(endpoint: &Result<Endpoint, Missing>) -> Finding {
    let type_ = types::CONTROL_PLANE_ENDPOINT_READY;
    match endpoint {
        Ok(Endpoint { host, port }) => {
            holds(type_, reason::KNOWN, &format!("The API server is reached at {host}:{port}."))
        }
        Err(Missing::RequiredBy(kind)) => not(
            type_,
            Condition::WARNING,
            reason::ENDPOINT_REQUIRED,
            &format!(
                "{kind} makes no machine before it knows where the API server will be reached. Set spec.controlPlaneEndpoint to a virtual address or a name that you provide for that, with its port."
            ),
        ),
        Err(Missing::NoMachine) => not(
            type_,
            Condition::INFO,
            reason::CONTROL_PLANE_ENDPOINT_NOT_SET,
            "Waiting for a control-plane Machine that is ready and has an address; its address becomes the endpoint. Or set spec.controlPlaneEndpoint.",
        ),
    }
}

fn domains_known(status: &Beskar7ClusterStatus, cluster: &Beskar7Cluster) -> Finding {
    let type_ = types::FAILURE_DOMAINS_READY;
    if status.failure_domains.is_empty() {
        let keys = cluster.spec.failure_domain_keys().join(", ");
        let message = format!("No PhysicalHost of the namespace has a label that makes a failure domain ({keys}).");
        return not(type_, Condition::INFO, reason::NO_FAILURE_DOMAINS, &message);
    }
    let names: Vec<_> = status.failure_domains.keys().map(String::as_str).collect();
    holds(type_, reason::KNOWN, &format!("Failure domains: {}.", names.join(", ")))
}
