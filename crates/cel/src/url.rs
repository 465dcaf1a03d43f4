//! URLs as Go's `url.ParseRequestURI` takes them: absolute, or a path from the root.

use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: String,
    pub(super) host: String,
    pub(super) path: String,
    pub(super) query: String,
    user: String,
    fragment: String,
}

impl Url {
    /// `Err` is the reason.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|why| format!("{text:?} is not a URL: {why}"))
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.chars().any(|letter| letter.is_ascii_control()) {
            return Err("it has a control character");
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            if scheme.is_empty() {
                return Err("it has neither a scheme nor a path from the root");
            }
            return Ok(Self {
                scheme,
                host: String::new(),
                path: String::new(),
                query: query.to_owned(),
                user: String::new(),
                fragment: fragment.to_owned(),
            });
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
                after.split_at(after.find('/').unwrap_or(after.len()))
            }
            _ => ("", rest),
        };
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        check_host(host)?;
        check_escapes(path)?;
        Ok(Self {
            scheme,
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            user: user.to_owned(),
            fragment: fragment.to_owned(),
        })
    }

    pub(super) fn hostname(&self) -> &str {
        let (name, _) = self.split_port();
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
    }

    pub(super) fn port(&self) -> &str {
        self.split_port().1
    }

    fn split_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((name, port))
                if port.bytes().all(|digit| digit.is_ascii_digit())
                    && (!self.host.starts_with('[') || name.ends_with(']')) =>
            {
                (name, port)
            }
            _ => (&self.host, ""),
        }
    }

    /// The path as it was written, with what must be escaped escaped.
    pub(super) fn escaped_path(&self) -> String {
        let mut escaped = String::with_capacity(self.path.len());
        for byte in self.path.bytes() {
            match byte {
                b'a'..=b'z'
                | b'A'..=b'Z'
                | b'0'..=b'9'
                | b'-'
                | b'_'
                | b'.'
                | b'~'
                | b'$'
                | b'&'
                | b'+'
                | b','
                | b'/'
                | b':'
                | b';'
                | b'='
                | b'@'
                | b'%'
                | b'!'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'['
                | b']' => escaped.push(char::from(byte)),
                other => {
                    // Writing to a string cannot fail.
                    let _ = write!(escaped, "%{other:02X}");
                }
            }
        }
        escaped
    }

    /// Query parameters in the order of their names.
    pub(super) fn parameters(&self) -> BTreeMap<String, Vec<String>> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) {
                parameters.entry(key).or_default().push(value);
            }
        }
        parameters
    }
}

fn split_scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (position, letter) in text.char_indices() {
        match letter {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if position > 0 => {}
            ':' if position == 0 => return Err("its scheme is missing"),
            ':' => {
                let (scheme, rest) = text.split_at(position);
                return Ok((scheme.to_ascii_lowercase(), rest.get(1..).unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok((String::new(), text))
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let port = if host.starts_with('[') {
        let Some((_, after)) = host.rsplit_once(']') else { return Err("its host lacks a ']'") };
        after
    } else {
        host.find(':').and_then(|colon| host.get(colon..)).unwrap_or_default()
    };
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
    {
        return Err("its port is not a number");
    }
    if host.contains([' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}']) {
        return Err("its host has a character that is not allowed there");
    }
    check_escapes(host)
}

fn check_escapes(text: &str) -> Result<(), &'static str> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if text.split('%').skip(1).all(is_escape) { Ok(()) } else { Err("a '%' is not followed by two hexadecimal digits") }
}

fn unescaped(text: &str) -> Option<String> {
    check_escapes(text).ok()?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (rest.next()?, rest.next()?);
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(high)? * 16 + digit(low)?).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::parse("https://user:pw@[::1]:8443/a b/c?x=1&x=2&y=%41+b#f").unwrap();
        assert_eq!((url.scheme.as_str(), url.host.as_str()), ("https", "[::1]:8443"));
        assert_eq!((url.hostname(), url.port()), ("::1", "8443"));
        assert_eq!(url.escaped_path(), "/a%20b/c");
        let parameters = url.parameters();
        assert_eq!(parameters["x"], ["1", "2"]);
        assert_eq!(parameters["y"], ["A b"]);
        let plain = Url::parse("http://example.com").unwrap();
        assert_eq!((plain.hostname(), plain.port(), plain.path.as_str()), ("example.com", "", ""));
    }

    #[test]
    fn what_is_a_url() {
        for (text, good) in [
            ("/path", true),
            ("mailto:a@b", true),
            ("https://a", true),
            ("https://a:b/", false),
            ("a/b", false),
            ("../a", false),
            ("", false),
            (":a", false),
            ("https://a%zz/", false),
            ("https://a\u{7}/", false),
            ("https:///path", true),
        ] {
            assert_eq!(Url::parse(text).is_ok(), good, "{text}");
        }
    }
}
