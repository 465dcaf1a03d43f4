//! The kernel parameters that tell an operating system where its configuration is.

use std::fmt;

use crate::iso::{IsoError, Parameters};

/// An operating system that can fetch its configuration from a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Kairos.
    Kairos,
    /// Talos Linux.
    Talos,
    /// Flatcar Container Linux.
    Flatcar,
    /// openSUSE Leap Micro.
    LeapMicro,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kairos, Self::Talos, Self::Flatcar, Self::LeapMicro];

    /// The kernel parameters that make this system read its configuration from `config_url`.
    ///
    /// Each has the word that Beskar7 has always promised. Where the system itself documents another one, or needs a
    /// second one to look at the first, that is there too; what a system does not know, it ignores.
    pub fn parameters(self, config_url: &str) -> Result<Parameters, IsoError> {
        Parameters::new(self.words(config_url))
    }

    fn words(self, url: &str) -> Vec<String> {
        match self {
            Self::Kairos => vec![format!("config_url={url}")],
            // Without a platform Talos does not look at its configuration at all.
            Self::Talos => vec!["talos.platform=metal".into(), format!("talos.config={url}")],
            // Ignition runs on the first boot only, and an ISO has no disk to remember that on.
            Self::Flatcar => vec![
                format!("flatcar.ignition.config.url={url}"),
                "flatcar.first_boot=1".into(),
                format!("ignition.config.url={url}"),
            ],
            Self::LeapMicro => vec![format!("combustion.path={url}"), format!("combustion.url={url}")],
        }
    }
}

/// As `osFamily` spells it.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kairos => "kairos",
            Self::Talos => "talos",
            Self::Flatcar => "flatcar",
            Self::LeapMicro => "LeapMicro",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_gets_what_is_promised_and_what_it_reads() {
        let table = Family::ALL.map(|family| format!("{family}: {}", family.words("https://c/x").join(" ")));
        assert_eq!(
            table,
            [
                "kairos: config_url=https://c/x",
                "talos: talos.platform=metal talos.config=https://c/x",
                "flatcar: flatcar.ignition.config.url=https://c/x flatcar.first_boot=1 ignition.config.url=https://c/x",
                "LeapMicro: combustion.path=https://c/x combustion.url=https://c/x",
            ]
        );
    }

    #[test]
    fn a_url_that_no_boot_loader_can_pass_on_is_refused() {
        for family in Family::ALL {
            assert!(family.parameters("https://c/x?a=b&c=d").is_ok());
            let error = family.parameters("https://c/a b").unwrap_err();
            assert_eq!(error.reason(), "KernelParameterInvalid");
        }
    }
}
