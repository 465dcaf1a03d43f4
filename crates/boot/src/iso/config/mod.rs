//! The configuration files of boot loaders, as text: which lines start a kernel, and how a parameter is added to them.
//!
//! Nothing here reads or writes an image. Text is bytes: menus come in all encodings, and what we do not touch stays.

mod grub;
mod syslinux;
mod systemd_boot;

use super::parameters::Parameters;

/// The boot loader that reads the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// GRUB 2 script.
    Grub,
    /// isolinux, syslinux, extlinux, pxelinux.
    Syslinux,
    /// An entry of systemd-boot, one kernel per file.
    SystemdBoot,
}

/// A configuration with the parameters in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edited {
    pub(crate) text: Vec<u8>,
    /// Lines that start a kernel with our parameters, whether they had to be added or not.
    pub(crate) kernel_lines: usize,
    /// What the longest of them is for the kernel.
    pub(crate) longest: usize,
}

impl Dialect {
    /// Guesses by the words in the file, for they say what the name only hints at.
    pub(crate) fn of(path: &str, text: &[u8]) -> Self {
        let path = path.to_ascii_lowercase();
        if path.contains("loader/entries/") {
            return Self::SystemdBoot;
        }
        let begins_with = |word: &[u8]| lines(text).any(|line| keyword(line).eq_ignore_ascii_case(word));
        if begins_with(b"menuentry") || begins_with(b"submenu") {
            Self::Grub
        } else if begins_with(b"label") || path.split('/').any(is_syslinux) {
            Self::Syslinux
        } else {
            Self::Grub
        }
    }

    /// Adds what is missing to every line that starts a kernel. Doing it twice changes nothing more.
    pub(crate) fn edit(self, text: &[u8], parameters: &Parameters, shared: Shared) -> Edited {
        match self {
            Self::Grub => grub::edit(text, parameters),
            Self::Syslinux => syslinux::edit(text, parameters, shared),
            Self::SystemdBoot => systemd_boot::edit(text, parameters),
        }
    }

    /// The same configuration without comments, empty lines and indentation.
    pub(crate) fn compact(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Grub => grub::compact(text),
            Self::Syslinux => syslinux::compact(text),
            Self::SystemdBoot => systemd_boot::compact(text),
        }
    }
}

/// What a file shares with those that it includes or is included by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    /// Each kernel has its own parameters.
    Nothing,
    /// Some file has syslinux parameters for all kernels that bring none.
    SyslinuxAppend,
}

impl Shared {
    pub(crate) fn by<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        if texts.into_iter().any(syslinux::has_global_append) { Self::SyslinuxAppend } else { Self::Nothing }
    }
}

fn is_syslinux(name: &str) -> bool {
    ["isolinux", "syslinux", "extlinux", "pxelinux"].iter().any(|loader| name.starts_with(loader))
}

/// Lines with their ends, so that their concatenation is the text.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// The first word of a line.
fn keyword(line: &[u8]) -> &[u8] {
    words(line).next().unwrap_or_default()
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// What the kernel gets of these words.
fn length<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> usize {
    words.into_iter().map(|word| word.len() + 1).sum()
}

/// Adds to a line of plain words. What follows `--` or `---` is not for the kernel: init, the installed system. So ours go before
/// it.
fn extend(line: &[u8], missing: &[&str]) -> Vec<u8> {
    let end = line.trim_ascii_end().len();
    let dashes = words(line).find(|word| matches!(*word, b"--" | b"---"));
    let at = dashes.map_or(end, |word| line[..offset_in(line, word)].trim_ascii_end().len());
    let mut longer = line[..at].to_vec();
    for word in missing {
        longer.push(b' ');
        longer.extend_from_slice(word.as_bytes());
    }
    longer.extend_from_slice(&line[at..]);
    longer
}

fn offset_in(line: &[u8], word: &[u8]) -> usize {
    (word.as_ptr() as usize).saturating_sub(line.as_ptr() as usize).min(line.len())
}

/// Drops empty lines, comments and indentation, of a file whose lines stand for themselves.
fn without_noise<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    lines
        .into_iter()
        .map(<[u8]>::trim_ascii_start)
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
        .flatten()
        .copied()
        .collect()
}

/// What ends the lines of this file.
fn line_end(text: &[u8]) -> &'static [u8] {
    if text.windows(2).any(|pair| pair == b"\r\n") { b"\r\n" } else { b"\n" }
}

#[cfg(test)]
mod tests;
