//! One question to a web server, and what its answer means.

use std::error::Error as StdError;
use std::ops::Range;

use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, IF_RANGE, LOCATION, RANGE, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use tokio::time::timeout;

use super::url::ImageUrl;
use super::version::Version;
use super::{FetchError, Fetcher};

const REDIRECTS: usize = 5;
/// What an ISO may have: a tebibyte, ten times the largest disc. Sums of such numbers do not overflow.
const LONGEST: u64 = 1 << 40;

impl Fetcher {
    /// Sends one request, and follows redirects. Returns the final URL with the answer.
    pub(super) async fn ask(
        &self,
        url: &ImageUrl,
        range: &Range<u64>,
        version: Option<&Version>,
    ) -> Result<(Response<Incoming>, ImageUrl), FetchError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let response = self.send(&url, range, version).await?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok((response, url));
            }
            let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            url = url.follow(location.unwrap_or_default())?;
        }
        Err(FetchError::RedirectRefused { origin: url.origin(), why: "these were more than five in a row" })
    }

    async fn send(
        &self,
        url: &ImageUrl,
        range: &Range<u64>,
        version: Option<&Version>,
    ) -> Result<Response<Incoming>, FetchError> {
        let mut request = Request::get(url.uri().clone())
            .header(RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, concat!("beskar7/", env!("CARGO_PKG_VERSION")));
        if let Some(mark) = version.and_then(Version::if_range) {
            request = request.header(IF_RANGE, mark);
        }
        let request = request.body(Empty::new()).map_err(|_| FetchError::UrlInvalid { why: "it is not a URL" })?;
        let Ok(response) = timeout(self.patience.first_byte, self.client.request(request)).await else {
            let why = format!("no answer within {} s", self.patience.first_byte.as_secs());
            return Err(FetchError::Unreachable { origin: url.origin(), why });
        };
        response.map_err(|error| explain(&error, url))
    }
}

/// From the head of an answer: the version of the whole image, and where the sent part ends.
pub(super) fn read_head<B>(
    response: &Response<B>,
    from: &ImageUrl,
    pinned: Option<&Version>,
    start: u64,
) -> Result<(Version, u64), FetchError> {
    let origin = from.origin();
    match (response.status(), pinned) {
        (StatusCode::PARTIAL_CONTENT, _) => {
            let said = response.headers().get(CONTENT_RANGE).and_then(|said| said.to_str().ok());
            let Some((first, last, total)) = said.and_then(content_range) else {
                return Err(FetchError::NoLength { origin });
            };
            if total > LONGEST {
                return Err(FetchError::TooLarge { origin, bytes: total });
            }
            if first != start || last < first || last >= total {
                return Err(FetchError::NoRanges { origin });
            }
            Ok((Version::new(response.headers(), total), last + 1))
        }
        // The whole image in answer to If-Range means another version, unless it is the same one.
        (StatusCode::OK, Some(pinned))
            if !pinned.agrees(&Version::new(response.headers(), length(response, pinned))) =>
        {
            Err(FetchError::Changed { origin })
        }
        (StatusCode::OK, _) => Err(FetchError::NoRanges { origin }),
        (StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
            Err(FetchError::Changed { origin })
        }
        (status, _) => Err(FetchError::Refused { origin, status }),
    }
}

fn length<B>(response: &Response<B>, pinned: &Version) -> u64 {
    let said = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    said.unwrap_or(pinned.size())
}

/// `bytes 0-9/100` as numbers.
fn content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?, total.trim().parse().ok()?))
}

fn explain(error: &legacy::Error, url: &ImageUrl) -> FetchError {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(ours) = current.downcast_ref::<FetchError>() {
            return ours.clone();
        }
        cause = current.source();
    }
    FetchError::Broken { origin: url.origin(), why: root_cause(error) }
}

pub(super) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_an_answer_says_what_comes() {
        let from = ImageUrl::parse("http://a/b").unwrap();
        let answer = |status: u16, range: &str, pinned: bool| {
            let pinned = pinned.then(|| Version::new(&http::HeaderMap::new(), 100));
            let response = Response::builder().status(status).header(CONTENT_RANGE, range).header(CONTENT_LENGTH, 7);
            let read = read_head(&response.body(()).unwrap(), &from, pinned.as_ref(), 10);
            read.map(|(version, end)| (version.size(), end)).map_err(|error| error.reason())
        };
        for (status, range, pinned, expected) in [
            (206, "bytes 10-19/100", true, Ok((100, 20))),
            (206, "bytes 10-19/100", false, Ok((100, 20))),
            (206, "bytes 10-99/100", true, Ok((100, 100))),
            (206, "bytes 10-19/18446744073709551615", false, Err("IsoTooLarge")),
            (206, "bytes 10-19/1099511627777", true, Err("IsoTooLarge")),
            (206, "bytes 10-19/1099511627776", true, Ok((1 << 40, 20))),
            (206, "bytes 10-19/*", false, Err("IsoServerWithoutLength")),
            (206, "", false, Err("IsoServerWithoutLength")),
            (206, "bytes 0-19/100", true, Err("IsoServerWithoutRanges")),
            (206, "bytes 10-100/100", true, Err("IsoServerWithoutRanges")),
            (200, "", false, Err("IsoServerWithoutRanges")),
            (200, "", true, Err("IsoChanged")),
            (412, "", true, Err("IsoChanged")),
            (416, "", true, Err("IsoChanged")),
            (416, "", false, Err("IsoServerRefused")),
            (404, "", true, Err("IsoNotFound")),
            (503, "", true, Err("IsoServerRefused")),
        ] {
            assert_eq!(answer(status, range, pinned), expected, "{status} {range}");
        }
    }
}
