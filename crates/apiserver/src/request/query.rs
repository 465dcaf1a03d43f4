//! Parameters of requests, as Kubernetes reads them.

use crate::request::path::decode;
use crate::status::{Failure, FieldError, FieldFault, Qualified};

/// The parameters of a request.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

/// What to do about fields that nobody knows, and those that are there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Nothing.
    Ignore,
    /// `Warning:` headers.
    #[default]
    Warn,
    /// Refuse the object.
    Strict,
}

/// Parameters of a write.
#[derive(Debug, Clone, Default)]
pub struct WriteParameters {
    /// `dryRun=All`.
    pub dry_run: bool,
    /// `fieldManager`; empty if it was not given.
    pub field_manager: String,
    /// `fieldValidation`.
    pub field_validation: FieldValidation,
    /// `force`, of an apply.
    pub force: bool,
}

/// Parameters of a list or watch.
#[derive(Debug, Clone, Default)]
pub struct ListParameters {
    /// `limit`; 0 is no limit.
    pub limit: u64,
    /// `continue`.
    pub continuation: String,
    /// `resourceVersion`, as it was given.
    pub resource_version: String,
    /// `resourceVersionMatch`, as it was given.
    pub resource_version_match: String,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub allow_bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
    /// `watch`.
    pub watch: bool,
    /// `labelSelector`.
    pub label_selector: String,
    /// `fieldSelector`.
    pub field_selector: String,
}

impl Query {
    /// Reads the part of a URL after the question mark. Empty pairs (`?&limit=1`) and such that are badly
    /// encoded are passed over.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && is_well_encoded(pair)).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key, true), decode(value, true))
        });
        Self { pairs: pairs.collect() }
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; empty if it is not there.
    pub fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// A switch: everything but `false` and `0` is on.
    pub fn switch(&self, key: &str) -> Option<bool> {
        self.get(key).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A number.
    pub fn number(&self, key: &str) -> Result<Option<i64>, Failure> {
        let number = |text: &str| text.parse().map_err(|_| format!("{key} must be a whole number, not {text:?}"));
        self.get(key).map(number).transpose().map_err(Failure::bad_request)
    }

    /// The parameters of a list or watch, checked against each other.
    pub fn list(&self) -> Result<ListParameters, Failure> {
        let not_negative = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        let parameters = ListParameters {
            limit: not_negative(self.number("limit")?).unwrap_or_default(),
            continuation: self.text("continue"),
            resource_version: self.text("resourceVersion"),
            resource_version_match: self.text("resourceVersionMatch"),
            send_initial_events: self.switch("sendInitialEvents"),
            allow_bookmarks: self.switch("allowWatchBookmarks").unwrap_or_default(),
            timeout_seconds: not_negative(self.number("timeoutSeconds")?),
            watch: self.switch("watch").unwrap_or_default(),
            label_selector: self.text("labelSelector"),
            field_selector: self.text("fieldSelector"),
        };
        Ok(parameters)
    }

    /// The parameters of a write. `kind` is what Kubernetes calls them: `CreateOptions`, …; `patch` says whether it is
    /// a patch, and whether that is an apply.
    pub fn write(&self, kind: &str, apply: Option<bool>) -> Result<WriteParameters, Failure> {
        let mut errors = Vec::new();
        let field_manager = self.text("fieldManager");
        let force = self.switch("force");
        if let Some(apply) = apply {
            if apply && field_manager.is_empty() {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
            if !apply && force.is_some() {
                errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
        }
        errors.extend(check_manager(&field_manager));
        let dry_run: Vec<&str> = self.all("dryRun").collect();
        errors.extend(check_dry_run(&dry_run));
        let field_validation = match self.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"].map(str::to_owned).to_vec();
                errors.push(FieldError::new(FieldFault::Unsupported(other.into(), supported), "fieldValidation", ""));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        Ok(WriteParameters {
            dry_run: !dry_run.is_empty(),
            field_manager,
            field_validation,
            force: force.unwrap_or_default(),
        })
    }
}

impl ListParameters {
    /// What Kubernetes says against this combination, if anything.
    pub fn check(&self) -> Result<(), Failure> {
        let errors = if self.watch { self.check_watch() } else { self.check_list() };
        if errors.is_empty() { Ok(()) } else { Err(invalid_options("ListOptions", &errors)) }
    }

    fn check_list(&self) -> Vec<FieldError> {
        let path = "resourceVersionMatch";
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        let matching = self.resource_version_match.as_str();
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(path, why));
            }
            if !self.continuation.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(path, why));
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                let supported = ["Exact", "NotOlderThan", ""].map(str::to_owned).to_vec();
                errors.push(FieldError::new(FieldFault::Unsupported(matching.into(), supported), path, ""));
            }
            if matching == "Exact" && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(path, why));
            }
        }
        errors
    }

    fn check_watch(&self) -> Vec<FieldError> {
        let path = "resourceVersionMatch";
        let matching = self.resource_version_match.as_str();
        let mut errors = Vec::new();
        match self.send_initial_events {
            Some(_) => {
                if matching != "NotOlderThan" {
                    let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                    errors.push(FieldError::forbidden(path, why));
                }
                if !matches!(matching, "" | "NotOlderThan") {
                    let supported = vec!["NotOlderThan".to_owned()];
                    errors.push(FieldError::new(FieldFault::Unsupported(matching.into(), supported), path, ""));
                }
            }
            None if !matching.is_empty() => {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(path, why));
            }
            None => {}
        }
        if !self.continuation.is_empty() {
            errors.push(FieldError::forbidden(path, "resourceVersionMatch is forbidden when continue is provided"));
        }
        errors
    }
}

/// Whether each `%` has its two digits. Pairs with semicolons are passed over, too.
fn is_well_encoded(pair: &str) -> bool {
    !pair.contains(';')
        && pair
            .split('%')
            .skip(1)
            .all(|rest| rest.len() >= 2 && rest.as_bytes().iter().take(2).all(u8::is_ascii_hexdigit))
}

/// What is wrong with the value of `dryRun`.
pub fn check_dry_run(values: &[&str]) -> Option<FieldError> {
    if values.iter().all(|value| *value == "All") {
        return None;
    }
    let fault = FieldFault::Unsupported(values.into(), vec!["All".to_owned()]);
    Some(FieldError::new(fault, "dryRun", ""))
}

fn check_manager(manager: &str) -> Option<FieldError> {
    if manager.len() > 128 {
        return Some(FieldError::new(FieldFault::TooLong(128), "fieldManager", ""));
    }
    let (at, c) = manager.char_indices().find(|(_, c)| c.is_control())?;
    let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
    Some(FieldError::invalid("fieldManager", manager, why))
}

/// The parameters of a request break rules.
pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Failure {
    Failure::invalid(Qualified { group: "meta.k8s.io", name: kind }, "", errors)
}

/// A resource version, or what is wrong with it.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    number.ok_or_else(|| format!("Invalid value: {text:?}: must be a resource version that this server has given"))
}
