//! Writes the CRDs into a folder, one file each: `make manifests`.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder: PathBuf = env::args_os().nth(1).map_or_else(|| "config/crd".into(), PathBuf::from);
    for (name, content) in api::crd_files() {
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}
