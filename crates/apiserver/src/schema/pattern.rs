//! Regular expressions as Go reads them.
//!
//! The two dialects are close relatives. In Go `\d`, `\w`, `\s` and `\b` are about ASCII, and `[`, `&&`, `--` and `~~`
//! inside of a class are just characters.

use regex::{Regex, RegexBuilder};

/// Compiles a pattern of a schema or of a rule. `Err` is the sentence.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translated(pattern)).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "error parsing regexp: expression is too large".to_owned(),
        error => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("error parsing regexp: {reason}: `{pattern}`")
        }
    })
}

fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    // Where the class begins: `]` is a character there, and `^` may stand before it.
    let mut at_start = false;
    while let Some(character) = characters.next() {
        let first = std::mem::take(&mut at_start);
        match character {
            '\\' => match characters.next() {
                Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str(if in_class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str(if in_class { r"\t\n\f\r " } else { r"[\t\n\f\r ]" }),
                Some('S') => out.push_str(r"[^\t\n\f\r ]"),
                Some('b') if !in_class => out.push_str(r"(?-u:\b)"),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                at_start = true;
                out.push('[');
                if characters.peek() == Some(&'^') {
                    characters.next();
                    out.push('^');
                }
            }
            '[' if characters.peek() == Some(&':') => out.push('['),
            ']' if first => out.push_str(r"\]"),
            ']' => {
                // `[:alpha:]` ends with `:]`, which is not the end of the class.
                if out.ends_with(':') && posix_class_is_open(&out) {
                    out.push(']');
                } else {
                    in_class = false;
                    out.push(']');
                }
            }
            '[' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if first => out.push_str(r"\-"),
            // A range that ends with a dash.
            '-' if in_class && characters.peek() == Some(&'-') => {
                characters.next();
                out.push_str(r"-\-");
            }
            other => out.push(other),
        }
    }
    out
}

fn posix_class_is_open(so_far: &str) -> bool {
    so_far.rfind("[:").is_some_and(|start| {
        so_far[start + 2..].chars().all(|c| c.is_ascii_alphabetic() || c == '^' || c == ':') && so_far.len() > start + 3
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_about_ascii() {
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
            (r"\bfoo\b", "a foo b", true),
            (r"^a.c$", "a\nc", false),
            (r"a", "cab", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        assert!(compile("a(b").is_err_and(|sentence| sentence.starts_with("error parsing regexp: ")));
    }
}
