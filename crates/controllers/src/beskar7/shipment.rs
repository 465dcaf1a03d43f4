//! What the boot service is to hand to a PhysicalHost.

use api::beskar7::{BootFormat, NetworkBoot, OsFamily, PhysicalHost};
use boot::os::Family;
use boot::serve::network::CONFIG_WORD;
use boot::ticket::Holder;
use engine::failure::{Failure, Kind};
use engine::host::{Anchor, Claim, Payload};
use kube::{Resource as _, ResourceExt as _};

use crate::depot::{Cargo, Configuration, Shipment};
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
        let cargo = Cargo::Iso { image, family };
        Shipment { holder, cargo, family: Some(family), configuration: Some(configuration), powered_on }
    }))
}

/// What `networkBoot` has us serve, if we do.
pub(super) fn payload(network: &NetworkBoot, is_all_served: bool) -> Result<Payload, Failure> {
    let NetworkBoot { image_url, format, initrd_urls, kernel_parameters, .. } = network;
    let is_asked = format.is_some() || !initrd_urls.is_empty() || kernel_parameters.is_some();
    let url = match image_url {
        Some(url) if is_asked || (is_all_served && network.url.is_none()) => url.clone(),
        _ => return Ok(Payload::Site),
    };
    let parameters = kernel_parameters.clone().unwrap_or_default();
    match format.unwrap_or_else(|| BootFormat::of(&url)) {
        _ if !url.starts_with("http://") && !url.starts_with("https://") => Err(Failure::new(
            Kind::OrderInvalid,
            "spec.networkBoot.imageURL is served by the boot service, so it must be an http or https URL.",
        )),
        BootFormat::Script => Ok(Payload::Script { url }),
        BootFormat::Kernel => Ok(Payload::Kernel { url, initrds: initrd_urls.clone(), parameters }),
        BootFormat::Efi => Ok(Payload::Efi { url, parameters }),
    }
}

/// What is handed to a server that boots from the network, or why that makes no sense.
pub(super) fn network_shipment(
    host: &PhysicalHost,
    claim: &Claim,
    payload: Payload,
    deployment: String,
    anchor: Option<&Anchor>,
) -> Result<Shipment, Failure> {
    let network = host.spec.network_boot.as_ref();
    let given = network.and_then(|network| network.config_url.clone());
    let configuration = match given {
        Some(url) => Some(Configuration::At(url)),
        None => bootstrap(host)?.map(Configuration::In),
    };
    let family = network.and_then(|network| network.os_family).and_then(|family| self::family(family).ok());
    if let (Some(Configuration::At(_)), None, Payload::Kernel { parameters, .. } | Payload::Efi { parameters, .. }) =
        (&configuration, family, &payload)
        && !parameters.contains(CONFIG_WORD)
    {
        return Err(Failure::new(
            Kind::OrderInvalid,
            format!(
                "spec.networkBoot.configURL cannot be handed over: set osFamily to kairos, talos, flatcar or LeapMicro, whose kernel parameter is known, or put {CONFIG_WORD} into kernelParameters."
            ),
        ));
    }
    let powered_on = anchor.is_some_and(|anchor| anchor.may_run(&deployment));
    let kind = PhysicalHost::kind(&()).into_owned();
    let (namespace, name) = (host.namespace().unwrap_or_default(), host.name_any());
    let holder = Holder { kind, namespace, host: name, claim: claim.id.clone(), deployment };
    Ok(Shipment { holder, cargo: Cargo::Network(payload), family, configuration, powered_on })
}

/// The id of a deployment.
pub(super) fn deployment(words: &str, anchor: Option<&Anchor>) -> String {
    digest(&Anchor::words_of_deployment(anchor, words))
}

fn configuration(host: &PhysicalHost) -> Result<Configuration, Failure> {
    let given = host.spec.remote_config.as_ref().and_then(|wish| wish.config_url.clone());
    let served = || bootstrap(host).transpose().map(|secret| secret.map(Configuration::In));
    given.map(|url| Ok(Configuration::At(url))).or_else(served).unwrap_or_else(|| {
        Err(Failure::new(
            Kind::OrderInvalid,
            "spec.remoteConfig says neither where the configuration is (configURL) nor which bootstrap data to serve (spec.userDataSecretRef). Set one of them.",
        ))
    })
}

/// The Secret with the bootstrap data.
fn bootstrap(host: &PhysicalHost) -> Result<Option<String>, Failure> {
    let invalid = |message: &str| Err(Failure::new(Kind::OrderInvalid, message));
    let Some(secret) = &host.spec.user_data_secret_ref else { return Ok(None) };
    match (&secret.name, &secret.namespace) {
        // Whoever may write hosts must not read the Secrets of other namespaces through us.
        (_, Some(other)) if Some(other) != host.namespace().as_ref() => invalid(
            "spec.userDataSecretRef names a Secret of another namespace. It must be in the namespace of the host.",
        ),
        (Some(name), _) if !name.is_empty() => Ok(Some(name.clone())),
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

/// What to say where the boot service does not serve servers that boot from the network.
pub(super) fn network_boot_missing() -> Failure {
    Failure::new(
        Kind::BootUrlMissing,
        "The boot service is to serve what is booted from the network (boot of a machine; format, initrdURLs or kernelParameters in spec.networkBoot of a host), but the operator serves no such boots. Start it with --boot-url (BESKAR7_BOOT_URL) and --network-boot, or remove these fields to have your own boot servers answer.",
    )
}
