//! What befalls a process: it dies at a certain effect, and the API server has bad moments.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio_util::sync::CancellationToken;

/// One life of the operator's process. When it is dead, nothing that it began goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Life(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    death: CancellationToken,
    /// Effects left, and whether the last one still happens.
    sentence: Mutex<Option<(u32, bool)>>,
}

impl Life {
    /// Lets the process die at the effect that comes after so many others, before or after it happened.
    pub(super) fn condemn(&self, effects: u32, it_happens: bool) {
        *self.sentence() = Some((effects, it_happens));
    }

    /// Withdraws that.
    pub(super) fn spare(&self) {
        *self.sentence() = None;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.death.is_cancelled()
    }

    /// What the work comes to, unless the process dies over it.
    pub(super) async fn survive<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.death.run_until_cancelled(work).await
    }

    /// Comes when the process is dead.
    pub(super) async fn end(&self) {
        self.0.death.cancelled().await;
    }

    pub(super) fn die(&self) {
        self.0.death.cancel();
    }

    /// Performs an effect of this process. A dead process waits for ever.
    pub(super) async fn effect<T>(&self, effect: impl Future<Output = T>) -> T {
        let verdict = {
            let mut sentence = self.sentence();
            match &mut *sentence {
                Some((0, it_happens)) => Some(*it_happens),
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            }
        };
        if self.is_dead() || verdict == Some(false) {
            self.die();
            return std::future::pending().await;
        }
        let done = effect.await;
        if self.is_dead() || verdict == Some(true) {
            self.die();
            return std::future::pending().await;
        }
        done
    }

    fn sentence(&self) -> MutexGuard<'_, Option<(u32, bool)>> {
        self.0.sentence.lock().unwrap()
    }
}
