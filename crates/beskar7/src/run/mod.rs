//! `beskar7 run`: the operator.

mod args;
mod bind;
mod ironcore_args;

use std::sync::Arc;

use anyhow::bail;
use bmc::{Https, Transport};
use controllers::clock::SystemClock;
use controllers::dialect::Settings;
use controllers::hands::Dial;
use controllers::metrics::Metrics;
use controllers::operator::{Config, Election, Operator};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tracing::info;

pub(crate) use args::{ABOUT, Args, BrakeArgs, DialectArgs, EXAMPLES, LEASE};
pub(crate) use bind::{Bind, bind, listen};
pub(crate) use ironcore_args::IronCoreArgs;

use crate::access::Access;
use crate::{limits, runtime, shutdown};

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    args.logs.install()?;
    limits::raise_open_files();
    runtime::start(args.threads)?.block_on(shutdown::until_done(run(args)))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let shutdown = shutdown::token()?;
    let surroundings = args::Surroundings::look();
    let own_namespace = args.own_namespace(&surroundings);
    let boot = args.boot.open(&own_namespace)?;
    let settings = Arc::new(Settings { ironcore: args.ironcore.settings(&args.boot, &own_namespace)? });
    let config = Config { boot, settings, ..args.config(&surroundings) };
    let kinds = args.dialects.kinds();
    if let (Some(_), Some(kind)) = (&config.namespace, kinds.iter().find(|kind| !kind.has_namespaces())) {
        bail!("{}s have no namespace: leave --namespace out", kind.resource().kind);
    }
    let access = args.cluster.access().await?;
    let checks = async {
        for kind in &kinds {
            access.hosts(*kind, config.namespace.as_deref()).check().await?;
        }
        match &config.election {
            Some(election) => check_election(&access, election).await,
            None => Ok(()),
        }
    };
    match shutdown.run_until_cancelled(checks).await {
        Some(checked) => checked?,
        None => return Ok(()),
    }
    info!(
        version = env!("CARGO_PKG_VERSION"),
        cluster = access.url(),
        dialects = %args.dialects,
        namespace = config.namespace.as_deref().unwrap_or("(all)"),
        watch_filter = config.watch_filter,
        identity = config.election.as_ref().map_or("(alone)", |election| election.identity.as_str()),
        lease = config.election.as_ref().map(|election| format!("{}/{}", election.namespace, election.lease)),
        "beskar7 looks after {}",
        kinds.iter().map(|kind| format!("{}s", kind.resource().kind)).collect::<Vec<_>>().join(" and ")
    );
    let operator =
        Operator { client: access.client, config, dial: dial(), clock: Arc::new(SystemClock), metrics: Metrics::new() };
    operator.run(shutdown).await?;
    info!("stopped");
    Ok(())
}

/// A Lease that cannot be written would leave us standing by for ever.
async fn check_election(access: &Access, election: &Election) -> anyhow::Result<()> {
    let namespace = &election.namespace;
    let leases: Api<Lease> = Api::namespaced(access.client.clone(), namespace);
    let metadata = ObjectMeta { name: Some(election.lease.clone()), ..ObjectMeta::default() };
    let pretend = PostParams { dry_run: true, ..PostParams::default() };
    let elsewhere = "name another with --leader-elect-namespace, or run alone with --leader-elect=false";
    match leases.create(&pretend, &Lease { metadata, spec: None }).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => match status.code {
            409 => Ok(()),
            404 => bail!(
                "the namespace {namespace}, where the Lease of the leader election goes, does not exist: \
                 create it (kubectl create namespace {namespace}), {elsewhere}"
            ),
            403 => bail!("{}: have the role granted, {elsewhere}", status.message),
            _ => bail!("the Lease of the leader election cannot be written to {namespace}: {}", status.message),
        },
        Err(error) => Err(access.explain(error)),
    }
}

/// BMCs are spoken to over the network.
fn dial() -> Dial {
    Arc::new(|address, trust| Ok(Arc::new(Https::new(address, trust)?) as Arc<dyn Transport>))
}
