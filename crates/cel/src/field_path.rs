//! `fieldPath` of rules: `.a.b['c']`, fields and keys of maps only.

use schema::Node;

/// The path as errors show it, without the leading dot; `None` if it leads nowhere.
pub(super) fn normalized(path: &str, node: &Node) -> Option<String> {
    let mut out = String::new();
    let mut rest = path;
    let mut node = node;
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix("['") {
            quoted_name(after)?
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            (name.to_owned(), after)
        };
        if name.is_empty() {
            return None;
        }
        if node.properties.is_empty() {
            node = node.additional_node()?;
            out.extend(["[", &name, "]"]);
        } else {
            node = node.properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        }
        rest = after;
    }
    (!out.is_empty()).then_some(out)
}

/// Up to the closing `']`.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => return Some((name, text.get(at + 1..)?.strip_prefix(']')?)),
            '\\' => name.push(match letters.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                plain @ ('\'' | '\\') => plain,
                _ => return None,
            }),
            other => name.push(other),
        }
    }
    None
}
