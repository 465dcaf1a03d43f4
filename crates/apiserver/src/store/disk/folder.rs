//! The few things that the store asks of a file system, so that tests can put one in its place that fails.

use std::fmt::Debug;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder. Names become durable with [`Folder::sync`], contents with [`File::sync`].
pub(in crate::store) trait Folder: Debug + Send + Sync {
    fn list(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// A new, empty file; one that was there is gone.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

/// A file.
pub(in crate::store) trait File: Debug + Send + Sync {
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
    /// The folder at a path. It is made if it is not there, for its owner alone.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self(path.to_owned()))
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

/// Takes the folder for this process until the result is dropped; `None` if another one has it.
pub(super) fn lock(path: &Path) -> io::Result<Option<fs::File>> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
