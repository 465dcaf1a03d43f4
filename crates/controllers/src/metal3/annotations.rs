//! What users ask for by annotations.

use std::collections::BTreeMap;

use api::metal3::names;
use engine::host::{Detachment, HeldOff, Manner};
use serde::Deserialize;

/// The value of a reboot annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reboot {
    manner: Manner,
    force: bool,
}

impl Reboot {
    /// A text that cannot be read asks for a soft reboot.
    fn parse(text: &str) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Value {
            mode: String,
            force: bool,
        }
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let manner = if value.mode == names::REBOOT_HARD { Manner::Hard } else { Manner::Soft };
        Self { manner, force: value.force }
    }
}

/// What the reboot annotations ask for together: one without a key counts once, one with a key as long as it is there, and whoever asks for
/// a hard reboot prevails.
pub(super) fn held_off(annotations: &BTreeMap<String, String>) -> Option<HeldOff> {
    let asked = annotations.iter().filter_map(|(name, value)| {
        let rest = name.strip_prefix(names::REBOOT)?;
        let lasts = rest.starts_with('/');
        (lasts || rest.is_empty()).then(|| (lasts, Reboot::parse(value)))
    });
    asked.map(|(lasts, reboot)| HeldOff { manner: reboot.manner, lasts, once: !lasts, also_free: reboot.force }).reduce(
        |one, other| HeldOff {
            manner: if one.manner == Manner::Hard { one.manner } else { other.manner },
            lasts: one.lasts || other.lasts,
            once: one.once || other.once,
            also_free: one.also_free || other.also_free,
        },
    )
}

/// Reboot annotations whose text is no JSON of that shape.
pub(super) fn unreadable_reboots(annotations: &BTreeMap<String, String>) -> Vec<&str> {
    let is_reboot =
        |name: &str| name.strip_prefix(names::REBOOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_object = |text: &str| serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok();
    annotations
        .iter()
        .filter(|(name, value)| is_reboot(name) && !value.is_empty() && !is_object(value))
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The value of the annotation that detaches a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detached {
    /// When it counts.
    pub(super) when: Detachment,
    /// Whether the object stays until the annotation is gone, although it is to be deleted.
    pub(super) delays_deletion: bool,
}

impl Detached {
    /// Any text detaches; one that cannot be read asks for nothing more.
    pub(super) fn parse(text: &str) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Value {
            delete_action: String,
            force: bool,
        }
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let when = if value.force { Detachment::AtOnce } else { Detachment::AtRest };
        Self { when, delays_deletion: value.delete_action == "delay" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
        all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn a_reboot_without_a_key_counts_once_and_one_with_a_key_until_it_is_removed() {
        let soft = HeldOff { manner: Manner::Soft, lasts: false, once: true, also_free: false };
        let hard = r#"{"mode":"hard"}"#;
        let table = [
            (vec![], None),
            (vec![("reboot.metal3.io", "")], Some(soft)),
            (vec![("reboot.metal3.io", "no JSON")], Some(soft)),
            (vec![("reboot.metal3.io", hard)], Some(HeldOff { manner: Manner::Hard, ..soft })),
            (vec![("reboot.metal3.io", r#"{"force":true}"#)], Some(HeldOff { also_free: true, ..soft })),
            (vec![("reboot.metal3.io/me", "")], Some(HeldOff { lasts: true, once: false, ..soft })),
            (
                vec![("reboot.metal3.io", ""), ("reboot.metal3.io/me", hard)],
                Some(HeldOff { manner: Manner::Hard, lasts: true, ..soft }),
            ),
            (vec![("reboot.metal3.ioo", ""), ("other", "")], None),
        ];
        for (all, expected) in table {
            assert_eq!(held_off(&annotated(all.clone())), expected, "{all:?}");
        }
        let odd =
            annotated([("reboot.metal3.io", "no JSON"), ("reboot.metal3.io/a", "{}"), ("reboot.metal3.io/b", "")]);
        assert_eq!(unreadable_reboots(&odd), ["reboot.metal3.io"]);
    }

    #[test]
    fn any_text_detaches_a_host() {
        let plain = Detached { when: Detachment::AtRest, delays_deletion: false };
        for (text, expected) in [
            ("", plain),
            ("true", plain),
            ("{", plain),
            (r#"{"force":true}"#, Detached { when: Detachment::AtOnce, ..plain }),
            (r#"{"deleteAction":"delay"}"#, Detached { delays_deletion: true, ..plain }),
            (r#"{"deleteAction":"delete"}"#, plain),
        ] {
            assert_eq!(Detached::parse(text), expected, "{text:?}");
        }
    }
}
