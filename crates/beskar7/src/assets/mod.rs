//! `beskar7 assets`: boot files that are not ours. Their licences differ from ours, so they are never inside our binary.

mod apt;
mod check;
mod deb;
mod fetch;
mod source;
mod version;

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use clap::Subcommand;
use netboot::dhcp::BIOS_LOADER;

pub(crate) const ABOUT: &str = "\
Get and check the files that servers load first from the network.

Servers whose firmware is not iPXE load iPXE first, from the boot service of `run` and `standalone`. iPXE is not ours, \
and its licence is another one, so it is no part of this program: it comes from Debian's package ipxe.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Get iPXE out of Debian's package, on a machine with apt
  beskar7 assets fetch --into /var/lib/beskar7/boot-files

  # Without internet: out of a package that was brought here
  beskar7 assets fetch --into /var/lib/beskar7/boot-files --packages .

  # See which ways of booting can be served
  beskar7 assets check --boot-files /var/lib/beskar7/boot-files

  # Serve them
  beskar7 run --boot-files /var/lib/beskar7/boot-files";

/// More than any package or boot file has; what has more is not what it should be.
const LIMIT: u64 = 64 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take iPXE out of Debian's package
    #[command(long_about = fetch::ABOUT)]
    Fetch(fetch::Args),
    /// Show which ways of booting can be served
    #[command(long_about = check::ABOUT)]
    Check(check::Args),
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Fetch(args) => fetch::execute(args),
        Command::Check(args) => check::execute(args),
    }
}

/// Reads a file, unless it is larger than any that belongs here.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {} MiB", LIMIT >> 20)));
    }
    Ok(bytes)
}

/// What is wrong with a boot file of that name, if something is.
fn flaw(name: &str, bytes: &[u8]) -> Option<String> {
    /// What PE files for x86-64 give as their machine.
    const X86_64: u16 = 0x8664;
    if bytes.is_empty() {
        return Some("it is empty".to_owned());
    }
    match (name == BIOS_LOADER, machine(bytes)) {
        (true, None) | (false, Some(X86_64)) => None,
        (true, Some(_)) => Some("it is an EFI program, which BIOS cannot start".to_owned()),
        (false, Some(other)) => {
            Some(format!("it is an EFI program for another architecture than x86-64 (machine {other:#06x})"))
        }
        (false, None) => Some("it is no EFI program".to_owned()),
    }
}

/// For which machine a PE file is; `None` of other files.
fn machine(bytes: &[u8]) -> Option<u16> {
    let offset = bytes.starts_with(b"MZ").then(|| bytes.get(0x3c..0x40)).flatten()?;
    let offset = usize::try_from(u32::from_le_bytes(offset.try_into().ok()?)).ok()?;
    let machine = bytes.get(offset..)?.strip_prefix(b"PE\0\0")?.get(..2)?;
    Some(u16::from_le_bytes(machine.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use netboot::dhcp::UEFI_LOADER;

    use super::*;

    fn efi(machine: [u8; 2]) -> Vec<u8> {
        let mut bytes = b"MZ".to_vec();
        bytes.resize(0x3c, 0);
        bytes.extend([0x40, 0, 0, 0]);
        bytes.extend(b"PE\0\0");
        bytes.extend(machine);
        bytes
    }

    #[test]
    fn a_file_is_of_the_kind_that_its_name_promises() {
        let says = |name, bytes: &[u8]| flaw(name, bytes).unwrap_or_default();
        assert_eq!(says(UEFI_LOADER, &efi([0x64, 0x86])), "");
        assert_eq!(says(BIOS_LOADER, b"\xea\x05code"), "");
        assert!(says(BIOS_LOADER, &efi([0x64, 0x86])).contains("BIOS cannot start"));
        assert!(says(UEFI_LOADER, &efi([0x64, 0xaa])).contains("machine 0xaa64"));
        for name in [BIOS_LOADER, UEFI_LOADER] {
            assert_eq!(says(name, b""), "it is empty");
        }
        let whole = efi([0x64, 0x86]);
        for end in 1..whole.len() {
            assert_eq!(says(UEFI_LOADER, &whole[..end]), "it is no EFI program", "{end} bytes of it");
        }
        let mut astray = whole;
        astray[0x3c..0x40].fill(0xff);
        assert_eq!(says(UEFI_LOADER, &astray), "it is no EFI program");
    }
}
