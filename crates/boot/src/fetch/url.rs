//! The URL of an image, and where redirects lead.

use std::fmt;

use http::Uri;
use http::uri::{PathAndQuery, Scheme};

use super::FetchError;

/// An absolute HTTP(S) URL without user name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ImageUrl {
    uri: Uri,
}

impl ImageUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, FetchError> {
        Self::read(text).map_err(|why| FetchError::UrlInvalid { why })
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text.parse().map_err(|_| "it is not a URL")?;
        if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err("it must begin with http:// or https://");
        }
        match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => Err("it must not contain a user name or password"),
            Some(authority) if !authority.host().is_empty() => Ok(Self { uri }),
            _ => Err("it names no host"),
        }
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// What may be shown: no path, no query.
    pub(crate) fn origin(&self) -> String {
        origin(&self.uri)
    }

    /// Where a `Location` leads.
    pub(crate) fn follow(&self, location: &str) -> Result<Self, FetchError> {
        let refused = |why| FetchError::RedirectRefused { origin: self.origin(), why };
        let next = Self::read(&self.absolute(location)).map_err(refused)?;
        if self.is_secure() && !next.is_secure() {
            return Err(refused("it leads from HTTPS to HTTP, where anybody on the way could change the ISO"));
        }
        Ok(next)
    }

    fn absolute(&self, location: &str) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let path = self.uri.path();
        let before_colon = location.split(['/', '?', '#']).next().unwrap_or_default();
        if before_colon.contains(':') {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{scheme}:{location}")
        } else if location.starts_with('/') {
            format!("{}{location}", self.origin())
        } else if location.is_empty() || location.starts_with(['?', '#']) {
            format!("{}{path}{location}", self.origin())
        } else {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{}{folder}/{location}", self.origin())
        }
    }

    fn is_secure(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }
}

pub(crate) fn origin(uri: &Uri) -> String {
    format!("{}://{}", uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |authority| authority.as_str()))
}

/// Without the query, which may be a signature.
impl fmt::Debug for ImageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.uri.path_and_query().map_or("", PathAndQuery::path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_where_browsers_would_go() {
        let from = ImageUrl::parse("https://a:1/b/c.iso?secret").unwrap();
        for (location, to) in [
            ("https://x/y", "https://x/y"),
            ("//x/y?q", "https://x/y?q"),
            ("/y:z", "https://a:1/y:z"),
            ("d.iso", "https://a:1/b/d.iso"),
            ("?q", "https://a:1/b/c.iso?q"),
            ("", "https://a:1/b/c.iso"),
        ] {
            assert_eq!(from.follow(location).unwrap().uri().to_string(), to, "{location}");
        }
        for location in ["http://x/y", "ftp://x/y", "file:///etc/passwd", "https://u:p@x/", "https://", "data:,x"] {
            assert!(matches!(from.follow(location), Err(FetchError::RedirectRefused { .. })), "{location}");
        }
    }

    #[test]
    fn only_urls_that_can_be_shown_are_taken_and_queries_are_not_shown() {
        for url in ["", "a.iso", "/a.iso", "ftp://a/b", "http://u:p@a/b", "http://", "http:///b", "nfs://a/b"] {
            assert!(matches!(ImageUrl::parse(url), Err(FetchError::UrlInvalid { .. })), "{url}");
        }
        assert_eq!(format!("{:?}", ImageUrl::parse("http://a/b?secret").unwrap()), "http://a/b");
    }
}
