//! The plan: which bytes of an image are replaced, and which firmware boots the result.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, Stream};

use super::canvas::Canvas;
use super::config::Dialect;
use super::coverage::{self, EfiSide};
use super::edit::{self, Edits};
use super::el_torito::{self, Platform};
use super::fat::{self, Fat};
use super::overlay::{Overlay, Piece};
use super::source::{Source, SourceError};
use super::volume::Volume;
use super::{IsoError, Parameters, SECTOR, limits, partitions, tree};

/// How much of an image is in memory while it is streamed.
const CHUNK: u64 = 256 * 1024;

/// How an image is served: the original with a few ranges replaced, perhaps a little longer.
///
/// The same source bytes and parameters give equal plans, so any replica may serve any part of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    original: u64,
    overlay: Overlay,
    edited: Vec<EditedFile>,
    bios: bool,
    uefi: bool,
}

/// A configuration whose kernels get the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedFile {
    /// Where it is.
    pub place: Place,
    /// Its path there.
    pub path: String,
    /// The boot loader that reads it.
    pub dialect: Dialect,
    /// How many kernels it starts.
    pub kernel_lines: usize,
}

/// A file system of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The ISO's own.
    Iso,
    /// The FAT image that UEFI boots.
    EfiImage {
        /// Where it begins in the ISO.
        offset: u64,
    },
}

/// What starts the boot loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Firmware {
    /// PC BIOS, or UEFI's imitation of it.
    Bios,
    /// UEFI.
    Uefi,
}

impl Plan {
    /// Looks at an image and decides what to replace. Reads a few megabytes at most, mostly far less.
    pub async fn make<S: Source>(source: &S, parameters: &Parameters) -> Result<Self, IsoError> {
        let mut canvas = Canvas::new(source);
        let starts = partitions::starts(&mut canvas).await?;
        let volume = Volume::read(&mut canvas, &starts.others).await?;
        let boot_entries = match volume.boot_catalogue {
            Some(catalogue) => el_torito::boot_entries(&mut canvas, catalogue).await?,
            None => Vec::new(),
        };
        let mut images: Vec<u64> =
            boot_entries.iter().filter(|entry| entry.platform == Platform::Uefi).map(|entry| entry.offset).collect();
        images.extend(starts.efi);
        let mut seen = Vec::new();
        images.retain(|offset| {
            !seen.contains(offset) && {
                seen.push(*offset);
                true
            }
        });
        if images.len() > limits::BOOT_IMAGES {
            return Err(IsoError::TooMuch { what: "it has too many EFI boot images" });
        }

        let mut edits = Edits::default();
        let files = tree::boot_files(&mut canvas, &volume).await?;
        let moved = edit::edit_tree(&mut canvas, &files.configurations, parameters, &mut edits).await?;
        let mut programs = coverage::programs_of_tree(&mut canvas, &files.efi_programs).await?;
        let mut efi_sides = Vec::new();
        for offset in images {
            let Some(mut fat) = Fat::open(&mut canvas, offset).await? else { continue };
            let files = fat::boot_files(&mut canvas, &fat).await?;
            edit::edit_fat(&mut canvas, &mut fat, &files, parameters, &mut edits).await?;
            let side = EfiSide { offset, programs: coverage::programs_of_fat(&mut canvas, &fat, &files).await? };
            programs.extend(side.programs.iter().cloned());
            efi_sides.push(side);
        }

        let bios = match boot_entries.iter().find(|entry| entry.platform == Platform::Bios) {
            Some(entry) => coverage::bios(&mut canvas, entry.offset, &edits.files).await?,
            None => false,
        };
        let uefi = coverage::uefi(&efi_sides, &edits.files);
        if !bios && !uefi {
            return Err(coverage::nothing(&programs, edits.looked_at));
        }
        if let Some(end) = moved {
            volume.reach(&mut canvas, end).await?;
            partitions::follow_growth(&mut canvas, source.size()).await?;
        }
        if canvas.is_changed() {
            volume.forget_checksums(&mut canvas).await?;
        }
        Ok(Self { original: source.size(), overlay: canvas.finish().await?, edited: edits.files, bios, uefi })
    }

    /// How many bytes the rewritten image has.
    pub fn size(&self) -> u64 {
        self.overlay.size()
    }

    /// How many bytes the plan itself keeps in memory, about.
    pub fn weight(&self) -> usize {
        self.overlay.weight()
    }

    /// What was edited, for conditions and logs.
    pub fn edited(&self) -> &[EditedFile] {
        &self.edited
    }

    /// Whether a server with this firmware passes the parameters to its kernel. See the module for the rules.
    pub fn covers(&self, firmware: Firmware) -> bool {
        match firmware {
            Firmware::Bios => self.bios,
            Firmware::Uefi => self.uefi,
        }
    }

    /// What a range of the rewritten image is made of, for callers that can forward long ranges of the original.
    pub fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        self.overlay.pieces(range)
    }

    /// The bytes of a range, cut off at the end of the image. All of them are in memory: ask for little, or
    /// [`stream`](Self::stream).
    pub async fn read<S: Source>(&self, source: &S, range: Range<u64>) -> Result<Bytes, SourceError> {
        if source.size() != self.original {
            let why = format!("the ISO has changed: it had {} bytes and now has {}", self.original, source.size());
            return Err(SourceError { why, transient: false });
        }
        let mut bytes = BytesMut::new();
        for piece in self.pieces(range) {
            match piece {
                Piece::Original(range) => {
                    let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                    let read = source.read_at(range.start, len).await?;
                    if read.len() != len {
                        let why = format!("{} of {len} bytes came from {} on", read.len(), range.start);
                        return Err(SourceError { why, transient: true });
                    }
                    bytes.extend_from_slice(&read);
                }
                Piece::Replaced(ours) => bytes.extend_from_slice(&ours),
            }
        }
        Ok(bytes.freeze())
    }

    /// The bytes of a range, a quarter of a megabyte at a time.
    pub fn stream<S: Source + 'static>(
        self: Arc<Self>,
        source: Arc<S>,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, SourceError>> + Send + 'static {
        let end = range.end.min(self.size());
        stream::try_unfold((self, source, range.start), move |(plan, source, at)| async move {
            if at >= end {
                return Ok(None);
            }
            // Chunks end at round places, so that two readers ask the source for the same ranges.
            let until = (at - at % CHUNK + CHUNK).min(end);
            let bytes = plan.read(source.as_ref(), at..until).await?;
            Ok(Some((bytes, (plan, source, until))))
        })
    }
}

const _: () = assert!(CHUNK.is_multiple_of(SECTOR));
