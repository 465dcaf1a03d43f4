//! `beskar7 assets check`: which ways of booting can be served.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::bail;
use netboot::dhcp::{BIOS_LOADER, FULL_UEFI_LOADER, UEFI_LOADER};

use super::source::{Source, sum};
use super::{flaw, read};
use crate::output::{self, Paper};
use crate::table::{self, Cell, Column, Tone};

pub(crate) const ABOUT: &str = "\
Show which ways of booting can be served with the boot files of a folder, and what is missing for the others.

It fails if a way of booting cannot be served. ipxe.efi is for servers that you send to it yourself, so it may be missing.";

/// Ways of booting, the file that each begins with, and whether servers are sent there without being told to.
const WAYS: [(&str, &str, bool); 4] = [
    ("BIOS by PXE", BIOS_LOADER, true),
    ("UEFI by PXE", UEFI_LOADER, true),
    ("UEFI HTTP", UEFI_LOADER, true),
    ("UEFI with iPXE's drivers", FULL_UEFI_LOADER, false),
];

const COLUMNS: [Column; 5] = [
    Column { title: "WAY", spare: 0 },
    Column { title: "FILE", spare: 0 },
    Column { title: "STATE", spare: 0 },
    Column { title: "VERSION", spare: 1 },
    Column { title: "PROBLEM", spare: 0 },
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder with the boot files, as for `run` and `standalone`
    #[arg(long, value_name = "DIR", default_value = "/usr/lib/ipxe", env = "BESKAR7_BOOT_FILES", hide_env = true)]
    boot_files: PathBuf,
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    let folder = &args.boot_files;
    let source = Source::of(folder);
    let mut broken = 0;
    let rows = WAYS.map(|(way, name, needed)| {
        let (state, version, problem) = match look(folder, name, &source) {
            Ok(known) => ("ok", source.version.clone().filter(|_| known), None),
            Err(Problem::Missing) => ("missing", None, None),
            Err(Problem::Unusable(why)) => ("unusable", None, Some(why)),
        };
        let tone = (state != "ok").then_some(if needed { Tone::Bad } else { Tone::Odd });
        broken += usize::from(needed && tone.is_some());
        let (version, problem) = (version.unwrap_or_default(), problem.unwrap_or_default());
        vec![way.into(), name.into(), Cell::toned(state, tone), version.into(), problem.into()]
    });
    output::print(&table::render(&COLUMNS, &rows, Paper::stdout()))?;
    if broken > 0 {
        bail!(
            "{broken} of {} ways of booting cannot be served with {}: get the files with `beskar7 assets fetch --into DIR`, or install Debian's package ipxe and name /usr/lib/ipxe; then name the folder with --boot-files",
            WAYS.iter().filter(|(.., needed)| *needed).count(),
            folder.display()
        );
    }
    Ok(())
}

enum Problem {
    Missing,
    Unusable(String),
}

/// Looks at one file. Whether it is the one that the note beside it tells of.
fn look(folder: &Path, name: &str, source: &Source) -> Result<bool, Problem> {
    let bytes = read(&folder.join(name)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Problem::Missing,
        _ => Problem::Unusable(format!("it cannot be read: {error}")),
    })?;
    if let Some(flaw) = flaw(name, &bytes) {
        return Err(Problem::Unusable(flaw));
    }
    match source.sums.get(name) {
        None => Ok(false),
        Some(known) if known.eq_ignore_ascii_case(&sum(&bytes)) => Ok(true),
        Some(_) => {
            Err(Problem::Unusable("it is not the file that SOURCE tells of: it was changed or damaged".to_owned()))
        }
    }
}
