//! What a certificate says about its subject and its time. Whether it can be believed is not decided here.

use std::net::IpAddr;

use jiff::Timestamp;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) common_name: Option<String>,
    pub(super) organizations: Vec<String>,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    /// DNS names and addresses.
    pub(super) names: Vec<String>,
}

/// Reads a certificate; `None` if it is not one.
pub(super) fn facts(der: &[u8]) -> Option<Facts> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let validity = certificate.validity();
    let alternatives = certificate.subject_alternative_name().ok()?;
    let names =
        alternatives.iter().flat_map(|extension| &extension.value.general_names).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_string()),
            GeneralName::IPAddress(octets) => address(octets).map(|address| address.to_string()),
            _ => None,
        });
    let text = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| name.as_str().ok().map(str::to_owned);
    Some(Facts {
        common_name: subject.iter_common_name().filter_map(text).last(),
        organizations: subject.iter_organization().filter_map(text).collect(),
        not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
        not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        names: names.collect(),
    })
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}
