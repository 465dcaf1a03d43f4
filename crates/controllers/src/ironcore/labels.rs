//! Selectors of labels, as the engine knows them.

use engine::placement::{Selector, Term, Test};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// What a selector says, or which of its expressions makes no sense.
pub(super) fn selector(given: &LabelSelector) -> Result<Selector, String> {
    let labels = given.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| Ok(Term { key: key.clone(), test: Test::In([value.clone()].into()) }));
    let expressions = given.match_expressions.iter().flatten().map(|expression| {
        let values = || expression.values.iter().flatten().cloned().collect();
        let has_values = expression.values.as_ref().is_some_and(|values| !values.is_empty());
        let test = match expression.operator.as_str() {
            "In" if has_values => Test::In(values()),
            "NotIn" if has_values => Test::NotIn(values()),
            "Exists" if !has_values => Test::Exists,
            "DoesNotExist" if !has_values => Test::Absent,
            operator => {
                let key = &expression.key;
                return Err(format!(
                    "spec.serverSelector: operator {operator:?} for {key:?} makes no sense with the values that it has. Use In or NotIn with values, Exists or DoesNotExist without"
                ));
            }
        };
        Ok(Term { key: expression.key.clone(), test })
    });
    labels.chain(expressions).collect::<Result<Vec<_>, _>>().map(Selector)
}
