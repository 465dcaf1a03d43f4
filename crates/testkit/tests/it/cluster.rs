use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, discovery};
use testkit::{Cluster, wait_for};

const READER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
  - {apiGroups: [''], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
  - {kind: ServiceAccount, name: reader}
";

const GADGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Gadget
metadata: {name: first}
";

fn named(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

#[tokio::test]
async fn an_account_can_do_what_its_roles_say_and_nothing_else() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("rbac").await;
    let account = cluster.service_account(&namespace, "reader", READER).await;

    let maps: Api<ConfigMap> = Api::namespaced(account.client(), &namespace);
    maps.list(&ListParams::default()).await.expect("listing is granted");
    let refused = maps.create(&PostParams::default(), &named("not-mine")).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));

    let answer = cluster.kubectl_with(account.kubeconfig(), &["auth", "whoami", "-o", "name"]).await;
    assert!(answer.ok().contains("selfsubjectreview"));
}

#[tokio::test]
async fn a_definition_and_its_first_object_can_be_applied_together() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("crd").await;
    let applied = cluster.apply_yaml_in(&namespace, GADGETS).await;
    assert_eq!(applied.len(), 2);
    let shown = cluster.kubectl(&["get", "gadgets", "-n", &namespace]).await.ok();
    assert!(shown.contains("first"), "{shown}");
}

#[tokio::test]
async fn deleting_an_owner_deletes_what_it_owns() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("garbage").await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.admin(), &namespace);
    let owner = maps.create(&PostParams::default(), &named("owner")).await.expect("an owner");
    let uid = owner.metadata.uid.expect("a uid");
    let manifest = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: owned, ownerReferences: \
         [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]}}}}"
    );
    cluster.apply_yaml_in(&namespace, &manifest).await;
    maps.delete("owner", &DeleteParams::default()).await.expect("deleted");
    wait_for("the owned object to be collected", Duration::from_secs(30), || async {
        maps.get_opt("owned").await.ok()?.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_audit_log_counts_the_writes_of_one_account() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("audit").await;
    let roles = READER.replace("[get, list]", "[get, list, create, delete]");
    let account = cluster.service_account(&namespace, "reader", &roles).await;
    let maps: Api<ConfigMap> = Api::namespaced(account.client(), &namespace);
    assert_eq!(cluster.writes(account.user(), &[]).await, []);

    maps.create(&PostParams::default(), &named("one")).await.expect("created");
    maps.list(&ListParams::default()).await.expect("listed");
    maps.delete("one", &DeleteParams::default()).await.expect("deleted");
    let writes = cluster.writes(account.user(), &["events", "leases"]).await;
    let seen: Vec<_> = writes.iter().map(|write| (write.verb.as_str(), write.resource.as_str(), write.code)).collect();
    assert_eq!(seen, [("create", "configmaps", 201), ("delete", "configmaps", 200)]);
    assert_eq!(cluster.writes(account.user(), &["configmaps"]).await, []);
}

#[tokio::test]
async fn an_apiserver_that_comes_back_has_its_data() {
    let cluster = Cluster::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.admin());
    maps.create(&PostParams::default(), &named("kept")).await.expect("created");

    cluster.stop_apiserver();
    assert!(maps.get("kept").await.is_err(), "the API server is gone");
    cluster.start_apiserver().await;
    maps.get("kept").await.expect("the object, by the same client");
}

#[tokio::test]
async fn the_server_calls_itself_by_its_release() {
    let cluster = Cluster::shared().await;
    let version = cluster.admin().apiserver_version().await.expect("a version");
    assert_eq!(version.git_version, "v1.33.13");
    let kind = GroupVersionKind::gvk("", "v1", "Node");
    let (nodes, _) = discovery::pinned_kind(&cluster.admin(), &kind).await.expect("nodes are known");
    let nodes: Api<DynamicObject> = Api::all_with(cluster.admin(), &nodes);
    assert!(nodes.list(&ListParams::default()).await.expect("a list").items.is_empty());
}
