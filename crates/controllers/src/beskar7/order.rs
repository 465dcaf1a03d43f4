//! What is ordered on a PhysicalHost.

use api::beskar7::{
    Beskar7Machine, BootFormat, BootMode, Mode, NetworkBoot, NetworkProtocol, OsFamily, PhysicalHost, RemoteConfig,
};

use crate::fingerprint::{optional, quoted};

/// What is ordered on a host.
#[derive(Debug, Clone, Default)]
pub(super) struct OrderOnHost {
    /// The image.
    pub(super) image: Option<String>,
    /// The firmware that boots it.
    pub(super) boot_mode: Option<BootMode>,
    /// How its system finds its configuration.
    pub(super) remote: Option<RemoteConfig>,
    /// The network boot.
    pub(super) network: Option<NetworkBoot>,
    /// Whether every start that we cause boots it.
    pub(super) every_start: bool,
}

impl OrderOnHost {
    /// What a host says.
    pub(super) fn of(host: &PhysicalHost) -> Self {
        Self {
            image: host.spec.boot_iso_source.clone(),
            boot_mode: host.spec.boot_iso_mode,
            remote: host.spec.remote_config.clone(),
            network: host.spec.network_boot.clone(),
            every_start: host.spec.boot_every_start == Some(true),
        }
    }

    /// What a machine wants on its host.
    pub(super) fn wanted_by(machine: &Beskar7Machine) -> Self {
        let mode = machine.spec.mode();
        let is_network = matches!(mode, Mode::Pxe | Mode::IPxe);
        let image_url = machine.spec.image_url.clone();
        let config_url = machine.spec.given_config_url().map(str::to_owned);
        let os_family = machine.spec.os_family.filter(|_| mode == Mode::RemoteConfig);
        Self {
            image: image_url.clone().filter(|_| !is_network),
            boot_mode: machine.spec.boot_mode,
            remote: os_family.map(|os_family| RemoteConfig { os_family, config_url: config_url.clone() }),
            // iPXE is what PXE loads: the firmware knows no difference.
            network: is_network.then(|| {
                let boot = machine.spec.boot.clone();
                let format = image_url.as_deref().map(BootFormat::of);
                NetworkBoot {
                    protocol: NetworkProtocol::Pxe,
                    url: None,
                    image_url,
                    config_url,
                    format: boot.as_ref().and_then(|boot| boot.format.or(format)),
                    initrd_urls: boot.as_ref().map(|boot| boot.initrd_urls.clone()).unwrap_or_default(),
                    kernel_parameters: boot.and_then(|boot| boot.kernel_parameters),
                    os_family: machine.spec.os_family,
                }
            }),
            every_start: machine.spec.boot_every_start == Some(true),
        }
    }

    /// An order in words that stay the same from release to release: what is remembered of it must not look changed after an upgrade.
    pub(super) fn words(&self) -> String {
        let Self { image, boot_mode, remote, network, every_start } = self;
        let text = |text: &Option<String>| optional(text.as_ref(), quoted);
        let mode = optional(*boot_mode, |mode| match mode {
            BootMode::Uefi => "Uefi",
            BootMode::Legacy => "Legacy",
        });
        let remote = optional(remote.as_ref(), |remote| {
            let family = os_word(remote.os_family);
            format!("RemoteConfig {{ os_family: {family}, config_url: {} }}", text(&remote.config_url))
        });
        let mut words = format!("OrderOnHost {{ image: {}, boot_mode: {mode}, remote: {remote} }}", text(image));
        if let Some(network) = network {
            let protocol = match network.protocol {
                NetworkProtocol::Pxe => "pxe",
                NetworkProtocol::Http => "http",
            };
            let urls = [&network.url, &network.image_url, &network.config_url].map(text).join(" ");
            words = format!("{words} network {protocol} {urls}{}", served_words(network));
        }
        if *every_start {
            words.push_str(" every-start");
        }
        words
    }
}

/// What is said of a boot that we serve. What was ordered before we could has the words that it had then.
pub(super) fn served_words(network: &NetworkBoot) -> String {
    let NetworkBoot { format, initrd_urls, kernel_parameters, os_family, .. } = network;
    if format.is_none() && initrd_urls.is_empty() && kernel_parameters.is_none() {
        return String::new();
    }
    let format = optional(*format, |format| match format {
        BootFormat::Script => "Script",
        BootFormat::Kernel => "Kernel",
        BootFormat::Efi => "EFI",
    });
    let initrds = initrd_urls.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let parameters = optional(kernel_parameters.as_ref(), quoted);
    format!(" {format} initrds [{initrds}] {parameters} {}", optional(*os_family, os_word))
}

fn os_word(family: OsFamily) -> &'static str {
    match family {
        OsFamily::Kairos => "Kairos",
        OsFamily::Talos => "Talos",
        OsFamily::Flatcar => "Flatcar",
        OsFamily::LeapMicro => "LeapMicro",
        OsFamily::Ubuntu => "Ubuntu",
        OsFamily::Rhel => "Rhel",
        OsFamily::Centos => "Centos",
        OsFamily::Fedora => "Fedora",
        OsFamily::Debian => "Debian",
        OsFamily::Opensuse => "Opensuse",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_an_order_stays_the_same_from_release_to_release() {
        let image = Some("http://i/os.iso".to_owned());
        let plain = OrderOnHost { image: image.clone(), ..OrderOnHost::default() };
        let remote = RemoteConfig { os_family: OsFamily::Talos, config_url: Some("http://i/c".into()) };
        let network = NetworkBoot::new(NetworkProtocol::Pxe, image.clone());
        let served = NetworkBoot {
            format: Some(BootFormat::Kernel),
            initrd_urls: vec!["http://i/initrd".into()],
            kernel_parameters: Some("quiet".into()),
            os_family: Some(OsFamily::Talos),
            ..network.clone()
        };
        for (order, expected) in [
            (plain.clone(), r#"OrderOnHost { image: Some("http://i/os.iso"), boot_mode: None, remote: None }"#),
            (
                OrderOnHost { boot_mode: Some(BootMode::Uefi), remote: Some(remote), ..plain.clone() },
                r#"OrderOnHost { image: Some("http://i/os.iso"), boot_mode: Some(Uefi), remote: Some(RemoteConfig { os_family: Talos, config_url: Some("http://i/c") }) }"#,
            ),
            (
                OrderOnHost { image: None, network: Some(network.clone()), every_start: true, ..plain.clone() },
                r#"OrderOnHost { image: None, boot_mode: None, remote: None } network pxe None Some("http://i/os.iso") None every-start"#,
            ),
            (
                // Only a note until it is served.
                OrderOnHost {
                    image: None,
                    network: Some(NetworkBoot { os_family: Some(OsFamily::Debian), ..network }),
                    ..plain.clone()
                },
                r#"OrderOnHost { image: None, boot_mode: None, remote: None } network pxe None Some("http://i/os.iso") None"#,
            ),
            (
                OrderOnHost { image: None, network: Some(served), ..plain },
                r#"OrderOnHost { image: None, boot_mode: None, remote: None } network pxe None Some("http://i/os.iso") None Some(Kernel) initrds ["http://i/initrd"] Some("quiet") Some(Talos)"#,
            ),
        ] {
            assert_eq!(order.words(), expected);
        }
    }
}
