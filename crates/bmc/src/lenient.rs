//! JSON as BMCs write it: with a byte order mark, in another encoding than UTF-8, or with control characters in texts.

use serde_json::{Error, Value};

/// The value of a body. What is no UTF-8 in it becomes a replacement character; one bad name spoils nothing else.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Error> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body).or_else(|error| {
        let text = String::from_utf8_lossy(body);
        serde_json::from_str(&text).or_else(|_| {
            let text = text.replace(|c: char| c.is_control(), " ");
            serde_json::from_str(&text).map_err(|_| error)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn a_byte_order_mark_latin_1_and_line_breaks_in_texts_spoil_nothing() {
        assert_eq!(parse(b"\xef\xbb\xbf{\"Id\": \"1\"}").unwrap(), json!({"Id": "1"}));
        assert_eq!(parse(b"{\"Id\": \"M\xfcnchen\"}").unwrap(), json!({"Id": "M\u{fffd}nchen"}));
        assert_eq!(parse(b"{\"Id\": \"a\nb\", \"N\": \"\xff\"}").unwrap(), json!({"Id": "a b", "N": "\u{fffd}"}));
        for body in [&b""[..], b"{", b"<html>", b"\xff\xfe"] {
            parse(body).unwrap_err();
        }
    }
}
