//! An image on a web server.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::TryFutureExt as _;
use futures::stream::{self, Stream};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep, timeout};

use super::ask::{read_head, root_cause};
use super::kept::KeptReading;
use super::url::ImageUrl;
use super::version::Version;
use super::{FetchError, Fetcher};
use crate::iso::{Source, SourceError};

/// How often in a row a connection may break without a byte having come: servers restart, and kept connections are reset.
const SETBACKS: u32 = 2;
const PAUSE: Duration = Duration::from_millis(250);

/// How long a stored image is believed to be what its server has.
const CONFIRMED_FOR: Duration = Duration::from_secs(10);

/// One version of an image on a web server. Reading another version is an error.
#[derive(Debug)]
pub struct HttpSource(Arc<Origin>);

/// Where the image comes from.
#[derive(Debug)]
pub(super) struct Origin {
    fetcher: Fetcher,
    url: ImageUrl,
    version: Version,
    said: Mutex<Said>,
}

/// The last answer of the server.
#[derive(Debug)]
struct Said {
    /// Where redirects led.
    landed: ImageUrl,
    /// When it was asked for this version.
    asked: Instant,
}

impl HttpSource {
    pub(crate) async fn open(fetcher: Fetcher, url: ImageUrl) -> Result<Self, FetchError> {
        // Not HEAD: signed URLs are often for GET only, and some servers promise ranges that they do not keep.
        let (response, landed) = fetcher.ask(&url, &(0..1), None).await?;
        let (version, _) = read_head(&response, &landed, None, 0)?;
        // One byte, so that the connection can be used again.
        let _ = timeout(fetcher.patience.idle, Limited::new(response.into_body(), 1).collect()).await;
        let said = Mutex::new(Said { landed, asked: Instant::now() });
        Ok(Self(Arc::new(Origin { fetcher, url, version, said })))
    }

    /// Which version of the image this is.
    pub fn version(&self) -> &Version {
        &self.0.version
    }

    /// The bytes of a range as they come: from disk if they are kept there, else in one request unless the connection breaks.
    pub fn stream(
        self: Arc<Self>,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, FetchError>> + Send + 'static {
        let bytes = async move {
            let reading = self.read(range).await?;
            let bytes = stream::try_unfold(reading, |mut reading| async move {
                Ok(reading.next().await?.map(|bytes| (bytes, reading)))
            });
            Ok(bytes)
        };
        bytes.try_flatten_stream()
    }

    async fn read(&self, range: Range<u64>) -> Result<Either, FetchError> {
        let stored = match &self.0.fetcher.cache {
            Some(cache) => cache.place(&self.0.url, &self.0.version).await.map(|stored| (cache, stored)),
            None => None,
        };
        let Some((cache, stored)) = stored else { return Ok(Either::Direct(Reading::new(self.0.clone(), range))) };
        self.0.confirm().await?;
        Ok(Either::Kept(KeptReading::new(self.0.clone(), cache, stored, range)))
    }
}

impl Source for HttpSource {
    fn size(&self) -> u64 {
        self.0.version.size()
    }

    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, SourceError> {
        let mut reading = self.read(offset..offset.saturating_add(len as u64)).await?;
        let mut bytes = BytesMut::with_capacity(len);
        while let Some(more) = reading.next().await? {
            bytes.extend_from_slice(&more);
        }
        Ok(bytes.freeze())
    }
}

impl Origin {
    /// Makes sure that the server still has this version, unless that is known. A reader of the cache would never notice: a user
    /// who has replaced an image wants the new one. A server that cannot say so is no reason not to serve what is here.
    async fn confirm(&self) -> Result<(), FetchError> {
        {
            let mut said = self.said();
            if said.asked.elapsed() < CONFIRMED_FOR {
                return Ok(());
            }
            // One asks for all.
            said.asked = Instant::now();
        }
        match self.begin(&(0..1)).await {
            Ok(mut part) => {
                let _ = part.next().await;
                Ok(())
            }
            Err(error @ FetchError::Changed { .. }) => Err(error),
            Err(error) => {
                tracing::debug!(%error, "cannot check whether an ISO has changed; serving it from disk");
                Ok(())
            }
        }
    }

    /// Asks for a range from its beginning on.
    async fn begin(&self, range: &Range<u64>) -> Result<Part, FetchError> {
        let landed = self.said().landed.clone();
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
        *self.said() = Said { landed, asked: Instant::now() };
        Ok(part)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A range that is being read, from wherever it comes.
enum Either {
    Direct(Reading),
    Kept(KeptReading),
}

impl Either {
    async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        match self {
            Self::Direct(reading) => reading.next().await,
            Self::Kept(reading) => reading.next().await,
        }
    }
}

/// A range that is being read, over as many connections as it takes.
pub(super) struct Reading {
    origin: Arc<Origin>,
    range: Range<u64>,
    at: u64,
    part: Option<Part>,
    setbacks: Setbacks,
}

impl Reading {
    pub(super) fn new(origin: Arc<Origin>, range: Range<u64>) -> Self {
        let at = range.start;
        Self { origin, range, at, part: None, setbacks: Setbacks::default() }
    }

    /// The next bytes; none at the end of the range.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        while self.at < self.range.end {
            let error = match self.advance().await {
                Ok(Some(bytes)) => {
                    self.at += bytes.len() as u64;
                    self.setbacks = Setbacks::default();
                    return Ok(Some(bytes));
                }
                Ok(None) => FetchError::Broken { origin: self.origin.url.origin(), why: "bytes are missing".into() },
                Err(error) => error,
            };
            self.setbacks.bear(error, self.at > self.range.start).await?;
            self.part = None;
        }
        Ok(None)
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, FetchError> {
        let part = match &mut self.part {
            Some(part) => part,
            None => self.part.insert(self.origin.begin(&(self.at..self.range.end)).await?),
        };
        part.next().await
    }
}

/// How often in a row something went wrong without a byte having come.
#[derive(Debug, Default)]
pub(super) struct Setbacks(u32);

impl Setbacks {
    /// Waits a little if another try is useful; `begun` means that some bytes had arrived before.
    pub(super) async fn bear(&mut self, error: FetchError, begun: bool) -> Result<(), FetchError> {
        // A server that never answered will not answer now; one that did may be restarting.
        let worth_it = match error {
            FetchError::Broken { .. } => true,
            FetchError::Changed { .. } => false,
            _ => error.is_transient() && begun,
        };
        if !worth_it || self.0 == SETBACKS {
            return Err(error);
        }
        tracing::debug!(%error, "continuing to read an ISO with a new request");
        self.0 += 1;
        sleep(PAUSE * self.0).await;
        Ok(())
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
