//! PhysicalHosts as an operator leaves them: inventory, conditions, record.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Pair;
use super::site::Site;
use super::wire::{Door, JSON, get_json, merge, post, send};
use crate::process::float;

pub(super) const NAMESPACE: &str = "fleet";
const RESOURCE: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1";
const CLIENTS: usize = 8;
const LIMIT: Duration = Duration::from_secs(30);

/// One host of each kind that the simulator has.
pub(super) struct Kinds(Vec<Kind>);

struct Kind {
    /// Where its BMC was, as the operator notes it.
    target: String,
    uuid: String,
    anchor: String,
    status: String,
}

impl Kinds {
    /// Lets the program inventory simulated servers.
    pub(super) async fn from_simulator(binary: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let site = Site::start_with(binary, folder.path(), &["--simulate=8"]).await?;
        let client = site.door().client().await?;
        let deadline = Instant::now() + LIMIT;
        loop {
            let list = get_json(&client, &collection("default")).await?;
            let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            if items.len() == 8 && items.iter().all(|host| host["status"]["state"] == "Available") {
                return Ok(Self(items.iter().map(Kind::of).collect()));
            }
            if Instant::now() > deadline {
                bail!("simulated hosts do not become Available");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What to create, and the status that it then gets. Nobody answers at the address of its BMC.
    pub(super) fn host(&self, number: u32) -> (Value, String) {
        let kind = &self.0[number as usize % self.0.len()];
        let address = format!("127.1.{}.{}:1", number / 250, number % 250 + 1);
        let uuid = format!("{number:08x}-3ec5-44f2-a7fc-eb89104e2273");
        let own = |text: &str| text.replace(&kind.uuid, &uuid).replace(&kind.target, &address);
        let host = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "PhysicalHost",
            "metadata": {
                "name": name(number),
                "annotations": {"beskar7.io/anchor": own(&kind.anchor), api::capi::PAUSED_ANNOTATION: ""},
                "finalizers": ["physicalhost.infrastructure.cluster.x-k8s.io"],
            },
            "spec": {"redfishConnection": {"address": format!("https://{address}"), "credentialsSecretRef": "bmc"}},
        });
        (host, own(&kind.status))
    }
}

impl Kind {
    fn of(host: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            target: format!("{}:443", text(&host["metadata"]["name"])),
            uuid: text(&host["status"]["hardwareDetails"]["uuid"]),
            anchor: text(&host["metadata"]["annotations"]["beskar7.io/anchor"]),
            status: json!({"status": host["status"]}).to_string(),
        }
    }
}

pub(super) fn collection(namespace: &str) -> String {
    format!("{RESOURCE}/namespaces/{namespace}/physicalhosts")
}

pub(super) fn name(number: u32) -> String {
    format!("host-{number:05}")
}

/// Registers hosts in both; they are paused, so that ours has no more to do than the other.
pub(super) async fn register(ours: &Door, real: Option<&Door>, kinds: &Kinds, count: u32) -> Result<()> {
    let mut rates = Pair::new();
    rates.ours.push(register_in(ours, kinds, NAMESPACE, count).await?);
    if let Some(real) = real {
        rates.real.push(register_in(real, kinds, NAMESPACE, count).await?);
    }
    rates.print("hosts created and their status written", "per s", true);
    Ok(())
}

/// Registers hosts in a namespace; returns how many per second.
pub(super) async fn register_in(door: &Door, kinds: &Kinds, namespace: &str, count: u32) -> Result<f64> {
    let clients = door.clients(CLIENTS).await?;
    let path = collection(namespace);
    create_namespace(&clients[0], namespace).await?;
    let started = Instant::now();
    spread(count, &clients, async |client, number| {
        let (host, status) = kinds.host(number);
        post(client, &path, host.to_string()).await?;
        merge(client, &format!("{path}/{}/status", name(number)), status).await
    })
    .await?;
    Ok(float(u64::from(count)) / started.elapsed().as_secs_f64())
}

/// Ends the pause: the operator now tries to reach every one of them.
pub(super) async fn let_the_operator_have_them(ours: &Door, count: u32) -> Result<()> {
    let clients = ours.clients(CLIENTS).await?;
    let path = collection(NAMESPACE);
    let resume = json!({"metadata": {"annotations": {api::capi::PAUSED_ANNOTATION: null}}}).to_string();
    spread(count, &clients, async |client, number| {
        merge(client, &format!("{path}/{}", name(number)), resume.clone()).await
    })
    .await
}

async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    post(client, "/api/v1/namespaces", namespace.to_string()).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bmc"},
        "stringData": {"username": "admin", "password": "password"},
    });
    send(client, Method::POST, &format!("/api/v1/namespaces/{name}/secrets"), JSON, secret.to_string()).await?;
    Ok(())
}

/// Does something for every number, with all clients at once.
async fn spread(count: u32, clients: &[Client], work: impl AsyncFn(&Client, u32) -> Result<u64>) -> Result<()> {
    stream::iter((0..count).zip(clients.iter().cycle()))
        .map(|(number, client)| work(client, number))
        .buffer_unordered(clients.len())
        .try_for_each(|_| std::future::ready(Ok(())))
        .await
}
