//! The address of a BMC, as Metal3's users write it: `redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1`.

use std::net::Ipv6Addr;

use bmc::Address;
use engine::failure::{Failure, Kind};

/// Where a host's BMC is, and which of its systems is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BmcAddress {
    /// Where the Redfish service is.
    pub(super) service: Address,
    /// Path of the system; the only one if there is none.
    pub(super) system: Option<String>,
}

/// Schemes of addresses that mean Redfish, without `+http` or `+https`. A live image boots from virtual media with each of them.
const SCHEMES: [&str; 7] = [
    "redfish-virtualmedia",
    "redfish",
    "redfish-uefihttp",
    "idrac-virtualmedia",
    "idrac-redfish",
    "ilo5-virtualmedia",
    "ilo5-redfish",
];

impl BmcAddress {
    /// Reads `spec.bmc.address`. User name, password, query and fragment are ignored, as Metal3 ignores them.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if text.is_empty() {
            return Err(invalid(text, &format!("it is empty; write {EXAMPLE}")));
        }
        if text.parse::<Ipv6Addr>().is_ok() {
            return Err(ipmi(text, &format!("[{text}]"), "an address without a scheme means IPMI, which"));
        }
        let Some((scheme, rest)) = split_scheme(text) else {
            return Err(ipmi(text, parts(text).0, "an address without a scheme means IPMI, which"));
        };
        let (authority, path) = parts(rest.strip_prefix("//").unwrap_or(rest));
        let (driver, protocol) = match scheme.split_once('+') {
            Some((driver, protocol)) => (driver, protocol),
            None => (scheme.as_str(), "https"),
        };
        if !SCHEMES.contains(&driver) || !["http", "https"].contains(&protocol) {
            return Err(not_redfish(text, &scheme, rest, authority));
        }
        let service = Address::parse(&format!("{protocol}://{}", without_empty_port(authority)))
            .map_err(|_| invalid(text, HOST_IS_MALFORMED))?;
        Ok(Self { service, system: system(path) })
    }
}

const EXAMPLE: &str = "redfish-virtualmedia://<host>/redfish/v1/Systems/<id>";
const HOST_IS_MALFORMED: &str = "the host must be a DNS name or an IP address, an IPv6 address in brackets, with a port from 1 to 65535 if there is one";

/// The scheme in lower case, and what follows its colon. As in Go, `name:6230` has a scheme and `192.0.2.10:6230` has none.
fn split_scheme(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    is_scheme.then(|| (scheme.to_ascii_lowercase(), rest))
}

/// Host and port without user name and password, and the path without query and fragment.
fn parts(rest: &str) -> (&str, &str) {
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (authority.rsplit_once('@').map_or(authority, |(_, host)| host), path)
}

/// Go accepts a colon without a port.
fn without_empty_port(authority: &str) -> &str {
    match authority.strip_suffix(':') {
        Some(host) if !host.ends_with(':') => host,
        _ => authority,
    }
}

/// The path of the system, unless it is only that of the service or of the collection.
fn system(path: &str) -> Option<String> {
    let path = path.trim_matches('/');
    let names_none =
        ["", "redfish", "redfish/v1", "redfish/v1/Systems"].iter().any(|root| root.eq_ignore_ascii_case(path));
    (!names_none).then(|| format!("/{path}"))
}

fn invalid(text: &str, why: &str) -> Failure {
    let shown = shown(text);
    Failure::new(Kind::AddressInvalid, format!("spec.bmc.address {shown:?} cannot be used: {why}."))
}

/// An address of IPMI, or of something that pretends to be it.
fn ipmi(text: &str, host: &str, what: &str) -> Failure {
    let (shown, host) = (shown(text), without_port(host));
    let message = format!(
        "spec.bmc.address {shown:?}: {what} is not supported yet. If the BMC also speaks Redfish, write redfish-virtualmedia://{host}/redfish/v1/Systems/<id>, or redfish-virtualmedia://{host} if it has one system."
    );
    Failure::new(Kind::ProtocolUnsupported, message)
}

/// An address with a scheme that is not one of ours.
fn not_redfish(text: &str, scheme: &str, rest: &str, authority: &str) -> Failure {
    let all = SCHEMES.join(", ");
    match scheme {
        "ipmi" => ipmi(text, authority, "IPMI"),
        "libvirt" => ipmi(text, authority, "libvirt (IPMI)"),
        "http" | "https" => {
            let plus = if scheme == "http" { "+http" } else { "" };
            let remedy = format!("the scheme must say how the server boots; write redfish-virtualmedia{plus}:{rest}");
            invalid(text, &remedy)
        }
        _ if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()) => {
            let remedy = format!(
                "{scheme:?} is read as a scheme; if it is the host, write redfish-virtualmedia://{scheme}:{rest}"
            );
            invalid(text, &remedy)
        }
        _ => invalid(text, &format!("the scheme {scheme:?} is unknown; write {EXAMPLE}, or another of {all}")),
    }
}

/// An IPMI port is not that of Redfish.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// An address that is quoted must not carry a password with it.
fn shown(text: &str) -> String {
    // The last @ counts: a password may contain an unescaped slash.
    let shown = match text.rsplit_once('@') {
        Some((before, after)) => {
            let scheme = before.split_once("//").map_or("", |(scheme, _)| scheme);
            let slashes = if scheme.is_empty() { "" } else { "//" };
            format!("{scheme}{slashes}{after}")
        }
        None => text.to_owned(),
    };
    shown.chars().take(200).collect()
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
