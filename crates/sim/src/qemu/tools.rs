//! The programs and files that come from the system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::QemuError;

/// Firmware for UEFI, and its variables as they are at first.
pub(super) const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
pub(super) const OVMF_VARS: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
pub(super) const QEMU: &str = "qemu-system-x86_64";

/// Where programs are. The path of an ordinary user lacks the folders of the administrator's programs, such as `ip`.
pub(super) fn search_path() -> OsString {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&given).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    std::env::join_paths(folders).unwrap_or(given)
}

/// A program, or the package that brings it.
pub(super) fn find(name: &'static str, package: &'static str) -> Result<PathBuf, QemuError> {
    let folders = search_path();
    let mut candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    candidates.find(|path| path.is_file()).ok_or(QemuError::MissingProgram { name, package })
}

/// Whether a machine can start at all.
pub(super) fn check() -> Result<(), QemuError> {
    find(QEMU, "qemu-system-x86")?;
    for file in [OVMF_CODE, OVMF_VARS].map(Path::new) {
        if !file.is_file() {
            return Err(QemuError::MissingFirmware(file.to_owned()));
        }
    }
    Ok(())
}
