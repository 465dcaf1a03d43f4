//! Whether a firmware ends up at a kernel that gets the parameters. The rules are in the documentation of [`super`].

use super::canvas::Canvas;
use super::config::Dialect;
use super::efi::{self, Program};
use super::fat::{self, Fat};
use super::places::{self, EfiPlace};
use super::plan::{EditedFile, Place};
use super::source::Source;
use super::{IsoError, limits, tree};

/// An EFI program and what it is.
#[derive(Debug, Clone)]
pub(crate) struct EfiProgram {
    path: String,
    place: EfiPlace,
    program: Program,
}

/// A FAT image that UEFI may boot.
#[derive(Debug)]
pub(crate) struct EfiSide {
    pub(crate) offset: u64,
    pub(crate) programs: Vec<EfiProgram>,
}

/// How much of a BIOS boot image is read: isolinux has its name in the first few kilobytes.
const BIOS_IMAGE: u64 = 32 * 1024;

pub(crate) async fn programs_of_tree<S: Source>(
    canvas: &mut Canvas<'_, S>,
    files: &[tree::File],
) -> Result<Vec<EfiProgram>, IsoError> {
    let mut programs = Vec::new();
    for file in files.iter().take(limits::EFI_PROGRAMS) {
        let headers = canvas.read(file.extent.offset, file.extent.len.min(efi::HEADERS) as usize).await?;
        programs.extend(EfiProgram::new(&file.path, &headers));
    }
    Ok(programs)
}

pub(crate) async fn programs_of_fat<S: Source>(
    canvas: &mut Canvas<'_, S>,
    fat: &Fat,
    files: &[fat::File],
) -> Result<Vec<EfiProgram>, IsoError> {
    let mut programs = Vec::new();
    for file in files.iter().filter(|file| places::efi_place(&file.path).is_some()).take(limits::EFI_PROGRAMS) {
        programs.extend(EfiProgram::new(&file.path, &fat.read(canvas, file, efi::HEADERS).await?));
    }
    Ok(programs)
}

/// Whether the boot image for BIOS reads a configuration that was edited.
pub(crate) async fn bios<S: Source>(
    canvas: &mut Canvas<'_, S>,
    offset: u64,
    edited: &[EditedFile],
) -> Result<bool, IsoError> {
    let len = canvas.size().saturating_sub(offset).min(BIOS_IMAGE);
    let image = canvas.read(offset, usize::try_from(len).unwrap_or_default()).await?;
    let says = |mark: &[u8]| image.windows(mark.len()).any(|window| window == mark);
    let (isolinux, grub) = (says(b"ISOLINUX"), says(b"cdrom read fails"));
    let reads = |dialect| match dialect {
        Dialect::Syslinux => isolinux || !grub,
        Dialect::Grub => grub || !isolinux,
        Dialect::SystemdBoot => false,
    };
    Ok(edited
        .iter()
        .any(|file| file.place == Place::Iso && reads(file.dialect) && !places::is_for_loopback(&file.path)))
}

/// Whether every EFI image that can be booted reads a configuration that was edited.
pub(crate) fn uefi(sides: &[EfiSide], edited: &[EditedFile]) -> bool {
    let mut loaders = sides.iter().flat_map(|side| side.removable().map(move |loader| (side, loader))).peekable();
    loaders.peek().is_some() && loaders.all(|(side, loader)| side.is_covered(loader, edited))
}

/// Why no firmware is covered.
pub(crate) fn nothing(programs: &[EfiProgram], configurations: usize) -> IsoError {
    match programs.iter().find(|program| program.program == Program::UnifiedKernelImage) {
        Some(image) => IsoError::OnlyUnifiedKernelImage { path: image.path.clone() },
        None => IsoError::NoBootLoader { configurations },
    }
}

impl EfiProgram {
    fn new(path: &str, headers: &[u8]) -> Option<Self> {
        let place = places::efi_place(path)?;
        Some(Self { path: path.to_owned(), place, program: efi::program(headers) })
    }
}

impl EfiSide {
    fn removable(&self) -> impl Iterator<Item = &EfiProgram> {
        self.programs.iter().filter(|program| program.place == EfiPlace::Removable)
    }

    fn is_covered(&self, loader: &EfiProgram, edited: &[EditedFile]) -> bool {
        let here = |file: &&EditedFile| file.place == Place::EfiImage { offset: self.offset };
        match self.behind_shim(loader) {
            Program::UnifiedKernelImage => false,
            Program::Grub => edited
                .iter()
                .filter(|file| here(file) || file.place == Place::Iso)
                .any(|file| file.dialect == Dialect::Grub && !places::is_for_loopback(&file.path)),
            Program::SystemdBoot => {
                // Images in their own directory stand in the same menu, and may well be the default.
                !self.programs.iter().any(|program| program.place == EfiPlace::Linux)
                    && edited.iter().filter(here).any(|file| file.dialect == Dialect::SystemdBoot)
            }
            Program::Other => edited.iter().any(|file| here(&file)),
        }
    }

    /// Shim starts the program beside it.
    fn behind_shim(&self, loader: &EfiProgram) -> Program {
        let beside = self.programs.iter().filter(|program| program.place == EfiPlace::BesideRemovable);
        let known = beside.map(|program| program.program).find(|program| *program != Program::Other);
        if loader.program == Program::Other { known.unwrap_or(Program::Other) } else { loader.program }
    }
}
