//! Which files of a tree boot loaders may read. Names are compared without case: ISO 9660 and FAT have none.

/// Whether a directory may hold a configuration, or directories that do.
pub(crate) fn is_boot_directory(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let top = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(top, "boot" | "efi" | "isolinux" | "syslinux" | "loader") || top.starts_with("grub")
}

/// Whether a file may be a configuration.
pub(crate) fn is_configuration(path: &str) -> bool {
    // The 8.3 names of ISO 9660 have no room for `.conf`; the same extent also has its full name.
    ["cfg", "conf", "con"].iter().any(|extension| has_extension(path, extension))
}

/// Whether a file is worth remembering.
pub(crate) fn is_of_interest(path: &str) -> bool {
    is_configuration(path) || efi_place(path).is_some()
}

/// Whether only a GRUB from another medium reads it, never the one that the firmware starts.
pub(crate) fn is_for_loopback(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with("/loopback.cfg")
}

/// The purpose of an EFI program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EfiPlace {
    /// What the firmware starts from removable media: `/EFI/BOOT/BOOTX64.EFI`.
    Removable,
    /// Where shim looks for the next one: `/EFI/BOOT/grubx64.efi`.
    BesideRemovable,
    /// Where systemd-boot looks for unified kernel images: `/EFI/Linux/*.efi`.
    Linux,
}

/// The purpose of an EFI program, if it can be started at all.
pub(crate) fn efi_place(path: &str) -> Option<EfiPlace> {
    let path = path.to_ascii_lowercase();
    let (directory, name) = path.rsplit_once('/')?;
    if !has_extension(name, "efi") {
        return None;
    }
    match directory {
        "/efi/boot" if name.starts_with("boot") => Some(EfiPlace::Removable),
        "/efi/boot" => Some(EfiPlace::BesideRemovable),
        "/efi/linux" => Some(EfiPlace::Linux),
        _ => None,
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_files_are_found_whatever_their_case() {
        for directory in ["/boot", "/BOOT/grub2", "/EFI/BOOT", "/isolinux", "/GRUB2", "/loader/entries", "/syslinux"] {
            assert!(is_boot_directory(directory), "{directory}");
        }
        assert!(!is_boot_directory("/pool") && !is_boot_directory("/usr/boot"));
        assert!(is_configuration("/a/GRUB.CFG") && is_configuration("/a/b-c.conf") && !is_configuration("/a.c32"));
        assert_eq!(efi_place("/EFI/BOOT/BOOTX64.EFI"), Some(EfiPlace::Removable));
        assert_eq!(efi_place("/efi/boot/grubx64.efi"), Some(EfiPlace::BesideRemovable));
        assert_eq!(efi_place("/EFI/Linux/a.efi"), Some(EfiPlace::Linux));
        assert_eq!(efi_place("/EFI/fedora/shim.efi"), None);
    }
}
