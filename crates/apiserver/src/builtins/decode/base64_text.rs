//! Base64 as Go reads it: line breaks do not matter, padding does, and errors have a place.

/// The bytes, or where the text is wrong.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = [0_u8; 4];
    let mut filled = 0;
    let mut at = 0;
    while at < text.len() {
        let char = text[at];
        at += 1;
        match value(char) {
            Some(bits) => {
                group[filled] = bits;
                filled += 1;
                if filled == 4 {
                    bytes.extend(join(group));
                    filled = 0;
                }
            }
            None if is_break(char) => {}
            None if char != b'=' || filled < 2 => return Err(at - 1),
            None => {
                if filled == 2 {
                    at = skip_breaks(text, at);
                    match text.get(at) {
                        None => return Err(text.len()),
                        Some(b'=') => at += 1,
                        Some(_) => return Err(at),
                    }
                }
                at = skip_breaks(text, at);
                if at < text.len() {
                    return Err(at);
                }
                group[filled..].fill(0);
                bytes.extend(&join(group)[..filled - 1]);
                return Ok(bytes);
            }
        }
    }
    if filled == 0 { Ok(bytes) } else { Err(at - filled) }
}

fn join([a, b, c, d]: [u8; 4]) -> [u8; 3] {
    [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]
}

fn value(char: u8) -> Option<u8> {
    match char {
        b'A'..=b'Z' => Some(char - b'A'),
        b'a'..=b'z' => Some(char - b'a' + 26),
        b'0'..=b'9' => Some(char - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

fn is_break(char: u8) -> bool {
    matches!(char, b'\n' | b'\r')
}

fn skip_breaks(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|char| is_break(**char)).count()
}
