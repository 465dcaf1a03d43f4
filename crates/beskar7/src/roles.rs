//! `beskar7 roles`: what the operator may do, as `config/rbac` has it for the default dialects.

use anyhow::bail;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::ObjectMeta;

use crate::dialects::{HostKind, rule};
use crate::output;
use crate::run::{DialectArgs, LEASE};

pub(crate) const ABOUT: &str = "\
Print the role that the operator needs, and no more.

Without --namespace it is the ClusterRole for all namespaces; the leader election needs the Role of \
config/rbac/leader_election_role.yaml, too. With --namespace it is one Role for `beskar7 run --namespace`.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # For all namespaces
  beskar7 roles | kubectl apply -f -

  # For one namespace, for which no ClusterRole is needed
  beskar7 roles --namespace lab | kubectl apply -f -";

/// What both roles are called.
const NAME: &str = "beskar7-manager";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For an operator of this namespace only
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    dialects: DialectArgs,
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    output::print(&write(&args.dialects.kinds(), args.namespace.as_deref())?)
}

fn write(kinds: &[&'static dyn HostKind], namespace: Option<&str>) -> anyhow::Result<String> {
    let mut rules = rules(kinds);
    let metadata = |namespace| ObjectMeta { name: Some(NAME.to_owned()), namespace, ..ObjectMeta::default() };
    Ok(match namespace {
        None => serde_saphyr::to_string(&ClusterRole {
            metadata: metadata(None),
            rules: Some(rules),
            ..ClusterRole::default()
        })?,
        Some(namespace) => {
            if let Some(kind) = kinds.iter().find(|kind| !kind.has_namespaces()) {
                bail!("{}s have no namespace: leave --namespace out", kind.resource().kind);
            }
            rules.extend(own_rules());
            serde_saphyr::to_string(&Role { metadata: metadata(Some(namespace.to_owned())), rules: Some(rules) })?
        }
    })
}

/// What the operator of these dialects may do: what each of them needs, and what every operator needs.
fn rules(kinds: &[&'static dyn HostKind]) -> Vec<PolicyRule> {
    let mut all = Vec::new();
    for rule in kinds.iter().flat_map(|kind| kind.rules()).chain(shared_rules()) {
        if !all.contains(&rule) {
            all.push(rule);
        }
    }
    all
}

fn shared_rules() -> [PolicyRule; 3] {
    [
        rule("boot.beskar7.io", &["bootsessions"], &["get", "list", "watch", "create", "update", "delete"]),
        rule("", &["secrets"], &["get", "list", "watch"]),
        rule("events.k8s.io", &["events"], &["create"]),
    ]
}

/// What it may do in its own namespace: lead, and keep the key of the boot service.
fn own_rules() -> [PolicyRule; 3] {
    let own_lease = PolicyRule {
        resource_names: Some(vec![LEASE.to_owned()]),
        ..rule("coordination.k8s.io", &["leases"], &["get", "update"])
    };
    [rule("coordination.k8s.io", &["leases"], &["create"]), own_lease, rule("", &["secrets"], &["create"])]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use controllers::dialects::Dialect;
    use serde::Deserialize;

    use super::*;
    use crate::dialects::{self, foreign};

    #[derive(Deserialize)]
    struct Shipped {
        rules: Vec<PolicyRule>,
    }

    fn shipped(file: &str) -> Vec<PolicyRule> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(file);
        serde_saphyr::from_str::<Shipped>(&std::fs::read_to_string(path).unwrap()).unwrap().rules
    }

    #[test]
    fn the_roles_that_we_ship_allow_what_their_dialects_need_and_no_more() {
        let rules = rules(&[dialects::kind(Dialect::Beskar7)]);
        assert_eq!(shipped("rbac/role.yaml"), rules);
        assert_eq!(shipped("rbac/leader_election_role.yaml"), own_rules());
        assert_eq!(shipped("rbac/namespaced/role.yaml"), [rules, own_rules().to_vec()].concat());
        assert_eq!(shipped("metal3/role.yaml"), dialects::kind(Dialect::Metal3).rules());
        assert_eq!(shipped("ironcore/role.yaml"), dialects::kind(Dialect::IronCore).rules());
    }

    #[test]
    fn the_role_for_several_dialects_has_the_rules_of_each_once() {
        let [beskar7, servers]: [&'static dyn HostKind; 2] = [dialects::kind(Dialect::Beskar7), &foreign::Servers];
        let both = rules(&[beskar7, servers]);
        for rule in beskar7.rules().into_iter().chain(servers.rules()).chain(shared_rules()) {
            assert_eq!(both.iter().filter(|one| **one == rule).count(), 1, "{rule:?}");
        }
        assert!(!rules(&[servers]).contains(&beskar7.rules()[0]), "not what nobody asked for");
        let error = write(&[beskar7, servers], Some("lab")).unwrap_err().to_string();
        assert_eq!(error, "Servers have no namespace: leave --namespace out");
    }

    #[test]
    fn a_role_is_written_as_the_api_server_takes_it() {
        let beskar7 = dialects::kind(Dialect::Beskar7);
        let role: ClusterRole = serde_saphyr::from_str(&write(&[beskar7], None).unwrap()).unwrap();
        assert_eq!((role.metadata.name.as_deref(), role.rules), (Some(NAME), Some(rules(&[beskar7]))));
        let role: Role = serde_saphyr::from_str(&write(&[beskar7], Some("lab")).unwrap()).unwrap();
        assert_eq!(role.metadata.namespace.as_deref(), Some("lab"));
        assert_eq!(role.rules, Some([rules(&[beskar7]), own_rules().to_vec()].concat()));
    }
}
