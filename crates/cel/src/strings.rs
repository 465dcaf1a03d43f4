//! Functions on strings; positions are code points.

use super::functions::Fun;
use super::library::int;
use super::value::{Evaluated, Fault, Val, code_points};

/// No string that an expression makes is longer, in bytes: more than a whole object can hold.
pub(super) const LONGEST: usize = 16 << 20;

/// Functions whose target is a string.
pub(super) fn call<'a>(fun: Fun, text: &str, args: &[Val<'a>]) -> Evaluated<Val<'a>> {
    Ok(match (fun, args) {
        (Fun::CharAt, [Val::Int(at)]) => {
            let index = within(*at, code_points(text))?;
            Val::text(text.chars().nth(index).map(String::from).unwrap_or_default())
        }
        (Fun::LowerAscii, []) => Val::text(text.to_ascii_lowercase()),
        (Fun::UpperAscii, []) => Val::text(text.to_ascii_uppercase()),
        (Fun::Trim, []) => Val::text(text.trim().to_owned()),
        (Fun::Replace, [Val::Text(from), Val::Text(to), most @ ..]) => {
            let most = match most {
                [Val::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let times = if from.is_empty() { code_points(text) + 1 } else { text.matches(from.as_ref()).count() };
            if times.min(most).saturating_mul(to.len()).saturating_add(text.len()) > LONGEST {
                return Err(Fault::OverBudget);
            }
            Val::text(text.replacen(from.as_ref(), to, most))
        }
        (Fun::Split, [Val::Text(by), most @ ..]) => {
            let most = match most {
                [Val::Int(most)] => *most,
                _ => -1,
            };
            Val::list(split(text, by, most).into_iter().map(Val::text).collect())
        }
        (Fun::Substring, [Val::Int(start)]) => {
            let length = code_points(text);
            let start = within(*start, length)?;
            Val::text(slice(text, start, length))
        }
        (Fun::Substring, [Val::Int(start), Val::Int(end)]) => {
            let length = code_points(text);
            if start > end {
                return Err(Fault::new(format!("invalid substring range. start: {start}, end: {end}")));
            }
            let (start, end) = (within(*start, length)?, within(*end, length)?);
            Val::text(slice(text, start, end))
        }
        _ => return Err(Fault::no_such_overload()),
    })
}

pub(super) fn index_of<'a>(text: &str, part: &str, from: Option<&Val<'a>>, last: bool) -> Evaluated<Val<'a>> {
    let length = code_points(text);
    let from = match from {
        // Beyond the end is nothing; before the beginning makes no sense.
        Some(Val::Int(from)) if usize::try_from(*from).is_ok_and(|from| from >= length) && !part.is_empty() => {
            return Ok(Val::Int(-1));
        }
        Some(Val::Int(from)) => Some(within(*from, length)?),
        Some(_) => return Err(Fault::no_such_overload()),
        None => None,
    };
    let position = |byte: usize| int(code_points(text.get(..byte).unwrap_or_default()));
    if part.is_empty() {
        return Ok(int(from.unwrap_or(if last { length } else { 0 })));
    }
    let found = match (from, last) {
        (None, false) => text.find(part),
        (None, true) => text.rfind(part),
        (Some(from), false) => {
            let start = byte_of(text, from);
            text.get(start..).and_then(|rest| rest.find(part)).map(|found| start + found)
        }
        // The last one that does not begin after the position.
        (Some(from), true) => {
            let end = (byte_of(text, from) + part.len()).min(text.len());
            let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
            text.get(..end).and_then(|start| start.rfind(part))
        }
    };
    Ok(found.map_or(Val::Int(-1), position))
}

pub(super) fn join<'a>(list: &Val<'a>, between: Option<&Val<'a>>) -> Evaluated<Val<'a>> {
    let between = match between {
        Some(Val::Text(between)) => between.as_ref(),
        Some(_) => return Err(Fault::no_such_overload()),
        None => "",
    };
    let mut joined = String::new();
    for (index, item) in list.items()?.iter().enumerate() {
        let Val::Text(text) = item else { return Err(Fault::no_such_overload()) };
        if index > 0 {
            joined.push_str(between);
        }
        joined.push_str(text);
        if joined.len() > LONGEST {
            return Err(Fault::OverBudget);
        }
    }
    Ok(Val::text(joined))
}

/// `strings.quote`.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn within(index: i64, length: usize) -> Evaluated<usize> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index <= length)
        .ok_or_else(|| Fault::new(format!("index out of range: {index}")))
}

fn byte_of(text: &str, position: usize) -> usize {
    text.char_indices().nth(position).map_or(text.len(), |(byte, _)| byte)
}

fn slice(text: &str, start: usize, end: usize) -> String {
    text.get(byte_of(text, start)..byte_of(text, end)).unwrap_or_default().to_owned()
}

/// As Go's `strings.SplitN`: 0 is nothing, negative is all.
fn split(text: &str, by: &str, most: i64) -> Vec<String> {
    let most = match usize::try_from(most) {
        Ok(0) => return Vec::new(),
        Ok(most) => most,
        Err(_) => usize::MAX,
    };
    if by.is_empty() {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = text.chars();
        while parts.len() + 1 < most {
            match rest.next() {
                Some(letter) => parts.push(letter.to_string()),
                None => return parts,
            }
        }
        if !rest.as_str().is_empty() {
            parts.push(rest.as_str().to_owned());
        }
        return parts;
    }
    text.splitn(most, by).map(str::to_owned).collect()
}
