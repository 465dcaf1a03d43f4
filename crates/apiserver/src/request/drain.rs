//! What is left of a request that was answered before all of it had come.

use std::time::Duration;

use bytes::Buf;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::time::timeout;

/// What is read and thrown away at most.
const MOST: usize = 64 * 1024 * 1024;
/// How long the rest may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a body to its end, within reason. Who is still writing does not read our answer; and a connection that is closed while bytes are
/// on their way is reset, so that the answer is lost.
pub(crate) async fn drain<B: Body + Unpin>(mut body: B) {
    let reading = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Buf::remaining);
            if read > MOST {
                return;
            }
        }
    };
    timeout(PATIENCE, reading).await.ok();
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use futures::StreamExt as _;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    const PIECE: usize = 1024 * 1024;

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_to_its_end_but_neither_without_end_nor_for_ever() {
        let sent = AtomicUsize::new(0);
        let piece = |_| {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from(vec![0; PIECE])))
        };
        drain(StreamBody::new(futures::stream::iter(0..20).map(piece))).await;
        assert_eq!(sent.swap(0, Ordering::Relaxed), 20);
        drain(StreamBody::new(futures::stream::iter(0..1_000_000).map(piece))).await;
        assert_eq!(sent.load(Ordering::Relaxed), MOST / PIECE + 1);
        let begun = Instant::now();
        drain(StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>())).await;
        assert_eq!(begun.elapsed(), PATIENCE);
    }
}
