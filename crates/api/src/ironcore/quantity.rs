//! Amounts of memory and of disk space.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A quantity that may have been written as a number. Go writes it as text.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quantity>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(Quantity(text)),
        Value::Number(number) => Some(Quantity(number.to_string())),
        _ => None,
    })
}
