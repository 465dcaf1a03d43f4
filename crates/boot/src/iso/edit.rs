//! Puts edited configurations back where they came from.

use super::canvas::Canvas;
use super::config::{Dialect, Edited, Shared};
use super::fat::{self, Fat};
use super::parameters::KERNEL_LINE_LIMIT;
use super::plan::{EditedFile, Place};
use super::source::Source;
use super::{IsoError, Parameters, limits, tree};

/// What was done so far.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    pub(crate) files: Vec<EditedFile>,
    /// Configurations that were read, whether they start a kernel or not.
    pub(crate) looked_at: usize,
    kernel_lines: usize,
}

/// A configuration that starts kernels, and what is to become of it.
struct Change<'f, F> {
    file: &'f F,
    dialect: Dialect,
    /// None: all parameters are there already.
    text: Option<Vec<u8>>,
}

/// Edits the configurations of the ISO's own file system. Returns where the last one ends that had to be moved.
pub(crate) async fn edit_tree<S: Source>(
    canvas: &mut Canvas<'_, S>,
    files: &[tree::File],
    parameters: &Parameters,
    edits: &mut Edits,
) -> Result<Option<u64>, IsoError> {
    let mut texts = Vec::new();
    for file in files {
        texts.push((file, file.path.as_str(), canvas.read(file.extent.offset, file.extent.len as usize).await?));
    }
    let mut moved = None;
    for change in edits.changes(texts, Place::Iso, parameters)? {
        let Some(text) = change.text else { continue };
        let room = tree::room(canvas, change.file);
        let compact = change.dialect.compact(&text);
        let text = if text.len() > room && compact.len() <= room { compact } else { text };
        let end = tree::replace(canvas, change.file, &text).await?;
        if text.len() > room {
            moved = Some(end);
        }
    }
    Ok(moved)
}

/// Edits the configurations of an EFI boot image.
pub(crate) async fn edit_fat<S: Source>(
    canvas: &mut Canvas<'_, S>,
    fat: &mut Fat,
    files: &[fat::File],
    parameters: &Parameters,
    edits: &mut Edits,
) -> Result<(), IsoError> {
    let mut texts = Vec::new();
    for file in files.iter().filter(|file| file.is_configuration()) {
        texts.push((file, file.path.as_str(), fat.read(canvas, file, limits::CONFIGURATION).await?));
    }
    for change in edits.changes(texts, Place::EfiImage { offset: fat.offset }, parameters)? {
        let Some(text) = change.text else { continue };
        // Such images are often made to measure, so every byte may count.
        let text = if text.len() > fat.room(change.file) { change.dialect.compact(&text) } else { text };
        fat.replace(canvas, change.file, &text).await?;
    }
    Ok(())
}

impl Edits {
    /// Edits all configurations of one file system together: some share parameters.
    fn changes<'f, F>(
        &mut self,
        texts: Vec<(&'f F, &str, Vec<u8>)>,
        place: Place,
        parameters: &Parameters,
    ) -> Result<Vec<Change<'f, F>>, IsoError> {
        if texts.iter().map(|(.., text)| text.len()).sum::<usize>() > limits::ALL_CONFIGURATIONS {
            return Err(IsoError::TooMuch { what: "it has too many configuration files" });
        }
        self.looked_at += texts.len();
        let is_syslinux = |path: &str, text: &[u8]| Dialect::of(path, text) == Dialect::Syslinux;
        let syslinux = texts.iter().filter(|(_, path, text)| is_syslinux(path, text));
        let shared = Shared::by(syslinux.map(|(.., text)| text.as_slice()));
        let mut changes = Vec::new();
        for (file, path, text) in texts {
            let dialect = Dialect::of(path, &text);
            // Counted first: a menu of nothing but kernel lines would grow a hundredfold.
            self.kernel_lines += dialect.edit(&text, &Parameters::none(), shared).kernel_lines;
            if self.kernel_lines > limits::KERNEL_LINES {
                return Err(IsoError::TooMuch { what: "its menus start too many kernels" });
            }
            let Edited { text: new, kernel_lines, longest } = dialect.edit(&text, parameters, shared);
            if kernel_lines == 0 {
                continue;
            }
            if longest > KERNEL_LINE_LIMIT {
                let path = Some(path.to_owned());
                return Err(IsoError::KernelLineTooLong { path, bytes: longest, limit: KERNEL_LINE_LIMIT });
            }
            self.files.push(EditedFile { place, path: path.to_owned(), dialect, kernel_lines });
            changes.push(Change { file, dialect, text: (new != text).then_some(new) });
        }
        Ok(changes)
    }
}
