//! How the BMC of an object is reached.

use std::net::IpAddr;

use ::bmc::{Address, SystemChoice};
use api::ironcore::states::protocol;
use api::ironcore::{Bmc, BmcSecret, Endpoint, Protocol};
use engine::failure::{Failure, Kind};
use kube::ResourceExt;

use super::Settings;
use crate::dialect::{Connection, Login, TrustWish};
use crate::object::ObjectId;
use crate::relatives::Related;

/// Annotation on a BMC, an Endpoint, or a Server with an inline BMC: whom to believe that it is the BMC. `insecure` for anybody, or the
/// fingerprint of its certificate, `sha256:…`.
pub(super) const TRUST: &str = "beskar7.io/bmc-trust";

/// The address of a BMC, as its object says it: its own, or that of its Endpoint.
pub(super) struct Place {
    pub(super) ip: String,
    pub(super) mac: String,
}

pub(super) fn place(bmc: &Bmc, related: &Related) -> Result<Place, Failure> {
    if let Some(access) = &bmc.spec.access {
        return Ok(Place { ip: access.ip.clone(), mac: access.mac_address.clone() });
    }
    let name = bmc.spec.endpoint_ref.as_ref().map_or("", |reference| reference.name.as_str());
    let endpoint = related.get::<Endpoint>(None, name).ok_or_else(|| {
        Failure::new(
            Kind::AddressInvalid,
            format!("Endpoint {name}, named in spec.endpointRef, does not exist. Create it, or write the address into spec.access; it is noticed at once."),
        )
    })?;
    Ok(Place { ip: endpoint.spec.ip.clone(), mac: endpoint.spec.mac_address.clone() })
}

/// The way to a BMC object.
pub(super) fn of_bmc(bmc: &Bmc, related: &Related, settings: &Settings) -> Result<Connection, Failure> {
    let place = place(bmc, related)?;
    let field = if bmc.spec.access.is_some() { "spec.access.ip" } else { "spec.ip of its Endpoint" };
    let secret = &bmc.spec.bmc_secret_ref.name;
    if secret.is_empty() {
        let why = "spec.bmcSecretRef names no BMCSecret. Name one with the keys username and password.";
        return Err(Failure::new(Kind::SecretNotFound, why));
    }
    Ok(Connection {
        address: address(&place.ip, field, &bmc.spec.protocol, settings)?,
        system: SystemChoice::Only,
        credentials: ObjectId::named::<BmcSecret>(None, secret).into(),
        trust: trust(bmc, settings)?,
        family: None,
    })
}

/// The way to a device that may be a BMC.
pub(super) fn of_device(
    object: &impl ResourceExt,
    ip: &str,
    protocol: &Protocol,
    credentials: Login,
    settings: &Settings,
) -> Result<Connection, Failure> {
    let address = address(ip, "spec.ip", protocol, settings)?;
    Ok(Connection { address, system: SystemChoice::Only, credentials, trust: trust(object, settings)?, family: None })
}

/// Where a BMC listens. `field` names the host, for whoever made a mistake there.
pub(super) fn address(host: &str, field: &str, protocol: &Protocol, settings: &Settings) -> Result<Address, Failure> {
    let known = [protocol::REDFISH, protocol::REDFISH_LOCAL, protocol::REDFISH_WITH_REGISTRY_PATCH];
    if !known.contains(&protocol.name.as_str()) {
        return Err(Failure::new(
            Kind::ProtocolUnsupported,
            format!(
                "spec.protocol.name is {:?}, which is not supported yet. If the BMC speaks Redfish, too, write Redfish and its port.",
                protocol.name
            ),
        ));
    }
    if host.is_empty() {
        return Err(Failure::new(Kind::AddressInvalid, format!("{field} is empty. Write the address of the BMC.")));
    }
    let scheme = match protocol.scheme.as_str() {
        "" if settings.plain_http => "http",
        "" => "https",
        scheme => scheme,
    };
    let host = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => host.to_owned(),
    };
    Address::parse(&format!("{scheme}://{host}:{}", protocol.port)).map_err(Failure::from)
}

/// Whom to believe that it is the BMC.
pub(super) fn trust(object: &impl ResourceExt, settings: &Settings) -> Result<TrustWish, Failure> {
    match object.annotations().get(TRUST).map(String::as_str) {
        Some("insecure") => Ok(TrustWish::Anything),
        Some(pin) => pin.parse().map(TrustWish::Pin).map_err(|_| {
            Failure::new(
                Kind::TrustInvalid,
                format!("The annotation {TRUST} is {pin:?}. Write the fingerprint of the BMC's certificate, sha256:…, or insecure."),
            )
        }),
        None if settings.skip_certificates => Ok(TrustWish::Anything),
        None => Ok(TrustWish::SystemRoots),
    }
}
