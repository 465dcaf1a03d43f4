//! The few things that the store asks of a file system, so that tests can put one in its place that fails.

use std::fmt::Debug;
use std::fs::{self, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder. Names become durable with [`Folder::sync`], contents with [`File::sync`].
pub(crate) trait Folder: Debug + Send + Sync {
    fn list(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// A new, empty file; one that was there is gone.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

/// A file.
pub(crate) trait File: Debug + Send + Sync {
    fn len(&self) -> io::Result<u64>;
    /// Reads as much as there is, up to the buffer's length.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

#[derive(Debug)]
pub(super) struct RealFolder(PathBuf);

impl RealFolder {
    /// The folder at a path. It is made if it is not there, for its owner alone; if it is there, it is closed for others.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        close_for_others(path, 0o700)?;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                close_for_others(&entry.path(), 0o600)?;
            }
        }
        Ok(Self(path.to_owned()))
    }
}

/// Takes all rights from everyone but the owner, if someone has any.
fn close_for_others(path: &Path, mode: u32) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.permissions().mode() & 0o077 != 0 => fs::set_permissions(path, Permissions::from_mode(mode)),
        // A file that another process has just removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        known => known.map(drop),
    }
}

impl Folder for RealFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(OpenOptions::new().read(true).write(true).open(self.0.join(name))?)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(RealFile(options.open(self.0.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.0)?.sync_all()
    }
}

#[derive(Debug)]
struct RealFile(fs::File);

impl File for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// What keeps other processes out as long as it lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: fs::File,
    _folder: fs::File,
}

/// Takes the folder for this process until the result is dropped; `None` if another one has it.
///
/// The folder itself is locked, which nobody can remove as long as the store is in it. The file is for older versions, which
/// lock only that, and for file systems that cannot lock folders.
pub(super) fn lock(path: &Path) -> io::Result<Option<Lock>> {
    let folder = fs::File::open(path)?;
    if let Err(TryLockError::WouldBlock) = folder.try_lock() {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock { _file: file, _folder: folder })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Keeps all files of a folder under other names too, in a new folder beside it. Removing them in the one leaves those in
/// the other.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = (1..=u32::MAX)
        .map(|number| path.with_file_name(format!("{name}-damaged-{number}")))
        .find(|path| !path.exists());
    let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
    fs::DirBuilder::new().mode(0o700).create(&aside)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let to = aside.join(entry.file_name());
        if entry.file_type()?.is_file() && entry.file_name() != "lock" && fs::hard_link(entry.path(), &to).is_err() {
            fs::copy(entry.path(), &to)?;
        }
    }
    fs::File::open(&aside)?.sync_all()?;
    Ok(aside)
}
