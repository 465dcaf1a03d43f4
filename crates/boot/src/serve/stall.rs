//! Connections that end when the other side stops taking what it asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes must make progress. Without it, a client that never reads would hold its connection, a buffer and a
/// connection to the user's server for ever.
pub(super) struct Unstalled<S> {
    io: S,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstalled<S> {
    pub(super) fn new(io: S, patience: Duration) -> Self {
        Self { io, patience, waiting: None }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.waiting = None;
            return progress;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.io).poll_write(context, buffer);
        self.judge(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.io).poll_write_vectored(context, buffers);
        self.judge(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.io).poll_flush(context);
        self.judge(context, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.io).poll_shutdown(context);
        self.judge(context, progress)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_is_left_and_a_slow_one_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut ours = Unstalled::new(ours, Duration::from_mins(1));
        let slow = async {
            let mut buffer = [0; 10];
            for _ in 0..10 {
                sleep(Duration::from_secs(50)).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(ours.write_all(&[1; 100]), slow);
        written.unwrap();
        let begun = Instant::now();
        let error = ours.write_all(&[1; 11]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 60));
    }
}
