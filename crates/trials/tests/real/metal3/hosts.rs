//! BareMetalHosts of simulated servers, and our operator.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::{Arc, Mutex};

use api::metal3::BareMetalHost;
use futures::FutureExt as _;
use futures::future::join_all;
use kube::Api;
use sim::PowerState;
use testkit::Cluster;
use trials::gate::{Gate, Witness};
use trials::world::{Running, World, spec};

/// What the first network interface of every server is called in `status.hardware`.
pub(crate) const INTERFACE: &str = "NIC1";

pub(crate) struct Hosts {
    _operator: Running,
    world: World,
    stops: Stops,
}

/// Power-offs and resets of all servers, as one operator after the other has asked for them.
type Stops = Arc<Mutex<Vec<Stop>>>;

#[derive(Debug)]
struct Stop {
    /// Read only when the test fails.
    _what: String,
    was_in_use: bool,
}

impl Hosts {
    /// Starts the operator in a namespace of its own.
    pub(crate) async fn start(cluster: &'static Cluster) -> Self {
        Self::of(World::quiet_on(cluster, "metal3").await, Stops::default()).await
    }

    /// Starts another operator, for the same servers, in a namespace of the same name on another cluster.
    pub(crate) async fn start_beside(&self, cluster: &'static Cluster) -> Self {
        Self::of(self.world.quiet_beside_on(cluster).await, self.stops.clone()).await
    }

    async fn of(world: World, stops: Stops) -> Self {
        world.install_metal3().await;
        let gate = Gate::with_witness(witness(world.cluster(), world.namespace.clone(), stops.clone()));
        let operator = world.launch_metal3(&gate, world.clock());
        Self { _operator: operator, world, stops }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.world.namespace
    }

    /// Applies so many hosts, `server-0` and so on, and waits until all are available.
    pub(crate) async fn add(&self, count: usize) {
        join_all((0..count).map(async |number| {
            let name = format!("server-{number}");
            let plan = spec(&name).timing(sim::Timing::INSTANT);
            // Not the first one, so that nobody takes one for the other.
            let boot_mac = plan.hardware[0].macs[1].clone();
            self.world.add_bmc(&name, sim::Bmc::new(plan));
            self.world.apply(&HOST.replace("NAME", &name).replace("BOOT", &boot_mac)).await;
            self.world.wait_for_bare_metal_host(&name, "available").await;
        }))
        .await;
    }

    /// What the BMCs of these servers were asked to change so far: power, boot order and media.
    pub(crate) fn acts(&self, servers: &BTreeSet<String>) -> Vec<String> {
        let acts = servers.iter().flat_map(|name| {
            let journal = self.world.bmc(name).journal().into_iter();
            journal.map(move |it| format!("{name}: {} {} {}", it.verb.as_str(), it.path, it.body))
        });
        acts.collect()
    }

    /// The same of all servers.
    pub(crate) fn all_acts(&self) -> Vec<String> {
        self.acts(&self.world.bmcs().into_keys().collect())
    }

    /// Panics if a server in use was ever stopped, or if one still runs or has a medium in its drive.
    pub(crate) fn check_all_unused(&self) {
        let stops = self.stops.lock().unwrap();
        assert!(!stops.is_empty() && stops.iter().all(|stop| !stop.was_in_use), "{stops:#?}");
        for (name, bmc) in self.world.bmcs() {
            let server = bmc.first();
            assert_eq!((server.power(), server.media()), (PowerState::Off, None), "{name}");
        }
    }
}

/// Looks at the host of a server that is about to be stopped: there must be one here, and it must have no order. Whoever stops a
/// server because an order was withdrawn has seen that, so the API server has it by then; and nobody orders anything before the host
/// is available again.
fn witness(cluster: &'static Cluster, namespace: String, stops: Stops) -> Witness {
    Arc::new(move |name, what| {
        let is_stop = what.contains("Reset") && !["\"On\"", "\"ForceOn\""].iter().any(|on| what.contains(on));
        if !is_stop {
            return ready(()).boxed();
        }
        let (name, what, stops) = (name.to_owned(), what.to_owned(), stops.clone());
        // A client belongs to the runtime in which it is made, and this is the operator's.
        let hosts: Api<BareMetalHost> = Api::namespaced(cluster.admin(), &namespace);
        async move {
            let host = hosts.get_opt(&name).await.unwrap();
            let was_in_use = host.is_none_or(|host| host.spec.image.is_some());
            stops.lock().unwrap().push(Stop { _what: format!("{name}: {what}"), was_in_use });
        }
        .boxed()
    })
}

const HOST: &str = "
apiVersion: v1
kind: Secret
metadata: {name: NAME-bmc}
stringData: {username: admin, password: password}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: NAME}
spec:
  online: false
  bootMACAddress: 'BOOT'
  bmc: {address: 'redfish-virtualmedia+http://NAME/redfish/v1/Systems/1', credentialsName: NAME-bmc}
";
