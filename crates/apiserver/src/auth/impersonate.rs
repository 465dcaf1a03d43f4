//! `kubectl --as`: somebody who may, acts as somebody else.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::{ANONYMOUS, AUTHENTICATED, Attributes, Decision, UNAUTHENTICATED, User, authorize};
use crate::status::{Failure, Qualified};

const EXTRA: &str = "impersonate-extra-";

/// The user that the headers ask for, or the user itself.
pub(super) fn impersonate(user: User, headers: &HeaderMap) -> Result<User, Failure> {
    let text = |key: &str| headers.get(key).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = text("impersonate-user");
    let uid = text("impersonate-uid");
    let mut groups: Vec<String> =
        headers.get_all("impersonate-group").iter().filter_map(|group| Some(group.to_str().ok()?.to_owned())).collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in headers {
        if let (Some(key), Ok(value)) = (key.as_str().strip_prefix(EXTRA), value.to_str()) {
            extra.entry(unescaped(key)).or_default().push(value.to_owned());
        }
    }
    if name.is_empty() {
        return if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            Ok(user)
        } else {
            Err(Failure::internal(format!("requested {} without impersonating a user", describe(&groups, &extra, uid))))
        };
    }
    let account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let (resource, namespace, object) = match account {
        Some((namespace, name)) => ("serviceaccounts", namespace, name),
        None => ("users", "", name),
    };
    let wanted = Attributes { verb: "impersonate", resource, namespace, name: object, ..Attributes::default() };
    if let Decision::Deny(_) = authorize(&user, &wanted) {
        let why = format!(
            "User {:?} cannot impersonate resource {resource:?} in API group \"\" at the cluster scope",
            user.name
        );
        return Err(Failure::forbidden(Qualified { group: "", name: resource }, object, why));
    }
    if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let is_in = |wanted: &str| groups.iter().any(|group| group == wanted);
    if name == ANONYMOUS {
        if !is_in(UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !is_in(AUTHENTICATED) && !is_in(UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    Ok(User { name: name.to_owned(), uid: uid.to_owned(), groups, extra })
}

fn describe(groups: &[String], extra: &BTreeMap<String, Vec<String>>, uid: &str) -> String {
    let mut parts: Vec<String> = groups.iter().map(|group| format!("Group {group}")).collect();
    parts.extend(extra.keys().map(|key| format!("UserExtra {key}")));
    if !uid.is_empty() {
        parts.push(format!("UID {uid}"));
    }
    format!("[{}]", parts.join(" "))
}

/// Percent signs stand for bytes that header names cannot have; what is not escaped properly stays as it is.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let Some(byte) = after
                .get(..2)
                .and_then(|hex| std::str::from_utf8(hex).ok())
                .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            else {
                return key.to_owned();
            };
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}
