//! The flags of `beskar7 run`, each with an environment variable beside it.

use std::collections::BTreeSet;
use std::num::{NonZeroU16, NonZeroUsize};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgAction;
use controllers::brake::BrakeConfig;
use controllers::dialects::Dialect;
use controllers::leader::Timing;
use controllers::operator::{Config, Election};

use super::bind::{Bind, bind};
use super::ironcore_args::IronCoreArgs;
use crate::access::ClusterArgs;
use crate::boot_args::BootArgs;
use crate::dialects::{self, HostKind};
use crate::human;
use crate::logs::LogArgs;

pub(crate) const ABOUT: &str = "\
Run the operator: looks after all PhysicalHosts of a cluster.

It takes the cluster of the kubeconfig, or the one that it runs in. Several may run: one leads, the others take over \
when it is gone. Applying a PhysicalHost only looks at the server; only a claim or spec.online changes anything.

Flags can also be set by the environment: --watch-filter by BESKAR7_WATCH_FILTER, and so on.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Look after the whole cluster
  beskar7 run

  # One namespace, for which a Role is enough; nobody else looks after it
  beskar7 run --namespace lab --leader-elect=false

  # Look, but switch off, reset and deploy nothing
  beskar7 run --freeze

  # Log the requests to BMCs
  beskar7 run --log-level info,bmc=debug";

/// The Lease that says which replica leads.
pub(crate) const LEASE: &str = "beskar7.infrastructure.cluster.x-k8s.io";
const DEFAULT_NAMESPACE: &str = "beskar7-system";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only hosts of this namespace; a Role in it is then enough
    #[arg(short, long, env = "BESKAR7_NAMESPACE")]
    namespace: Option<String>,
    /// Only hosts whose label cluster.x-k8s.io/watch-filter has this value
    #[arg(long, value_name = "VALUE", env = "BESKAR7_WATCH_FILTER")]
    watch_filter: Option<String>,
    #[command(flatten)]
    pub(super) dialects: DialectArgs,
    /// Where to serve /metrics, to everybody who reaches it; 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", env = "BESKAR7_METRICS_BIND_ADDRESS", value_parser = bind)]
    metrics_bind_address: Bind,
    /// Where to serve /healthz and /readyz; 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", env = "BESKAR7_HEALTH_PROBE_BIND_ADDRESS", value_parser = bind)]
    health_probe_bind_address: Bind,
    /// Machines need no Cluster API: whoever applies a Beskar7Machine gets a server
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "BESKAR7_WITHOUT_CLUSTER_API")]
    without_cluster_api: bool,
    /// How many BMCs are spoken to at once
    #[arg(long, value_name = "NUMBER", default_value = "64", env = "BESKAR7_BMC_CONCURRENCY")]
    bmc_concurrency: NonZeroU16,
    /// Threads that do the work
    #[arg(long, value_name = "NUMBER", default_value = "2", env = "BESKAR7_THREADS")]
    pub(super) threads: NonZeroUsize,
    #[command(flatten)]
    pub(super) boot: BootArgs,
    #[command(flatten)]
    pub(super) ironcore: IronCoreArgs,
    #[command(flatten)]
    brake: BrakeArgs,
    #[command(flatten)]
    election: ElectionArgs,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    #[command(flatten)]
    pub(super) logs: LogArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DialectArgs {
    /// Families of resources to work with; only these, whatever else is installed
    #[arg(long, alias = "dialect", value_name = "NAMES", value_delimiter = ',', default_value = "beskar7", env = "BESKAR7_DIALECTS", hide_env_values = true, value_parser = Dialect::from_str)]
    dialects: Vec<Dialect>,
}

impl DialectArgs {
    /// Each once.
    pub(crate) fn selected(&self) -> Vec<Dialect> {
        self.dialects.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Their kinds of hosts.
    pub(crate) fn kinds(&self) -> Vec<&'static dyn HostKind> {
        self.selected().into_iter().map(dialects::kind).collect()
    }

    /// What a client needs to see the same: the flag, or nothing where it is the default.
    pub(crate) fn for_clients(&self) -> String {
        if self.selected() == [Dialect::Beskar7] { String::new() } else { format!(" --dialects {self}") }
    }
}

impl std::fmt::Display for DialectArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.dialects.iter().map(|dialect| dialect.name()).collect::<Vec<_>>().join(","))
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fleet brake")]
pub(crate) struct BrakeArgs {
    /// How many running servers may be switched off or reset in a minute, evenly spread; the others wait
    #[arg(long, value_name = "NUMBER", default_value_t = BrakeConfig::default().disruptions_per_minute, env = "BESKAR7_MAX_DISRUPTIONS_PER_MINUTE")]
    max_disruptions_per_minute: u32,
    /// How many servers may be deployed at once; the others wait
    #[arg(long, value_name = "NUMBER", default_value_t = BrakeConfig::default().concurrent_deployments, env = "BESKAR7_MAX_DEPLOYMENTS")]
    max_deployments: usize,
    /// Switch off, reset and deploy nothing; look only
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "BESKAR7_FREEZE")]
    freeze: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
#[expect(clippy::struct_field_names, reason = "the fields are named after the flags")]
struct ElectionArgs {
    /// Work only while this replica leads; false if there is only one
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "BESKAR7_LEADER_ELECT")]
    leader_elect: bool,
    /// Namespace of the Lease and of the boot service's key [default: $POD_NAMESPACE, else --namespace, else beskar7-system]
    #[arg(long, value_name = "NAMESPACE", env = "BESKAR7_LEADER_ELECT_NAMESPACE")]
    leader_elect_namespace: Option<String>,
    /// Lease duration: after this time another replica may take over
    #[arg(long, value_name = "DURATION", default_value = "15s", env = "BESKAR7_LEADER_ELECT_LEASE_DURATION", value_parser = human::duration)]
    leader_elect_lease_duration: Duration,
    /// How long a leader continues without renewing its lease
    #[arg(long, value_name = "DURATION", default_value = "10s", env = "BESKAR7_LEADER_ELECT_RENEW_DEADLINE", value_parser = human::duration)]
    leader_elect_renew_deadline: Duration,
    /// Interval between attempts to get the lease
    #[arg(long, value_name = "DURATION", default_value = "2s", env = "BESKAR7_LEADER_ELECT_RETRY_PERIOD", value_parser = human::duration)]
    leader_elect_retry_period: Duration,
}

impl BrakeArgs {
    pub(crate) fn config(&self) -> BrakeConfig {
        BrakeConfig {
            disruptions_per_minute: self.max_disruptions_per_minute,
            concurrent_deployments: self.max_deployments,
            freeze: self.freeze,
        }
    }
}

/// What we are told by where we run.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    pod: Option<String>,
    namespace: Option<String>,
    host: Option<String>,
}

impl Surroundings {
    pub(super) fn look() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        Self {
            pod: variable("POD_NAME"),
            namespace: variable("POD_NAMESPACE"),
            host: kernel().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).or(variable("HOSTNAME")),
        }
    }

    /// Differs between any two processes, also in one pod that was restarted.
    fn identity(&self) -> String {
        let name = self.pod.as_deref().or(self.host.as_deref()).unwrap_or("beskar7");
        format!("{name}_{:08x}", fastrand::u32(..))
    }
}

impl Args {
    pub(super) fn config(&self, surroundings: &Surroundings) -> Config {
        let namespace = self.namespace.clone().filter(|namespace| !namespace.is_empty());
        Config {
            dialects: self.dialects.selected(),
            watch_filter: self.watch_filter.clone().filter(|filter| !filter.is_empty()),
            election: self.election(surroundings),
            metrics_address: self.metrics_bind_address.0,
            probe_address: self.health_probe_bind_address.0,
            brake: self.brake.config(),
            bmcs_at_once: usize::from(self.bmc_concurrency.get()),
            settings: Arc::default(),
            cluster_api: !self.without_cluster_api,
            boot: None,
            namespace,
        }
    }

    /// Where what belongs to the operator itself is kept.
    pub(super) fn own_namespace(&self, surroundings: &Surroundings) -> String {
        let given = |namespace: &Option<String>| namespace.clone().filter(|namespace| !namespace.is_empty());
        given(&self.election.leader_elect_namespace)
            .or_else(|| surroundings.namespace.clone())
            .or_else(|| given(&self.namespace))
            .unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
    }

    fn election(&self, surroundings: &Surroundings) -> Option<Election> {
        let args = &self.election;
        args.leader_elect.then(|| Election {
            namespace: self.own_namespace(surroundings),
            lease: LEASE.to_owned(),
            identity: surroundings.identity(),
            timing: Timing {
                lease_duration: args.leader_elect_lease_duration,
                renew_deadline: args.leader_elect_renew_deadline,
                retry_period: args.leader_elect_retry_period,
                ..Timing::default()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn config(flags: &[&str], surroundings: &Surroundings) -> Config {
        Line::try_parse_from(["run"].iter().chain(flags))
            .map_err(|error| error.to_string())
            .unwrap()
            .args
            .config(surroundings)
    }

    fn in_pod() -> Surroundings {
        Surroundings { pod: Some("manager-1".into()), namespace: Some("system".into()), host: Some("node".into()) }
    }

    #[test]
    fn one_dialect_may_be_named_in_the_singular() {
        for flag in ["--dialect=metal3", "--dialects=metal3"] {
            assert_eq!(config(&[flag], &in_pod()).dialects, [Dialect::Metal3], "{flag}");
        }
    }

    #[test]
    fn upstream_flags_mean_what_they_meant() {
        let flags = [
            "--metrics-bind-address=127.0.0.1:9090",
            "--health-probe-bind-address=0",
            "--leader-elect",
            "--leader-elect-lease-duration=30s",
            "--leader-elect-renew-deadline=20s",
            "--leader-elect-retry-period=3s",
        ];
        let config = config(&flags, &Surroundings::default());
        assert_eq!(config.metrics_address, Some(([127, 0, 0, 1], 9090).into()));
        assert_eq!(config.probe_address, None);
        let timing = config.election.unwrap().timing;
        assert_eq!((timing.lease_duration, timing.renew_deadline), (Duration::from_secs(30), Duration::from_secs(20)));
        assert_eq!(timing.retry_period, Duration::from_secs(3));
    }

    #[test]
    fn defaults_are_fit_for_the_shipped_deployment() {
        let config = config(&[], &in_pod());
        assert_eq!((config.namespace, config.watch_filter), (None, None));
        assert_eq!(config.metrics_address, Some(([127, 0, 0, 1], 8080).into()), "not open to the whole cluster");
        assert_eq!(config.probe_address.unwrap().port(), 8081);
        assert_eq!(config.brake, BrakeConfig::default());
        let election = config.election.unwrap();
        assert_eq!((election.namespace.as_str(), election.lease.as_str()), ("system", LEASE));
        assert!(election.identity.starts_with("manager-1_"), "{}", election.identity);
        assert_eq!(election.timing, Timing::default());
    }

    #[test]
    fn the_lease_goes_where_there_is_leave_to_write_it() {
        let namespace =
            |flags: &[&str], surroundings: &Surroundings| config(flags, surroundings).election.unwrap().namespace;
        let nowhere = Surroundings::default();
        assert_eq!(namespace(&["--leader-elect-namespace=x", "-n", "lab"], &in_pod()), "x");
        assert_eq!(namespace(&["-n", "lab"], &in_pod()), "system");
        assert_eq!(namespace(&["-n", "lab"], &nowhere), "lab");
        assert_eq!(namespace(&[], &nowhere), "beskar7-system");
    }

    #[test]
    fn no_two_processes_share_an_identity() {
        let (one, other) = (in_pod().identity(), in_pod().identity());
        assert_ne!(one, other);
        assert!(Surroundings::default().identity().starts_with("beskar7_"));
    }

    #[test]
    fn dialects_are_what_was_named_and_an_unknown_one_is_refused() {
        let parsed =
            |flags: &[&str]| Line::try_parse_from(["run"].iter().chain(flags)).map(|it| it.args.dialects.to_string());
        assert_eq!(parsed(&[]).unwrap(), "beskar7");
        assert_eq!(parsed(&["--dialects", "beskar7"]).unwrap(), "beskar7");
        assert_eq!(parsed(&["--dialects", "beskar7,metal3,ironcore"]).unwrap(), "beskar7,metal3,ironcore");
        for unknown in ["openstack", "beskar7,openstack"] {
            let told = parsed(&["--dialects", unknown]).unwrap_err().to_string();
            let known = "there is no dialect \"openstack\"; this version knows: beskar7, metal3, ironcore";
            assert!(told.contains(known), "{told}");
        }
        assert!(parsed(&["--dialects="]).is_err(), "none is not all");
        let twice = Line::try_parse_from(["run", "--dialects", "beskar7,beskar7"]).map_err(|error| error.to_string());
        assert_eq!(twice.unwrap().args.dialects.kinds().len(), 1, "nothing is shown twice");
    }

    #[test]
    fn switches_can_be_switched_off() {
        let config = config(&["--leader-elect=false", "--freeze"], &in_pod());
        assert!(config.election.is_none());
        assert!(config.brake.freeze);
    }
}
