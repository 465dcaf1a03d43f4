//! Why an ISO cannot be served with parameters, and what to do.

use engine::failure::Class;

use super::source::SourceError;

/// Why there is no plan for an image. Never contains the value of a parameter: those may be tickets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsoError {
    /// A kernel parameter cannot be written into a boot loader's configuration.
    #[error("the kernel parameter {key:?} cannot be used: {why}")]
    ParameterInvalid {
        /// What stands before the equals sign.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The kernel would cut its command line off.
    #[error(
        "with the parameters added, the kernel command line has {bytes} bytes{}, but the kernel takes {limit}; shorten the parameters",
        .path.as_deref().map(|path| format!(" in {path}")).unwrap_or_default()
    )]
    KernelLineTooLong {
        /// The configuration; none when the parameters alone are too long.
        path: Option<String>,
        /// What the line would have.
        bytes: usize,
        /// What the kernel takes.
        limit: usize,
    },
    /// There is no ISO 9660 file system.
    #[error("this is not an ISO image: {why}")]
    NotIso {
        /// What was found instead.
        why: &'static str,
    },
    /// The image ends before its file system does.
    #[error("the ISO is cut off: {what} needs {needed} bytes, but the image has {size}; download or upload it again")]
    Truncated {
        /// What ends later.
        what: &'static str,
        /// Where that ends.
        needed: u64,
        /// The size of the image.
        size: u64,
    },
    /// All there is to boot carries its kernel parameters inside, usually signed.
    #[error("the ISO boots a unified kernel image ({path}), whose kernel parameters cannot be changed from outside")]
    OnlyUnifiedKernelImage {
        /// Where it is.
        path: String,
    },
    /// There is no configuration of a boot loader that we know.
    #[error(
        "the ISO has no boot loader configuration that can be changed: no GRUB, isolinux or systemd-boot file that starts a kernel \
         is used by its BIOS or UEFI boot entry ({configurations} configuration files were looked at)"
    )]
    NoBootLoader {
        /// How many files could have been one.
        configurations: usize,
    },
    /// A file system on the image is damaged, or made to harm us.
    #[error("the ISO is damaged: {what}")]
    Malformed {
        /// What makes no sense.
        what: String,
    },
    /// More than any real image needs.
    #[error("the ISO is too large or too complicated to be changed: {what}")]
    TooMuch {
        /// Which limit was met.
        what: &'static str,
    },
    /// The EFI boot image has no room left for a longer configuration.
    #[error("the EFI boot image of the ISO has no room for the longer {path}; {missing} more bytes are needed")]
    NoRoom {
        /// The configuration that was to grow.
        path: String,
        /// How much is missing.
        missing: u64,
    },
    /// The image could not be read.
    #[error("the ISO cannot be read: {0}")]
    Source(#[from] SourceError),
}

impl IsoError {
    /// How to treat it.
    pub fn class(&self) -> Class {
        match self {
            Self::Source(source) if source.transient => Class::Transient,
            Self::OnlyUnifiedKernelImage { .. } | Self::NoBootLoader { .. } => Class::Unsupported,
            _ => Class::Rejected,
        }
    }

    /// The CamelCase word that users see.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ParameterInvalid { .. } => "KernelParameterInvalid",
            Self::KernelLineTooLong { .. } => "KernelLineTooLong",
            Self::NotIso { .. } => "NotAnIso",
            Self::Truncated { .. } => "IsoTruncated",
            Self::OnlyUnifiedKernelImage { .. } => "OnlyUnifiedKernelImage",
            Self::NoBootLoader { .. } => "NoKnownBootLoader",
            Self::Malformed { .. } => "IsoDamaged",
            Self::TooMuch { .. } => "IsoTooComplicated",
            Self::NoRoom { .. } => "NoRoomInBootImage",
            Self::Source(_) => "IsoUnreadable",
        }
    }

    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed { what: what.into() }
    }
}
