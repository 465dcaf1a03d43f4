//! Configurations of isolinux and its siblings: `label`, then `kernel` or `linux`, then `append`; one per line.

use super::{Edited, Shared, extend, keyword, length, line_end, lines, words};
use crate::iso::parameters::{BOOT_IMAGE, Parameters};

/// The lines of one label, by their numbers.
#[derive(Debug, Default)]
struct Label {
    kernel: Option<usize>,
    append: Option<usize>,
}

#[derive(Debug, Default)]
struct Menu {
    labels: Vec<Label>,
    /// `append` before any label: for the labels that have none.
    global_append: Option<usize>,
}

pub(super) fn edit(text: &[u8], parameters: &Parameters, shared: Shared) -> Edited {
    let lines: Vec<&[u8]> = lines(text).collect();
    let menu = read(&lines);
    let kernels = || menu.labels.iter().filter_map(|label| label.kernel.map(|kernel| (label, kernel)));
    let inherits = menu.global_append.is_some() || shared == Shared::SyslinuxAppend;

    let mut all: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
    let mut longest = 0;
    let global = menu.global_append.map(|append| (Some(append), None));
    let own = kernels().map(|(label, kernel)| (label.append, Some(kernel)));
    for (append, kernel) in global.into_iter().chain(own) {
        let path_and_options: Vec<&[u8]> =
            kernel.map(|kernel| words(lines[kernel]).skip(1).collect()).unwrap_or_default();
        let appended: Vec<&[u8]> = append.map(|append| words(lines[append]).skip(1).collect()).unwrap_or_default();
        let there = [path_and_options.as_slice(), appended.as_slice()].concat();
        let missing = parameters.missing_from(&there);
        match (append, kernel) {
            // A lone dash means: not even the parameters for all. It only counts when it is alone.
            (Some(append), _) if appended == [b"-"] => {
                if !missing.is_empty() {
                    all[append] = replace_dash(lines[append], &missing.join(" "));
                }
            }
            (Some(append), _) => all[append] = extend(lines[append], &missing),
            (None, Some(kernel)) if !inherits && !missing.is_empty() => {
                all[kernel] = with_append(lines[kernel], &missing.join(" "), line_end(text));
            }
            (None, _) => {}
        }
        longest = longest.max(BOOT_IMAGE + length(there) + length(missing.iter().map(|word| word.as_bytes())));
    }
    let kernel_lines = kernels().count() + usize::from(menu.global_append.is_some());
    Edited { text: all.concat(), kernel_lines, longest }
}

pub(super) fn compact(text: &[u8]) -> Vec<u8> {
    super::without_noise(lines(text))
}

pub(super) fn has_global_append(text: &[u8]) -> bool {
    read(&lines(text).collect::<Vec<_>>()).global_append.is_some()
}

fn read(lines: &[&[u8]]) -> Menu {
    let mut menu = Menu::default();
    let (mut in_label, mut in_help) = (false, false);
    for (number, line) in lines.iter().enumerate() {
        let keyword = keyword(line).to_ascii_lowercase();
        let argument = words(line).nth(1).unwrap_or_default().to_ascii_lowercase();
        if in_help {
            in_help = keyword != b"endtext";
            continue;
        }
        let label = if in_label { menu.labels.last_mut() } else { None };
        match (keyword.as_slice(), label) {
            (b"text", _) => in_help = argument == b"help",
            (b"label", _) => {
                in_label = true;
                menu.labels.push(Label::default());
            }
            (b"menu", _) if matches!(argument.as_slice(), b"begin" | b"end") => in_label = false,
            (b"linux", Some(label)) => label.kernel = Some(number),
            (b"kernel", Some(label)) => label.kernel = is_linux(&argument).then_some(number),
            (b"com32" | b"boot" | b"bss" | b"pxe" | b"fdimage" | b"config" | b"localboot", Some(label)) => {
                label.kernel = None;
            }
            (b"append", Some(label)) => label.append = Some(number),
            (b"append", None) if argument != b"-" && !argument.is_empty() => menu.global_append = Some(number),
            _ => {}
        }
    }
    menu
}

/// `kernel` also starts modules and boot sectors: syslinux recognises them by their extensions.
fn is_linux(path: &[u8]) -> bool {
    let modules: [&[u8]; 7] = [b".c32", b".com", b".cbt", b".bss", b".bs", b".bin", b".0"];
    !path.is_empty() && !modules.iter().any(|extension| path.ends_with(extension))
}

fn replace_dash(line: &[u8], parameters: &str) -> Vec<u8> {
    let dash = line.iter().rposition(|byte| *byte == b'-').unwrap_or(line.len());
    [&line[..dash], parameters.as_bytes(), line.get(dash + 1..).unwrap_or_default()].concat()
}

fn with_append(kernel: &[u8], parameters: &str, end: &[u8]) -> Vec<u8> {
    let indent = &kernel[..kernel.len() - kernel.trim_ascii_start().len()];
    let own_end: &[u8] = if kernel.ends_with(b"\n") { b"" } else { end };
    [kernel, own_end, indent, b"append ", parameters.as_bytes(), end].concat()
}
