//! `beskar7 demo`: the life of a server, in half a minute, on simulated ones.

mod screen;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use controllers::brake::BrakeConfig;
use controllers::dialect::Settings;
use controllers::dialects::Dialect;
use controllers::operator::Config;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use sim::{Bmc, Fleet, FleetSpec, Personality, Timing};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::dialects::{self, Host, HostKind, Progress};
use crate::run::DialectArgs;
use crate::standalone::{NAMESPACE, Site, create, dial, introduce, register, work};
use crate::{human, output, shutdown};
use screen::Screen;

pub(crate) const ABOUT: &str = "\
Walk through the life of a server, on simulated ones: register, claim, boot an image, release.

Everything happens in this process: no Kubernetes, no network, no root, and nothing is left when it ends by itself.";

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
    #[command(flatten)]
    dialects: DialectArgs,
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
        let walk = Box::pin(async {
            for dialect in args.dialects.selected() {
                walk(args, dialect, &shutdown).await?;
            }
            output::print(
                "On your own desk:\n\n  \
                 beskar7 standalone --simulate 20         # the same with an API server for kubectl\n  \
                 beskar7 standalone --data DIR            # real servers: docs/use/first-server.md\n",
            )
        });
        // Whoever has seen enough may go.
        shutdown.run_until_cancelled(walk).await.unwrap_or(Ok(()))
    })
}

async fn walk(args: &Args, dialect: Dialect, shutdown: &CancellationToken) -> anyhow::Result<()> {
    let begun = Instant::now();
    let kind = dialects::kind(dialect);
    let life = kind.life();
    if kind.claim(NAMESPACE, "node-0", life.image).is_none() {
        bail!(
            "the demo shows how hosts are claimed, and {dialect} has no claims of its own: try `beskar7 standalone --simulate 20 --dialects {dialect}`"
        );
    }
    let site = Site::in_memory().await?;
    site.install_crds(&[kind]).await?;
    let fleet = invent(args.count);
    let stop = shutdown.child_token();
    let mut operator = JoinSet::new();
    let mut settings = Settings::default();
    introduce(&[kind], &fleet, &mut settings);
    let (client, lines, config) = (site.client.clone(), dial(Some(&fleet)), config(dialect, settings));
    let site = std::sync::Arc::new(site);
    {
        let (site, stop) = (site.clone(), stop.clone());
        operator.spawn(async move { work(&site, config, lines, true, &stop).await });
    }
    let count = fleet.bmcs().len();
    let claimed = count.div_ceil(2);
    let mut screen = Screen::new();

    register(&client, &[kind], &fleet).await?;
    let says = format!(
        "{} were applied for {}: only looked at, nothing is done to them.",
        life.registered,
        human::counted(count, "server")
    );
    let part = Part { title: "Register", says, road: life.registration, hosts: count };
    follow(&client, kind, &part, args.timeout, &mut screen).await?;

    let claims: Vec<_> =
        (0..claimed).filter_map(|number| kind.claim(NAMESPACE, &format!("node-{number}"), life.image)).collect();
    for claim in &claims {
        create(&client, claim).await.context("cannot claim a server")?;
    }
    let says = format!(
        "{} were applied for {}: each claims a server and boots {} {}.",
        life.claims,
        human::counted(claimed, "machine"),
        life.image,
        life.way
    );
    let part = Part { title: "Claim and boot", says, road: life.deployment, hosts: claimed };
    follow(&client, kind, &part, args.timeout, &mut screen).await?;

    // During the self test nothing listens to a request to shut down, and a release would wait until it cuts the power.
    while fleet.bmcs().iter().flat_map(Bmc::servers).any(|server| server.in_post()) {
        tokio::time::sleep(FRAME).await;
    }
    for claim in &claims {
        claim.api(&client).delete(claim.name(), &DeleteParams::default()).await.context("cannot release a server")?;
    }
    let says = format!("The {} were deleted: switched off, drives emptied, boot overrides cleared.", life.claims);
    let part = Part { title: "Release", says, road: life.release, hosts: count };
    follow(&client, kind, &part, args.timeout, &mut screen).await?;

    stop.cancel();
    while let Some(ended) = operator.join_next().await {
        ended.context("the operator")??;
    }
    site.stop().await;
    let seconds = begun.elapsed().as_secs_f64();
    output::print(&format!("\nThat was the life of a server, {claimed} times over, in {seconds:.0} s. "))
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

fn config(dialect: Dialect, settings: Settings) -> Config {
    Config {
        dialects: vec![dialect],
        namespace: None,
        watch_filter: None,
        election: None,
        metrics_address: None,
        probe_address: None,
        brake: BrakeConfig { disruptions_per_minute: 1_000, concurrent_deployments: 1_000, freeze: false },
        bmcs_at_once: 64,
        settings: Arc::new(settings),
        cluster_api: false,
        boot: None,
    }
}

/// Shows hosts until as many as the part is about are at the end of its road.
async fn follow(
    client: &Client,
    kind: &'static dyn HostKind,
    part: &Part,
    timeout: Duration,
    screen: &mut Screen,
) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let deadline = Instant::now() + timeout;
    screen.begin(part)?;
    loop {
        let listed = api.list(&ListParams::default()).await.context("the hosts cannot be listed")?.items;
        let mut all = Vec::with_capacity(listed.len());
        for object in listed {
            all.push((object.name_any(), kind.read(&object).context("a host cannot be read")?));
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        let is_late = |(_, host): &&(String, Host)| {
            Some(&host.state.as_str()) != part.road.last() || host.progress != Progress::Resting
        };
        let arrived = all.len() - all.iter().filter(is_late).count();
        let done = arrived >= part.hosts;
        screen.show(part, &all, arrived, done)?;
        if done {
            return Ok(());
        }
        if Instant::now() > deadline {
            let late = all.iter().find(is_late);
            let late = late.map(|(name, host)| format!("{name} is {}", host.state)).unwrap_or_default();
            bail!("{}: not done after {} s: {late}", part.title, timeout.as_secs());
        }
        tokio::time::sleep(FRAME).await;
    }
}
