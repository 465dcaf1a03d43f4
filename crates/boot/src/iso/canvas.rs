//! A working copy of an image while a plan is made: reads come from the source, writes stay in memory.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::overlay::Overlay;
use super::source::{Source, SourceError};
use super::{IsoError, limits};

const PAGE: u64 = 2048;
static ZEROS: [u8; 2048] = [0; 2048];

/// Sources answer one long read sooner than many short ones, and what belongs together lies together.
const BLOCK: u64 = 32 * 1024;
const CACHED_BLOCKS: usize = 64;

pub(crate) struct Canvas<'s, S> {
    source: &'s S,
    size: u64,
    written: BTreeMap<u64, Page>,
    cache: VecDeque<(u64, Bytes)>,
    fetched: u64,
}

struct Page {
    original: Bytes,
    now: Vec<u8>,
}

impl<'s, S: Source> Canvas<'s, S> {
    pub(crate) fn new(source: &'s S) -> Self {
        Self { source, size: source.size(), written: BTreeMap::new(), cache: VecDeque::new(), fetched: 0 }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Fails when the image ends earlier, or when the limits on work are reached.
    pub(crate) async fn read(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, IsoError> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.size);
        let end =
            end.ok_or_else(|| IsoError::malformed(format!("something is said to be at {offset}, beyond its end")))?;
        if len > limits::READ {
            return Err(IsoError::TooMuch { what: "a part of a file system is absurdly long" });
        }
        let mut bytes = Vec::with_capacity(len);
        let mut at = offset;
        while at < end {
            let page = at - at % PAGE;
            let original;
            let now: &[u8] = if let Some(page) = self.written.get(&page) {
                &page.now
            } else {
                original = self.original(page).await?;
                &original
            };
            let upto = end.min(page + PAGE);
            bytes.extend_from_slice(within(now, at - page, upto - page)?);
            at = upto;
        }
        Ok(bytes)
    }

    /// Fails when the image ends earlier, or when more is written than any configuration needs.
    pub(crate) async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), IsoError> {
        let mut at = offset;
        let mut bytes = bytes;
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.size) {
            return Err(IsoError::malformed(format!("something is said to be at {offset}, beyond its end")));
        }
        while !bytes.is_empty() {
            let number = at - at % PAGE;
            if !self.written.contains_key(&number) {
                if self.written.len() >= limits::WRITTEN_PAGES {
                    return Err(IsoError::TooMuch { what: "too much of it would have to be rewritten" });
                }
                let original = self.original(number).await?;
                self.written.insert(number, Page { now: original.to_vec(), original });
            }
            let taken = usize::try_from(number + PAGE - at).unwrap_or_default().min(bytes.len());
            let inside = usize::try_from(at - number).unwrap_or_default();
            if let Some(target) =
                self.written.get_mut(&number).and_then(|page| page.now.get_mut(inside..inside + taken))
            {
                target.copy_from_slice(&bytes[..taken]);
            }
            bytes = &bytes[taken..];
            at += taken as u64;
        }
        Ok(())
    }

    /// Adds zeros at the end.
    pub(crate) fn grow(&mut self, size: u64) -> Result<(), IsoError> {
        if size.saturating_sub(self.source.size()) > limits::GROWTH {
            return Err(IsoError::TooMuch { what: "its configurations would have to grow by megabytes" });
        }
        // Pages in memory are whole, also where the image used to end.
        self.size = self.size.max(size);
        Ok(())
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.size > self.source.size() || self.written.values().any(|page| page.original != page.now)
    }

    /// What has changed.
    pub(crate) async fn finish(mut self) -> Result<Overlay, IsoError> {
        let old = self.source.size();
        let mut page = old - old % PAGE;
        while self.size > old && page < self.size {
            // All behind the old end is ours, the zeros as well.
            let now = self.read(page, usize::try_from((self.size - page).min(PAGE)).unwrap_or_default()).await?;
            self.write(page, &now).await?;
            page += PAGE;
        }
        let ranges = self.written.iter().filter_map(|(offset, page)| page.changed(*offset, old, self.size)).collect();
        Ok(Overlay::new(self.size, ranges))
    }

    /// One page as the source has it, zeros behind its end.
    async fn original(&mut self, page: u64) -> Result<Bytes, IsoError> {
        let start = page - page % BLOCK;
        if start >= self.source.size() {
            return Ok(Bytes::from_static(&ZEROS));
        }
        if let Some(found) = self.cache.iter().position(|(offset, _)| *offset == start) {
            // The latest use goes last, the first of the queue is dropped.
            if let Some(block) = self.cache.remove(found) {
                self.cache.push_back(block);
            }
        } else {
            let len = (self.source.size() - start).min(BLOCK);
            self.fetched += len;
            if self.fetched > limits::FETCHED {
                return Err(IsoError::TooMuch { what: "too much of it would have to be read" });
            }
            let expected = usize::try_from(len).unwrap_or_default();
            let mut block = self.source.read_at(start, expected).await?.to_vec();
            if block.len() != expected {
                let why = format!("{} of {expected} bytes came from {start} on", block.len());
                return Err(SourceError { why, transient: true }.into());
            }
            block.resize(usize::try_from(BLOCK).unwrap_or_default(), 0);
            self.cache.push_back((start, block.into()));
            if self.cache.len() > CACHED_BLOCKS {
                self.cache.pop_front();
            }
        }
        let block = self.cache.back().map(|(_, block)| block.clone()).unwrap_or_default();
        let inside = within(&block, page - start, page - start + PAGE)?;
        Ok(block.slice_ref(inside))
    }
}

impl Page {
    /// From the first to the last byte that differs, or that the source does not have.
    fn changed(&self, offset: u64, old: u64, new: u64) -> Option<(u64, Vec<u8>)> {
        let clamp = |end: u64| usize::try_from(end.saturating_sub(offset).min(PAGE)).unwrap_or_default();
        let (old, new) = (clamp(old), clamp(new));
        let differs = |at: &usize| *at >= old || self.original.get(*at) != self.now.get(*at);
        let first = (0..new).find(differs)?;
        let last = (0..new).rev().find(differs)?;
        Some((offset + first as u64, self.now.get(first..=last)?.to_vec()))
    }
}

fn within(bytes: &[u8], start: u64, end: u64) -> Result<&[u8], IsoError> {
    let (start, end) = (usize::try_from(start).unwrap_or_default(), usize::try_from(end).unwrap_or_default());
    bytes.get(start..end).ok_or_else(|| IsoError::malformed("a page is cut off"))
}
