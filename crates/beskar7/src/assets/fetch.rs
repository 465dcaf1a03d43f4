//! `beskar7 assets fetch`: takes iPXE out of Debian's package.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use netboot::dhcp::LOADERS;
use tempfile::NamedTempFile;

use super::deb::Deb;
use super::source::{self, Source};
use super::{apt, flaw, read, version};
use crate::output;

pub(crate) const ABOUT: &str = "\
Take iPXE out of Debian's package ipxe, and write it into a folder.

Without --packages, apt downloads the package from where this machine gets its packages, and nothing is installed. apt \
checks it: its checksum is in the release file of that source, which is signed, and the keys that apt trusts came with \
this machine. Packages of sources that are not signed are refused. The lists of apt are used as they are: bring them up \
to date with `apt-get update`.

With --packages, the package is one that you brought. Then nothing vouches for it, and only its structure is checked: \
compare the checksum that is printed with that of your source.

Files of the same names are replaced, each in one step. A file SOURCE beside them says what they are.";

/// Debian's name for iPXE.
const PACKAGE: &str = "ipxe";
/// Where the package has boot files. The second is where links in the first lead.
const HOMES: [&str; 2] = ["usr/lib/ipxe", "boot"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to write the files into; it is made if there is none
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Folder with a file ipxe_*.deb, for machines without internet; of several, the newest version is taken
    #[arg(long, value_name = "DIR")]
    packages: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    let package = if let Some(folder) = &args.packages {
        let package = newest(folder)?;
        package.with_context(|| format!("--packages: there is no {PACKAGE}_*.deb in {}", folder.display()))?
    } else {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        apt::download(PACKAGE, folder.path())?;
        newest(folder.path())?.context("apt downloaded no package")?
    };
    let files = package.boot_files().with_context(|| package.name.clone())?;
    put(&args.into, &package.version, &files).with_context(|| format!("--into {}", args.into.display()))?;
    let names: Vec<_> = files.keys().copied().collect();
    output::line(&format!("{}: version {}, SHA-256 {}", package.name, package.version, source::sum(&package.bytes)))?;
    if args.packages.is_some() {
        output::line("Only its structure was checked: compare its SHA-256 with that of your source.")?;
    }
    output::line(&format!("Written into {}: {}", args.into.display(), names.join(", ")))
}

/// A package that says it is the one we want.
struct Package {
    name: String,
    version: String,
    bytes: Vec<u8>,
}

impl Package {
    fn read(path: &Path, name: String) -> anyhow::Result<Self> {
        let bytes = read(path)?;
        let fields = Deb::parse(&bytes)?.fields()?;
        let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
        if field("Package") != PACKAGE {
            bail!("it is not the package {PACKAGE}");
        }
        let version = field("Version").to_owned();
        if !version::is_valid(&version) {
            bail!("it does not say its version");
        }
        Ok(Self { name, version, bytes })
    }

    fn boot_files(&self) -> anyhow::Result<BTreeMap<&'static str, Vec<u8>>> {
        let path = |home: &str, name: &str| format!("{home}/{name}");
        let wanted: Vec<_> = LOADERS.iter().flat_map(|name| HOMES.map(|home| path(home, name))).collect();
        let wanted: Vec<_> = wanted.iter().map(String::as_str).collect();
        let mut found = Deb::parse(&self.bytes)?.pick(&wanted)?;
        let mut files = BTreeMap::new();
        for name in LOADERS {
            let bytes = HOMES.iter().find_map(|home| found.remove(&path(home, name)));
            let bytes = bytes.with_context(|| format!("it has no {}/{name}", HOMES[0]))?;
            if let Some(flaw) = flaw(name, &bytes) {
                bail!("its {name} cannot be used: {flaw}");
            }
            files.insert(name, bytes);
        }
        Ok(files)
    }
}

/// The newest of the packages in a folder.
fn newest(folder: &Path) -> anyhow::Result<Option<Package>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut newest: Option<Package> = None;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(&format!("{PACKAGE}_")) || entry.path().extension().is_none_or(|end| end != "deb") {
            continue;
        }
        let package = Package::read(&entry.path(), name.clone()).context(name)?;
        let is_newer = |known: &Package| version::compare(&package.version, &known.version) == Ordering::Greater;
        if newest.as_ref().is_none_or(is_newer) {
            newest = Some(package);
        }
    }
    Ok(newest)
}

/// Writes all files beside their places before the first of them takes its place.
fn put(folder: &Path, version: &str, files: &BTreeMap<&'static str, Vec<u8>>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).context("cannot make the folder")?;
    let note = Source::write(PACKAGE, version, files);
    let all = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).chain([(source::NAME, note.as_bytes())]);
    let mut staged = Vec::new();
    for (name, bytes) in all {
        let mut file = NamedTempFile::new_in(folder).context("cannot write there")?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        staged.push((name, file));
    }
    for (name, file) in staged {
        file.persist(folder.join(name)).with_context(|| format!("cannot replace {name}"))?;
    }
    Ok(())
}
