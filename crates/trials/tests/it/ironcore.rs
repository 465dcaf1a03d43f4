//! What others do with metal-operator's kinds: a Cluster API provider that claims servers, a boot provider, and Go clients that know only
//! upstream's fields. The operator has the roles that we ship.

use std::collections::BTreeSet;

use api::ironcore::{Server, ServerClaim};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use sim::{BootSource, PowerState};
use testkit::{Account, Cluster, wait_for};
use trials::ironcore::{BootProvider, Objects as _, as_upstream, condition_of, ironcore};
use trials::story::{resets, runs};
use trials::world::{SOON, World, instant_bmc};

/// As upstream's editor roles together let a Cluster API provider do.
const PROVIDER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: provider}
rules:
  - {apiGroups: [metal.ironcore.dev], resources: [serverclaims], verbs: [create, delete, get, list, patch, update, watch]}
  - {apiGroups: [metal.ironcore.dev], resources: [serverclaims/status, servers], verbs: [get, list, watch]}
  - {apiGroups: [''], resources: [secrets], verbs: [create, delete, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: provider}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: provider}
subjects: [{kind: ServiceAccount, name: provider, namespace: NAMESPACE}]
";

/// A cluster with servers, somebody who claims them, and the site's boot provider.
struct Site {
    world: World,
    provider: Account,
    _boot: BootProvider,
}

fn bmc(number: usize) -> String {
    format!("bmc-{number}")
}

fn server(number: usize) -> String {
    format!("bmc-{number}-system-0")
}

impl Site {
    async fn with_servers(count: usize) -> Self {
        // Servers have no namespace. It ends with the process, as the shared one does.
        let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
        let world = World::quiet_on(cluster, "servers").await;
        world.install_ironcore().await;
        let account = async |name: &str, roles: &str| {
            let roles = roles.replace("NAMESPACE", &world.namespace);
            cluster.service_account(&world.namespace, name, &roles).await
        };
        let provider = account("provider", PROVIDER).await;
        let boot = BootProvider::start(account("boot-provider", BootProvider::ROLES).await.client());
        world.start_operator_with(world.clock(), ironcore);
        for number in 0..count {
            let name = bmc(number);
            world.add_bmc(&name, instant_bmc(&name));
            world.create_bmc(&name, &name).await;
            // The label of a BMC is that of its servers.
            world.bmc_objects().edit(&name, json!({ "metadata": { "labels": { "rack": "r1" } } })).await;
        }
        for number in 0..count {
            let is_ready = |server: &Value| {
                server["status"]["state"] == "Available" && server["metadata"]["labels"]["rack"] == "r1"
            };
            world.until(world.servers(), &server(number), "Available in its rack", is_ready).await;
        }
        Self { world, provider, _boot: boot }
    }

    /// A client with the rights of the Cluster API provider.
    fn client(&self) -> Client {
        self.provider.client()
    }

    fn claims(&self) -> Api<ServerClaim> {
        Api::namespaced(self.client(), &self.world.namespace)
    }

    fn servers(&self) -> Api<Server> {
        Api::all(self.client())
    }

    /// As a Cluster API provider makes a node: a Secret with its Ignition, and a claim with a selector.
    async fn create_node(&self, name: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.client(), &self.world.namespace);
        let secret = json!({
            "metadata": { "name": name }, "stringData": { "ignition": "{\"ignition\":{\"version\":\"3.4.0\"}}" },
        });
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
        let spec = json!({
            "power": "On",
            "image": "registry.example/os:1",
            "ignitionSecretRef": { "name": name },
            "serverSelector": { "matchLabels": { "rack": "r1" } },
        });
        self.claims().make(json!({ "name": name }), json!({ "spec": spec })).await;
    }

    /// Waits as it does, and reads what it reads. Answers which server it is.
    async fn bound(&self, name: &str) -> String {
        let is_bound = |claim: &Value| claim["status"]["phase"] == "Bound";
        let claim = self.world.until(self.claims(), name, "Bound", is_bound).await;
        let server = claim["spec"]["serverRef"]["name"].as_str().unwrap().to_owned();
        let mut shown = self.servers().show(&server).await;
        as_upstream::<Server>(&mut shown);
        assert_eq!(shown["status"]["state"], "Reserved", "{shown:#}");
        let reference = json!({ "namespace": self.world.namespace, "name": name });
        assert_eq!(
            (&shown["spec"]["serverClaimRef"], &shown["spec"]["bootConfigurationRef"]),
            (&reference, &reference)
        );
        assert!(shown["status"]["networkInterfaces"][0]["macAddress"].is_string(), "{shown:#}");
        server
    }

    async fn running(&self, name: &str, server: &str) -> sim::Bmc {
        self.world.until_ready(self.claims(), name, "ServerRuns").await;
        let bmc = self.world.bmc(server.strip_suffix("-system-0").unwrap());
        assert_eq!((bmc.first().power(), runs(&bmc)), (PowerState::On, Some(BootSource::Pxe)));
        bmc
    }

    async fn delete_node(&self, name: &str) {
        self.claims().remove(name).await;
        self.world.until_gone(self.claims(), name).await;
        assert!(self.world.boot_configurations().show(name).await.is_null());
        let secrets: Api<Secret> = Api::namespaced(self.client(), &self.world.namespace);
        secrets.remove(name).await;
    }
}

#[tokio::test]
async fn five_nodes_of_a_cluster_api_provider_come_and_go_and_two_at_once_want_one_server() {
    let site = Site::with_servers(5).await;
    let nodes: Vec<_> = (0..5).map(|number| format!("node-{number}")).collect();
    join_all(nodes.iter().map(|node| site.create_node(node))).await;
    let servers = join_all(nodes.iter().map(|node| site.bound(node))).await;
    assert_eq!(servers.iter().collect::<BTreeSet<_>>().len(), 5, "one each: {servers:?}");
    for (node, server) in nodes.iter().zip(&servers) {
        site.running(node, server).await;
        let configuration = site.world.boot_configurations().show(node).await;
        assert_eq!(configuration["status"]["state"], "Ready", "as the boot provider has left it");
        assert_eq!(configuration["spec"]["ignitionSecretRef"]["name"], node.as_str());
    }
    join_all(nodes.iter().map(|node| site.delete_node(node))).await;
    for number in 0..5 {
        let shown = site.world.until_server(&server(number), "Available").await;
        assert_eq!((&shown["spec"]["serverClaimRef"], &shown["status"]["powerState"]), (&Value::Null, &json!("Off")));
        let bmc = site.world.bmc(&bmc(number));
        assert_eq!(resets(&bmc), ["On", "GracefulShutdown"]);
    }

    // Four are not to be had.
    for number in 1..5 {
        site.world.servers().edit(&server(number), json!({ "spec": { "unclaimable": true } })).await;
    }
    tokio::join!(site.create_node("left"), site.create_node("right"));
    let claimed = wait_for("one of the two to be bound", SOON, async || {
        let shown = site.world.servers().show(&server(0)).await;
        shown["spec"]["serverClaimRef"]["name"].as_str().map(str::to_owned)
    })
    .await;
    let other = if claimed == "left" { "right" } else { "left" };
    assert_eq!(site.bound(&claimed).await, server(0));
    let bmc = site.running(&claimed, &server(0)).await;
    let waits = site.world.until_ready(site.claims(), other, "NoServer").await;
    assert_eq!(waits["status"]["phase"], "Unbound");
    assert!(site.world.boot_configurations().show(other).await.is_null());
    site.delete_node(&claimed).await;
    assert_eq!(site.bound(other).await, server(0));
    site.running(other, &server(0)).await;
    assert_eq!(resets(&bmc), ["On", "GracefulShutdown", "On", "GracefulShutdown", "On"]);
    site.delete_node(other).await;
    site.world.stop_operator().await;
}

#[tokio::test]
async fn what_a_go_client_writes_as_a_whole_loses_nothing_of_ours() {
    let site = Site::with_servers(1).await;
    site.create_node("node").await;
    let name = site.bound("node").await;
    let bmc = site.running("node", &name).await;
    let before = site.world.servers().show(&name).await;
    assert!(
        before["status"]["record"].is_string() && before["metadata"]["annotations"]["beskar7.io/anchor"].is_string()
    );

    // Each object read, changed and written back, as with client-go's Update.
    let servers = site.world.servers();
    rewrite(&servers, &name, |server| server["metadata"]["labels"]["seen-by"] = json!("go")).await;
    let claims = site.world.server_claims();
    rewrite(&claims, "node", |claim| claim["metadata"]["labels"] = json!({ "seen-by": "go" })).await;
    rewrite(&site.world.bmc_objects(), "bmc-0", |bmc| bmc["metadata"]["labels"]["seen-by"] = json!("go")).await;

    let relabelled = |server: &Value| server["metadata"]["labels"]["seen-by"] == "go";
    let after = site.world.until(servers.clone(), &name, "the label", relabelled).await;
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    assert_eq!((&after["spec"], &after["status"]), (&before["spec"], &before["status"]));

    // A status as a whole loses what the client does not know: it is written again, and nothing is done to the server.
    let mut object = servers.show(&name).await;
    as_upstream::<Server>(&mut object);
    assert!(object["status"]["record"].is_null());
    servers.replace_status(&name, &PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let is_whole = |server: &Value| {
        server["status"]["record"].is_string()
            && condition_of(server, "Ready")["reason"] == "Reserved"
            && server["status"]["state"] == "Reserved"
    };
    site.world.until(servers, &name, "its record", is_whole).await;
    site.world.until_ready(site.claims(), "node", "ServerRuns").await;
    assert_eq!(resets(&bmc), ["On"]);
    site.delete_node("node").await;
    site.world.stop_operator().await;
}

/// Reads an object, changes what upstream's types show of it, and writes it back; again if somebody else was faster.
async fn rewrite<K>(objects: &Api<K>, name: &str, change: impl Fn(&mut Value))
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    wait_for(&format!("{name} to be written"), SOON, async || {
        let mut object = objects.show(name).await;
        as_upstream::<K>(&mut object);
        change(&mut object);
        match objects.replace(name, &PostParams::default(), &serde_json::from_value(object).unwrap()).await {
            Ok(_) => Some(()),
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await;
}
