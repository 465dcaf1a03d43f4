//! Regular expressions as Go reads them.
//!
//! The two dialects are close relatives. In Go `\d`, `\w`, `\s` and `\b` are about ASCII; `[`, `&&`, `--` and `~~` inside
//! of a class are just characters, and so is a brace that counts nothing.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use regex::{Regex, RegexBuilder};

/// How large a compiled pattern gets at least and at most, in bytes. A megabyte takes some 50 ms to compile.
const LEAST: usize = 4 << 10;
const MOST: usize = 10 << 20;
/// What all patterns of one definition may take together, each counted once.
const TOGETHER: usize = 16 << 20;
/// Patterns are compiled several times: when their definition is checked, and for each of its versions when it is served.
/// So many bytes of them are kept.
const KEPT: usize = 32 << 20;

/// A pattern that was compiled.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// What matches.
    pub regex: Regex,
    /// About how many bytes it takes.
    pub size: usize,
}

thread_local! {
    static LIMIT: RefCell<Option<Limit>> = const { RefCell::new(None) };
}

/// How much may still be compiled, and what was counted already.
#[derive(Debug)]
struct Limit {
    left: usize,
    counted: HashSet<String>,
}

/// Does something that compiles patterns on this thread. When they are too large together, the last ones are refused.
pub fn within_limits<T>(work: impl FnOnce() -> T) -> T {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            LIMIT.take();
        }
    }
    let _end = End;
    LIMIT.set(Some(Limit { left: TOGETHER, counted: HashSet::new() }));
    work()
}

/// Compiles a pattern of a schema or of a rule. `Err` is the sentence.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    compile_sized(pattern).map(|compiled| compiled.regex)
}

/// The same, with its size.
pub fn compile_sized(pattern: &str) -> Result<Compiled, String> {
    LIMIT.with_borrow_mut(|limit| {
        let most = match limit {
            Some(limit) if !limit.counted.contains(pattern) => limit.left.min(MOST),
            _ => MOST,
        };
        let compiled = match kept(|kept| kept.patterns.get(pattern).cloned()) {
            Some(known) if known.size > most => Err(TOO_LARGE.to_owned()),
            Some(known) => Ok(known),
            None => compile_anew(pattern, most),
        };
        if let Some(limit) = limit
            && limit.counted.insert(pattern.to_owned())
        {
            // What was too large took its time as well.
            let size = compiled.as_ref().map_or(most, |compiled| compiled.size);
            limit.left = limit.left.saturating_sub(size);
        }
        compiled
    })
}

const TOO_LARGE: &str = "expression too large";

/// Compiles with limits that grow, which is how one learns the size.
fn compile_anew(pattern: &str, most: usize) -> Result<Compiled, String> {
    let translated = translated(pattern)?;
    let mut size = LEAST.min(most);
    while size > 0 {
        match RegexBuilder::new(&translated).size_limit(size).build() {
            Ok(regex) => {
                let compiled = Compiled { regex, size };
                kept(|kept| kept.keep(pattern, compiled.clone()));
                return Ok(compiled);
            }
            Err(regex::Error::CompiledTooBig(_)) if size < most => size = (size * 4).min(most),
            Err(regex::Error::CompiledTooBig(_)) => break,
            // The last line is the reason; those above repeat the pattern.
            Err(error) => return Err(error.to_string().lines().last().unwrap_or_default().replacen("error: ", "", 1)),
        }
    }
    Err(TOO_LARGE.to_owned())
}

#[derive(Default)]
struct Kept {
    patterns: HashMap<String, Compiled>,
    size: usize,
}

impl Kept {
    fn keep(&mut self, pattern: &str, compiled: Compiled) {
        if self.size > KEPT {
            *self = Self::default();
        }
        self.size += compiled.size + pattern.len();
        self.patterns.insert(pattern.to_owned(), compiled);
    }
}

fn kept<T>(with: impl FnOnce(&mut Kept) -> T) -> T {
    static ALL: Mutex<Option<Kept>> = Mutex::new(None);
    with(ALL.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

fn translated(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut repeated: Option<&str> = None;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\\' => escape(&mut out, rest, false),
            '[' => class(&mut out, rest),
            '*' | '+' | '?' => repetition(rest, 1),
            '{' => {
                if let Some(length) = count(rest)? {
                    repetition(rest, length)
                } else {
                    out.push_str(r"\{");
                    1
                }
            }
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        let (token, after) = rest.split_at(length);
        let is_repetition = matches!(character, '*' | '+' | '?') || character == '{' && length > 1;
        if is_repetition {
            if let Some(before) = repeated {
                return Err(format!("invalid nested repetition operator: `{before}{token}`"));
            }
            out.push_str(token);
        }
        repeated = is_repetition.then_some(token);
        rest = after;
    }
    Ok(out)
}

/// The length of a repetition, with the question mark that makes it lazy.
fn repetition(rest: &str, length: usize) -> usize {
    if rest[length..].starts_with('?') { length + 1 } else { length }
}

/// The length of `{2}`, `{2,}` or `{2,3}`.
fn count(rest: &str) -> Result<Option<usize>, String> {
    let Some(end) = rest.find('}') else { return Ok(None) };
    let (least, most) = rest[1..end].split_once(',').unwrap_or((&rest[1..end], ""));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
    if number(least) > 1000 || !most.is_empty() && (number(most) > 1000 || number(most) < number(least)) {
        return Err(format!("invalid repeat count: `{}`", &rest[..=end]));
    }
    Ok(Some(end + 1))
}

/// Writes an escape; returns its length.
fn escape(out: &mut String, rest: &str, in_class: bool) -> usize {
    let Some(escaped) = rest[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    match (escaped, in_class) {
        ('d', false) => out.push_str("[0-9]"),
        ('d', true) => out.push_str("0-9"),
        ('D', _) => out.push_str("[^0-9]"),
        ('w', false) => out.push_str("[0-9A-Za-z_]"),
        ('w', true) => out.push_str("0-9A-Za-z_"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('s', false) => out.push_str(r"[\t\n\f\r ]"),
        ('s', true) => out.push_str(r"\t\n\f\r "),
        ('S', _) => out.push_str(r"[^\t\n\f\r ]"),
        ('b', false) => out.push_str(r"(?-u:\b)"),
        (other, _) => {
            out.push('\\');
            out.push(other);
        }
    }
    1 + escaped.len_utf8()
}

/// Writes a class; returns its length.
fn class(out: &mut String, whole: &str) -> usize {
    let mut at = 1;
    out.push('[');
    if whole[at..].starts_with('^') {
        out.push('^');
        at += 1;
    }
    let start = at;
    while let Some(character) = whole[at..].chars().next() {
        let rest = &whole[at..];
        match character {
            ']' if at > start => {
                out.push(']');
                return at + 1;
            }
            '\\' => {
                at += escape(out, rest, true);
                continue;
            }
            '[' if rest.starts_with("[:") => {
                if let Some(end) = rest.find(":]") {
                    out.push_str(&rest[..end + 2]);
                    at += end + 2;
                    continue;
                }
                out.push_str(r"\[");
            }
            // A range that ends with a dash.
            '-' if at > start && rest.starts_with("--") => {
                out.push_str(r"-\-");
                at += 2;
                continue;
            }
            '-' if at > start => out.push('-'),
            '[' | ']' | '&' | '~' | '-' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
        at += character.len_utf8();
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "42", true),
            (r"^\d+$", "٤٢", false),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a-b.c", true),
            (r"^\S+$", "é", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[[:alpha:]_]+$", "a_c", true),
            (r"^[^]a]+$", "b", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[&&]+$", "[&", true),
            (r"^[+--]+$", "+,-", true),
            (r"^[--0]+$", "-./0", true),
            (r"^[a-z0-9-]+$", "a-9", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^a.c$", "a\nc", false),
            (r"a", "cab", true),
            (r"^a{2}$", "aa", true),
            (r"^a{x}$", "a{x}", true),
            (r"^a{$", "a{", true),
            (r"^(?i)AB*?$", "abb", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text:?}");
        }
    }
}
