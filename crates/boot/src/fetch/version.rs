//! Which version of an image a server has.

use http::HeaderMap;
use http::header::{ETAG, HeaderName, HeaderValue, LAST_MODIFIED};

/// The version of a file, as its server sends it. Different versions are different files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
    size: u64,
}

impl Version {
    pub(crate) fn new(headers: &HeaderMap, size: u64) -> Self {
        let own = |name: HeaderName| headers.get(name).cloned();
        Self { etag: own(ETAG), modified: own(LAST_MODIFIED), size }
    }

    /// How many bytes the file has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the server would say so if the file were replaced by one of the same size.
    pub fn is_certain(&self) -> bool {
        self.etag.is_some() || self.modified.is_some()
    }

    /// What to send as `If-Range`: only a strong mark is allowed there.
    pub(crate) fn if_range(&self) -> Option<&HeaderValue> {
        let strong = self.etag.as_ref().filter(|etag| !etag.as_bytes().starts_with(b"W/"));
        strong.or(self.modified.as_ref())
    }

    /// Whether an answer with these headers has the same version. A header that later answers omit is ignored.
    pub(crate) fn agrees(&self, later: &Self) -> bool {
        let same = |ours: &Option<HeaderValue>, theirs: &Option<HeaderValue>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        // Mirrors behind one name agree on ETags more often than on times, so an ETag decides alone.
        let etags = self.etag.is_some() && later.etag.is_some();
        self.size == later.size && same(&self.etag, &later.etag) && (etags || same(&self.modified, &later.modified))
    }

    /// Bytes that differ for versions that differ.
    pub(crate) fn fingerprint(&self) -> Vec<u8> {
        let mark = self.etag.as_ref().or(self.modified.as_ref());
        [&self.size.to_be_bytes()[..], mark.map_or(&[][..], HeaderValue::as_bytes)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(etag: &'static str, modified: &'static str, size: u64) -> Version {
        let value = |text: &'static str| (!text.is_empty()).then(|| HeaderValue::from_static(text));
        Version { etag: value(etag), modified: value(modified), size }
    }

    #[test]
    fn only_a_strong_mark_is_sent_as_if_range() {
        for (etag, modified, expected) in [
            ("\"a\"", "Mon", Some("\"a\"")),
            ("W/\"a\"", "Mon", Some("Mon")),
            ("W/\"a\"", "", None),
            ("", "Mon", Some("Mon")),
            ("", "", None),
        ] {
            let version = version(etag, modified, 1);
            assert_eq!(version.if_range().map(HeaderValue::as_bytes), expected.map(str::as_bytes), "{etag} {modified}");
        }
    }

    #[test]
    fn a_replaced_file_is_noticed_and_silence_is_not_a_replacement() {
        let pinned = version("\"a\"", "Mon", 1);
        for (later, agrees) in [
            (version("\"a\"", "Mon", 1), true),
            (version("\"a\"", "Tue", 1), true),
            (version("", "Mon", 1), true),
            (version("", "", 1), true),
            (version("\"b\"", "Mon", 1), false),
            (version("", "Tue", 1), false),
            (version("\"a\"", "Mon", 2), false),
        ] {
            assert_eq!(pinned.agrees(&later), agrees, "{later:?}");
        }
        assert_ne!(pinned.fingerprint(), version("\"b\"", "Mon", 1).fingerprint());
        assert_ne!(pinned.fingerprint(), version("\"a\"", "Mon", 2).fingerprint());
    }
}
