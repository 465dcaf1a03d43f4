//! Files that only their owner may read, written whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::TlsError;

/// Makes the folder, or closes it for others if it is there.
pub(super) fn private_folder(path: &Path) -> Result<(), TlsError> {
    let made = match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o700)),
        error => error,
    };
    made.map_err(|why| failed("make", path, why))
}

/// The text of a file; `None` if there is no such file. Closes the file for others if it was open.
pub(super) fn read_private(path: &Path) -> Result<Option<String>, TlsError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Some(String::new())),
        Err(why) => return Err(failed("read", path, why)),
    };
    if fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0) {
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|why| failed("write", path, why))?;
    }
    Ok(Some(text))
}

/// Replaces a file by one that only its owner may read: after a crash it is the old or the new one, whole.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), TlsError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = folder.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        // What a crashed process of the same number left behind may have another mode.
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        File::open(&folder)?.sync_all()
    })();
    written.map_err(|why| {
        let _ = fs::remove_file(&fresh);
        failed("write", path, why)
    })
}

fn failed(what: &'static str, path: &Path, why: io::Error) -> TlsError {
    TlsError::File { what, path: path.to_owned(), why }
}
