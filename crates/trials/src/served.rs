//! A boot service for tests, and what BMCs and servers do with it.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use api::boot::BootSession;
use boot::fetch::{Fetcher, Guard, Patience};
use boot::links::Links;
use controllers::depot::{BootConfig, NetworkConfig};
use http::{Response, StatusCode};
use kube::Api;
use kube::api::ListParams;
use sim::BootSource;
use testkit::{fetch_from, wait_for};

use crate::world::{SOON, World};

/// Where servers come from.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 5);
/// A boot loader's menu, before anything is written into it.
pub const MENU: &str = "DEFAULT os\nLABEL os\n  KERNEL /vmlinuz\n  APPEND console=ttyS0 quiet\n";

/// A boot service on a port of its own, which may fetch from loopback: that is where the test's images are.
pub fn boot_service(world: &World) -> BootConfig {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let links = Links::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let guard = Guard::allowing(["127.0.0.0/8".parse().unwrap()]);
    BootConfig {
        network: None,
        links,
        listener: Arc::new(listener),
        tls: None,
        fetcher: Fetcher::new(guard, None, Patience::default()).unwrap(),
        key_namespace: world.namespace.clone(),
    }
}

/// The same, which also serves servers that boot from the network; another DHCP server leads them to it.
pub fn network_boot_service(world: &World) -> BootConfig {
    BootConfig { network: Some(NetworkConfig::default()), ..boot_service(world) }
}

impl World {
    /// A namespace of the shared cluster, with an operator that serves, and knows no Cluster API.
    pub async fn serving(prefix: &str) -> Self {
        let world = Self::quiet(prefix).await;
        world.start_serving();
        world
    }

    /// Starts an operator that serves, and knows no Cluster API.
    pub fn start_serving(&self) {
        let boot = boot_service(self);
        self.start_operator_with(self.clock(), |config| {
            config.cluster_api = false;
            config.boot = Some(boot);
        });
    }

    /// Creates bootstrap data, as a bootstrap provider does.
    pub async fn create_bootstrap_data(&self, name: &str, value: &str) {
        let yaml = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ntype: cluster.x-k8s.io/secret\nstringData: {{value: {value}, format: cloud-config}}\n"
        );
        self.apply(&yaml).await;
    }

    /// What is known of deployments that were served.
    pub async fn sessions(&self) -> Vec<BootSession> {
        let sessions: Api<BootSession> = Api::namespaced(self.admin(), &self.namespace);
        sessions.list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until nothing of that is left.
    pub async fn wait_for_no_session(&self) {
        wait_for("no session to be left", SOON, async || self.sessions().await.is_empty().then_some(())).await;
    }
}

/// Where the server's BMC was told to read the image.
pub async fn image_url(bmc: &sim::Bmc) -> String {
    wait_for("the server to boot from the CD", SOON, async || match bmc.first().booted.map(|booted| booted.from) {
        Some(BootSource::Cd(url)) => Some(url),
        _ => None,
    })
    .await
}

/// Fetches something from one of our addresses.
pub async fn get(from: Ipv4Addr, url: &str) -> Response<bytes::Bytes> {
    fetch_from(from, "GET", url, &[]).await.unwrap()
}

/// Reads the image as the BMC would, and tells what the kernel would be told.
pub async fn kernel_line(url: &str) -> String {
    let image = get(SERVER, url).await;
    assert_eq!(image.status(), StatusCode::OK, "{image:?}");
    let text = String::from_utf8_lossy(image.body()).into_owned();
    let line = text.lines().find(|line| line.trim_start().starts_with("APPEND")).unwrap();
    line.trim().trim_start_matches("APPEND ").to_owned()
}

/// Where the kernel is told to find its configuration.
pub async fn config_url(image: &str) -> String {
    let line = kernel_line(image).await;
    let word = line.split(' ').find_map(|word| word.strip_prefix("talos.config=").or(word.strip_prefix("config_url=")));
    word.unwrap_or_else(|| panic!("{line}")).to_owned()
}
