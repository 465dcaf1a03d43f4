//! What an EFI program is, by the sections of its file.

use super::bytes_at::{byte, le16, le32};

/// How much of a program is looked at: its headers.
pub(crate) const HEADERS: u32 = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Kernel, initrd and command line in one file.
    UnifiedKernelImage,
    Grub,
    SystemdBoot,
    /// Shim, or an unknown one: it starts the loader beside it.
    Other,
}

/// Identifies programs by the names of their sections: `mods` holds GRUB's modules, `.sdmagic` is systemd's mark, on the boot
/// loader and on the stub of unified kernel images, which also have `.linux`.
pub(crate) fn program(headers: &[u8]) -> Program {
    let sections = sections(headers);
    let has = |name: &[u8]| sections.iter().any(|section| section.trim_ascii_end() == name);
    if has(b".linux") {
        Program::UnifiedKernelImage
    } else if has(b"mods") {
        Program::Grub
    } else if has(b".sdmagic") {
        Program::SystemdBoot
    } else {
        Program::Other
    }
}

fn sections(headers: &[u8]) -> Vec<Vec<u8>> {
    let header = le32(headers, 0x3c) as usize;
    if !headers.starts_with(b"MZ") || headers.get(header..).is_none_or(|rest| !rest.starts_with(b"PE\0\0")) {
        return Vec::new();
    }
    let (count, optional) = (usize::from(le16(headers, header + 6)), usize::from(le16(headers, header + 20)));
    let table = headers.get(header + 24 + optional..).unwrap_or_default();
    table
        .chunks_exact(40)
        .take(count)
        .map(|section| section.iter().copied().take(8).take_while(|letter| *letter != 0).collect())
        .filter(|name: &Vec<u8>| byte(name, 0) != 0)
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The headers of a program with these sections.
    pub(crate) fn headers(sections: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; 0x80];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[0x3c] = 0x80;
        bytes.extend(b"PE\0\0\x64\x86");
        bytes.extend(u16::try_from(sections.len()).unwrap().to_le_bytes());
        bytes.resize(0x80 + 24, 0);
        for section in sections {
            let start = bytes.len();
            bytes.extend(section.as_bytes());
            bytes.resize(start + 40, 0);
        }
        bytes.resize(4096, 0);
        bytes
    }

    #[test]
    fn programs_are_told_apart_by_their_sections() {
        for (sections, expected) in [
            (&[".text", ".sdmagic", ".osrel", ".cmdline", ".linux", ".initrd"][..], Program::UnifiedKernelImage),
            (&[".text", ".data", "mods", ".reloc"], Program::Grub),
            (&[".text", ".sdmagic"], Program::SystemdBoot),
            (&[".text", ".vendor_"], Program::Other),
            (&[], Program::Other),
        ] {
            assert_eq!(program(&headers(sections)), expected, "{sections:?}");
        }
        assert_eq!(program(b""), Program::Other);
        assert_eq!(program(&[b'M', b'Z'].repeat(64)), Program::Other);
    }
}
