//! The files of an ISO 9660 image that boot loaders may read, and how one of them grows.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::canvas::Canvas;
use super::directory::{PLACE, Record, place, records, rock_ridge};
use super::source::Source;
use super::volume::{Extent, Volume};
use super::{IsoError, SECTOR, limits, places};

/// A run of bytes that one or more directory records call a file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// The longest of its names: other trees may have cut it.
    pub(crate) path: String,
    pub(crate) extent: Extent,
    /// Where the records lie in the image, and where their volumes begin: in several trees, or hard links.
    records: Vec<(u64, u64)>,
}

/// What was found, by place in the image.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) configurations: Vec<File>,
    pub(crate) efi_programs: Vec<File>,
}

/// Walks the directories that matter, in every tree.
pub(crate) async fn boot_files<S: Source>(canvas: &mut Canvas<'_, S>, volume: &Volume) -> Result<Files, IsoError> {
    let mut found: BTreeMap<Extent, File> = BTreeMap::new();
    let (mut seen, mut total) = (HashSet::new(), 0);
    for tree in &volume.trees {
        let mut waiting = VecDeque::from([(String::new(), tree.root, 0)]);
        while let Some((path, extent, depth)) = waiting.pop_front() {
            if !seen.insert(extent.offset) {
                return Err(IsoError::malformed(format!("the directory {path:?} contains itself or is there twice")));
            }
            if seen.len() > limits::DIRECTORIES || extent.len > limits::DIRECTORY || depth > limits::DEPTH {
                return Err(IsoError::TooMuch { what: "it has too many, too long or too deep boot directories" });
            }
            let directory = canvas.read(extent.offset, extent.len as usize).await?;
            total += directory.len();
            if total > limits::ALL_DIRECTORIES {
                return Err(IsoError::TooMuch { what: "it has too many boot files" });
            }
            for record in records(&directory, tree) {
                let Record { at, extent: inner, is_directory, is_plain, .. } = record;
                let path = format!("{path}/{}", full_name(canvas, record, tree.base).await?);
                if is_directory && places::is_boot_directory(&path) {
                    waiting.push_back((path, inner, depth + 1));
                } else if !is_directory && is_plain && inner.len > 0 {
                    remember(&mut found, path, inner, (extent.offset + at as u64, tree.base));
                }
            }
        }
    }
    sorted(found)
}

fn remember(found: &mut BTreeMap<Extent, File>, path: String, extent: Extent, record: (u64, u64)) {
    if !places::is_of_interest(&path) {
        return;
    }
    let file = found.entry(extent).or_insert_with(|| File { path: path.clone(), extent, records: Vec::new() });
    file.records.push(record);
    if path.len() > file.path.len() {
        file.path = path;
    }
}

fn sorted(found: BTreeMap<Extent, File>) -> Result<Files, IsoError> {
    let mut files = Files::default();
    for file in found.into_values() {
        if places::efi_place(&file.path).is_some() {
            files.efi_programs.push(file);
        } else if file.extent.len <= limits::CONFIGURATION {
            files.configurations.push(file);
        }
    }
    if files.configurations.len() > limits::CONFIGURATIONS {
        return Err(IsoError::TooMuch { what: "it has too many configuration files" });
    }
    let mut ends = 0;
    for file in &files.configurations {
        if file.extent.offset < ends {
            return Err(IsoError::malformed(format!("{} overlaps with another file", file.path)));
        }
        ends = file.extent.offset + u64::from(file.extent.len);
    }
    Ok(files)
}

/// With the rest of a name that did not fit into its record.
async fn full_name<S: Source>(canvas: &mut Canvas<'_, S>, record: Record, base: u64) -> Result<String, IsoError> {
    let Some(more) = record.continued.filter(|more| u64::from(more.len) <= SECTOR) else { return Ok(record.name) };
    let (rest, _) = rock_ridge(&canvas.read(more.offset, more.len as usize).await?, base);
    Ok(match rest {
        Some(rest) if record.is_rock_ridge => record.name + &rest,
        Some(all) => all,
        None => record.name,
    })
}

/// Room for a file without moving it: the last sector is always the file's own, as far as there is one.
pub(crate) fn room<S: Source>(canvas: &Canvas<'_, S>, file: &File) -> usize {
    let whole = (file.extent.len as usize).next_multiple_of(2048);
    whole.min(usize::try_from(canvas.size().saturating_sub(file.extent.offset)).unwrap_or(usize::MAX))
}

/// Writes new content, at its place if it fits, else behind the end of the image. Returns where it ends.
pub(crate) async fn replace<S: Source>(
    canvas: &mut Canvas<'_, S>,
    file: &File,
    content: &[u8],
) -> Result<u64, IsoError> {
    let room = room(canvas, file);
    let fits = content.len() <= room;
    let offset = if fits { file.extent.offset } else { canvas.size().next_multiple_of(SECTOR) };
    let len = u32::try_from(content.len()).map_err(|_| IsoError::TooMuch { what: "a configuration is too long" })?;
    let extent = Extent { offset, len };
    let mut padded = content.to_vec();
    padded.resize(if fits { room } else { content.len().next_multiple_of(2048) }, 0);
    let end = offset + padded.len() as u64;
    canvas.grow(end)?;
    canvas.write(offset, &padded).await?;
    for (record, base) in &file.records {
        let place = place(extent, *base).ok_or(IsoError::TooMuch { what: "it is too long" })?;
        canvas.write(record + PLACE, &place).await?;
    }
    Ok(end)
}
