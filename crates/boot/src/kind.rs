//! What kind of file it is that a server is to boot from the network, by its first bytes.

use std::fmt;

/// How much of a file is read to tell its kind.
pub const HEAD: usize = 1024;

/// Where x86 kernels bear their mark.
const KERNEL_MARK: usize = 0x202;
/// Where an EFI program says where its header is.
const PE_OFFSET: usize = 0x3c;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A script for iPXE.
    Script,
    /// A Linux kernel for x86. Mostly it is an EFI program as well.
    Kernel,
    /// An EFI program.
    Efi,
    /// A web page.
    Html,
    /// Compressed data, mostly an initial RAM disk or an archive.
    Archive,
    /// An ISO 9660 image cannot be told by its first bytes; neither can anything else.
    Unknown,
}

/// A file is not what it was ordered as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{from} sent {found} in place of {wanted}{advice}")]
pub struct WrongKind {
    /// The server that it came from.
    pub from: String,
    /// What it is.
    pub found: Kind,
    /// What it should be.
    pub wanted: Wanted,
    advice: &'static str,
}

/// What a file should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A script for iPXE.
    Script,
    /// A Linux kernel.
    Kernel,
    /// Anything that is no web page.
    Initrd,
    /// An EFI program.
    Efi,
}

impl Kind {
    /// What begins with these bytes.
    pub fn of(head: &[u8]) -> Self {
        let is_at = |offset: usize, mark: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(mark));
        let text: Vec<u8> = head.iter().copied().skip_while(u8::is_ascii_whitespace).take(16).collect();
        let text = text.to_ascii_lowercase();
        if head.starts_with(b"#!ipxe") || head.starts_with(b"#!gpxe") {
            Self::Script
        } else if is_at(KERNEL_MARK, b"HdrS") {
            Self::Kernel
        } else if head.starts_with(b"MZ")
            && pe_offset(head).is_some_and(|offset| offset >= HEAD || is_at(offset, b"PE\0\0"))
        {
            Self::Efi
        } else if [&b"<!doctype"[..], b"<html", b"<?xml", b"<head"].iter().any(|mark| text.starts_with(mark)) {
            Self::Html
        } else if [&b"\x1f\x8b"[..], b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh", b"070701", b"PK\x03\x04"]
            .iter()
            .any(|mark| head.starts_with(mark))
        {
            Self::Archive
        } else {
            Self::Unknown
        }
    }
}

fn pe_offset(head: &[u8]) -> Option<usize> {
    let bytes: [u8; 4] = head.get(PE_OFFSET..PE_OFFSET + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

impl Wanted {
    /// Whether a file that begins like this can be it.
    pub fn check(self, head: &[u8], from: &str) -> Result<(), WrongKind> {
        let found = Kind::of(head);
        let is_right = match self {
            Self::Script => found == Kind::Script,
            Self::Kernel => found == Kind::Kernel,
            Self::Efi => matches!(found, Kind::Efi | Kind::Kernel),
            // It may be compressed in any way, or not at all.
            Self::Initrd => !matches!(found, Kind::Html | Kind::Script),
        };
        if is_right {
            return Ok(());
        }
        let advice = match found {
            Kind::Html => "; that is mostly an error page: open the URL in a browser",
            Kind::Script => "; set format to Script",
            Kind::Kernel => "; set format to Kernel",
            Kind::Efi => "; set format to EFI",
            Kind::Archive | Kind::Unknown => "",
        };
        Err(WrongKind { from: from.to_owned(), found, wanted: self, advice })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Script => "an iPXE script",
            Self::Kernel => "a Linux kernel",
            Self::Efi => "an EFI program",
            Self::Html => "a web page",
            Self::Archive => "compressed data",
            Self::Unknown => "a file of unknown kind",
        })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Script => "an iPXE script, which begins with #!ipxe",
            Self::Kernel => "a Linux kernel for x86",
            Self::Initrd => "an initial RAM disk",
            Self::Efi => "an EFI program",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        for (offset, bytes) in parts {
            head[*offset..*offset + bytes.len()].copy_from_slice(bytes);
        }
        head
    }

    #[test]
    fn files_are_told_apart_by_their_first_bytes() {
        let kernel = with(&[(0, b"MZ"), (KERNEL_MARK, b"HdrS"), (PE_OFFSET, &[0x40]), (0x40, b"PE\0\0")]);
        let efi = with(&[(0, b"MZ"), (PE_OFFSET, &[0x80]), (0x80, b"PE\0\0")]);
        let far = with(&[(0, b"MZ"), (PE_OFFSET, &[0, 0x10])]);
        let table: [(&[u8], Kind); 12] = [
            (b"#!ipxe\nboot", Kind::Script),
            (&kernel, Kind::Kernel),
            (&efi, Kind::Efi),
            (&far, Kind::Efi),
            (&with(&[(0, b"MZ"), (PE_OFFSET, &[0x80])]), Kind::Unknown),
            (b"\n  <!DOCTYPE html>", Kind::Html),
            (b"<html lang=en>", Kind::Html),
            (b"\x1f\x8b\x08", Kind::Archive),
            (b"070701", Kind::Archive),
            (b"", Kind::Unknown),
            (b"MZ", Kind::Unknown),
            (b"\x7fELF", Kind::Unknown),
        ];
        for (head, kind) in table {
            assert_eq!(Kind::of(head), kind, "{:?}", head.get(..16));
        }
    }

    #[test]
    fn what_is_something_else_is_told_with_what_to_do() {
        let check = |wanted: Wanted, head: &[u8]| wanted.check(head, "http://i").map_err(|error| error.to_string());
        assert_eq!(
            check(Wanted::Script, b"<html>").unwrap_err(),
            "http://i sent a web page in place of an iPXE script, which begins with #!ipxe; that is mostly an error page: open the URL in a browser"
        );
        assert_eq!(
            check(Wanted::Kernel, b"#!ipxe\n").unwrap_err(),
            "http://i sent an iPXE script in place of a Linux kernel for x86; set format to Script"
        );
        assert!(check(Wanted::Efi, b"hello").is_err());
        assert!(check(Wanted::Initrd, b"\x1f\x8b").is_ok() && check(Wanted::Initrd, b"anything").is_ok());
        assert!(check(Wanted::Initrd, b"<html>").is_err());
        // Kernels with an EFI stub are EFI programs.
        assert!(check(Wanted::Efi, &with(&[(KERNEL_MARK, b"HdrS")])).is_ok());
    }
}
