//! What differs between families of BMC firmware, as data: one row each, looked up once per BMC.
//!
//! Rows hold what must be known beforehand. What a BMC tells by itself (allowable values, settings objects, missing actions) or by
//! its answer (message ids) is handled where it happens, because firmware changes faster than tables.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A family of BMC firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of products")]
pub enum Family {
    Generic,
    DellIdrac8,
    DellIdrac9,
    DellIdrac10,
    HpeIlo4,
    HpeIlo5,
    LenovoXcc,
    AmiMegarac,
    NvidiaDgx,
    NvidiaOpenBmc,
    NvidiaBluefield,
    Supermicro,
    FujitsuIrmc,
    CiscoCimc,
    HuaweiIbmc,
    Nokia,
    OpenBmc,
    Sushy,
}

/// Which properties go into a change of the boot override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootPayload {
    /// Target and enabled; the mode only when it is wished for and the BMC shows one.
    Minimal,
    /// Target and enabled, never the mode: it is read-only here.
    WithoutMode,
    /// The mode as well whenever the BMC shows one: it falls back to Legacy otherwise.
    WithMode,
    /// Always all three.
    Full,
}

/// How an override is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClearForm {
    /// Disabled, target None.
    TargetNone,
    /// Disabled, target Pxe: None is refused together with Enabled.
    TargetPxe,
    /// Cannot be cleared; the disk is set permanently.
    Disk,
}

/// What an insertion needs beside the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertExtra {
    /// `TransferProtocolType`, from the scheme of the image.
    Protocol,
    /// `TransferMethod: Stream`.
    Method,
    /// `UserName` and `Password`, although the image needs none.
    Credentials,
}

/// How a virtual CD is booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtualCd {
    /// By the boot override, as the standard has it.
    Override,
    /// By attributes of the manager, on firmware that needs it.
    Attributes(&'static BootAttributes),
    /// Not over Redfish; with what to do instead.
    Impossible(&'static str),
}

/// Attributes of a manager that say what is booted next.
#[derive(Debug, PartialEq, Eq)]
pub struct BootAttributes {
    /// The attribute that names the device.
    pub device: &'static str,
    /// The attribute for "one boot only".
    pub once: &'static str,
    /// The virtual CD.
    pub cd: &'static str,
    /// No device in particular.
    pub nothing: &'static str,
    /// From which firmware on the boot override works, by a word in the name of the processor; the first that fits.
    pub not_since: &'static [(&'static str, &'static str)],
}

/// One row: how a family differs.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a table of differences is made of flags")]
pub struct Quirks {
    /// Of which family.
    pub family: Family,
    /// The family's name, for settings and logs.
    pub name: &'static str,
    /// The shape of a boot override.
    pub boot_payload: BootPayload,
    /// How to end one.
    pub clear: ClearForm,
    /// The words for the virtual CD as a boot target; the first that is allowed.
    pub cd_words: &'static [&'static str],
    /// Beginnings of the ids of media slots, best first; an empty list means: any.
    pub slots: &'static [&'static str],
    /// Whether no other slots than those may be used.
    pub only_these_slots: bool,
    /// Whether media are inserted by PATCH, because there is no action.
    pub media_by_patch: bool,
    /// What an insertion needs beside the image, beforehand.
    pub insert_extras: &'static [InsertExtra],
    /// The only schemes that an image may have, if there are limits.
    pub image_schemes: &'static [&'static str],
    /// Whether the number on the label is the SKU; the serial number is that of the board.
    pub serial_is_sku: bool,
    /// What the ids of installed firmware begin with, where the list also holds other versions.
    pub installed_prefix: Option<&'static str>,
    /// Message ids that mean "too early" for a change of power, beside the general ones.
    pub power_conflicts: &'static [&'static str],
    /// Where the progress of POST is reported, beside `BootProgress`.
    pub post_state: Option<&'static str>,
    /// Whether the manager must be read to find the generation.
    pub needs_manager: bool,
    /// How a virtual CD is booted.
    pub virtual_cd: VirtualCd,
    /// Suffix of the ids of firmware that is not installed yet.
    pub pending_suffix: Option<&'static str>,
    /// Whether GPUs hang on a baseboard that is listed as a system of its own.
    pub has_baseboard: bool,
    /// Whether it answers 500 for parts that it lacks.
    pub fails_for_missing: bool,
}

impl Quirks {
    /// The attributes by which this firmware boots a virtual CD, if it does.
    pub fn boot_attributes(&self, facts: &Facts) -> Option<&'static BootAttributes> {
        let VirtualCd::Attributes(form) = self.virtual_cd else { return None };
        let processor = facts.processor.as_deref().unwrap_or_default().to_ascii_lowercase();
        let since = form.not_since.iter().find(|(word, _)| processor.contains(word)).map(|(_, since)| *since);
        let is_new = since.is_some_and(|since| {
            // An unknown version counts as a new one, which follows the standard.
            facts.manager_firmware.as_deref().is_none_or(|version| numbers(version) >= numbers(since))
        });
        (!is_new).then_some(form)
    }
}

/// The standard; each row states only where it differs.
const BOOK: Quirks = Quirks {
    family: Family::Generic,
    name: "generic",
    boot_payload: BootPayload::Minimal,
    clear: ClearForm::TargetNone,
    cd_words: &["Cd"],
    slots: &[],
    only_these_slots: false,
    media_by_patch: false,
    insert_extras: &[],
    image_schemes: &[],
    serial_is_sku: false,
    installed_prefix: None,
    power_conflicts: &[],
    post_state: None,
    needs_manager: false,
    virtual_cd: VirtualCd::Override,
    pending_suffix: None,
    has_baseboard: false,
    fails_for_missing: false,
};

/// `Cd` is the physical drive on old iDRAC9 and on iDRAC10, whose versions begin at 1 again.
const SERVER_BOOT: BootAttributes = BootAttributes {
    device: "ServerBoot.1.FirstBootDevice",
    once: "ServerBoot.1.BootOnce",
    cd: "VCD-DVD",
    nothing: "Normal",
    not_since: &[],
};
static IDRAC9_BOOT: BootAttributes =
    BootAttributes { not_since: &[("amd", "6.00.00.00"), ("", "4.40.10.00")], ..SERVER_BOOT };
static IDRAC10_BOOT: BootAttributes = SERVER_BOOT;

const DELL: Quirks = Quirks { serial_is_sku: true, installed_prefix: Some("Installed-"), needs_manager: true, ..BOOK };

const AMI: Quirks = Quirks { boot_payload: BootPayload::Full, ..BOOK };

/// The table. The first row is what everything unknown gets.
pub static TABLE: &[Quirks] = &[
    BOOK,
    Quirks {
        family: Family::DellIdrac8,
        name: "dell-idrac8",
        virtual_cd: VirtualCd::Impossible(
            "be told over Redfish to boot from virtual media: iDRAC8 takes that only with an imported configuration profile; boot \
             it over the network, or choose the virtual CD by hand",
        ),
        ..DELL
    },
    Quirks { family: Family::DellIdrac9, name: "dell-idrac9", virtual_cd: VirtualCd::Attributes(&IDRAC9_BOOT), ..DELL },
    // Power on is refused for up to a minute after power off, and only the first slot takes an image.
    Quirks {
        family: Family::DellIdrac10,
        name: "dell-idrac10",
        power_conflicts: &["ActionParameterValueConflict"],
        slots: &["1"],
        only_these_slots: true,
        virtual_cd: VirtualCd::Attributes(&IDRAC10_BOOT),
        ..DELL
    },
    Quirks {
        family: Family::HpeIlo4,
        name: "hpe-ilo4",
        boot_payload: BootPayload::WithoutMode,
        clear: ClearForm::TargetPxe,
        ..BOOK
    },
    Quirks {
        family: Family::HpeIlo5,
        name: "hpe-ilo5",
        boot_payload: BootPayload::WithoutMode,
        clear: ClearForm::TargetPxe,
        slots: &["2"],
        post_state: Some("/Oem/Hpe/PostState"),
        ..BOOK
    },
    // Of ten slots, EXT1–4 take an image from a URL; RDOC* and Remote* belong to the remote console.
    Quirks {
        family: Family::LenovoXcc,
        name: "lenovo-xcc",
        slots: &["EXT", "Remote"],
        media_by_patch: true,
        pending_suffix: Some("-Pending"),
        ..BOOK
    },
    Quirks { family: Family::AmiMegarac, name: "ami-megarac", ..AMI },
    Quirks {
        family: Family::NvidiaDgx,
        name: "nvidia-dgx",
        insert_extras: &[InsertExtra::Credentials],
        has_baseboard: true,
        ..AMI
    },
    Quirks {
        family: Family::NvidiaOpenBmc,
        name: "nvidia-openbmc",
        image_schemes: &["https", "smb"],
        has_baseboard: true,
        ..BOOK
    },
    Quirks { family: Family::NvidiaBluefield, name: "nvidia-bluefield", image_schemes: &["https", "smb"], ..BOOK },
    Quirks {
        family: Family::Supermicro,
        name: "supermicro",
        boot_payload: BootPayload::WithMode,
        cd_words: &["UsbCd", "Cd"],
        ..BOOK
    },
    Quirks { family: Family::FujitsuIrmc, name: "fujitsu-irmc", ..BOOK },
    Quirks { family: Family::CiscoCimc, name: "cisco-cimc", ..BOOK },
    Quirks { family: Family::HuaweiIbmc, name: "huawei-ibmc", insert_extras: &[InsertExtra::Protocol], ..BOOK },
    Quirks { family: Family::Nokia, name: "nokia", insert_extras: &[InsertExtra::Protocol], ..BOOK },
    Quirks { family: Family::OpenBmc, name: "openbmc", image_schemes: &["https", "smb"], ..BOOK },
    Quirks { family: Family::Sushy, name: "sushy", clear: ClearForm::Disk, fails_for_missing: true, ..BOOK },
];

/// Words that identify a family in what a BMC reports about itself.
const WORDS: &[(&str, Family)] = &[
    ("dell", Family::DellIdrac9),
    ("hpe", Family::HpeIlo5),
    ("hewlett", Family::HpeIlo5),
    ("hp", Family::HpeIlo4),
    ("ami", Family::AmiMegarac),
    ("megatrends", Family::AmiMegarac),
    ("asrockrack", Family::AmiMegarac),
    ("lenovo", Family::LenovoXcc),
    ("supermicro", Family::Supermicro),
    ("nvidia", Family::NvidiaOpenBmc),
    ("wiwynn", Family::NvidiaOpenBmc),
    ("fujitsu", Family::FujitsuIrmc),
    ("fsas", Family::FujitsuIrmc),
    ("cisco", Family::CiscoCimc),
    ("huawei", Family::HuaweiIbmc),
    ("xfusion", Family::HuaweiIbmc),
    ("nokia", Family::Nokia),
    ("openbmc", Family::OpenBmc),
    ("sushy", Family::Sushy),
];

/// A generation within a family, found by a second fact.
const REFINEMENTS: &[Refinement] = &[
    Refinement {
        from: Family::DellIdrac9,
        fact: |facts| facts.manager_model.as_deref(),
        words: &["12g", "13g"],
        to: Family::DellIdrac8,
    },
    Refinement {
        from: Family::DellIdrac9,
        fact: |facts| facts.manager_model.as_deref(),
        words: &["17g", "18g"],
        to: Family::DellIdrac10,
    },
    Refinement {
        from: Family::HpeIlo5,
        fact: |facts| facts.manager_model.as_deref(),
        words: &["ilo4"],
        to: Family::HpeIlo4,
    },
    Refinement {
        from: Family::AmiMegarac,
        fact: |facts| facts.system_model.as_deref(),
        words: &["dgx", "dgxh100", "dgxa100"],
        to: Family::NvidiaDgx,
    },
    Refinement {
        from: Family::AmiMegarac,
        fact: |facts| facts.system_id.as_deref(),
        words: &["dgx"],
        to: Family::NvidiaDgx,
    },
    Refinement {
        from: Family::NvidiaOpenBmc,
        fact: |facts| facts.product.as_deref(),
        words: &["bluefield", "bmcmezz"],
        to: Family::NvidiaBluefield,
    },
];

struct Refinement {
    from: Family,
    fact: fn(&Facts) -> Option<&str>,
    words: &'static [&'static str],
    to: Family,
}

/// What a BMC reports about itself; more is known as more is read.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// `Vendor` of the service root: the maker of the firmware.
    pub vendor: Option<String>,
    /// `Product` of the service root.
    pub product: Option<String>,
    /// The keys of `Oem` in the service root.
    pub oem: Vec<String>,
    /// The system's id.
    pub system_id: Option<String>,
    /// The model of its processors.
    pub processor: Option<String>,
    /// Maker of the system.
    pub system_manufacturer: Option<String>,
    /// The system's model.
    pub system_model: Option<String>,
    /// Maker of the manager.
    pub manager_manufacturer: Option<String>,
    /// The manager's model.
    pub manager_model: Option<String>,
    /// The version of the manager's firmware.
    pub manager_firmware: Option<String>,
}

/// The row for a BMC.
pub fn of(facts: &Facts) -> &'static Quirks {
    // The firmware's maker decides, not the board's: an AMI firmware on a Lenovo board behaves as AMI.
    let single_oem = if let [only] = facts.oem.as_slice() { Some(only.as_str()) } else { None };
    let sources = [
        facts.vendor.as_deref(),
        single_oem,
        facts.system_manufacturer.as_deref(),
        facts.manager_manufacturer.as_deref(),
        facts.manager_model.as_deref(),
    ];
    let known = sources.into_iter().flatten().find_map(|source| {
        let words = words(source);
        WORDS.iter().find(|(word, _)| words.iter().any(|found| found == word)).map(|(_, family)| *family)
    });
    let family = known.unwrap_or(Family::Generic);
    let refined = REFINEMENTS.iter().find(|refinement| {
        refinement.from == family
            && (refinement.fact)(facts).is_some_and(|fact| {
                let (words, joined) = (words(fact), words(fact).concat());
                refinement.words.iter().any(|word| words.iter().any(|found| found == word) || joined == *word)
            })
    });
    of_family(refined.map_or(family, |refinement| refinement.to))
}

/// The row of a family.
pub fn of_family(family: Family) -> &'static Quirks {
    TABLE.iter().find(|row| row.family == family).unwrap_or(&TABLE[0])
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(of_family(*self).name)
    }
}

/// What is meant by the name of a maker alone: its most common firmware.
const MAKERS: [(&str, Family); 8] = [
    ("dell", Family::DellIdrac9),
    ("hpe", Family::HpeIlo5),
    ("lenovo", Family::LenovoXcc),
    ("ami", Family::AmiMegarac),
    ("nvidia", Family::NvidiaOpenBmc),
    ("fujitsu", Family::FujitsuIrmc),
    ("cisco", Family::CiscoCimc),
    ("huawei", Family::HuaweiIbmc),
];

impl FromStr for Family {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let family = TABLE.iter().find(|row| row.name.eq_ignore_ascii_case(text)).map(|row| row.family);
        let maker = || MAKERS.iter().find(|(maker, _)| maker.eq_ignore_ascii_case(text)).map(|(_, family)| *family);
        family.or_else(maker).ok_or_else(|| {
            let names = TABLE.iter().map(|row| row.name).chain(MAKERS.iter().map(|(maker, _)| *maker));
            let names: Vec<&str> = names.collect();
            Error::Unsupported {
                url: "this version".into(),
                what: format!("tell what {text:?} is; known firmware: {}", names.join(", ")),
            }
        })
    }
}

/// The numbers of a version, to compare: `4.40.10.00` comes after `4.40.9.00`.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

#[cfg(test)]
#[path = "quirks_tests.rs"]
mod tests;
