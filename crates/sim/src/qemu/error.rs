//! What can stand in the way of machines.

use std::io;
use std::path::PathBuf;

/// Why there are no machines.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// A program is not installed.
    #[error("{name} is missing: install it (Debian's package {package})")]
    MissingProgram {
        /// Its name.
        name: &'static str,
        /// The package that brings it.
        package: &'static str,
    },
    /// A file of the firmware is not there.
    #[error("{} is missing, without which no machine starts by UEFI: install it (Debian's package ovmf)", .0.display())]
    MissingFirmware(PathBuf),
    /// More machines than make sense.
    #[error("{asked} machines are too many: {most} at most")]
    TooMany {
        /// How many were asked for.
        asked: u32,
        /// How many there may be.
        most: u32,
    },
    /// A BMC that answers from a recording does not know its server's parts.
    #[error("{bmc} answers from a recording: it cannot have a machine")]
    Recorded {
        /// Name of the BMC.
        bmc: String,
    },
    /// A folder or a file of a machine cannot be made.
    #[error("cannot make {}: {why}", .path.display())]
    Folder {
        /// Which one.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// A thread or a process that the network needs did not start.
    #[error("cannot make a network for machines: {0}")]
    Network(io::Error),
}
