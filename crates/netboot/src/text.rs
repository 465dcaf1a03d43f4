//! Text that came from the network, made fit for logs, status fields and terminals.

/// Printable ASCII, everything else escaped (`\x1b`), cut to `limit` characters.
pub(crate) fn printable(bytes: &[u8], limit: usize) -> String {
    // No byte becomes less than one character, so that no more than `limit` of them need to be looked at.
    let text: String = bytes.iter().take(limit + 1).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    if text.len() <= limit {
        return text;
    }
    let kept = text.get(..limit.saturating_sub(3)).unwrap_or_default();
    format!("{kept}...")
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_are_escaped_and_long_text_is_cut() {
        assert_eq!(printable(b"PXEClient:Arch:00000", 64), "PXEClient:Arch:00000");
        assert_eq!(printable(b"\x1b[2Jgone\n", 64), "\\x1b[2Jgone\\n");
        assert_eq!(printable(&[0xff; 500], 11), "\\xff\\xff...");
        assert_eq!(printable("grün".as_bytes(), 64), "gr\\xc3\\xbcn");
    }
}
