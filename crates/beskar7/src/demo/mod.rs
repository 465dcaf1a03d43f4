//! `beskar7 demo`: the life of a server, in half a minute, on simulated ones.

mod screen;

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::beskar7::{Beskar7Machine, PhysicalHost, states};
use controllers::brake::BrakeConfig;
use controllers::dialects::Dialect;
use controllers::operator::Config;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use sim::{Fleet, FleetSpec, Personality, Timing};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::standalone::{Site, dial, register, work};
use crate::{human, output, shutdown};
use screen::Screen;

pub(crate) const ABOUT: &str = "\
Walk through the life of a server, on simulated ones: register, claim, boot an ISO, release.

Everything happens in this process: no Kubernetes, no network, no root, and nothing is left when it ends by itself.";

const MANAGER: &str = "beskar7-demo";
const ISO: &str = "https://192.0.2.1/images/my-os.iso";
/// How often hosts are looked at for the screen.
const FRAME: Duration = Duration::from_millis(150);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many servers
    #[arg(long, value_name = "NUMBER", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=200))]
    count: u32,
    /// How long each part may take
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = human::duration)]
    timeout: Duration,
}

/// One part of the walk.
struct Part {
    title: &'static str,
    /// What is being done, as the user would do it.
    says: String,
    /// What hosts go through, in order; the last is the end.
    road: &'static [&'static str],
    /// How many of the hosts.
    hosts: usize,
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let shutdown = shutdown::token()?;
        let walk = Box::pin(walk(args, &shutdown));
        // Whoever has seen enough may go.
        shutdown.run_until_cancelled(walk).await.unwrap_or(Ok(()))
    })
}

async fn walk(args: &Args, shutdown: &CancellationToken) -> anyhow::Result<()> {
    let begun = Instant::now();
    let site = Site::in_memory().await?;
    site.install_crds().await?;
    let fleet = invent(args.count);
    let stop = shutdown.child_token();
    let mut operator = JoinSet::new();
    let (client, lines) = (site.client.clone(), dial(Some(fleet.clone())));
    let site = std::sync::Arc::new(site);
    {
        let (site, stop) = (site.clone(), stop.clone());
        operator.spawn(async move { work(&site, config(), lines, &stop).await });
    }
    let count = fleet.bmcs().len();
    let claimed = count.div_ceil(2);
    let hosts: Api<PhysicalHost> = Api::namespaced(client.clone(), "default");
    let mut screen = Screen::new();

    register(&client, &fleet).await?;
    let says = format!(
        "{} were applied as PhysicalHosts: only looked at, nothing is done to them.",
        human::counted(count, "server")
    );
    let road = &[states::ENROLLING, states::INSPECTING, states::AVAILABLE];
    let part = Part { title: "Register", says, road, hosts: count };
    follow(&hosts, &part, args.timeout, &mut screen).await?;

    let machines: Api<Beskar7Machine> = Api::namespaced(client.clone(), "default");
    let nodes: Vec<String> = (0..claimed).map(|number| format!("node-{number}")).collect();
    for node in &nodes {
        let machine = json!({"metadata": {"name": node}, "spec": {"imageURL": ISO}});
        machines.create(&params(), &serde_json::from_value(machine)?).await.with_context(|| node.clone())?;
    }
    let says = format!(
        "{} were applied as Beskar7Machines: each claims a server and boots {ISO} by virtual media.",
        human::counted(claimed, "machine")
    );
    let road = &[states::CLAIMED, states::PROVISIONING, states::PROVISIONED];
    let part = Part { title: "Claim and boot", says, road, hosts: claimed };
    follow(&hosts, &part, args.timeout, &mut screen).await?;

    for node in &nodes {
        machines.delete(node, &DeleteParams::default()).await.with_context(|| node.clone())?;
    }
    let says = "The machines were deleted: switched off, drives emptied, boot overrides cleared.".to_owned();
    let road = &[states::DEPROVISIONING, states::AVAILABLE];
    let part = Part { title: "Release", says, road, hosts: count };
    follow(&hosts, &part, args.timeout, &mut screen).await?;

    stop.cancel();
    while let Some(ended) = operator.join_next().await {
        ended.context("the operator")??;
    }
    site.stop().await;
    let seconds = begun.elapsed().as_secs_f64();
    output::print(&format!(
        "\nThat was the life of a server, {claimed} times over, in {seconds:.0} s. On your own desk:\n\n  \
         beskar7 standalone --simulate 20         # the same with an API server for kubectl\n  \
         beskar7 standalone --data DIR            # real servers: docs/use/first-server.md\n"
    ))
}

/// One of each vendor, and quick: nobody wants to watch a self test.
fn invent(count: u32) -> Fleet {
    let timing = Timing {
        power_on: Duration::from_millis(600),
        power_off: Duration::from_millis(900),
        shutdown: Duration::from_secs(2),
        post: Duration::from_secs(4),
    };
    let mix = Personality::all().into_iter().map(|personality| (personality, 1)).collect();
    // A BMC takes its time to answer, so that there is something to see.
    let latency = Duration::from_millis(40);
    Fleet::new(&FleetSpec { count, mix, timing, latency, prefix: "server".to_owned(), ..FleetSpec::default() })
}

fn config() -> Config {
    Config {
        dialects: vec![Dialect::Beskar7],
        namespace: None,
        watch_filter: None,
        election: None,
        metrics_address: None,
        probe_address: None,
        brake: BrakeConfig { disruptions_per_minute: 1_000, concurrent_deployments: 1_000, freeze: false },
        bmcs_at_once: 64,
        cluster_api: false,
        boot: None,
    }
}

fn params() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// Shows hosts until as many as the part is about are at the end of its road.
async fn follow(hosts: &Api<PhysicalHost>, part: &Part, timeout: Duration, screen: &mut Screen) -> anyhow::Result<()> {
    let deadline = Instant::now() + timeout;
    screen.begin(part)?;
    loop {
        let mut all = hosts.list(&ListParams::default()).await.context("the hosts cannot be listed")?.items;
        all.sort_by_key(ResourceExt::name_any);
        let arrived = all.iter().filter(|host| Some(&state(host)) == part.road.last()).count();
        let done = arrived >= part.hosts;
        screen.show(part, &all, arrived, done)?;
        if done {
            return Ok(());
        }
        if Instant::now() > deadline {
            let late = all.iter().find(|host| Some(&state(host)) != part.road.last());
            let late = late.map(|host| format!("{} is {}", host.name_any(), state(host))).unwrap_or_default();
            bail!("{}: not done after {} s: {late}", part.title, timeout.as_secs());
        }
        tokio::time::sleep(FRAME).await;
    }
}

fn state(host: &PhysicalHost) -> &str {
    host.status.as_ref().and_then(|status| status.state.as_deref()).unwrap_or_default()
}
