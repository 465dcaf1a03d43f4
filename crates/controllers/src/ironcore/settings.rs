//! What whoever starts the operator says of metal-operator's kinds.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::dialect::GivenCredentials;
use crate::fingerprint::digest;

/// Settings that hold for all objects.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
pub struct Settings {
    /// Which devices are BMCs, and how they are spoken to.
    pub prefixes: MacPrefixes,
    /// Whether BMCs whose protocol names no scheme are spoken to without TLS.
    pub plain_http: bool,
    /// Whether certificates of BMCs are not checked unless an object says otherwise.
    pub skip_certificates: bool,
    /// Whether a server that runs when it is first seen is switched off.
    pub enforce_first_boot: bool,
    /// Whether a released server is not free before somebody says that its disks are wiped.
    pub require_sanitized: bool,
    /// How a server is looked into before it is free; `None` by Redfish alone.
    pub probe: Option<super::ProbeSettings>,
}

/// Which devices are BMCs, by the first digits of their MAC addresses.
#[derive(Debug, Clone, Default)]
pub struct MacPrefixes(Vec<Prefix>);

/// What is known of devices whose MAC addresses begin with some digits.
#[derive(Debug, Clone)]
pub struct Prefix {
    /// Digits in lower case, without separators.
    pub digits: String,
    /// What kind of device it is; `bmc` if it is a BMC.
    pub device: String,
    /// The language that it speaks.
    pub protocol: String,
    /// `http` or `https`; empty if nothing is said.
    pub scheme: String,
    /// TCP port.
    pub port: u16,
    /// What it leaves its factory with.
    pub credentials: Vec<GivenCredentials>,
    /// Its serial console: protocol and port.
    pub console: Option<(String, u16)>,
}

impl Prefix {
    /// Whether such a device is a BMC.
    pub fn is_bmc(&self) -> bool {
        self.device.eq_ignore_ascii_case("bmc")
    }

    /// Distinguishes its credentials from every other list. It tells nothing of the passwords.
    pub fn list(&self) -> String {
        let names: Vec<_> = self.credentials.iter().map(|given| given.username.as_str()).collect();
        digest(&format!("{} {} {names:?}", self.digits, self.port))
    }
}

/// The file, as upstream writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    mac_prefixes: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    #[serde(deserialize_with = "text")]
    mac_prefix: String,
    #[serde(default)]
    #[allow(dead_code, reason = "for people")]
    manufacturer: String,
    protocol: String,
    #[serde(default)]
    protocol_scheme: String,
    port: u16,
    #[serde(rename = "type")]
    device: String,
    #[serde(default)]
    default_credentials: Vec<GivenCredentials>,
    #[serde(default)]
    console: Option<Console>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Console {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    port: u16,
}

/// Digits without letters are a number in YAML.
fn text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Word {
        Text(String),
        Number(u64),
    }
    Ok(match Word::deserialize(from)? {
        Word::Text(text) => text,
        Word::Number(number) => number.to_string(),
    })
}

/// A file of prefixes that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{why}")]
pub struct PrefixError {
    place: String,
    why: String,
}

impl MacPrefixes {
    /// Reads a file in upstream's format.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| PrefixError {
            place: String::new(),
            why: format!(
                "{error}. Expected is a list macPrefixes of entries with macPrefix, protocol, port, type and defaultCredentials."
            ),
        })?;
        let mut known = BTreeSet::new();
        let mut all = Vec::new();
        for (index, entry) in file.mac_prefixes.into_iter().enumerate() {
            let given = entry.mac_prefix.clone();
            let refuse = |why: String| PrefixError { place: place(text, index), why };
            let prefix = prefix(entry).map_err(refuse)?;
            if !known.insert(prefix.digits.clone()) {
                return Err(refuse(format!("macPrefix {given:?} is listed twice. Remove one of the entries.")));
            }
            all.push(prefix);
        }
        Ok(Self(all))
    }

    /// What is known of a device: the entry with most digits.
    pub fn of(&self, mac: &str) -> Option<&Prefix> {
        let digits = digits(mac);
        self.0.iter().filter(|prefix| digits.starts_with(&prefix.digits)).max_by_key(|prefix| prefix.digits.len())
    }

    /// The same with one more. What is already known of those devices counts.
    #[must_use]
    pub fn with(mut self, prefix: Prefix) -> Self {
        if self.0.iter().all(|known| known.digits != prefix.digits) {
            self.0.push(prefix);
        }
        self
    }

    /// Whether nothing is known of any device.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn prefix(entry: Entry) -> Result<Prefix, String> {
    let given = &entry.mac_prefix;
    let digits = digits(given);
    if digits.is_empty() || digits.len() > 12 || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("macPrefix {given:?} is not the beginning of a MAC address. Write it like \"00:11:22\"."));
    }
    if !matches!(entry.protocol_scheme.as_str(), "" | "http" | "https") {
        let scheme = &entry.protocol_scheme;
        return Err(format!("protocolScheme {scheme:?} of macPrefix {given:?} is neither http nor https."));
    }
    if entry.port == 0 {
        return Err(format!("port of macPrefix {given:?} is 0. Write the port of the BMC's Redfish service."));
    }
    Ok(Prefix {
        digits,
        device: entry.device,
        protocol: entry.protocol,
        scheme: entry.protocol_scheme,
        port: entry.port,
        credentials: entry.default_credentials,
        console: entry.console.filter(|console| !console.kind.is_empty()).map(|console| (console.kind, console.port)),
    })
}

/// The digits of a MAC address, or of the beginning of one, in lower case.
pub(super) fn digits(mac: &str) -> String {
    mac.chars().filter(|c| !matches!(c, ':' | '-' | '.')).map(|c| c.to_ascii_lowercase()).collect()
}

/// The line in which an entry begins.
fn place(text: &str, index: usize) -> String {
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains("macPrefix:"));
    lines.map(|(number, _)| number + 1).nth(index).map(|line| format!("line {line}: ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "protocol: Redfish\n  port: 443\n  type: bmc\n";

    #[test]
    fn the_longest_prefix_counts_in_any_case_and_with_any_separator() {
        let text = format!(
            "macPrefixes:\n- macPrefix: 23\n  {ENTRY}- macPrefix: '23:AA:bb'\n  {ENTRY}- macPrefix: 00-1B\n  {ENTRY}"
        );
        let prefixes = MacPrefixes::parse(&text).unwrap();
        let table = [
            ("23:11:8A:33:CF:EA", Some("23")),
            ("23-aa-BB-00-00-01", Some("23aabb")),
            ("23aa.bb00.0001", Some("23aabb")),
            ("00:1b:00:00:00:01", Some("001b")),
            ("00:1c:00:00:00:01", None),
            ("", None),
        ];
        for (mac, digits) in table {
            assert_eq!(prefixes.of(mac).map(|prefix| prefix.digits.as_str()), digits, "{mac}");
        }
    }

    #[test]
    fn a_prefix_of_ones_own_does_not_override_the_file() {
        let file = MacPrefixes::parse(&format!("macPrefixes:\n- macPrefix: '02:be:07'\n  {ENTRY}")).unwrap();
        let own = Prefix { port: 8443, ..file.of("02:be:07:00:00:01").unwrap().clone() };
        let port = |prefixes: &MacPrefixes| prefixes.of("02:be:07:00:00:01").map(|prefix| prefix.port);
        assert_eq!(port(&MacPrefixes::default().with(own.clone())), Some(8443));
        assert_eq!(port(&file.with(own)), Some(443));
    }

    #[test]
    fn upstreams_file_is_read() {
        let text = "macPrefixes:\n- macPrefix: 23\n  manufacturer: Foo\n  protocol: Redfish\n  port: 8000\n  type: bmc\n  defaultCredentials:\n  - username: foo\n    password: bar\n  console:\n    type: ssh\n    port: 22\n";
        let prefixes = MacPrefixes::parse(text).unwrap();
        let prefix = prefixes.of("23:11:8A:33:CF:EA").unwrap();
        assert!(prefix.is_bmc() && prefix.port == 8000 && prefix.console == Some(("ssh".to_owned(), 22)));
        assert_eq!(prefix.credentials.len(), 1);
        assert!(!format!("{prefix:?}").contains("bar"), "no password in logs");
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_with_the_line_and_the_remedy() {
        let entry =
            |prefix: &str| format!("macPrefixes:\n- macPrefix: '00'\n  {ENTRY}- macPrefix: {prefix}\n  {ENTRY}");
        let table = [
            (
                entry("xyz"),
                "line 6: macPrefix \"xyz\" is not the beginning of a MAC address. Write it like \"00:11:22\".",
            ),
            (entry("'0-0'"), "line 6: macPrefix \"0-0\" is listed twice. Remove one of the entries."),
            (
                entry("ab").replace("443", "0"),
                "line 2: port of macPrefix \"00\" is 0. Write the port of the BMC's Redfish service.",
            ),
        ];
        for (text, told) in table {
            assert_eq!(MacPrefixes::parse(&text).unwrap_err().to_string(), told);
        }
        for text in ["", "macPrefixes: 7", "macPrefixes:\n- prefix: 00\n", &entry("ab").replace("port", "prot")] {
            let told = MacPrefixes::parse(text).unwrap_err().to_string();
            assert!(told.contains("Expected is a list macPrefixes"), "{told}");
        }
    }
}
