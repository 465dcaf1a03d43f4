//! The flags for metal-operator's kinds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{ArgAction, ValueEnum};
use controllers::ironcore::{MacPrefixes, ProbeSettings, Settings, Template};

use crate::boot_args::BootArgs;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "metal-operator's kinds (--dialects ironcore)")]
pub(crate) struct IronCoreArgs {
    /// Which Endpoints are BMCs, by the beginnings of their MAC addresses, and their factory passwords: a file in metal-operator's format
    #[arg(long, value_name = "FILE", env = "BESKAR7_MAC_PREFIXES_FILE")]
    mac_prefixes_file: Option<PathBuf>,
    /// How a Server is looked into before it is Available: redfish, by its BMC and without a boot, or probe, which boots metal-operator's probe
    #[arg(long, value_name = "HOW", default_value = "redfish", env = "BESKAR7_DISCOVERY", hide_possible_values = true)]
    discovery: Discovery,
    /// Container image of the probe
    #[arg(long, value_name = "IMAGE", env = "BESKAR7_PROBE_IMAGE")]
    probe_image: Option<String>,
    /// Image of the system that the probe runs in, for the boot provider
    #[arg(long, value_name = "IMAGE", env = "BESKAR7_PROBE_OS_IMAGE")]
    probe_os_image: Option<String>,
    /// What that system is configured with: a template in metal-operator's format; without it, the one that comes with Beskar7
    #[arg(long, value_name = "FILE", env = "BESKAR7_DISCOVERY_IGNITION_PATH")]
    discovery_ignition_path: Option<PathBuf>,
    /// Namespace of boot configurations and Secrets of probes [default: that of the operator]
    #[arg(long, value_name = "NAMESPACE", env = "BESKAR7_MANAGER_NAMESPACE")]
    manager_namespace: Option<String>,
    /// Switch off Servers that run when they are first seen; otherwise they stay Initial until they are off
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "BESKAR7_ENFORCE_FIRST_BOOT")]
    enforce_first_boot: bool,
    /// Keep released servers in Cleanup until somebody says that their disks are wiped
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "BESKAR7_REQUIRE_SANITIZED")]
    require_sanitized: bool,
    /// Accept any certificate of a BMC, unless the annotation beskar7.io/bmc-trust names the one to accept
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "BESKAR7_SKIP_CERT_VALIDATION")]
    skip_cert_validation: bool,
    /// Scheme for BMCs whose protocol names none: http or https
    #[arg(long, value_name = "SCHEME", default_value = "https", env = "BESKAR7_PROTOCOL", value_parser = ["http", "https"], hide_possible_values = true)]
    protocol: String,
}

/// How a Server is looked into before it is Available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Discovery {
    Redfish,
    Probe,
}

impl IronCoreArgs {
    /// Reads the files that are named. What probes need is kept in the operator's own namespace unless another one is named.
    pub(crate) fn settings(&self, boot: &BootArgs, own_namespace: &str) -> anyhow::Result<Settings> {
        let prefixes = match &self.mac_prefixes_file {
            Some(path) => read(path, "--mac-prefixes-file", MacPrefixes::parse)?,
            None => MacPrefixes::default(),
        };
        Ok(Settings {
            prefixes,
            plain_http: self.protocol == "http",
            skip_certificates: self.skip_cert_validation,
            enforce_first_boot: self.enforce_first_boot,
            require_sanitized: self.require_sanitized,
            probe: self.probe(boot, own_namespace)?,
        })
    }

    /// Whether servers boot something to be looked into.
    pub(crate) fn boots_probes(&self) -> bool {
        self.discovery == Discovery::Probe
    }

    fn probe(&self, boot: &BootArgs, own_namespace: &str) -> anyhow::Result<Option<ProbeSettings>> {
        if !self.boots_probes() {
            return Ok(None);
        }
        if !boot.is_wanted() {
            bail!(
                "--discovery probe needs --boot-url, the address under which probes reach the boot service, to which they report"
            );
        }
        let template = match &self.discovery_ignition_path {
            Some(path) => read(path, "--discovery-ignition-path", Template::parse)?,
            None => Template::default(),
        };
        let given = self.manager_namespace.as_deref().filter(|namespace| !namespace.is_empty());
        Ok(Some(ProbeSettings {
            image: needed(self.probe_image.as_ref(), "--probe-image", "the container image of the probe")?,
            os_image: needed(
                self.probe_os_image.as_ref(),
                "--probe-os-image",
                "the image that the servers boot for it",
            )?,
            namespace: given.unwrap_or(own_namespace).to_owned(),
            template,
        }))
    }
}

fn needed(given: Option<&String>, flag: &str, what: &str) -> anyhow::Result<String> {
    let given = given.filter(|given| !given.is_empty());
    given.cloned().with_context(|| format!("--discovery probe needs {flag}, {what}"))
}

fn read<T, E>(path: &Path, flag: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> anyhow::Result<T>
where
    Result<T, E>: anyhow::Context<T, E>,
{
    let place = || format!("{flag} {}", path.display());
    let text = fs::read_to_string(path).with_context(place)?;
    parse(&text).with_context(place)
}
