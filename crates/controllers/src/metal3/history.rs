//! `status.operationHistory`: when the steps of a host's life began and ended.

use api::metal3::{OperationHistory, OperationMetric, states};
use jiff::Timestamp;

use crate::conditions::time;

/// The host passes from one state to another at that time.
pub(super) fn pass(history: &mut OperationHistory, from: &str, to: &str, at: Timestamp) {
    if from == to {
        return;
    }
    if let Some(ended) = of(history, from).filter(|metric| metric.start.is_some() && metric.end.is_none()) {
        ended.end = Some(time(at));
    }
    if let Some(begun) = of(history, to).filter(|metric| metric.start.is_none() || metric.end.is_some()) {
        *begun = OperationMetric { start: Some(time(at)), end: None };
    }
}

fn of<'a>(history: &'a mut OperationHistory, state: &str) -> Option<&'a mut OperationMetric> {
    match state {
        states::REGISTERING => Some(&mut history.register),
        states::INSPECTING => Some(&mut history.inspect),
        states::PROVISIONING => Some(&mut history.provision),
        states::DEPROVISIONING => Some(&mut history.deprovision),
        _ => None,
    }
}
