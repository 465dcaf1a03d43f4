//! A disk cache of the user's images: the parts that were read.
//!
//! Fifty servers boot one image of a gigabyte: its server is asked for each byte once, and the fifty are served from here.
//!
//! - **What**: one version of one URL is one file. It has no name once it is open, so nothing is left behind when the process
//!   ends. Images whose server sends no version are not cached: two parts might not fit together.
//! - **How much**: the sizes of all images that are kept stay below a limit. The image that was unused for longest is
//!   removed first, but none that is being read. Without room, an image is served as if there were no cache.
//! - **When**: a part is fetched when the first reader needs it, with one request for all readers.
//! - **Trouble**: when the disk is full or broken, readers are served from the user's server.

mod extents;
mod stored;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::spawn_blocking;
use tokio_util::task::TaskTracker;

pub(super) use self::stored::{Found, Run, Stored, arrival};
use super::url::ImageUrl;
use super::version::Version;

const SUFFIX: &str = ".beskar7-image";
const NAMES: u32 = 100;

/// What all readers of kept images together may have in memory, in a buffer each.
const BUFFERS: usize = 4 * 1024 * 1024;
/// More do not make it faster.
const LARGEST_BUFFER: usize = 512 * 1024;
const SMALLEST_BUFFER: usize = 64 * 1024;

/// A folder with cached images.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
    shelf: Mutex<Shelf>,
    readers: AtomicUsize,
    /// Makes a file in the folder.
    make: fn(&Path) -> io::Result<File>,
    /// What is being fetched.
    pub(super) tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Shelf {
    images: Vec<Kept>,
    /// Counts uses.
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    url: ImageUrl,
    version: Version,
    stored: Arc<Stored>,
    /// Number of its last use.
    used: u64,
}

impl Cache {
    /// Enough for a few images of Linux distributions.
    pub const DEFAULT_LIMIT: u64 = 4 * 1024 * 1024 * 1024;

    /// Keeps up to `limit` bytes in a folder, which is made if it is not there; 0 keeps nothing. What an earlier process left there
    /// is removed.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        if limit > 0 {
            fs::create_dir_all(folder)?;
            remove_leftovers(folder)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            limit,
            shelf: Mutex::default(),
            readers: AtomicUsize::new(0),
            make: nameless_file,
            tasks: TaskTracker::new(),
        })
    }

    /// Where a version of an image is kept; none if there is no room for it.
    pub(super) async fn place(self: &Arc<Self>, url: &ImageUrl, version: &Version) -> Option<Arc<Stored>> {
        if !version.is_certain() || version.size() > self.limit {
            return None;
        }
        if let Some(stored) = self.shelf().find(url, version) {
            return Some(stored);
        }
        let (cache, url, version) = (self.clone(), url.clone(), version.clone());
        spawn_blocking(move || cache.add(url, version)).await.ok().flatten()
    }

    fn add(&self, url: ImageUrl, version: Version) -> Option<Arc<Stored>> {
        // Locked while the file is made, so that it is made once.
        let mut locked = self.shelf();
        if let Some(stored) = locked.find(&url, &version) {
            return Some(stored);
        }
        if !locked.make_room(version.size(), self.limit) {
            tracing::info!(origin = url.origin(), "no room to cache an ISO on disk; reading it from its server");
            return None;
        }
        let file = (self.make)(&self.folder)
            .inspect_err(
                |error| tracing::warn!(%error, "cannot create a cache file for an ISO; reading it from its server"),
            )
            .ok()?;
        let stored = Arc::new(Stored::new(file, version.size()));
        let used = locked.uses;
        locked.images.push(Kept { url, version, stored: stored.clone(), used });
        Some(stored)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reader as long as it lives.
    pub(super) fn reader(self: &Arc<Self>) -> Reader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        Reader(self.clone())
    }
}

impl Shelf {
    fn find(&mut self, url: &ImageUrl, version: &Version) -> Option<Arc<Stored>> {
        self.uses += 1;
        let kept = self.images.iter_mut().find(|kept| kept.url == *url && kept.version == *version)?;
        kept.used = self.uses;
        Some(kept.stored.clone())
    }

    /// Removes images that nobody reads, the longest unused first, if that makes enough room.
    fn make_room(&mut self, needed: u64, limit: u64) -> bool {
        let is_idle = |kept: &Kept| Arc::strong_count(&kept.stored) == 1;
        let busy: u64 = self.images.iter().filter(|kept| !is_idle(kept)).map(|kept| kept.stored.size()).sum();
        if busy.saturating_add(needed) > limit {
            return false;
        }
        self.images.sort_by_key(|kept| kept.used);
        let mut total: u64 = self.images.iter().map(|kept| kept.stored.size()).sum();
        self.images.retain(|kept| {
            let stays = !is_idle(kept) || total.saturating_add(needed) <= limit;
            if !stays {
                total -= kept.stored.size();
            }
            stays
        });
        true
    }
}

/// A reader of a cached image.
#[derive(Debug)]
pub(super) struct Reader(Arc<Cache>);

impl Reader {
    /// How much to read at a time now.
    pub(super) fn buffer(&self) -> usize {
        buffer_for(self.0.readers.load(Ordering::Relaxed))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Few readers get large buffers, many get small ones.
fn buffer_for(readers: usize) -> usize {
    let share = BUFFERS / readers.max(1);
    (share - share % SMALLEST_BUFFER).clamp(SMALLEST_BUFFER, LARGEST_BUFFER)
}

/// Only for us, because the way to an image may be a secret.
fn nameless_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    // Another process may create one here at the same time; the next name differs.
    let mut made = Err(io::Error::from(io::ErrorKind::AlreadyExists));
    for number in 0..NAMES {
        let path = folder.join(format!("{number}{SUFFIX}"));
        made = options.open(&path);
        match &made {
            Ok(_) => {
                remove(&path)?;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => break,
        }
    }
    made
}

fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(SUFFIX) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// If another process has removed it already, that counts as success.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
