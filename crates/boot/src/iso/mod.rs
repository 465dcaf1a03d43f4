//! The user's ISO, served with kernel parameters written into it on the fly.
//!
//! A [`Plan`] is made once from an image and [`Parameters`]. It is small, and a pure function of both, so every replica
//! that makes it serves the same bytes, and any range of them with constant memory.
//!
//! # What is edited
//!
//! Configurations of GRUB, isolinux/syslinux and systemd-boot, wherever boot loaders look for them: in `/`, `/boot`, `/EFI`,
//! `/isolinux`, `/syslinux`, `/grub*` and `/loader` of the ISO 9660 tree and of the FAT images that UEFI boots (El Torito
//! entries and EFI system partitions). Every line that starts a kernel gets the parameters, whichever entry is the default.
//!
//! # How a file grows
//!
//! 1. Into the rest of its last sector (ISO) or cluster (FAT), which no other file uses.
//! 2. If that is too small, comments, empty lines and indentation are dropped.
//! 3. If that is not enough, a file in a FAT image gets free clusters, and a file in the ISO moves behind the end of the image.
//!    Then the volume grows, a GPT's backup moves to the new end, and the ISO's own partition grows along.
//!
//! Directory records are rewritten in all trees (ISO 9660, Joliet, and the second volume that hybrid images have in their first
//! partition) and for all names of a file in the boot directories. Names elsewhere keep the old length; no boot loader reads
//! those. Nothing else moves, so what refers to places by number (isolinux's boot info table and its checksum, isohybrid's MBR,
//! the boot catalogue) stays true. HFS+ and Apple's partition map, which some images have for old Macs, are not touched.
//!
//! The ISO's own partition does not grow when it would then cover another one, because firmware skips partitions that overlap. A
//! moved file is then found on a CD and on a whole disk, but not by a system that mounts only that partition.
//!
//! A checksum of the whole medium in the volume descriptor (isomd5sum, SUSE's tagmedia) would be wrong, so it is blanked: a media
//! check then reports that there is no checksum. Lists of checksums that are files of the image (`md5sum.txt`) are not touched:
//! an installer that verifies its own boot menu by them will complain.
//!
//! # Which firmware is covered
//!
//! An ISO boots in two ways, and only one of them may lead to an edited file. [`Plan::covers`] returns which:
//!
//! - **BIOS**: the boot entry for BIOS is isolinux (it says so) and an edited syslinux file is in the ISO, or it is GRUB (its CD
//!   boot sector says so) and an edited GRUB file is; an unknown loader counts with either.
//! - **UEFI**: each FAT image with a removable loader (`/EFI/BOOT/BOOT*.EFI`) must be covered. The loader is identified by
//!   the sections of its file; behind shim, the program beside it counts.
//!   - GRUB: an edited GRUB file is in the same image or in the ISO. Its embedded or FAT-side configuration usually does nothing
//!     but search the ISO for `/boot/grub/grub.cfg`; kernel lines of its own in a file are edited as well. A GRUB whose *embedded*
//!     script boots something else cannot be detected.
//!   - systemd-boot: an edited entry is in the same image, and no unified kernel image stands beside it in the menu.
//!   - a unified kernel image: never.
//!   - anything else: an edited file is in the same image.
//!
//! `loopback.cfg` is edited but does not count: only a GRUB on another medium reads it. An image that covers no firmware has no
//! plan, but an error.
//!
//! # Hostile images
//!
//! Everything that is read is checked, and everything that is repeated is counted (`limits`). There is no recursion, and no
//! allocation by a number from an image.

mod bytes_at;
mod canvas;
mod config;
mod coverage;
mod directory;
mod edit;
mod efi;
mod el_torito;
mod error;
mod fat;
mod limits;
mod overlay;
mod parameters;
mod partitions;
mod places;
mod plan;
mod source;
mod tree;
mod volume;

pub use config::Dialect;
pub use error::IsoError;
pub use overlay::Piece;
pub use parameters::Parameters;
pub use plan::{EditedFile, Firmware, Place, Plan};
pub use source::{Source, SourceError};

/// The block of ISO 9660, in bytes.
const SECTOR: u64 = 2048;
