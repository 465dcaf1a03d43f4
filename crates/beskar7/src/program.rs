//! What to type to start this program again.

use std::env;
use std::path::{Path, PathBuf};

/// The command that starts this very program: its name if the shell finds it, else its path. After `cargo run` that is
/// `target/debug/beskar7`.
pub(crate) fn name() -> String {
    let folder = env::current_dir().unwrap_or_default();
    env::current_exe().map_or_else(|_| "beskar7".to_owned(), |program| called(&program, &path(), &folder))
}

/// Whether the shell finds a command of that name.
pub(crate) fn is_on_path(name: &str) -> bool {
    path().iter().any(|folder| folder.join(name).is_file())
}

fn path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn called(program: &Path, path: &[PathBuf], folder: &Path) -> String {
    let name = program.file_name().unwrap_or_default();
    let found = path.iter().map(|folder| folder.join(name)).find(|found| found.is_file());
    let same = |found: &PathBuf| found.canonicalize().ok() == program.canonicalize().ok();
    match (found.filter(same), program.strip_prefix(folder)) {
        (Some(_), _) => name.to_string_lossy().into_owned(),
        (None, Ok(below)) if below.components().count() > 1 => below.display().to_string(),
        (None, _) => program.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_is_told_exists() {
        let folder = tempfile::tempdir().unwrap();
        let (debug, bin) = (folder.path().join("target/debug"), folder.path().join("bin"));
        let program = debug.join("beskar7");
        std::fs::create_dir_all(&debug).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(&program, "").unwrap();
        assert_eq!(called(&program, &[], folder.path()), "target/debug/beskar7");
        assert_eq!(called(&program, &[], Path::new("/elsewhere")), program.to_str().unwrap());
        assert_eq!(called(&program, std::slice::from_ref(&debug), folder.path()), "beskar7");
        // Another program of that name is found first.
        std::fs::write(bin.join("beskar7"), "").unwrap();
        assert_eq!(called(&program, &[bin, debug], folder.path()), "target/debug/beskar7");
    }
}
