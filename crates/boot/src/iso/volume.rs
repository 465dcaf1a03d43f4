//! ISO 9660 volume descriptors: where the trees begin, how large the volume is, where the boot catalogue lies.
//!
//! Hybrid images may have two volumes: one that begins with the disk, and one that begins with the first partition, for systems
//! that mount that. Both name the same files, each counting from its own beginning.

use super::bytes_at::{both32, byte, le16, le32};
use super::canvas::Canvas;
use super::source::Source;
use super::{IsoError, SECTOR};

const FIRST_DESCRIPTOR: u64 = 16;
/// Real images have three or four.
const MOST_DESCRIPTORS: u64 = 32;

const SPACE_SIZE: u64 = 80;
/// A place for notes of programs: media checks keep their checksums here.
const APPLICATION_USE: u64 = 883;
const APPLICATION_USE_LEN: usize = 512;

/// What the descriptors say.
#[derive(Debug, Default)]
pub(crate) struct Volume {
    pub(crate) trees: Vec<Tree>,
    /// Where the El Torito boot catalogue lies, as a byte offset.
    pub(crate) boot_catalogue: Option<u64>,
}

/// One view of the files. Joliet and others have directories of their own, for the same extents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    /// Of the descriptor.
    offset: u64,
    /// Where the volume begins, which its block numbers count from.
    pub(crate) base: u64,
    pub(crate) root: Extent,
    pub(crate) names: Names,
}

/// How file names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// ASCII, perhaps with Rock Ridge beside it.
    Iso,
    /// Two bytes per letter.
    Joliet,
}

/// A range of the image that a directory record names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// In bytes, from the beginning of the image.
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl Volume {
    /// Reads the descriptors of the image, and of the volumes that begin at these places, if there are any.
    pub(crate) async fn read<S: Source>(canvas: &mut Canvas<'_, S>, others: &[u64]) -> Result<Self, IsoError> {
        let mut volume = Self::read_at(canvas, 0).await?;
        for base in others {
            match Self::read_at(canvas, *base).await {
                Ok(other) => volume.trees.extend(other.trees),
                Err(IsoError::NotIso { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(volume)
    }

    async fn read_at<S: Source>(canvas: &mut Canvas<'_, S>, base: u64) -> Result<Self, IsoError> {
        let mut volume = Self::default();
        let mut ended = false;
        for sector in FIRST_DESCRIPTOR..FIRST_DESCRIPTOR + MOST_DESCRIPTORS {
            let offset = base + sector * SECTOR;
            if offset + SECTOR > canvas.size() {
                break;
            }
            let descriptor = canvas.read(offset, 2048).await?;
            if descriptor.get(1..6) != Some(b"CD001") {
                break;
            }
            match byte(&descriptor, 0) {
                0 if descriptor.get(7..30) == Some(b"EL TORITO SPECIFICATION") => {
                    volume.boot_catalogue = Some(u64::from(le32(&descriptor, 71)) * SECTOR);
                }
                1 | 2 => volume.add_tree(offset, base, &descriptor, canvas.size())?,
                255 => {
                    ended = true;
                    break;
                }
                _ => {}
            }
        }
        match (volume.trees.is_empty(), ended) {
            (true, _) => Err(IsoError::NotIso { why: "it has no ISO 9660 volume descriptor" }),
            (false, false) => Err(IsoError::malformed("the list of volume descriptors does not end")),
            (false, true) => Ok(volume),
        }
    }

    fn add_tree(&mut self, offset: u64, base: u64, descriptor: &[u8], image: u64) -> Result<(), IsoError> {
        if u64::from(le16(descriptor, 128)) != SECTOR {
            return Err(IsoError::malformed("its blocks are not of 2048 bytes"));
        }
        let needed = base + u64::from(le32(descriptor, 80)) * SECTOR;
        if needed > image {
            return Err(IsoError::Truncated { what: "its file system", needed, size: image });
        }
        let is_joliet = matches!(descriptor.get(88..91), Some(b"%/@" | b"%/C" | b"%/E"));
        let root = Extent { offset: base + u64::from(le32(descriptor, 158)) * SECTOR, len: le32(descriptor, 166) };
        // Some descriptors are only other words for a tree that we have.
        if !self.trees.iter().any(|tree| tree.root == root) {
            let names = if is_joliet { Names::Joliet } else { Names::Iso };
            self.trees.push(Tree { offset, base, root, names });
        }
        Ok(())
    }

    /// Makes the volume reach as far as its files.
    pub(crate) async fn reach<S: Source>(&self, canvas: &mut Canvas<'_, S>, end: u64) -> Result<(), IsoError> {
        for tree in &self.trees {
            let sectors = u32::try_from((end - tree.base.min(end)).div_ceil(SECTOR));
            let sectors = sectors.map_err(|_| IsoError::TooMuch { what: "it is too long" })?;
            let size = le32(&canvas.read(tree.offset + SPACE_SIZE, 4).await?, 0);
            canvas.write(tree.offset + SPACE_SIZE, &both32(size.max(sectors))).await?;
        }
        Ok(())
    }

    /// Removes the checksum of the whole image, if there is one (isomd5sum, SUSE's tagmedia). It would be wrong from now on, and
    /// an installer that checks its medium would refuse to go on. Without one, the check reports that there is no checksum.
    pub(crate) async fn forget_checksums<S: Source>(&self, canvas: &mut Canvas<'_, S>) -> Result<(), IsoError> {
        for tree in &self.trees {
            let area = canvas.read(tree.offset + APPLICATION_USE, APPLICATION_USE_LEN).await?;
            let has = |mark: &[u8]| area.windows(mark.len()).any(|window| window == mark);
            let marks: [&[u8]; 7] =
                [b"ISO MD5SUM", b"md5sum=", b"sha1sum=", b"sha224sum=", b"sha256sum=", b"sha384sum=", b"sha512sum="];
            if marks.iter().any(|mark| has(mark)) {
                canvas.write(tree.offset + APPLICATION_USE, &[b' '; APPLICATION_USE_LEN]).await?;
            }
        }
        Ok(())
    }
}
