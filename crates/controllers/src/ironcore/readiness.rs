//! ServerReadinessRule: servers bear a taint until they have certain conditions. The Server itself takes its taints on and off.

use api::ironcore::states::enforcement;
use api::ironcore::{Condition, Server, ServerReadinessRule, Taint, names};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::labels::selector;
use super::{OURS, is_ignored};
use crate::dialect::View;
use crate::object::ObjectId;
use crate::objects::{Decision, Look, ObjectDialect};
use crate::relatives::{Related, Relative};
use crate::writer::Ownership;

/// ServerReadinessRules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadinessRules;

impl ObjectDialect for ReadinessRules {
    type Object = ServerReadinessRule;

    const NAME: &'static str = "serverreadinessrule";
    const FINALIZER: &'static str = names::SERVER_READINESS_RULE_FINALIZER;
    const OURS: Ownership = OURS;
    const SECRET_FIELDS: [&'static str; 2] = ["", ""];

    fn relatives() -> Vec<Relative> {
        super::relatives()
    }

    fn depends_on(view: &View<'_, ServerReadinessRule>) -> Vec<ObjectId> {
        let is_going = view.object.metadata.deletion_timestamp.is_some();
        is_going.then(ObjectId::all::<Server>).into_iter().collect()
    }

    fn step(view: &View<'_, ServerReadinessRule>, _: &Look<'_>) -> Decision {
        let rule = view.object;
        if rule.metadata.deletion_timestamp.is_some() {
            let all = view.related.all::<Server>();
            let is_left = |server: &Server| {
                !is_ignored(server) && selects(rule, server) && server.spec.taints.contains(&rule.spec.taint)
            };
            return Decision { finished: !all.iter().any(|server| is_left(server)), ..Decision::default() };
        }
        Decision { protect: !is_ignored(rule), ..Decision::default() }
    }
}

/// A selector that makes no sense selects nothing; so it does upstream.
fn selects(rule: &ServerReadinessRule, server: &Server) -> bool {
    selector(&rule.spec.server_selector).is_ok_and(|selector| selector.selects(server.labels()))
}

/// What the rules change of a server that has these conditions: its taints, and which rules are fulfilled for good.
pub(super) fn follow(
    server: &Server,
    conditions: &[Condition],
    related: &Related,
    annotations: &mut Map<String, Value>,
) -> Option<Vec<Taint>> {
    let mut taints = server.spec.taints.clone();
    let mut rules = related.all::<ServerReadinessRule>();
    rules.sort_by_key(|rule| rule.name_any());
    for rule in rules.iter().filter(|rule| !is_ignored(rule.as_ref()) && selects(rule, server)) {
        let completed = format!("{}{}", names::BOOTSTRAP_COMPLETED_PREFIX, rule.name_any());
        if rule.metadata.deletion_timestamp.is_some() {
            taints.retain(|taint| *taint != rule.spec.taint);
            continue;
        }
        let once = rule.spec.enforcement_mode == enforcement::BOOTSTRAP_ONLY;
        if once && server.annotations().contains_key(&completed) {
            continue;
        }
        let has = |required: &api::ironcore::ConditionRequirement| {
            conditions.iter().any(|shown| shown.type_ == required.type_ && shown.status == required.required_status)
        };
        if rule.spec.conditions.iter().all(has) {
            taints.retain(|taint| *taint != rule.spec.taint);
            if once {
                annotations.insert(completed, json!("true"));
            }
        } else if !taints.contains(&rule.spec.taint) {
            taints.push(rule.spec.taint.clone());
        }
    }
    (taints != server.spec.taints).then_some(taints)
}
