//! Reading an image that is kept on disk, or is on its way there.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::FetchError;
use super::cache::{Cache, Found, Reader, Run, Stored, arrival};
use super::source::{Origin, Reading, Setbacks};

/// Writes smaller than this cost more than they are worth; for larger ones, readers of slow servers would wait.
const WRITE: usize = 128 * 1024;

/// A range of a kept image that is being read.
pub(super) struct KeptReading {
    origin: Arc<Origin>,
    cache: Arc<Cache>,
    stored: Arc<Stored>,
    reader: Reader,
    range: Range<u64>,
    at: u64,
    setbacks: Setbacks,
    /// The last buffer that was given out. When nobody else uses it, its memory is reused.
    given: Bytes,
    /// When the disk has failed.
    direct: Option<Reading>,
}

impl KeptReading {
    pub(super) fn new(origin: Arc<Origin>, cache: &Arc<Cache>, stored: Arc<Stored>, range: Range<u64>) -> Self {
        Self {
            origin,
            cache: cache.clone(),
            stored,
            reader: cache.reader(),
            at: range.start,
            range,
            setbacks: Setbacks::default(),
            given: Bytes::new(),
            direct: None,
        }
    }

    /// The next bytes; none at the end of the range.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        while self.at < self.range.end {
            if let Some(direct) = &mut self.direct {
                return direct.next().await;
            }
            match self.stored.find(&(self.at..self.range.end)) {
                Found::Here(until) => match self.read(until).await {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(error) => {
                        self.stored.give_up(&error);
                        self.go_direct();
                    }
                },
                Found::Coming(going) => {
                    if let Err(error) = arrival(going, self.at).await {
                        self.setbacks.bear(error, self.at > self.range.start).await?;
                    }
                }
                Found::Missing(run) => drop(self.cache.tasks.spawn(fetch(self.origin.clone(), run))),
                Found::Nowhere => self.go_direct(),
            }
        }
        Ok(None)
    }

    fn go_direct(&mut self) {
        self.direct = Some(Reading::new(self.origin.clone(), self.at..self.range.end));
    }

    /// What is on disk up to there, as much as one buffer takes.
    async fn read(&mut self, until: u64) -> io::Result<Bytes> {
        let size = self.reader.buffer();
        let wanted = usize::try_from(until.min(self.range.end) - self.at).unwrap_or(usize::MAX).min(size);
        let spare = std::mem::take(&mut self.given).try_into_mut().ok();
        // A buffer that is too large is freed: there are more readers now.
        let mut buffer = spare.filter(|spare| spare.capacity() <= size).unwrap_or_default();
        buffer.resize(wanted, 0);
        let bytes = self.stored.read(self.at, buffer).await?.freeze();
        self.at += bytes.len() as u64;
        self.setbacks = Setbacks::default();
        self.given = bytes.clone();
        Ok(bytes)
    }
}

/// Fetches a part for all waiting readers. Continues if they disconnect: the next ones will need it.
async fn fetch(origin: Arc<Origin>, mut run: Run) {
    let stored = run.store();
    let _turn = stored.turn().await;
    let mut reading = Reading::new(origin, run.range().clone());
    loop {
        let (pieces, end) = gather(&mut reading).await;
        if !pieces.is_empty() && !run.add(pieces).await {
            return;
        }
        match end {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => return run.fail(error),
        }
    }
}

/// What comes next, until it is worth a write, and whether that was the end.
async fn gather(reading: &mut Reading) -> (Vec<Bytes>, Result<bool, FetchError>) {
    let (mut pieces, mut len) = (Vec::new(), 0);
    while len < WRITE {
        match reading.next().await {
            Ok(Some(bytes)) => {
                len += bytes.len();
                pieces.push(bytes);
            }
            Ok(None) => return (pieces, Ok(true)),
            Err(error) => return (pieces, Err(error)),
        }
    }
    (pieces, Ok(false))
}
