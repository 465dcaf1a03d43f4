//! What the boot service is to hand to a PhysicalHost.

use api::beskar7::{OsFamily, PhysicalHost};
use boot::os::Family;
use boot::ticket::Holder;
use engine::failure::{Failure, Kind};
use engine::host::{Anchor, Claim};
use kube::ResourceExt as _;

use crate::depot::{Configuration, Shipment};
use crate::fingerprint::{digest, quoted};

/// What `remoteConfig` asks for, if it is there, or why that makes no sense. Everything that matters to the server is part of the
/// deployment's id, so that a changed order is another deployment with tickets of its own.
pub(super) fn shipment(
    host: &PhysicalHost,
    claim: &Claim,
    anchor: Option<&Anchor>,
) -> Option<Result<Shipment, Failure>> {
    let wish = host.spec.remote_config.as_ref()?;
    let image = host.spec.boot_iso_source.clone()?;
    let parts = configuration(host).and_then(|configuration| Ok((configuration, family(wish.os_family)?)));
    Some(parts.map(|(configuration, family)| {
        let (namespace, name) = (host.namespace().unwrap_or_default(), host.name_any());
        // Claims written by hand for one consumer have one id, on whichever hosts they are.
        let found = match &configuration {
            Configuration::At(url) => format!("At({})", quoted(url)),
            Configuration::In(secret) => format!("In({})", quoted(secret)),
        };
        let every = if host.spec.boot_every_start == Some(true) { " every-start" } else { "" };
        let words = format!("{} remote {namespace}/{name} {image} {family} {found}{every}", claim.id);
        let deployment = deployment(&words, anchor);
        let powered_on = anchor.is_some_and(|anchor| anchor.may_run(&deployment));
        // Tickets of the first releases do not say which kind their host is of.
        let holder = Holder { kind: String::new(), namespace, host: name, claim: claim.id.clone(), deployment };
        Shipment { holder, image, family, configuration, powered_on }
    }))
}

/// The id of a deployment.
pub(super) fn deployment(words: &str, anchor: Option<&Anchor>) -> String {
    digest(&Anchor::words_of_deployment(anchor, words))
}

fn configuration(host: &PhysicalHost) -> Result<Configuration, Failure> {
    let given = host.spec.remote_config.as_ref().and_then(|wish| wish.config_url.clone());
    if let Some(url) = given {
        return Ok(Configuration::At(url));
    }
    let invalid = |message: &str| Err(Failure::new(Kind::OrderInvalid, message));
    let Some(secret) = &host.spec.user_data_secret_ref else {
        return invalid(
            "spec.remoteConfig says neither where the configuration is (configURL) nor which bootstrap data to serve (spec.userDataSecretRef). Set one of them.",
        );
    };
    match (&secret.name, &secret.namespace) {
        // Whoever may write hosts must not read the Secrets of other namespaces through us.
        (_, Some(other)) if Some(other) != host.namespace().as_ref() => invalid(
            "spec.userDataSecretRef names a Secret of another namespace. It must be in the namespace of the host.",
        ),
        (Some(name), _) if !name.is_empty() => Ok(Configuration::In(name.clone())),
        _ => invalid("spec.userDataSecretRef needs the name of a Secret."),
    }
}

pub(super) fn family(family: OsFamily) -> Result<Family, Failure> {
    match family {
        OsFamily::Kairos => Ok(Family::Kairos),
        OsFamily::Talos => Ok(Family::Talos),
        OsFamily::Flatcar => Ok(Family::Flatcar),
        OsFamily::LeapMicro => Ok(Family::LeapMicro),
        OsFamily::Ubuntu
        | OsFamily::Rhel
        | OsFamily::Centos
        | OsFamily::Fedora
        | OsFamily::Debian
        | OsFamily::Opensuse => Err(Failure::new(
            Kind::OrderInvalid,
            "RemoteConfig knows the kernel parameter of kairos, talos, flatcar and LeapMicro only. Set osFamily to one of them, or use an image that brings its configuration with it.",
        )),
    }
}

/// What to say where no boot URL was given.
pub(super) fn boot_url_missing() -> Failure {
    Failure::new(
        Kind::BootUrlMissing,
        "RemoteConfig hands the image to the BMC through the boot service, but the operator does not know under which address BMCs and servers reach it. Start it with --boot-url (BESKAR7_BOOT_URL), such as http://192.0.2.5:8082.",
    )
}
