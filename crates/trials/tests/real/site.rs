//! A management cluster with Cluster API, hosts, and stand-ins for the nodes that join.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use api::beskar7::{Beskar7Machine, Mode, PhysicalHost};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::PowerState;
use testkit::{CapiRelease, Cluster, ClusterApi, NewNode, NodeRole, WebServer, Workload, build_menu_iso, wait_ok};
use trials::served::{MENU, SERVER, boot_service, config_url, get, image_url};
use trials::world::{World, spec, state_of};

use crate::clusters::PATIENCE;

pub(crate) const NAME: &str = "walk";
const VERSION: &str = "v1.33.13";
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

pub(crate) struct Site {
    pub(crate) world: World,
    managers: ClusterApi,
    workload: Workload<'static>,
    depot: WebServer,
    /// Machines whose nodes have joined.
    joined: Mutex<BTreeSet<String>>,
}

impl Site {
    /// Cluster API, our operator under the roles that we ship, and so many hosts in three failure domains.
    pub(crate) async fn start(release: CapiRelease, hosts: usize) -> Self {
        // Ends with the process, as the shared one does.
        let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
        let managers = ClusterApi::start(cluster, release).await;
        let world = World::quiet_on(cluster, "capi").await;
        let workload = Workload::prepare(cluster, &world.namespace, NAME).await;
        let boot = boot_service(&world);
        world.start_operator_with(world.clock(), |config| config.boot = Some(boot));
        world.create_secret("bmc", "admin", "password").await;
        join_all((0..hosts).map(async |number| {
            let name = format!("server-{number}");
            world.add_bmc(&name, sim::Bmc::new(spec(&name).timing(sim::Timing::INSTANT)));
            world.create_host(&name, json!({})).await;
            label(&world, &name, "topology.kubernetes.io/zone", ["a", "b", "c"][number % 3]).await;
            world.wait_for_state(&name, "Available").await;
        }))
        .await;
        Self { world, managers, workload, depot: WebServer::start(), joined: Mutex::default() }
    }

    pub(crate) async fn apply_cluster(&self, control_planes: u32, workers: u32) {
        let (host, port) = self.workload.endpoint();
        let manifests = MANIFESTS
            .replace("ENDPOINT", &format!("{{host: {host}, port: {port}}}"))
            .replace("CONTROL_PLANES", &control_planes.to_string())
            .replace("WORKERS", &workers.to_string())
            .replace("VERSION", VERSION)
            .replace("IMAGE", &self.depot.put("os.iso", build_menu_iso(MENU)));
        self.world.apply(&Workload::fit(&manifests)).await;
    }

    /// What docs/use/cluster-api.md tells users to apply is accepted.
    pub(crate) async fn check_guide(&self) {
        let guide = include_str!("../../../../docs/use/cluster-api.md");
        let manifest =
            guide.split("with this `cluster.yaml`").nth(1).and_then(|rest| rest.split("```").nth(1)).unwrap();
        let manifest = manifest.trim_start_matches("yaml");
        let resources = manifest.matches("\nkind: ").count();
        assert_eq!(resources, 6);
        let file = std::env::temp_dir().join(format!("{}.yaml", self.world.namespace));
        std::fs::write(&file, manifest).unwrap();
        let told = self
            .world
            .cluster()
            .kubectl(&["apply", "-n", &self.world.namespace, "--dry-run=server", "-f", file.to_str().unwrap()])
            .await
            .ok();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(told.lines().filter(|line| line.ends_with("created (server dry run)")).count(), resources, "{told}");
    }

    /// Lets the nodes of machines that were provisioned join, once each.
    pub(crate) async fn step(&self) {
        self.managers.assert_alive();
        for machine in self.our_machines().await {
            let ready = machine.status.as_ref().is_some_and(|status| status.ready == Some(true));
            let owner = machine.owner_references().iter().find(|owner| owner.kind == "Machine").cloned();
            let (Some(owner), true) = (owner, ready) else { continue };
            if !self.joined.lock().unwrap().insert(machine.name_any()) {
                continue;
            }
            let host = machine.status.as_ref().and_then(|status| status.host_ref.clone()).unwrap().name;
            if machine.spec.mode() == Mode::RemoteConfig {
                self.check_bootstrap_data(&host, &owner.name).await;
            }
            let hardware = self.world.host(&host).await.status.unwrap().hardware_details.unwrap().unpack();
            let role =
                if machine.labels().contains_key(CONTROL_PLANE) { NodeRole::ControlPlane } else { NodeRole::Worker };
            let node = NewNode {
                name: &machine.name_any(),
                system_uuid: &hardware.uuid.unwrap().to_uppercase(),
                role,
                version: VERSION,
                addresses: &["192.0.2.7".parse().unwrap()],
                labels: &[],
            };
            self.workload.boot_node(&owner.name, &node).await;
        }
    }

    /// The server boots the image that its BMC was given, follows the kernel parameter, and gets what its Machine's bootstrap
    /// provider made.
    async fn check_bootstrap_data(&self, host: &str, machine: &str) {
        let config = config_url(&image_url(&self.world.bmc(host)).await).await;
        let data = get(SERVER, &config).await.into_body();
        let secret =
            self.get("cluster.x-k8s.io/v1beta1", "Machine", machine).await.data["spec"]["bootstrap"]["dataSecretName"]
                .as_str()
                .unwrap()
                .to_owned();
        let secrets: Api<Secret> = Api::namespaced(self.world.admin(), &self.world.namespace);
        let made = secrets.get(&secret).await.unwrap().data.unwrap()["value"].0.clone();
        let provider = format!("b7://{}/{host}", self.world.namespace);
        let made = String::from_utf8(made).unwrap().replace("BESKAR7_PROVIDER_ID", &provider);
        assert_eq!(String::from_utf8_lossy(&data), made);
        assert!(made.starts_with("## template: jinja"), "{made}");
    }

    pub(crate) async fn wait_for_running(&self, control_planes: usize, workers: usize) {
        wait_ok("all machines to run", PATIENCE, async || {
            self.step().await;
            let machines = self.list("cluster.x-k8s.io/v1beta1", "Machine").await;
            let leading = machines.iter().filter(|machine| machine.labels().contains_key(CONTROL_PLANE)).count();
            let all_run = machines.iter().all(|machine| machine.data["status"]["phase"] == "Running");
            if all_run && leading == control_planes && machines.len() == control_planes + workers {
                return Ok(());
            }
            let told = machines.iter().map(|machine| {
                format!(
                    "{}: {} {}",
                    machine.name_any(),
                    machine.data["status"]["phase"],
                    machine.data["status"]["conditions"]
                )
            });
            let ours = self.our_machines().await.into_iter().map(|machine| {
                let conditions = machine.status.map(|status| status.conditions).unwrap_or_default();
                let told =
                    conditions.iter().map(|it| format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message));
                told.collect::<Vec<_>>().join("; ")
            });
            Err(told.chain(ours).collect::<Vec<_>>().join("\n"))
        })
        .await;
    }

    /// Every node is named after the server that it runs on, and everybody agrees about that.
    pub(crate) async fn check_nodes_and_machines(&self) {
        let nodes = self.world.cluster().kubectl(&["get", "nodes", "-o", "json"]).await.ok();
        let nodes: Value = serde_json::from_str(&nodes).unwrap();
        let named = |name: &str| {
            let mut all = nodes["items"].as_array().unwrap().iter();
            all.find(|node| node["metadata"]["name"] == name).unwrap()["spec"]["providerID"].as_str().map(str::to_owned)
        };
        let mut taken = BTreeSet::new();
        for machine in self.our_machines().await {
            let host = machine.status.as_ref().and_then(|status| status.host_ref.clone()).unwrap().name;
            let provider = format!("b7://{}/{host}", self.world.namespace);
            assert!(taken.insert(host), "{taken:?}");
            assert_eq!(machine.spec.provider_id.as_deref(), Some(provider.as_str()));
            assert_eq!(named(&machine.name_any()).as_deref(), Some(provider.as_str()), "{}", machine.name_any());
            assert!(machine.annotations().contains_key("cluster.x-k8s.io/cloned-from-name"), "kept as core made it");
        }
    }

    pub(crate) async fn domains_of_control_plane(&self) -> BTreeSet<String> {
        let machines = self.our_machines().await.into_iter();
        let leading = machines.filter(|machine| machine.labels().contains_key(CONTROL_PLANE));
        leading.filter_map(|machine| machine.status?.failure_domain).collect()
    }

    pub(crate) async fn workers(&self) -> BTreeSet<String> {
        let machines = self.list("cluster.x-k8s.io/v1beta1", "Machine").await.into_iter();
        machines
            .filter(|machine| !machine.labels().contains_key(CONTROL_PLANE))
            .map(|machine| machine.name_any())
            .collect()
    }

    pub(crate) async fn scale(&self, version: &str, kind: &str, replicas: u32) {
        self.patch(version, kind, NAME, json!({ "spec": { "replicas": replicas } })).await;
    }

    pub(crate) async fn patch(&self, version: &str, kind: &str, name: &str, patch: Value) {
        self.api(version, kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete_cluster(&self) {
        let clusters = self.api("cluster.x-k8s.io/v1beta1", "Cluster");
        clusters.delete(NAME, &DeleteParams::default()).await.unwrap();
        wait_ok("the Cluster to be gone", PATIENCE, async || {
            self.managers.assert_alive();
            match clusters.get_opt(NAME).await.unwrap() {
                None => Ok(()),
                Some(cluster) => Err(cluster.data["status"].to_string()),
            }
        })
        .await;
        assert_eq!(self.our_machines().await.len(), 0);
    }

    /// Available, switched off, and nobody's.
    pub(crate) async fn wait_for_all_hosts_free(&self) {
        for host in self.world.hosts().list(&ListParams::default()).await.unwrap().items {
            let name = host.name_any();
            assert_eq!(state_of(&host), "Available", "{name}: the machine goes when its host is free, not before");
            assert_eq!(host.spec.consumer_ref, None);
            assert_eq!(self.world.bmc(&name).first().power(), PowerState::Off, "{name}");
        }
    }

    pub(crate) async fn label_host(&self, host: &str, key: &str, value: &str) {
        label(&self.world, host, key, value).await;
    }

    pub(crate) async fn free_hosts(&self) -> usize {
        let hosts = self.world.hosts().list(&ListParams::default()).await.unwrap().items;
        hosts.iter().filter(|host: &&PhysicalHost| host.spec.consumer_ref.is_none()).count()
    }

    /// Waits for the reason of a condition of one of our objects, and answers its message.
    pub(crate) async fn wait_for_condition(&self, kind: &str, name: &str, type_: &str, reason: &str) -> String {
        let api = self.api("infrastructure.cluster.x-k8s.io/v1beta1", kind);
        wait_ok(&format!("{type_} of {name} to be {reason}"), Duration::from_mins(1), async || {
            let object = api.get(name).await.map_err(|error| error.to_string())?;
            let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|it| it["type"] == type_ && it["reason"] == reason);
            found
                .map(|it| it["message"].as_str().unwrap_or_default().to_owned())
                .ok_or_else(|| json!(conditions).to_string())
        })
        .await
    }

    pub(crate) async fn get(&self, version: &str, kind: &str, name: &str) -> DynamicObject {
        self.api(version, kind).get(name).await.unwrap()
    }

    async fn list(&self, version: &str, kind: &str) -> Vec<DynamicObject> {
        self.api(version, kind).list(&ListParams::default()).await.unwrap().items
    }

    async fn our_machines(&self) -> Vec<Beskar7Machine> {
        let machines: Api<Beskar7Machine> = Api::namespaced(self.world.admin(), &self.world.namespace);
        machines.list(&ListParams::default()).await.unwrap().items
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.world.admin(), &self.world.namespace, &resource)
    }
}

async fn label(world: &World, host: &str, key: &str, value: &str) {
    let label = json!({ "metadata": { "labels": { key: value } } });
    world.hosts().patch(host, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
}

const MANIFESTS: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: walk}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: walk}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7Cluster, name: walk}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Beskar7Cluster
metadata: {name: walk}
spec: {controlPlaneEndpoint: ENDPOINT}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Beskar7MachineTemplate
metadata: {name: walk}
spec: {template: {spec: {imageURL: 'IMAGE', osFamily: kairos, provisioningMode: RemoteConfig}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Beskar7MachineTemplate
metadata: {name: walk-2}
spec: {template: {spec: {imageURL: 'IMAGE', osFamily: kairos, provisioningMode: RemoteConfig}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: walk}
spec:
  replicas: CONTROL_PLANES
  version: VERSION
  machineTemplate:
    nodeDrainTimeout: 5s
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7MachineTemplate, name: walk}
  # Without both, 1.10 takes its own first machine for outdated and replaces it.
  kubeadmConfigSpec:
    initConfiguration: {nodeRegistration: {imagePullPolicy: IfNotPresent}}
    joinConfiguration: {nodeRegistration: {imagePullPolicy: IfNotPresent}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: walk}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: worker, kubeletExtraArgs: {provider-id: BESKAR7_PROVIDER_ID}}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: walk}
spec:
  clusterName: walk
  replicas: WORKERS
  selector: {}
  template:
    spec:
      clusterName: walk
      version: VERSION
      nodeDrainTimeout: 5s
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: walk}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7MachineTemplate, name: walk}
";

/// One cluster whose control plane provider needs an endpoint, and one without such a provider.
pub(crate) const WITHOUT_ENDPOINT: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: asks}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: nobody}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7Cluster, name: asks}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Beskar7Cluster
metadata: {name: asks}
spec: {}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: finds}
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7Cluster, name: finds}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Beskar7Cluster
metadata: {name: finds}
spec: {}
";

/// A control-plane machine by hand, for which there is no host yet.
pub(crate) const MACHINE: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: first, labels: {cluster.x-k8s.io/control-plane: ''}}
spec:
  clusterName: finds
  version: v1.33.13
  bootstrap: {dataSecretName: given}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7Machine, name: first}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Beskar7Machine
metadata: {name: first, labels: {cluster.x-k8s.io/control-plane: '', cluster.x-k8s.io/cluster-name: finds}}
spec: {imageURL: 'http://images.test/os.iso', staticIP: '192.0.2.20::192.0.2.1:24', hostSelector: {matchLabels: {class: gold}}}
";
