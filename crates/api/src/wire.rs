//! How Go writes values, and how to read what others wrote: shared by the dialects that came from Go.
#![allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Deserializer};

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// A time. The format `date-time` of an API server also allows times without a zone or without seconds: none, for us.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse::<Timestamp>().ok()).map(Time))
}

/// A time that is never missing.
pub(crate) fn time_or_epoch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    Ok(time(deserializer)?.unwrap_or_else(epoch))
}

pub(crate) fn epoch() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

/// Upstream's schemas accept objects without a spec: such a spec is empty. It is derived with `#[serde(remote = "Self")]`,
/// so that its own way of reading can be given here; only what is read as an option may be missing from an object.
macro_rules! absent_is_empty {
    ($spec:ty) => {
        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Spec;
                impl<'de> serde::de::Visitor<'de> for Spec {
                    type Value = $spec;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a spec")
                    }

                    fn visit_none<E>(self) -> Result<Self::Value, E> {
                        Ok(<$spec>::default())
                    }

                    fn visit_unit<E>(self) -> Result<Self::Value, E> {
                        Ok(<$spec>::default())
                    }

                    fn visit_some<D: serde::Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
                        <$spec>::deserialize(d)
                    }
                }
                deserializer.deserialize_option(Spec)
            }
        }
    };
}

pub(crate) use absent_is_empty;
