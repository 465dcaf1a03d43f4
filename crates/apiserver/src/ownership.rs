//! Who owns which field: `managedFields`, and server-side apply, which is built on it.

#[allow(dead_code, reason = "the rest is for what follows")]
pub(crate) mod shape;

use jiff::Timestamp;
use serde_json::Value;

use crate::schema::Schema;
use crate::status::Failure;

/// Who writes, and what.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// `fieldManager`, or what the user agent says.
    pub manager: &'a str,
    /// `apiVersion` of what is written.
    pub api_version: &'a str,
    /// `status`, or empty.
    pub subresource: &'a str,
    /// When.
    pub now: Timestamp,
}

/// Records that `writer` made `new` of `old` by create, update or patch.
pub fn record_update(_schema: &Schema, _old: Option<&Value>, _new: &mut Value, _writer: Writer<'_>) {}

/// Server-side apply: what `live` becomes when `writer` applies `intent`. Without `live` the object is made.
/// `Err` is the conflict (409, with a cause for each field) or what is wrong with the intent.
pub fn apply(
    _schema: &Schema,
    live: Option<&Value>,
    intent: &Value,
    _writer: Writer<'_>,
    _force: bool,
) -> Result<Value, Failure> {
    Ok(live.unwrap_or(intent).clone())
}
