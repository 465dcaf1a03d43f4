//! What a CustomResourceDefinition must look like.
//!
//! Kubernetes checks it in a form of its own, in which what all versions share stands once, outside of them. That is why
//! errors about the schema of the only version are at `spec.validation`, and not at `spec.versions[0].schema`.

use std::collections::HashSet;

use cel::Rules;
use schema::names;
use schema::{Path, Props, Schema, dns_1035_faults, find, is_request_uri};
use serde_json::Value;

use crate::status::{FieldError, FieldFault, quoted};

mod parts;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// What is wrong with a definition that is created or, with `old`, changed. Defaults have been filled in, and
/// `status.storedVersions` has been updated. What all resources have in `metadata` is not looked at.
pub(crate) fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new() };
    let definition = Props::of(new);
    let spec = definition.and_then(|definition| definition.schema("spec"));
    let nothing = serde_json::Map::new();
    let spec = spec.unwrap_or(Props(&nothing));
    if old.is_none() {
        check.name(new, spec);
    }
    check.spec(spec);
    if let Some(old) = old {
        check.unchanged(spec, old);
    }
    check.status(new, spec);
    check.approval(new, old, spec);
    let preserved = old.is_some_and(|old| old["spec"]["preserveUnknownFields"] == true);
    if spec.flag("preserveUnknownFields") && !preserved {
        check.invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        );
    }
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn name(&mut self, definition: &Value, spec: Props<'_>) {
        let name = schema::object::name(definition);
        let plural = spec.schema("names").map_or("", |names| names.text("plural"));
        if !name.is_empty() && name != format!("{plural}.{}", spec.text("group")) {
            self.invalid("metadata.name", name, r#"must be spec.names.plural+"."+spec.group"#);
        }
    }

    fn spec(&mut self, spec: Props<'_>) {
        self.group(spec.text("group"));
        self.one_of("spec.scope", spec.text("scope"), &["Cluster", "Namespaced"]);
        let versions: Vec<Props<'_>> = spec.schemas("versions").collect();
        let at_versions = Path::Base("spec.versions");
        for (index, version) in versions.iter().enumerate() {
            if openapi_of(*version).is_none() {
                let at = at_versions.index(index);
                let at = at.field("schema");
                self.required(&at.field("openAPIV3Schema").to_string(), "schemas are required");
            }
        }
        let shared = Shared::of(&versions);
        for (index, version) in versions.iter().enumerate() {
            self.version(*version, &at_versions.index(index), &shared);
        }
        self.version_names(&versions);
        self.names(spec);
        if let Some(first) = versions.first() {
            self.shared(*first, &versions, &shared);
        }
        self.conversion(spec);
    }

    fn group(&mut self, group: &str) {
        if group.is_empty() {
            self.required("spec.group", "");
        } else if let Err(why) = names::subdomain(group) {
            self.invalid("spec.group", group, why);
        } else if !group.contains('.') {
            self.invalid("spec.group", group, "should be a domain with at least one dot");
        }
    }

    fn version(&mut self, version: Props<'_>, path: &Path<'_>, shared: &Shared) {
        self.labelled(&path.field("name"), version.text("name"));
        self.deprecation(version, &path.field("deprecationWarning").to_string());
        if !shared.schema
            && let Some(openapi) = openapi_of(version)
        {
            let at = path.field("schema");
            self.schema(openapi, has_status(version), &at.field("openAPIV3Schema").to_string());
        }
        if !shared.subresources {
            self.subresources(version, &path.field("subresources"));
        }
        if !shared.columns {
            self.columns(version, &path.field("additionalPrinterColumns"));
        }
        if !shared.selectable {
            self.selectable(version, &path.field("selectableFields"));
        }
    }

    /// What all versions have in common.
    fn shared(&mut self, first: Props<'_>, versions: &[Props<'_>], shared: &Shared) {
        if shared.schema
            && let Some(openapi) = openapi_of(first)
        {
            let status = versions.iter().any(|version| has_status(*version));
            self.schema(openapi, status, "spec.validation.openAPIV3Schema");
        }
        if shared.subresources {
            self.subresources(first, &Path::Base("spec.subresources"));
        }
        if shared.columns {
            self.columns(first, &Path::Base("spec.additionalPrinterColumns"));
        }
        if shared.selectable {
            self.selectable(first, &Path::Base("spec.selectableFields"));
        }
    }

    fn version_names(&mut self, versions: &[Props<'_>]) {
        let named: Vec<&str> = versions.iter().map(|version| version.text("name")).collect();
        let mut seen = HashSet::new();
        if !versions.iter().all(|version| seen.insert(version.text("name"))) {
            self.errors.push(FieldError::invalid("spec.versions", named.clone(), "must contain unique version names"));
        }
        if versions.iter().filter(|version| version.flag("storage")).count() != 1 {
            let sentence = "must have exactly one version marked as storage version";
            self.errors.push(FieldError::invalid("spec.versions", named, sentence));
        }
        if let Some(first) = versions.first().map(|version| version.text("name")).filter(|name| !name.is_empty()) {
            self.labelled(&Path::Base("spec.version"), first);
        }
    }

    fn names(&mut self, spec: Props<'_>) {
        let names = spec.schema("names");
        for key in ["plural", "singular", "kind", "listKind"] {
            if names.is_none_or(|names| names.text(key).is_empty()) {
                self.required(&format!("spec.names.{key}"), "");
            }
        }
        if let Some(names) = names {
            self.accepted(names, &Path::Base("spec.names"));
        }
    }

    /// Names as they are asked for or accepted; in the status they may be missing.
    fn accepted(&mut self, names: Props<'_>, path: &Path<'_>) {
        for key in ["plural", "singular"] {
            if !names.text(key).is_empty() {
                self.labelled(&path.field(key), names.text(key));
            }
        }
        for key in ["kind", "listKind"] {
            let name = names.text(key);
            let faults = dns_1035_faults(&name.to_lowercase());
            if !name.is_empty() && !faults.is_empty() {
                let why = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
                self.invalid(&path.field(key).to_string(), name, why);
            }
        }
        let short_names = path.field("shortNames");
        for (index, name) in names.texts("shortNames").enumerate() {
            self.labelled(&short_names.index(index), name);
        }
        let list_kind = names.text("listKind");
        if !list_kind.is_empty() && names.text("kind") == list_kind {
            self.invalid(&path.field("listKind").to_string(), list_kind, "kind and listKind may not be the same");
        }
        let categories = path.field("categories");
        for (index, name) in names.texts("categories").enumerate() {
            self.labelled(&categories.index(index), name);
        }
    }

    fn conversion(&mut self, spec: Props<'_>) {
        let Some(conversion) = spec.schema("conversion") else { return };
        let strategy = conversion.text("strategy");
        if strategy == "Webhook" {
            let sentence =
                "conversion webhooks are not supported by this server; versions must be alike, and the strategy None";
            self.errors.push(FieldError::forbidden("spec.conversion.strategy", sentence));
            return;
        }
        self.one_of("spec.conversion.strategy", strategy, &["None", "Webhook"]);
        let webhook = conversion.schema("webhook");
        let sentence = "should not be set when strategy is not set to Webhook";
        if webhook.is_some_and(|webhook| webhook.given("clientConfig").is_some()) {
            self.errors.push(FieldError::forbidden("spec.conversion.webhookClientConfig", sentence));
        }
        if webhook.is_some_and(|webhook| webhook.texts("conversionReviewVersions").next().is_some()) {
            self.errors.push(FieldError::forbidden("spec.conversion.conversionReviewVersions", sentence));
        }
    }

    /// Objects are stored by group and plural, and found by scope and kind.
    fn unchanged(&mut self, spec: Props<'_>, old: &Value) {
        let Some(before) = Props::of(&old["spec"]) else { return };
        let name =
            |spec: Props<'_>, key| spec.schema("names").map_or(String::new(), |names| names.text(key).to_owned());
        let mut pairs = Vec::new();
        if is_established(old) {
            pairs.push(("spec.scope", spec.text("scope").to_owned(), before.text("scope").to_owned()));
            pairs.push(("spec.names.kind", name(spec, "kind"), name(before, "kind")));
        }
        pairs.push(("spec.group", spec.text("group").to_owned(), before.text("group").to_owned()));
        pairs.push(("spec.names.plural", name(spec, "plural"), name(before, "plural")));
        for (path, is, was) in pairs {
            if is != was {
                self.invalid(path, is, "field is immutable");
            }
        }
    }

    fn status(&mut self, definition: &Value, spec: Props<'_>) {
        let status = Props::of(&definition["status"]);
        if let Some(accepted) = status.and_then(|status| status.schema("acceptedNames")) {
            self.accepted(accepted, &Path::Base("status.acceptedNames"));
        }
        let stored: Vec<&str> = status.into_iter().flat_map(|status| status.texts("storedVersions")).collect();
        let at = "status.storedVersions";
        if stored.is_empty() {
            self.errors.push(FieldError::invalid(at, stored, "must have at least one stored version"));
            return;
        }
        let versions: Vec<Props<'_>> = spec.schemas("versions").collect();
        for version in versions.iter().filter(|version| version.flag("storage")) {
            let name = version.text("name");
            if !stored.contains(&name) {
                let sentence = format!("must have the storage version {name}");
                self.errors.push(FieldError::invalid(at, stored.clone(), sentence));
            }
        }
        for (index, name) in stored.iter().enumerate() {
            if !versions.iter().any(|version| version.text("name") == *name) {
                let sentence = format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                     {name} from status.storedVersions"
                );
                self.invalid(&Path::Base(at).index(index).to_string(), *name, sentence);
            }
        }
    }

    /// Groups of the Kubernetes community are not for everybody.
    fn approval(&mut self, new: &Value, old: Option<&Value>, spec: Props<'_>) {
        let group = spec.text("group");
        let is_protected = ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|domain| group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.')));
        if !is_protected {
            return;
        }
        let (state, given) = approval(new);
        if old.is_some_and(|old| approval(old).0 == state) {
            return;
        }
        let at = Path::Base("metadata.annotations");
        let at = at.key(APPROVAL).to_string();
        let needs = format!("protected groups must have approval annotation {}", quoted(APPROVAL));
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        match state {
            Approval::Given => {}
            Approval::Missing => self.required(&at, &format!("{needs}, {see}")),
            Approval::Invalid => {
                let sentence = format!(r#"{needs} with either a URL or a reason starting with "unapproved", {see}"#);
                self.invalid(&at, given, sentence);
            }
        }
    }

    fn labelled(&mut self, path: &Path<'_>, name: &str) {
        let faults = dns_1035_faults(name);
        if !faults.is_empty() {
            self.invalid(&path.to_string(), name, faults.join(","));
        }
    }

    fn one_of(&mut self, path: &str, value: &str, accepted: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else if !accepted.contains(&value) {
            let accepted = accepted.iter().map(|&one| one.to_owned()).collect();
            self.errors.push(FieldError::new(FieldFault::Unsupported(value.into(), accepted), path, ""));
        }
    }

    fn required(&mut self, path: &str, sentence: &str) {
        self.errors.push(FieldError::required(path, sentence));
    }

    fn invalid(&mut self, path: &str, value: impl Into<Value>, sentence: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, sentence));
    }
}

/// Which parts are the same in all versions.
#[allow(clippy::struct_excessive_bools, reason = "one for each part")]
struct Shared {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Shared {
    fn of(versions: &[Props<'_>]) -> Self {
        let same = |part: &str| {
            // An empty list is no list.
            let part_of = |version: &Props<'_>| {
                version.given(part).filter(|value| value.as_array().is_none_or(|items| !items.is_empty())).cloned()
            };
            versions.iter().map(part_of).collect::<Vec<_>>().windows(2).all(|pair| pair[0] == pair[1])
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

fn openapi_of(version: Props<'_>) -> Option<&Value> {
    version.schema("schema")?.given("openAPIV3Schema")
}

fn has_status(version: Props<'_>) -> bool {
    version.schema("subresources").is_some_and(|subresources| subresources.given("status").is_some())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

#[derive(PartialEq)]
enum Approval {
    Given,
    Missing,
    Invalid,
}

fn approval(definition: &Value) -> (Approval, &str) {
    let given = definition["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default();
    let has_host = given.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.starts_with('/'));
    let state = match given {
        "" => Approval::Missing,
        reason if reason.starts_with("unapproved") => Approval::Given,
        url if has_host && is_request_uri(url) => Approval::Given,
        _ => Approval::Invalid,
    };
    (state, given)
}

#[cfg(test)]
mod tests;
