//! What the roles that we ship allow, asked of the API server.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use testkit::Account;

use crate::{cluster, config, read};

#[tokio::test]
async fn the_cluster_role_allows_what_the_operator_does_and_no_more() {
    let cluster = cluster().await;
    if cluster.is_embedded_and_has("no roles") {
        return;
    }
    let namespace = cluster.namespace("beskar7-system").await;
    // What belongs to no namespace is shared with other tests: it gets a name of its own.
    let manager = format!("{namespace}-manager");
    let rbac = |file: &str| {
        let role = read(config().join("rbac").join(file));
        role.replace("beskar7-system", &namespace).replace("beskar7-manager", &manager)
    };
    let files = ["role.yaml", "role_binding.yaml", "leader_election_role.yaml", "leader_election_role_binding.yaml"];
    let roles = files.map(rbac).join("\n---\n");
    let operator = cluster.service_account(&namespace, "beskar7", &roles).await;

    for (verb, resource) in OPERATOR_NEEDS {
        assert!(may(&operator, verb, resource, "elsewhere").await, "{verb} {resource}");
    }
    for (verb, resource) in LEASE_NEEDS {
        assert!(may(&operator, verb, resource, &namespace).await, "{verb} {resource}");
        assert!(!may(&operator, verb, resource, "elsewhere").await, "{verb} {resource} elsewhere");
    }
    check_own_lease(&operator, &namespace).await;
    for (verb, resource) in OPERATOR_MUST_NOT {
        assert!(!may(&operator, verb, resource, "elsewhere").await, "{verb} {resource}");
    }
}

#[tokio::test]
async fn the_role_for_one_namespace_reaches_no_other() {
    let cluster = cluster().await;
    if cluster.is_embedded_and_has("no roles") {
        return;
    }
    let namespace = cluster.namespace("beskar7-system").await;
    let rbac = |file: &str| read(config().join("rbac/namespaced").join(file)).replace("beskar7-system", &namespace);
    let roles = ["role.yaml", "role_binding.yaml"].map(rbac).join("\n---\n");
    let operator = cluster.service_account(&namespace, "beskar7", &roles).await;
    for (verb, resource) in OPERATOR_NEEDS.iter().chain(LEASE_NEEDS) {
        assert!(may(&operator, verb, resource, &namespace).await, "{verb} {resource}");
        assert!(!may(&operator, verb, resource, "elsewhere").await, "{verb} {resource} elsewhere");
    }
    check_own_lease(&operator, &namespace).await;
    for (verb, resource) in OPERATOR_MUST_NOT {
        assert!(!may(&operator, verb, resource, &namespace).await, "{verb} {resource}");
    }
}

const OPERATOR_NEEDS: &[(&str, &str)] = &[
    ("list", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("watch", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("patch", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("patch", "physicalhosts/status.infrastructure.cluster.x-k8s.io"),
    ("get", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("list", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("watch", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("patch", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("patch", "beskar7machines/status.infrastructure.cluster.x-k8s.io"),
    ("list", "beskar7clusters.infrastructure.cluster.x-k8s.io"),
    ("watch", "beskar7clusters.infrastructure.cluster.x-k8s.io"),
    ("patch", "beskar7clusters.infrastructure.cluster.x-k8s.io"),
    ("patch", "beskar7clusters/status.infrastructure.cluster.x-k8s.io"),
    ("watch", "bootsessions.boot.beskar7.io"),
    ("create", "bootsessions.boot.beskar7.io"),
    ("update", "bootsessions.boot.beskar7.io"),
    ("delete", "bootsessions.boot.beskar7.io"),
    ("get", "clusters.cluster.x-k8s.io"),
    ("list", "clusters.cluster.x-k8s.io"),
    ("watch", "clusters.cluster.x-k8s.io"),
    ("get", "machines.cluster.x-k8s.io"),
    ("list", "machines.cluster.x-k8s.io"),
    ("watch", "machines.cluster.x-k8s.io"),
    ("get", "secrets."),
    ("list", "secrets."),
    ("watch", "secrets."),
    ("create", "events.events.k8s.io"),
];

const LEASE_NEEDS: &[(&str, &str)] = &[
    ("create", "leases.coordination.k8s.io"),
    // The key of the boot service.
    ("create", "secrets."),
];

/// The lease that `beskar7 run` takes, and no other.
async fn check_own_lease(operator: &Account, namespace: &str) {
    for verb in ["get", "update"] {
        let leases = "leases.coordination.k8s.io";
        assert!(may_with(operator, verb, leases, namespace, "beskar7.infrastructure.cluster.x-k8s.io").await, "{verb}");
        assert!(!may_with(operator, verb, leases, namespace, "kube-scheduler").await, "{verb}");
    }
}

const OPERATOR_MUST_NOT: &[(&str, &str)] = &[
    // What it never does is not allowed either.
    ("get", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("update", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("update", "physicalhosts/status.infrastructure.cluster.x-k8s.io"),
    ("update", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("update", "beskar7machines/finalizers.infrastructure.cluster.x-k8s.io"),
    ("get", "beskar7clusters.infrastructure.cluster.x-k8s.io"),
    ("watch", "beskar7machinetemplates.infrastructure.cluster.x-k8s.io"),
    ("watch", "beskar7clustertemplates.infrastructure.cluster.x-k8s.io"),
    ("create", "events."),
    ("patch", "events.events.k8s.io"),
    ("delete", "leases.coordination.k8s.io"),
    ("list", "leases.coordination.k8s.io"),
    ("create", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("delete", "physicalhosts.infrastructure.cluster.x-k8s.io"),
    ("update", "secrets."),
    ("delete", "secrets."),
    ("create", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("delete", "beskar7machines.infrastructure.cluster.x-k8s.io"),
    ("create", "beskar7clusters.infrastructure.cluster.x-k8s.io"),
    ("delete", "beskar7clusters.infrastructure.cluster.x-k8s.io"),
    // Cluster API compares templates: whoever writes into them has all machines replaced.
    ("patch", "beskar7machinetemplates.infrastructure.cluster.x-k8s.io"),
    ("patch", "beskar7clustertemplates.infrastructure.cluster.x-k8s.io"),
    ("patch", "clusters.cluster.x-k8s.io"),
    ("patch", "machines.cluster.x-k8s.io"),
    ("delete", "machines.cluster.x-k8s.io"),
    ("get", "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"),
    ("get", "pods."),
    ("get", "configmaps."),
    ("patch", "customresourcedefinitions.apiextensions.k8s.io"),
];

/// Asks the API server; `resource[/subresource].group`.
async fn may(account: &Account, verb: &str, resource: &str, namespace: &str) -> bool {
    may_with(account, verb, resource, namespace, "").await
}

/// The same of the object of that name.
async fn may_with(account: &Account, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
    let (resource, group) = resource.split_once('.').unwrap();
    let (resource, subresource) = resource.split_once('/').map_or((resource, None), |(r, s)| (r, Some(s.to_owned())));
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                namespace: Some(namespace.to_owned()),
                name: (!name.is_empty()).then(|| name.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(account.client());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}
