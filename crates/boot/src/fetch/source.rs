//! An image on a web server.

use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, Stream};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use super::ask::{read_head, root_cause};
use super::url::ImageUrl;
use super::version::Version;
use super::{FetchError, Fetcher};
use crate::iso::{Source, SourceError};

/// How often in a row a connection may break without a byte having come: servers restart, and kept connections are reset.
const SETBACKS: u32 = 2;
const PAUSE: Duration = Duration::from_millis(250);

/// One version of an image on a web server. Reading another version is an error.
#[derive(Debug)]
pub struct HttpSource {
    fetcher: Fetcher,
    url: ImageUrl,
    /// Where redirects led the last time.
    landed: Mutex<ImageUrl>,
    version: Version,
}

impl HttpSource {
    pub(crate) async fn open(fetcher: Fetcher, url: ImageUrl) -> Result<Self, FetchError> {
        // Not HEAD: signed URLs are often for GET only, and some servers promise ranges that they do not keep.
        let (response, landed) = fetcher.ask(&url, &(0..1), None).await?;
        let (version, _) = read_head(&response, &landed, None, 0)?;
        // One byte, so that the connection can be used again.
        let _ = timeout(fetcher.patience.idle, Limited::new(response.into_body(), 1).collect()).await;
        Ok(Self { fetcher, url, landed: Mutex::new(landed), version })
    }

    /// Which version of the image this is.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The bytes of a range as they come, in one request unless the connection breaks.
    pub fn stream(
        self: Arc<Self>,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, FetchError>> + Send + 'static {
        stream::try_unfold(Reading::new(self, range), |mut reading| async move {
            Ok(reading.next().await?.map(|bytes| (bytes, reading)))
        })
    }

    /// Asks for a range from its beginning on.
    async fn begin(&self, range: &Range<u64>) -> Result<Part, FetchError> {
        let landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match self.begin_at(&landed, range).await {
            // Where a redirect led is often signed for a few minutes only.
            Err(FetchError::Refused { status, .. }) if status.is_client_error() && landed != self.url => {
                self.begin_at(&self.url, range).await
            }
            other => other,
        }
    }

    async fn begin_at(&self, url: &ImageUrl, range: &Range<u64>) -> Result<Part, FetchError> {
        let (response, landed) = self.fetcher.ask(url, range, Some(&self.version)).await?;
        let (version, end) = read_head(&response, &landed, Some(&self.version), range.start)?;
        if !self.version.agrees(&version) {
            return Err(FetchError::Changed { origin: landed.origin() });
        }
        let left = end.min(range.end).saturating_sub(range.start);
        let part = Part { body: response.into_body(), left, idle: self.fetcher.patience.idle, origin: landed.origin() };
        *self.landed.lock().unwrap_or_else(PoisonError::into_inner) = landed;
        Ok(part)
    }
}

impl Source for HttpSource {
    fn size(&self) -> u64 {
        self.version.size()
    }

    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, SourceError> {
        let mut reading = Reading::new(self, offset..offset.saturating_add(len as u64));
        let mut bytes = BytesMut::with_capacity(len);
        while let Some(more) = reading.next().await? {
            bytes.extend_from_slice(&more);
        }
        Ok(bytes.freeze())
    }
}

/// A range that is being read, over as many connections as it takes.
struct Reading<S> {
    source: S,
    range: Range<u64>,
    at: u64,
    part: Option<Part>,
    setbacks: u32,
}

impl<S: Deref<Target = HttpSource>> Reading<S> {
    fn new(source: S, range: Range<u64>) -> Self {
        let at = range.start;
        Self { source, range, at, part: None, setbacks: 0 }
    }

    /// The next bytes; none at the end of the range.
    async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        while self.at < self.range.end {
            let error = match self.advance().await {
                Ok(Some(bytes)) => {
                    self.at += bytes.len() as u64;
                    self.setbacks = 0;
                    return Ok(Some(bytes));
                }
                Ok(None) => FetchError::Broken { origin: self.source.url.origin(), why: "bytes are missing".into() },
                Err(error) => error,
            };
            // Whoever never answered will not answer now; whoever did is perhaps being restarted.
            let worth_it = match error {
                FetchError::Broken { .. } => true,
                FetchError::Changed { .. } => false,
                _ => error.is_transient() && self.at > self.range.start,
            };
            if !worth_it || self.setbacks == SETBACKS {
                return Err(error);
            }
            tracing::debug!(%error, at = self.at, "reading an ISO goes on with a new request");
            self.part = None;
            self.setbacks += 1;
            sleep(PAUSE * self.setbacks).await;
        }
        Ok(None)
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, FetchError> {
        let part = match &mut self.part {
            Some(part) => part,
            None => self.part.insert(self.source.begin(&(self.at..self.range.end)).await?),
        };
        part.next().await
    }
}

/// The body of one answer.
struct Part {
    body: Incoming,
    /// How many of its bytes are wanted.
    left: u64,
    idle: Duration,
    origin: String,
}

impl Part {
    async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let broken = |why: String| FetchError::Broken { origin: self.origin.clone(), why };
        while self.left > 0 {
            let frame = match timeout(self.idle, self.body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(broken(root_cause(&error))),
                Ok(None) => return Err(broken(format!("{} bytes are missing", self.left))),
                Err(_) => return Err(broken(format!("nothing came for {} s", self.idle.as_secs()))),
            };
            let Ok(mut bytes) = frame.into_data() else { continue };
            bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            if !bytes.is_empty() {
                self.left -= bytes.len() as u64;
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}
