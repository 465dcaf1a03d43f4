//! What Go's JSON parser says about text that is not JSON: clients see it word for word.

use bytes::Bytes;

/// The complaint about a text, if it is not JSON.
pub(crate) fn complaint(text: &[u8]) -> Option<String> {
    Scanner { text, at: 0, open: Vec::new() }.run().err()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The objects (`true`) and arrays (`false`) that are open.
    open: Vec<bool>,
}

type Scan = Result<(), String>;

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The same inside of a number or a word, which Go ends by reading a space after the text.
    fn unfinished<T>(&self, context: &str) -> Result<T, String> {
        match self.peek() {
            Some(_) => self.wrong(context),
            None => Err(format!("invalid character ' ' {context}")),
        }
    }

    fn wrong<T>(&self, context: &str) -> Result<T, String> {
        Err(match self.peek() {
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
            None => "unexpected end of JSON input".to_owned(),
        })
    }

    fn run(mut self) -> Scan {
        self.value()?;
        loop {
            self.space();
            let Some(&in_object) = self.open.last() else {
                return if self.peek().is_some() { self.wrong("after top-level value") } else { Ok(()) };
            };
            match (self.peek(), in_object) {
                (Some(b','), true) => {
                    self.at += 1;
                    self.space();
                    self.key()?;
                }
                (Some(b','), false) => {
                    self.at += 1;
                    self.value()?;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    self.at += 1;
                    self.open.pop();
                }
                (_, true) => return self.wrong("after object key:value pair"),
                (_, false) => return self.wrong("after array element"),
            }
        }
    }

    /// A value, or the beginning of one that goes on.
    fn value(&mut self) -> Scan {
        loop {
            self.space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.open.push(true);
                    self.space();
                    if self.peek() == Some(b'}') {
                        return Ok(());
                    }
                    return self.key();
                }
                Some(b'[') => {
                    self.at += 1;
                    self.open.push(false);
                    self.space();
                    if self.peek() == Some(b']') {
                        return Ok(());
                    }
                }
                Some(b'"') => return self.string(),
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(b't') => return self.word("true"),
                Some(b'f') => return self.word("false"),
                Some(b'n') => return self.word("null"),
                _ => return self.wrong("looking for beginning of value"),
            }
        }
    }

    /// A key, the colon, and the value or its beginning. Objects in objects come back here; the depth of such calls is
    /// that of the text up to the first scalar, so it is cut off.
    fn key(&mut self) -> Scan {
        if self.peek() != Some(b'"') {
            return self.wrong("looking for beginning of object key string");
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return self.wrong("after object key");
        }
        self.at += 1;
        if self.open.len() > super::body::DEEPEST {
            return Err(too_deep(b'{'));
        }
        self.value()
    }

    fn string(&mut self) -> Scan {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return self.unfinished("in \\u hexadecimal character escape");
                                }
                                self.at += 1;
                            }
                        }
                        _ => return self.unfinished("in string escape code"),
                    }
                }
                Some(0..0x20) | None => return self.wrong("in string literal"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Scan {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.unfinished("in numeric literal"),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.unfinished("after decimal point in numeric literal");
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.unfinished("in exponent of numeric literal");
            }
            self.digits();
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Scan {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.unfinished(&format!("in literal {word} (expecting {})", quoted(expected)));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// The same text with replacement characters in the place of what is no Unicode; `None` if there is nothing to mend.
pub(super) fn mended(text: &[u8]) -> Option<Bytes> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    loop {
        // One character for each byte, as Go does it.
        match std::str::from_utf8(rest) {
            Ok(_) => {
                out.extend_from_slice(rest);
                break;
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                out.extend_from_slice(good);
                out.extend_from_slice("\u{fffd}".as_bytes());
                rest = bad.get(1..).unwrap_or_default();
                changed = true;
            }
        }
    }
    let mut at = 0;
    while at + 1 < out.len() {
        if out[at] != b'\\' {
            at += 1;
            continue;
        }
        match (escaped(&out, at), escaped(&out, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 12,
            (Some(0xd800..0xe000), _) => {
                out[at + 2..at + 6].copy_from_slice(b"fffd");
                changed = true;
                at += 6;
            }
            _ => at += 2,
        }
    }
    changed.then(|| out.into())
}

/// The number in `\uabcd`.
fn escaped(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// What is said about text that is nested too deeply.
pub(super) fn too_deep(bracket: u8) -> String {
    format!("invalid character {} exceeded max depth", quoted(bracket))
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        0x80..0xa0 => format!("'\\u{byte:04x}'"),
        other => format!("'{}'", char::from(other).escape_debug()),
    }
}
