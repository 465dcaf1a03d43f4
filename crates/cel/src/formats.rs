//! Named formats: `format.dns1123Label().validate(x)` is empty if it fits, and the reasons if not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::time;
use super::url::Url;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NamedFormat {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                     end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                         must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
                         is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                       character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                       validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                           must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                           regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUALIFIED: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
                         'example.com/MyName')";

impl NamedFormat {
    pub(super) const ALL: [Self; 13] = [
        Self::Dns1123Label,
        Self::Dns1123Subdomain,
        Self::Dns1035Label,
        Self::QualifiedName,
        Self::Dns1123LabelPrefix,
        Self::Dns1123SubdomainPrefix,
        Self::Dns1035LabelPrefix,
        Self::LabelValue,
        Self::Uri,
        Self::Uuid,
        Self::Byte,
        Self::Date,
        Self::DateTime,
    ];

    /// How rules call it.
    pub(super) fn function(self) -> &'static str {
        match self {
            Self::Dns1123Label => "format.dns1123Label",
            Self::Dns1123Subdomain => "format.dns1123Subdomain",
            Self::Dns1035Label => "format.dns1035Label",
            Self::QualifiedName => "format.qualifiedName",
            Self::Dns1123LabelPrefix => "format.dns1123LabelPrefix",
            Self::Dns1123SubdomainPrefix => "format.dns1123SubdomainPrefix",
            Self::Dns1035LabelPrefix => "format.dns1035LabelPrefix",
            Self::LabelValue => "format.labelValue",
            Self::Uri => "format.uri",
            Self::Uuid => "format.uuid",
            Self::Byte => "format.byte",
            Self::Date => "format.date",
            Self::DateTime => "format.datetime",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.function().strip_prefix("format.") == Some(name))
    }

    /// How long a regular expression Kubernetes counts for it.
    pub(super) fn regex_size(self) -> u64 {
        match self {
            Self::Dns1123Label | Self::Dns1123LabelPrefix | Self::Date => 32,
            Self::Dns1123Subdomain | Self::Dns1123SubdomainPrefix => 66,
            Self::Dns1035Label | Self::Dns1035LabelPrefix => 28,
            Self::QualifiedName => 60,
            Self::LabelValue => 40,
            Self::Uri => 100,
            Self::Uuid => 87,
            Self::Byte => 77,
            Self::DateTime => 76,
        }
    }

    /// The reasons why the text does not fit.
    pub(super) fn validate(self, text: &str) -> Vec<String> {
        let one = |good: bool, why: &str| if good { Vec::new() } else { vec![why.to_owned()] };
        match self {
            Self::Dns1123Label => dns_label(text),
            Self::Dns1123LabelPrefix => dns_label(&without_dash(text)),
            Self::Dns1123Subdomain => dns_subdomain(text),
            Self::Dns1123SubdomainPrefix => dns_subdomain(&without_dash(text)),
            Self::Dns1035Label => dns1035_label(text),
            Self::Dns1035LabelPrefix => dns1035_label(&without_dash(text)),
            Self::QualifiedName => qualified_name(text),
            Self::LabelValue => {
                let mut reasons = limited(text, 63);
                if !text.is_empty() && !is_name(text) {
                    reasons.push(LABEL_VALUE.to_owned());
                }
                reasons
            }
            Self::Uri => Url::parse(text).map_or_else(|why| vec![why], |_| Vec::new()),
            Self::Uuid => one(is_uuid(text), "does not match the UUID format"),
            Self::Byte => one(STANDARD.decode(text).is_ok(), "invalid base64"),
            Self::Date => one(time::parse_date(text).is_some(), "invalid date"),
            Self::DateTime => one(time::parse_timestamp(text).is_some(), "invalid datetime"),
        }
    }
}

/// A prefix of a generated name may end in a dash.
fn without_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(start) if !start.is_empty() => format!("{start}a"),
        _ => text.to_owned(),
    }
}

fn limited(text: &str, most: usize) -> Vec<String> {
    if text.len() > most { vec![format!("must be no more than {most} bytes")] } else { Vec::new() }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| inner(*byte))
        && bytes.last().is_some_and(|byte| inner(*byte))
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

fn dns_label(text: &str) -> Vec<String> {
    let mut reasons = limited(text, 63);
    if !is_label(text) {
        reasons.push(LABEL.to_owned());
    }
    reasons
}

fn dns1035_label(text: &str) -> Vec<String> {
    let mut reasons = limited(text, 63);
    if !is_label(text) || !text.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        reasons.push(DNS1035.to_owned());
    }
    reasons
}

fn dns_subdomain(text: &str) -> Vec<String> {
    let mut reasons = limited(text, 253);
    if !text.split('.').all(is_label) {
        reasons.push(SUBDOMAIN.to_owned());
    }
    reasons
}

fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => return vec![QUALIFIED.to_owned()],
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut reasons = Vec::new();
    match prefix {
        Some("") => reasons.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => reasons.extend(dns_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}"))),
        None => {}
    }
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        reasons.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        reasons.push(NAME_PART.to_owned());
    }
    reasons
}

fn is_uuid(text: &str) -> bool {
    let hex = |part: &str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [whole] => hex(whole, 32),
        parts if parts.len() == 5 => parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, length)| hex(part, length)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        use NamedFormat as F;
        for (format, text, good) in [
            (F::Dns1123Label, "my-name", true),
            (F::Dns1123Label, "My", false),
            (F::Dns1123Label, "a-", false),
            (F::Dns1123LabelPrefix, "a-", true),
            (F::Dns1123Subdomain, "a.b-c", true),
            (F::Dns1123Subdomain, "a..b", false),
            (F::Dns1035Label, "1a", false),
            (F::QualifiedName, "example.com/Name", true),
            (F::QualifiedName, "a/b/c", false),
            (F::LabelValue, "", true),
            (F::LabelValue, "-", false),
            (F::Uri, "http://a", true),
            (F::Uuid, "123e4567-e89b-12d3-a456-426614174000", true),
            (F::Byte, "aGk=", true),
            (F::Byte, "a", false),
            (F::Date, "2020-01-01", true),
            (F::DateTime, "2020-01-01T00:00:00Z", true),
        ] {
            assert_eq!(format.validate(text).is_empty(), good, "{format:?} {text}");
        }
        assert_eq!(NamedFormat::named("uuid"), Some(F::Uuid));
        assert_eq!(NamedFormat::named("nope"), None);
    }
}
