//! Entries of systemd-boot: one kernel per file, `options` lines are joined.

use super::{Edited, extend, keyword, length, line_end, lines, words};
use crate::iso::parameters::Parameters;

pub(super) fn edit(text: &[u8], parameters: &Parameters) -> Edited {
    // An entry with `efi` instead starts a program, which may be a memory test as well as a kernel.
    if !lines(text).any(|line| keyword(line) == b"linux") {
        return Edited { text: text.to_vec(), ..Edited::default() };
    }
    let is_options = |line: &&[u8]| keyword(line) == b"options";
    let options: Vec<&[u8]> = lines(text).filter(is_options).flat_map(|line| words(line).skip(1)).collect();
    let missing = parameters.missing_from(&options);
    let longest = length(options) + length(missing.iter().map(|word| word.as_bytes()));

    let mut all: Vec<Vec<u8>> = lines(text).map(<[u8]>::to_vec).collect();
    match all.iter_mut().rev().find(|line| keyword(line) == b"options") {
        Some(line) => *line = extend(line, &missing),
        None if missing.is_empty() => {}
        None => {
            let end = line_end(text);
            if !text.ends_with(b"\n") {
                all.push(end.to_vec());
            }
            all.push([b"options ", missing.join(" ").as_bytes(), end].concat());
        }
    }
    Edited { text: all.concat(), kernel_lines: 1, longest }
}

pub(super) fn compact(text: &[u8]) -> Vec<u8> {
    super::without_noise(lines(text))
}
