//! How much work and memory an image may cost. Real ones stay far below; hostile ones get an error.

/// Bytes read from the source for a plan.
pub(crate) const FETCHED: u64 = 32 * 1024 * 1024;
/// Bytes of one read.
pub(crate) const READ: usize = 4 * 1024 * 1024;
/// Pages (of 2 KiB) that a plan may replace.
pub(crate) const WRITTEN_PAGES: usize = 4096;
/// Bytes that an image may grow by.
pub(crate) const GROWTH: u64 = 4 * 1024 * 1024;
/// Directories of one file system.
pub(crate) const DIRECTORIES: usize = 2048;
/// Bytes of all directories of one file system.
pub(crate) const ALL_DIRECTORIES: usize = 16 * 1024 * 1024;
/// How deep directories lie.
pub(crate) const DEPTH: usize = 8;
/// Bytes of one directory.
pub(crate) const DIRECTORY: u32 = 2 * 1024 * 1024;
/// Bytes of a file that may be a configuration; longer ones are none.
pub(crate) const CONFIGURATION: u32 = 256 * 1024;
/// Lines that start a kernel. Each may grow by as much as a kernel line takes.
pub(crate) const KERNEL_LINES: usize = 2048;
/// Bytes of all configurations of one file system.
pub(crate) const ALL_CONFIGURATIONS: usize = 8 * 1024 * 1024;
/// Configurations of one file system.
pub(crate) const CONFIGURATIONS: usize = 512;
/// Entries of the boot catalogue.
pub(crate) const BOOT_ENTRIES: usize = 64;
/// EFI file systems of one image.
pub(crate) const BOOT_IMAGES: usize = 8;
/// Bytes of a GPT's table.
pub(crate) const PARTITION_TABLE: usize = 64 * 1024;
/// EFI programs of one file system that are looked at.
pub(crate) const EFI_PROGRAMS: usize = 64;
