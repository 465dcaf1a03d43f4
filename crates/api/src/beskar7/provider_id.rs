//! The name by which a cluster knows a server.

use std::fmt;
use std::str::FromStr;

/// `b7://<namespace>/<host>`: the PhysicalHost that a machine and its Node run on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderId {
    namespace: String,
    host: String,
}

/// A text is no provider id of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAProviderId(String);

impl ProviderId {
    /// Of that PhysicalHost; `None` if no object can have such a name.
    pub fn new(namespace: &str, host: &str) -> Option<Self> {
        let valid = is_label(namespace) && is_name(host);
        valid.then(|| Self { namespace: namespace.to_owned(), host: host.to_owned() })
    }

    /// The host's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b7://{}/{}", self.namespace, self.host)
    }
}

impl FromStr for ProviderId {
    type Err = NotAProviderId;

    fn from_str(text: &str) -> Result<Self, NotAProviderId> {
        text.strip_prefix("b7://")
            .and_then(|path| path.split_once('/'))
            .and_then(|(namespace, host)| Self::new(namespace, host))
            .ok_or_else(|| NotAProviderId(text.to_owned()))
    }
}

impl fmt::Display for NotAProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not of the form b7://namespace/host", self.0)
    }
}

impl std::error::Error for NotAProviderId {}

/// Names of namespaces.
fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    text.len() <= 63 && text.bytes().all(inner) && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

/// Names of objects. A part between dots may be longer than a label.
fn is_name(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-');
    text.len() <= 253 && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_and_read_back() {
        let longest = format!("b7://{}/{}", "n".repeat(63), "h".repeat(253));
        for text in ["b7://default/server-01", "b7://team-a/rack3.example.com", "b7://0/0", &longest] {
            let id: ProviderId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(ProviderId::new(id.namespace(), id.host()), Some(id));
        }
        let id: ProviderId = "b7://team-a/rack3.example.com".parse().unwrap();
        assert_eq!((id.namespace(), id.host()), ("team-a", "rack3.example.com"));
    }

    #[test]
    fn anything_else_is_refused() {
        let too_long = [format!("b7://{}/host", "n".repeat(64)), format!("b7://default/{}", "h".repeat(254))];
        let table = [
            "",
            "b7://",
            "b7:///",
            "b7:///host",
            "b7://default",
            "b7://default/",
            "b7://default/host/",
            "b7://a/b/c",
            "B7://default/host",
            "beskar7://default/host",
            "xb7://default/host",
            "b7:/default/host",
            "default/host",
            "b7://Default/host",
            "b7://default/Host",
            "b7://de.fault/host",
            "b7://-a/host",
            "b7://default/host-",
            "b7://default/.host",
            "b7://default/a..b",
            "b7://default/a-.b",
            " b7://default/host",
            "b7://default/host ",
            "b7://default/host\n",
            "b7://default/höst",
            "b7://{{ ds.meta_data.instance_id }}",
        ];
        for text in table.into_iter().chain(too_long.iter().map(String::as_str)) {
            let said = text.parse::<ProviderId>().unwrap_err().to_string();
            assert!(said.ends_with("is not of the form b7://namespace/host"), "{said}");
        }
        assert_eq!(ProviderId::new("team/a", "host"), None);
    }
}
