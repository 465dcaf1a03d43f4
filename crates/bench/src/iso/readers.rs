//! Readers that cost next to nothing themselves: a thread, a socket and a buffer each, and no HTTP library.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::future::try_join_all;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

/// Larger ones do not make them faster.
const BUFFER: usize = 256 * 1024;
/// What a BMC asks for when it reads by ranges.
const RANGE: u64 = 1024 * 1024;
/// What a slow reader takes at a time.
const SIP: usize = 64 * 1024;
const PAUSE: Duration = Duration::from_millis(20);

/// An image on a server.
#[derive(Debug, Clone)]
pub(super) struct Target {
    authority: String,
    path: String,
}

impl Target {
    pub(super) fn new(authority: String, path: String) -> Self {
        Self { authority, path }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    /// How long the image is. Whoever prepares it before it is served has done so when this returns.
    pub(super) async fn size(&self) -> Result<u64> {
        let target = self.clone();
        spawn_blocking(move || Ok(Answer::open(&target, "HEAD", None)?.left)).await?
    }
}

/// An answer that is being read.
struct Answer {
    stream: TcpStream,
    /// What came with the head.
    early: u64,
    left: u64,
}

impl Answer {
    fn open(target: &Target, method: &str, range: Option<&Range<u64>>) -> Result<Self> {
        let mut stream = TcpStream::connect(&target.authority)?;
        let range = range.map(|range| format!("Range: bytes={}-{}\r\n", range.start, range.end - 1));
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n",
            target.path,
            target.authority,
            range.unwrap_or_default()
        );
        stream.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        let mut buffer = [0; 4096];
        let end = loop {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                bail!("{} ended before the head of its answer", target.url());
            }
            head.extend_from_slice(&buffer[..read]);
            if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let early = (head.len() - end) as u64;
        let head = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
        if !head.starts_with("http/1.1 20") {
            bail!("{} answered {}", target.url(), head.lines().next().unwrap_or_default());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let left = length.context("no length")?.trim().parse()?;
        Ok(Self { stream, early, left })
    }

    /// Reads up to so many bytes of the rest; says how many these were.
    fn read(&mut self, at_most: u64, buffer: &mut [u8]) -> Result<u64> {
        let mut read = std::mem::take(&mut self.early);
        while read < at_most.min(self.left) {
            let more = self.stream.read(buffer)?;
            if more == 0 {
                bail!("an answer broke off with {} bytes missing", self.left - read);
            }
            read += more as u64;
        }
        self.left = self.left.saturating_sub(read);
        Ok(read)
    }
}

/// Many read as fast as they can, each a share of the image, at as many places as there are shares; returns how many bytes came.
pub(super) async fn read_fast(target: &Target, readers: u64, shares: u64, size: u64) -> Result<u64> {
    let readers = (0..readers).map(|number| {
        let target = target.clone();
        let start = size / shares * (number % shares);
        async move {
            spawn_blocking(move || {
                let mut answer = Answer::open(&target, "GET", Some(&(start..start + size / shares)))?;
                answer.read(u64::MAX, &mut vec![0; BUFFER])
            })
            .await?
        }
    });
    Ok(try_join_all(readers).await?.iter().sum())
}

/// Many read at leisure for a while: every other one the whole image in sips, the others ranges at any place.
pub(super) async fn read_slowly(target: &Target, readers: usize, during: Duration) -> Result<u64> {
    let size = target.size().await?;
    let end = Instant::now() + during;
    let readers = (0..readers).map(|number| async move {
        if number % 2 == 0 { sip(target, end).await } else { jump(target, size, end).await }
    });
    Ok(try_join_all(readers).await?.iter().sum())
}

async fn sip(target: &Target, end: Instant) -> Result<u64> {
    let asked = target.clone();
    let mut answer = spawn_blocking(move || Answer::open(&asked, "GET", None)).await??;
    let mut read = 0;
    while Instant::now() < end && answer.left > 0 {
        sleep(PAUSE).await;
        let sip;
        (answer, sip) = spawn_blocking(move || {
            let sip = answer.read(SIP as u64, &mut vec![0; SIP])?;
            anyhow::Ok((answer, sip))
        })
        .await??;
        read += sip;
    }
    Ok(read)
}

async fn jump(target: &Target, size: u64, end: Instant) -> Result<u64> {
    let mut read = 0;
    while Instant::now() < end {
        sleep(PAUSE * 10).await;
        let start = fastrand::u64(..size - RANGE);
        let asked = target.clone();
        read += spawn_blocking(move || {
            let mut answer = Answer::open(&asked, "GET", Some(&(start..start + RANGE)))?;
            answer.read(u64::MAX, &mut vec![0; BUFFER])
        })
        .await??;
    }
    Ok(read)
}
