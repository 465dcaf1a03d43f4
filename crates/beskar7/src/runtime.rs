//! What asynchronous work of long-running commands runs on.

use std::num::NonZeroUsize;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// DNS look-ups and files are all that blocks. Each thread more has a heap of its own.
const BLOCKING_THREADS: usize = 4;

/// A runtime with so many threads that do the work.
pub(crate) fn start(threads: NonZeroUsize) -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(threads.get())
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start")
}
