//! How a machine's system gets onto its server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::Beskar7MachineSpec;

/// How imageURL gets onto the server: PreBakedISO, RemoteConfig, PXE or iPXE. Left out, a configURL means RemoteConfig,
/// and none means PreBakedISO.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProvisioningMode {
    /// The ISO is booted from virtual media, with the operating system's kernel parameter written into it.
    RemoteConfig,
    /// The ISO is booted from virtual media as it is.
    #[serde(rename = "PreBakedISO")]
    PreBakedIso,
    /// The server boots from the network.
    #[serde(rename = "PXE")]
    Pxe,
    /// The server boots from the network, by iPXE.
    #[serde(rename = "iPXE")]
    IPxe,
}

/// Which operating system is installed: kairos, talos, flatcar, LeapMicro, ubuntu, rhel, centos, fedora, debian or
/// opensuse. RemoteConfig knows how to configure the first four; for any other mode it is only a note.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OsFamily {
    /// Kairos.
    Kairos,
    /// Talos Linux.
    Talos,
    /// Flatcar Container Linux.
    Flatcar,
    /// openSUSE Leap Micro.
    #[serde(rename = "LeapMicro")]
    LeapMicro,
    /// Ubuntu.
    Ubuntu,
    /// Red Hat Enterprise Linux.
    Rhel,
    /// CentOS.
    Centos,
    /// Fedora.
    Fedora,
    /// Debian.
    Debian,
    /// openSUSE.
    Opensuse,
}

/// What has to be done so that a machine runs what its spec says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Boot imageURL from virtual media, as it is.
    PreBakedIso,
    /// Boot imageURL from virtual media, with a kernel parameter that leads to the configuration.
    RemoteConfig,
    /// Boot from the network.
    Pxe,
    /// Boot from the network, by iPXE.
    IPxe,
    /// Boot the inspection system from the network, which writes targetImageURL to the disk.
    DiskImage,
}

impl Beskar7MachineSpec {
    /// The mode that is asked for, by name or by the fields that are there.
    pub fn mode(&self) -> Mode {
        match self.provisioning_mode {
            Some(ProvisioningMode::RemoteConfig) => Mode::RemoteConfig,
            Some(ProvisioningMode::Pxe) => Mode::Pxe,
            Some(ProvisioningMode::IPxe) => Mode::IPxe,
            None if self.image_url.is_none() => Mode::DiskImage,
            None if self.given_config_url().is_some() => Mode::RemoteConfig,
            Some(ProvisioningMode::PreBakedIso) | None => Mode::PreBakedIso,
        }
    }

    /// `configURL`, if there is a word in it. An empty one is none: earlier generations wrote such.
    pub fn given_config_url(&self) -> Option<&str> {
        self.config_url.as_deref().filter(|url| !url.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(fields: Value) -> Beskar7MachineSpec {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn the_mode_is_the_one_named_or_the_one_that_the_fields_imply() {
        let iso = "http://192.0.2.1/os.iso";
        let config = "http://192.0.2.1/config.yaml";
        let table = [
            (json!({"imageURL": iso}), Mode::PreBakedIso),
            (json!({"imageURL": iso, "configURL": ""}), Mode::PreBakedIso),
            (json!({"imageURL": iso, "configURL": config}), Mode::RemoteConfig),
            (json!({"imageURL": iso, "provisioningMode": "PreBakedISO"}), Mode::PreBakedIso),
            (json!({"imageURL": iso, "provisioningMode": "RemoteConfig"}), Mode::RemoteConfig),
            (json!({"imageURL": iso, "provisioningMode": "RemoteConfig", "configURL": config}), Mode::RemoteConfig),
            (json!({"imageURL": iso, "provisioningMode": "PXE", "configURL": config}), Mode::Pxe),
            (json!({"imageURL": iso, "provisioningMode": "iPXE"}), Mode::IPxe),
            (json!({"inspectionImageURL": "http://192.0.2.1/inspector", "targetImageURL": iso}), Mode::DiskImage),
            (json!({"targetImageURL": iso}), Mode::DiskImage),
        ];
        for (fields, mode) in table {
            assert_eq!(spec(fields.clone()).mode(), mode, "{fields}");
        }
    }

    #[test]
    fn families_are_written_as_upstream_writes_them() {
        let all =
            ["kairos", "talos", "flatcar", "LeapMicro", "ubuntu", "rhel", "centos", "fedora", "debian", "opensuse"];
        for family in all {
            let read: OsFamily = serde_json::from_value(json!(family)).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), family);
        }
    }
}
