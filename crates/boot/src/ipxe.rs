//! The scripts that tell iPXE what to boot.
//!
//! Each ends with something that the server can go on with: it tries again, or leaves the boot to the firmware, which goes to the next
//! device.

use std::fmt::Write as _;

use crate::links::Links;

/// What a script begins with. Anything else is no script.
pub const MAGIC: &str = "#!ipxe\n";
/// How long before a server asks again, in seconds.
const PAUSE: u32 = 10;
/// How often a server asks before it leaves the boot to the firmware.
const TRIES: usize = 3;

/// A file that a script fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What it is called in the script.
    pub name: String,
    /// Where it is.
    pub url: String,
}

/// The script that every server starts with: it asks again as who it is. The card that it has booted from names it.
pub fn entrance(links: &Links) -> String {
    again_and_again(&links.script("${netX/mac:hexhyp}", "${uuid}"))
}

/// Leaves the boot to the firmware. UEFI takes success for the end of all boots.
pub fn local(why: &str) -> String {
    format!("{MAGIC}echo {}\niseq ${{platform}} efi && exit 1 || exit 0\n", plain(why))
}

/// Waits, and asks again: what there is to boot cannot be told now.
pub fn wait(why: &str, again: &str) -> String {
    format!("{MAGIC}echo {}\nsleep {PAUSE}\n{}", plain(why), chain(again))
}

/// Boots a Linux kernel.
pub fn kernel(kernel: &Fetched, initrds: &[Fetched], parameters: &str, again: &str) -> String {
    let mut script = format!("{MAGIC}imgfree\nkernel --name {} {}", kernel.name, kernel.url);
    for initrd in initrds {
        // UEFI finds them by these words only; for others they mean nothing.
        let _ = write!(script, " initrd={}", initrd.name);
    }
    if !parameters.is_empty() {
        let _ = write!(script, " {parameters}");
    }
    script.push_str(" || goto failed\n");
    for initrd in initrds {
        let _ = writeln!(script, "initrd --name {} {} || goto failed", initrd.name, initrd.url);
    }
    script + &boot(again)
}

/// Boots an EFI program. A unified kernel image without parameters uses its own command line.
pub fn efi(image: &Fetched, parameters: &str, again: &str) -> String {
    let parameters = if parameters.is_empty() { String::new() } else { format!(" {parameters}") };
    let needs = "iseq ${platform} efi || goto bios\n";
    let bios = ":bios\necho This server boots by BIOS, and what it is to boot needs UEFI.\nexit 0\n";
    format!(
        "{MAGIC}{needs}imgfree\nkernel --name {} {}{parameters} || goto failed\n{}{bios}",
        image.name,
        image.url,
        boot(again)
    )
}

/// Runs a script of the user. What it may want to know is in variables.
pub fn script(url: &str, variables: &[(&str, String)], again: &str) -> String {
    let mut script = MAGIC.to_owned();
    for (name, value) in variables {
        let _ = writeln!(script, "set {name} {value}");
    }
    let _ = writeln!(script, "imgfree\nchain --replace {url} || goto failed");
    script + &failed(again)
}

fn boot(again: &str) -> String {
    format!("boot || goto failed\n{}", failed(again))
}

fn failed(again: &str) -> String {
    format!(
        ":failed\necho This could not be booted; it is tried again in {PAUSE} s.\nsleep {PAUSE}\nimgfree\n{}",
        chain(again)
    )
}

/// A server that reaches nobody must not stay there for ever: the firmware tries its next device.
fn chain(url: &str) -> String {
    format!("chain --replace {url} || iseq ${{platform}} efi && exit 1 || exit 0\n")
}

fn again_and_again(url: &str) -> String {
    let tries = format!("chain --replace {url} || sleep {PAUSE}\n").repeat(TRIES);
    format!("{MAGIC}{tries}echo The boot service does not answer.\niseq ${{platform}} efi && exit 1 || exit 0\n")
}

/// Text for the console: a line without anything that iPXE gives a meaning to.
fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() || "$&|;\"'\\".contains(char) { ' ' } else { char }).collect()
}
