//! Writes the CRDs into a folder, one file each: `make manifests`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use api::crd;

fn main() -> io::Result<()> {
    let folder: PathBuf = env::args_os().nth(1).map_or_else(|| "config/crd".into(), PathBuf::from);
    write(&folder, crd::files(&crd::crds()))?;
    write(&folder.join("metal3"), crd::files(&crd::metal3_crds()))?;
    write(&folder.join("ironcore"), crd::files(&crd::ironcore_crds()))
}

fn write(folder: &Path, files: Vec<(String, String)>) -> io::Result<()> {
    for (name, content) in files {
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}
