//! A disk that can be full, fail, and lose its power: then everything that was not synced is there, or is not, sector by
//! sector.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::disk::{self, File, Folder, Trouble};
use super::*;

const SECTOR: usize = 512;

#[derive(Debug, Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    names: BTreeMap<String, Arc<Mutex<Content>>>,
    /// Changes of names that were not synced yet, and the names before them.
    durable_names: BTreeMap<String, Arc<Mutex<Content>>>,
    name_changes: Vec<BTreeMap<String, Arc<Mutex<Content>>>>,
    /// The power goes after this many more changes.
    power: Option<u64>,
    capacity: Option<usize>,
    syncs_fail: bool,
    pub(super) syncs: u64,
}

#[derive(Debug, Default, Clone)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Changed>,
}

#[derive(Debug, Clone)]
enum Changed {
    Bytes { offset: usize, bytes: Vec<u8> },
    Len(usize),
}

impl Disk {
    pub(super) fn open(&self, options: Options) -> Result<Store, Trouble> {
        let (visible, disk) = disk::open_folder(Arc::new(self.clone()), options, ())?;
        Ok(Store { visible, writer: Writer::Disk(Arc::new(disk)) })
    }

    pub(super) fn lose_power_after(&self, changes: u64) {
        self.inner().power = Some(changes);
    }

    pub(super) fn has_power(&self) -> bool {
        self.inner().power != Some(0)
    }

    pub(super) fn limit(&self, capacity: Option<usize>) {
        self.inner().capacity = capacity;
    }

    pub(super) fn fail_syncs(&self, fail: bool) {
        self.inner().syncs_fail = fail;
    }

    pub(super) fn syncs(&self) -> u64 {
        self.inner().syncs
    }

    pub(super) fn used(&self) -> usize {
        self.inner().used()
    }

    pub(super) fn files(&self) -> Vec<String> {
        self.inner().names.keys().cloned().collect()
    }

    /// Changes a bit of a file, as disks do over the years.
    pub(super) fn rot(&self, name: &str, at: impl FnOnce(usize) -> usize) {
        let inner = self.inner();
        let mut content = inner.names[name].lock().unwrap();
        let at = at(content.now.len());
        content.now[at] ^= 4;
        content.durable = content.now.clone();
    }

    /// Changes some bits of a byte of a file.
    pub(super) fn change(&self, name: &str, at: usize, bits: u8) {
        let inner = self.inner();
        let mut content = inner.names[name].lock().unwrap();
        content.now[at] ^= bits;
        content.durable = content.now.clone();
    }

    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        self.inner().names[name].lock().unwrap().now.clone()
    }

    /// Another disk with the same files.
    pub(super) fn copy(&self) -> Self {
        let copy = Self::default();
        for name in self.files() {
            copy.replace(&name, &self.content(&name));
        }
        copy
    }

    pub(super) fn repair(&self) -> Result<Repair, Trouble> {
        let folder: Arc<dyn Folder> = Arc::new(self.clone());
        disk::repair_folder(&folder, SMALL.segment_bytes)
    }

    pub(super) fn remove_file(&self, name: &str) {
        self.inner().names.remove(name).unwrap();
    }

    pub(super) fn replace(&self, name: &str, bytes: &[u8]) {
        let content = Content { now: bytes.to_vec(), durable: bytes.to_vec(), changes: Vec::new() };
        self.inner().names.insert(name.to_owned(), Arc::new(Mutex::new(content)));
    }

    /// What is on the disk when the power is back. The old one stays off.
    pub(super) fn after_power_cut(&self, random: &mut fastrand::Rng) -> Self {
        let mut inner = self.inner();
        inner.power = Some(0);
        let kept = random.usize(0..=inner.name_changes.len());
        let names = match kept {
            0 => &inner.durable_names,
            kept => &inner.name_changes[kept - 1],
        };
        let survives = [0.0, 0.5, 0.9, 1.0][random.usize(0..4)];
        let names: BTreeMap<_, _> = names
            .iter()
            .map(|(name, content)| {
                let content = content.lock().unwrap().after_power_cut(random, survives);
                (name.clone(), Arc::new(Mutex::new(content)))
            })
            .collect();
        Self(Arc::new(Mutex::new(Inner { durable_names: names.clone(), names, ..Inner::default() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

impl Content {
    fn after_power_cut(&self, random: &mut fastrand::Rng, survives: f64) -> Self {
        let mut durable = self.durable.clone();
        for change in &self.changes {
            match change {
                Changed::Len(len) if random.f64() < survives => durable.resize(*len, 0),
                Changed::Len(_) => {}
                Changed::Bytes { offset, bytes } => {
                    // Sectors are aligned in the file.
                    let mut at = *offset;
                    while at < offset + bytes.len() {
                        let end = ((at / SECTOR + 1) * SECTOR).min(offset + bytes.len());
                        if random.f64() < survives {
                            durable.resize(durable.len().max(end), 0);
                            durable[at..end].copy_from_slice(&bytes[at - offset..end - offset]);
                        }
                        at = end;
                    }
                }
            }
        }
        Self { now: durable.clone(), durable, changes: Vec::new() }
    }
}

impl Inner {
    fn change(&mut self) -> io::Result<()> {
        match &mut self.power {
            Some(0) => return Err(io::Error::other("no power")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn used(&self) -> usize {
        self.names.values().map(|content| content.lock().unwrap().now.len()).sum()
    }

    fn rename(&mut self, change: impl FnOnce(&mut BTreeMap<String, Arc<Mutex<Content>>>)) -> io::Result<()> {
        self.change()?;
        change(&mut self.names);
        self.name_changes.push(self.names.clone());
        Ok(())
    }
}

impl Folder for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let content = self.inner().names.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile { disk: self.clone(), content }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let content = Arc::<Mutex<Content>>::default();
        self.inner().rename(|names| drop(names.insert(name.to_owned(), content.clone())))?;
        Ok(Arc::new(SimFile { disk: self.clone(), content }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner().rename(|names| {
            let content = names.remove(from).unwrap();
            names.insert(to.to_owned(), content);
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner().rename(|names| drop(names.remove(name)))
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.change()?;
        inner.durable_names = inner.names.clone();
        inner.name_changes.clear();
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    disk: Disk,
    content: Arc<Mutex<Content>>,
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().unwrap().now.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.content.lock().unwrap();
        let rest = content.now.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.disk.inner();
        inner.change()?;
        let offset = usize::try_from(offset).unwrap();
        let free = inner.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(inner.used()));
        let mut content = self.content.lock().unwrap();
        // Like a real one, a full disk takes what fits.
        let fits = bytes.len().min((content.now.len() - offset.min(content.now.len())).saturating_add(free));
        let end = offset + fits;
        let len = content.now.len().max(end);
        content.now.resize(len, 0);
        content.now[offset..end].copy_from_slice(&bytes[..fits]);
        content.changes.push(Changed::Bytes { offset, bytes: bytes[..fits].to_vec() });
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.inner().change()?;
        let len = usize::try_from(len).unwrap();
        let mut content = self.content.lock().unwrap();
        content.now.resize(len, 0);
        content.changes.push(Changed::Len(len));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.inner();
        inner.change()?;
        if inner.syncs_fail {
            return Err(io::Error::other("the disk is on fire"));
        }
        inner.syncs += 1;
        let mut content = self.content.lock().unwrap();
        content.durable = content.now.clone();
        content.changes.clear();
        Ok(())
    }
}
