//! ServiceAccounts.

use serde_json::Value;

use super::{Plan, age_column, column, name_column, rules, v1};
use crate::resource::{Cell, Hooks, Resource, Scope};
use crate::status::Failure;

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short_names: &["sa"],
        categories: &[],
        scope: Scope::Namespaced,
    };
    let secrets = |object: &Value, _| object["secrets"].as_array().map_or(0, Vec::len).into();
    let columns =
        vec![name_column(), column("Secrets", "How many secrets it names.", Cell::Compute(secrets)), age_column()];
    let hooks = Hooks { default, ..Hooks::NONE };
    Ok(plan.resource(vec![v1("io.k8s.api.core.v1.ServiceAccount", columns, &[])?], hooks))
}

fn default(new: &mut Value) {
    rules::leave_out(new, &["secrets", "imagePullSecrets"]);
}
