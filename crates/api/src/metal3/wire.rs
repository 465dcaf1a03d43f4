//! How Go writes values, and how to read what others wrote.
#![allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]

use serde::Serializer;

pub(super) use crate::wire::{absent_is_empty, is_false, is_zero, time};

pub(super) fn is_no_vlan(value: &i32) -> bool {
    *value == 0
}

pub(super) fn is_no_speed(value: &f64) -> bool {
    *value == 0.0
}

/// A whole number without a decimal point.
#[expect(clippy::cast_possible_truncation, reason = "exact below 2^53")]
pub(super) fn speed<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}
