//! The address of a BMC, as users write it.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use http::Uri;

use crate::error::Error;

/// Where a Redfish service is, and perhaps which of its systems is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    secure: bool,
    /// Lower case; an IPv6 address without brackets.
    host: String,
    port: u16,
    system: Option<String>,
}

impl Address {
    /// Reads an address: a URL, a host with or without port, or one of Metal3's forms (`redfish+https://…`).
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let invalid = |why: &str| Error::AddressInvalid { address: without_userinfo(text), why: why.to_owned() };
        if text.is_empty() {
            return Err(invalid("it is empty; write https://<host>"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => ("https".to_owned(), text),
        };
        let secure = match scheme.as_str() {
            "https" => true,
            "http" => false,
            "ipmi" | "ipmis" | "libvirt" => {
                return Err(Error::ProtocolUnsupported { address: without_userinfo(text), scheme });
            }
            other => match redfish_scheme(other) {
                Some(secure) => secure,
                None => {
                    return Err(invalid(&format!("the scheme {other:?} is unknown; write https://<host>")));
                }
            },
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(invalid("it contains a user name or password; put them into the Secret instead"));
        }
        // People copy a bare IPv6 address from their DHCP server; only URLs need the brackets.
        let bracketed = match authority.parse::<Ipv6Addr>() {
            Ok(v6) => format!("[{v6}]"),
            Err(_) => authority.to_owned(),
        };
        let uri: Uri = bracketed
            .parse()
            .map_err(|_| invalid("the host is malformed; write https://<host>[:port], an IPv6 address in brackets"))?;
        let authority = uri.authority().ok_or_else(|| invalid("it names no host; write https://<host>[:port]"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if !is_host(&host, authority.host().starts_with('[')) {
            return Err(invalid("the host is neither a DNS name nor an IP address"));
        }
        let port = match (authority.port_u16(), bracketed.len() == authority.host().len()) {
            (Some(0), _) | (None, false) => return Err(invalid("the port must be a number from 1 to 65535")),
            (Some(port), _) => port,
            (None, true) => default_port(secure),
        };
        let system = system_of(path).map_err(|why| invalid(&why))?;
        Ok(Self { secure, host, port, system })
    }

    /// `https://host[:port]`, for requests and messages.
    pub fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        if self.port == default_port(self.secure) {
            format!("{scheme}://{}", self.bracketed_host())
        } else {
            format!("{scheme}://{}:{}", self.bracketed_host(), self.port)
        }
    }

    /// `host:port`: two hosts with the same key are behind the same BMC.
    pub fn key(&self) -> String {
        format!("{}:{}", self.bracketed_host(), self.port)
    }

    /// Whether TLS is spoken.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host; an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of the system that the address names, if it does.
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    fn bracketed_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.system.as_deref().unwrap_or_default())
    }
}

/// Metal3's schemes: a driver, and `+http` or `+https`; `Some(secure)` for those that speak Redfish.
fn redfish_scheme(scheme: &str) -> Option<bool> {
    let (driver, secure) = match scheme.split_once('+') {
        None => (scheme, true),
        Some((driver, "https")) => (driver, true),
        Some((driver, "http")) => (driver, false),
        Some(_) => return None,
    };
    let known = [
        "redfish",
        "redfish-virtualmedia",
        "redfish-uefihttp",
        "idrac-redfish",
        "idrac-virtualmedia",
        "ilo5-redfish",
        "ilo5-virtualmedia",
    ];
    known.contains(&driver).then_some(secure)
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

fn is_host(host: &str, bracketed: bool) -> bool {
    if bracketed {
        return host.parse::<Ipv6Addr>().is_ok();
    }
    // Only digits and dots: an IPv4 address, and then a whole one.
    if host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return host.parse::<std::net::Ipv4Addr>().is_ok();
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    host.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

fn system_of(path: &str) -> Result<Option<String>, String> {
    if path.contains(['?', '#']) {
        return Err("leave away what follows the ? or #".into());
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let (root, version) = (parts.next(), parts.next());
    let is = |part: Option<&str>, word: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(word));
    match root {
        None => return Ok(None),
        Some(_) if !is(root, "redfish") => {
            return Err(format!(
                "the path {path:?} is not a Redfish path; remove it, or name a system: /redfish/v1/Systems/<id>"
            ));
        }
        Some(_) => {}
    }
    if version.is_some() && !is(version, "v1") {
        return Err(format!(
            "the path {path:?} is not of Redfish version 1; write /redfish/v1/Systems/<id>, or no path at all"
        ));
    }
    let (kind, id, more) = (parts.next(), parts.next(), parts.next());
    match (kind, id, more) {
        (None, ..) => Ok(None),
        (kind, None, _) if is(kind, "Systems") => Ok(None),
        (kind, Some(id), None) if is(kind, "Systems") => Ok(Some(format!("/redfish/v1/Systems/{id}"))),
        (kind, ..) if is(kind, "Systems") => Err("the path goes deeper than a system; end it after /redfish/v1/Systems/<id>".into()),
        (kind, ..) if is(kind, "Managers") => {
            Err("the path names a manager (the BMC itself), not the server; write /redfish/v1/Systems/<id>, or no path at all".into())
        }
        _ => Err(format!("the path {path:?} does not name a system; write /redfish/v1/Systems/<id>, or no path at all")),
    }
}

/// An address that is quoted in an error must not carry a password with it.
fn without_userinfo(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    // The last @ counts: a password may contain an unescaped slash.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let shown: String = rest.chars().take(200).collect();
    format!("{scheme}{shown}")
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
