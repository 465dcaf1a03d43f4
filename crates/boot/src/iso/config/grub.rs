//! GRUB 2 script, as far as it takes to find the commands that start a kernel.
//!
//! The rules of quoting are those of GRUB's own lexer: single quotes keep everything, double quotes keep all but
//! variables, a backslash keeps one character and joins lines, `#` begins a comment only where a word could begin.

use std::ops::Range;

use super::Edited;
use crate::iso::parameters::{BOOT_IMAGE, Parameters};

#[derive(Debug)]
enum Token {
    Word(Word),
    /// What ends a command.
    End {
        at: usize,
        newline: bool,
    },
    /// A quote that is never closed, or nothing behind a backslash: GRUB refuses the command.
    Broken,
}

#[derive(Debug)]
struct Word {
    range: Range<usize>,
    /// Without quotes; variables as they are written.
    value: Vec<u8>,
}

pub(super) fn edit(text: &[u8], parameters: &Parameters) -> Edited {
    let mut edited = Edited::default();
    let mut copied = 0;
    for command in commands(text) {
        let [name, kernel, arguments @ ..] = command.as_slice() else { continue };
        if !starts_a_kernel(&name.value) {
            continue;
        }
        let values: Vec<&[u8]> = arguments.iter().map(|word| word.value.as_slice()).collect();
        let missing = parameters.missing_from(&values);
        let dashes = values.iter().position(|value| matches!(*value, b"--" | b"---")).unwrap_or(values.len());
        let before = dashes.checked_sub(1).and_then(|last| arguments.get(last)).unwrap_or(kernel);
        edited.text.extend_from_slice(&text[copied..before.range.end]);
        copied = before.range.end;
        for word in &missing {
            edited.text.push(b' ');
            edited.text.extend(quoted(word));
        }
        edited.kernel_lines += 1;
        let words = values.into_iter().chain(missing.iter().map(|word| word.as_bytes()));
        edited.longest = edited.longest.max(BOOT_IMAGE + super::length(words) + kernel.value.len());
    }
    edited.text.extend_from_slice(&text[copied..]);
    edited
}

pub(super) fn compact(text: &[u8]) -> Vec<u8> {
    let mut ends: Vec<usize> = tokens(text)
        .iter()
        .filter_map(|token| match token {
            Token::End { at, newline: true } => Some(at + 1),
            _ => None,
        })
        .collect();
    ends.push(text.len());
    // Cut where GRUB sees a new line: one inside quotes or behind a backslash belongs to its word.
    let starts = std::iter::once(0).chain(ends.iter().copied());
    super::without_noise(starts.zip(&ends).filter_map(|(start, end)| text.get(start..*end)))
}

/// `linux`, `linuxefi`, `linux16`; and the names that menus compose: `$linux`, `${linux}`, `linux${suffix}`.
fn starts_a_kernel(command: &[u8]) -> bool {
    let name: Vec<u8> = command.iter().copied().filter(|byte| !matches!(byte, b'{' | b'}')).collect();
    match name.as_slice() {
        b"linux" | b"linuxefi" | b"linux16" | b"linux32" | b"$linux" | b"$linuxefi" | b"$linux16" => true,
        name => name.starts_with(b"linux$") || name.starts_with(b"$linux_"),
    }
}

/// Words after which another command begins.
fn is_reserved(value: &[u8]) -> bool {
    matches!(value, b"if" | b"then" | b"else" | b"elif" | b"while" | b"until" | b"do" | b"!")
}

fn commands(text: &[u8]) -> Vec<Vec<Word>> {
    let mut commands = vec![Vec::new()];
    for token in tokens(text) {
        match (token, commands.last_mut()) {
            (Token::Word(word), Some(command)) if !command.is_empty() || !is_reserved(&word.value) => {
                command.push(word);
            }
            (Token::End { .. }, _) => commands.push(Vec::new()),
            (Token::Broken, Some(command)) => command.clear(),
            _ => {}
        }
    }
    commands
}

fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'#' => at += text[at..].iter().take_while(|byte| **byte != b'\n').count(),
            b' ' | b'\t' | b'\r' => at += 1,
            b'\n' | b';' | b'|' | b'&' | b'{' | b'}' | b'<' | b'>' => {
                tokens.push(Token::End { at, newline: *byte == b'\n' });
                at += 1;
            }
            _ => {
                let (word, next) = word(text, at);
                tokens.extend(word);
                at = next;
            }
        }
    }
    tokens
}

/// The word that begins here, if there is one, and where to go on.
fn word(text: &[u8], start: usize) -> (Option<Token>, usize) {
    let (mut at, mut end) = (start, start);
    let mut value = Vec::new();
    let mut quote = None;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at + 1..];
        let continued = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
        let taken = match (quote, byte) {
            (Some(open), byte) if open == byte => {
                quote = None;
                1
            }
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                1
            }
            (None | Some(b'"'), b'\\') if continued > 0 => {
                at += 1 + continued;
                continue;
            }
            (None, b'\\') if rest.is_empty() => return (Some(Token::Broken), text.len()),
            (None, b'\\') => {
                value.extend(rest.first());
                2
            }
            (Some(b'"'), b'\\') if rest.first().is_some_and(|byte| b"\"$\\".contains(byte)) => {
                value.extend(rest.first());
                2
            }
            (None, b'$') if rest.starts_with(b"{") => {
                let name = rest.iter().take_while(|byte| !matches!(byte, b'}' | b'\n')).count();
                if rest.get(name) != Some(&b'}') {
                    return (Some(Token::Broken), at + 1 + name);
                }
                value.extend(&text[at..at + name + 2]);
                name + 2
            }
            (None, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'{' | b'}' | b'<' | b'>') => break,
            _ => {
                value.push(byte);
                1
            }
        };
        at = (at + taken).min(text.len());
        end = at;
    }
    let token = match quote {
        Some(_) => Some(Token::Broken),
        None => (end > start).then_some(Token::Word(Word { range: start..end, value })),
    };
    (token, at.max(start + 1))
}

/// Plain where that is beyond doubt. Parameters contain no quotes.
fn quoted(word: &str) -> Vec<u8> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
    if word.bytes().all(plain) { word.as_bytes().to_vec() } else { format!("'{word}'").into_bytes() }
}
