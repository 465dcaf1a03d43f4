//! Where Go's parser of YAML and ours differ.

/// Only the first document of a text counts.
pub(super) fn first_document(text: &[u8]) -> &[u8] {
    let mut begun = false;
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let marker = line.strip_prefix(b"---").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace));
        if marker && begun {
            return &text[..at];
        }
        let blank = line.trim_ascii();
        begun |= marker || !(blank.is_empty() || matches!(blank.first(), Some(b'#' | b'%')));
        at += line.len();
    }
    text
}

/// A tab is no indentation.
pub(super) fn begins_with_a_tab(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\r' | b'\n'));
    start.is_some_and(|start| text[start] == b'\t') && !text.trim_ascii().is_empty()
}

/// What Go's parser would say.
pub(super) fn complaint(text: &[u8], error: &serde_saphyr::Error) -> String {
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    let (line, column) = error.location().map_or((1, 1), |location| (location.line(), location.column()));
    if said.starts_with("recursive references") {
        let name = alias_at(text, line, column).unwrap_or_default();
        return format!("yaml: anchor '{name}' value contains itself");
    }
    if said.starts_with("unclosed bracket") {
        return format!("yaml: line {line}: did not find expected node content");
    }
    // Go does not name the first line.
    if line > 1 { format!("yaml: line {line}: {said}") } else { format!("yaml: {said}") }
}

fn alias_at(text: &[u8], line: u64, column: u64) -> Option<String> {
    let line = text.split(|byte| *byte == b'\n').nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let rest = line.get(usize::try_from(column.checked_sub(1)?).ok()?..)?.strip_prefix(b"*")?;
    let end = rest.iter().position(|byte| matches!(byte, b',' | b']' | b'}' | b' ')).unwrap_or(rest.len());
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}
