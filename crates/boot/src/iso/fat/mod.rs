//! FAT12, FAT16 and FAT32, as far as it takes to find a file and to let it grow.
//!
//! The crate `fatfs` could do more, but only over a blocking disk, with times of its own in directory entries, and on
//! images that it may trust. Here reads are awaited, identical inputs give identical bytes, and a loop of clusters is an error.

mod directory;
mod table;

pub(crate) use directory::{File, boot_files};

use super::bytes_at::{byte, le16, le32};
use super::canvas::Canvas;
use super::source::Source;
use super::{IsoError, limits};

/// A FAT file system in the image.
#[derive(Debug, Clone)]
pub(crate) struct Fat {
    /// Where it begins in the image. All other offsets count from there.
    pub(crate) offset: u64,
    width: Width,
    /// The length of a cluster.
    cluster: u64,
    /// One past the last cluster; the first is 2.
    end: u32,
    /// Where each copy of the table begins.
    tables: Vec<u64>,
    /// The copy that counts.
    active: usize,
    /// Where cluster 2 begins.
    data: u64,
    root: Directory,
    /// Where FAT32 keeps the number of free clusters.
    info: Option<u64>,
    /// No cluster below is free: we looked.
    next_free: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Fat12,
    Fat16,
    Fat32,
}

/// Where a directory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Directory {
    /// A range of its own.
    Fixed { offset: u64, len: u32 },
    /// A directory like any other.
    Cluster(u32),
}

impl Fat {
    /// Reads the boot sector. `None`: this is not FAT. The size comes from here, not from the boot catalogue.
    pub(crate) async fn open<S: Source>(canvas: &mut Canvas<'_, S>, offset: u64) -> Result<Option<Self>, IsoError> {
        if offset.saturating_add(512) > canvas.size() {
            return Ok(None);
        }
        let boot = canvas.read(offset, 512).await?;
        let Some((fat, size)) = Self::parse(&boot, offset) else { return Ok(None) };
        let needed = offset + size;
        if needed > canvas.size() {
            return Err(IsoError::Truncated { what: "its EFI boot image", needed, size: canvas.size() });
        }
        Ok(Some(fat))
    }

    fn parse(boot: &[u8], offset: u64) -> Option<(Self, u64)> {
        let sector = u64::from(le16(boot, 11));
        let cluster = u64::from(byte(boot, 13)) * sector;
        let reserved = u64::from(le16(boot, 14)) * sector;
        let copies = byte(boot, 16);
        let root_len = u64::from(le16(boot, 17)) * 32;
        let or_else = |short: u16, long: usize| if short == 0 { u64::from(le32(boot, long)) } else { u64::from(short) };
        let size = or_else(le16(boot, 19), 32) * sector;
        let table = or_else(le16(boot, 22), 36) * sector;
        let is_fat = boot.get(510..512) == Some(&[0x55, 0xaa])
            && matches!(sector, 512 | 1024 | 2048 | 4096)
            && byte(boot, 13).is_power_of_two()
            && (1..=4).contains(&copies)
            && reserved > 0
            && table > 0;
        if !is_fat {
            return None;
        }
        let root_offset = reserved + u64::from(copies) * table;
        let data = root_offset + root_len.next_multiple_of(sector);
        let clusters = u32::try_from(size.checked_sub(data)? / cluster).ok()?;
        let width = match clusters {
            0 => return None,
            1..4085 => Width::Fat12,
            4085..65_525 => Width::Fat16,
            _ => Width::Fat32,
        };
        // A table that is too short limits the clusters, whatever size is given.
        let entries = u32::try_from(table * 8 / width.bits()).unwrap_or(u32::MAX);
        let is_32 = width == Width::Fat32;
        let flags = le16(boot, 40);
        let info = u64::from(le16(boot, 48));
        let fat = Self {
            offset,
            width,
            cluster,
            end: entries.min(clusters.checked_add(2)?),
            tables: (0..u64::from(copies)).map(|copy| reserved + copy * table).collect(),
            active: if is_32 && flags & 0x80 != 0 { usize::from(flags & 0x0f) } else { 0 },
            data,
            root: if is_32 {
                Directory::Cluster(le32(boot, 44))
            } else {
                Directory::Fixed { offset: root_offset, len: u32::try_from(root_len).ok()? }
            },
            info: (is_32 && info != 0 && info != 0xffff).then_some(info * sector),
            next_free: 2,
        };
        (fat.active < fat.tables.len()).then_some((fat, size))
    }

    /// Where a cluster lies in the image.
    fn place(&self, cluster: u32) -> Result<u64, IsoError> {
        if (2..self.end).contains(&cluster) {
            Ok(self.offset + self.data + u64::from(cluster - 2) * self.cluster)
        } else {
            Err(IsoError::malformed(format!("cluster {cluster} of its EFI boot image does not exist")))
        }
    }

    /// The first bytes of a file.
    pub(crate) async fn read<S: Source>(
        &self,
        canvas: &mut Canvas<'_, S>,
        file: &File,
        most: u32,
    ) -> Result<Vec<u8>, IsoError> {
        let len = file.len.min(most);
        let mut bytes = Vec::new();
        for cluster in self.chain(canvas, file.first, self.clusters(len)).await? {
            let want = (u64::from(len) - bytes.len() as u64).min(self.cluster);
            bytes.extend(canvas.read(self.place(cluster)?, usize::try_from(want).unwrap_or_default()).await?);
        }
        if bytes.len() != len as usize {
            return Err(IsoError::malformed(format!("{} in its EFI boot image is shorter than said", file.path)));
        }
        Ok(bytes)
    }

    /// Room for a file in the clusters that it has.
    pub(crate) fn room(&self, file: &File) -> usize {
        usize::try_from(u64::from(file.len).next_multiple_of(self.cluster)).unwrap_or(usize::MAX)
    }

    /// Writes new content, into more clusters if need be.
    pub(crate) async fn replace<S: Source>(
        &mut self,
        canvas: &mut Canvas<'_, S>,
        file: &File,
        content: &[u8],
    ) -> Result<(), IsoError> {
        let mut content = content.to_vec();
        let has = self.clusters(file.len);
        // A chain must be as long as its file. Empty lines are simpler than a shorter chain.
        let shortest = usize::try_from((has.saturating_sub(1)) * self.cluster + 1).unwrap_or_default();
        content.resize(content.len().max(shortest), b'\n');
        let len = u32::try_from(content.len()).ok().filter(|len| *len <= 2 * limits::CONFIGURATION);
        let len = len.ok_or(IsoError::TooMuch { what: "a configuration is too long" })?;

        let mut chain = self.chain(canvas, file.first, has).await?;
        let missing = self.clusters(len).saturating_sub(chain.len() as u64);
        self.extend(canvas, &mut chain, missing, &file.path).await?;
        content.resize(chain.len() * usize::try_from(self.cluster).unwrap_or_default(), 0);
        for (cluster, bytes) in chain.iter().zip(content.chunks(usize::try_from(self.cluster).unwrap_or(1).max(1))) {
            canvas.write(self.place(*cluster)?, bytes).await?;
        }
        canvas.write(file.entry + directory::LEN, &len.to_le_bytes()).await
    }

    fn clusters(&self, len: u32) -> u64 {
        u64::from(len).div_ceil(self.cluster)
    }
}

impl Width {
    fn bits(self) -> u64 {
        match self {
            Self::Fat12 => 12,
            Self::Fat16 => 16,
            Self::Fat32 => 32,
        }
    }
}
