//! The images that are being served.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::{Image, IsoOrder, Problem};
use crate::fetch::{FetchError, Fetcher};

/// A plan is mostly some 50 KB; the worst one is 8 MiB.
const WEIGHT: usize = 8 * 1024 * 1024;
const COUNT: usize = 512;
/// How long a failure is the answer to everybody: fifty BMCs that retry must not be fifty downloads.
const FAILED_FOR: Duration = Duration::from_secs(5);
/// How long preparing may take: a few megabytes at most, mostly far less. A server that sends a byte now and then is never idle for long.
const MADE_WITHIN: Duration = Duration::from_mins(2);
/// How long an image counts as unchanged if its server sends no version.
const UNCERTAIN_FOR: Duration = Duration::from_mins(10);

/// Prepares images, each once for all readers, and keeps the latest.
pub struct Images {
    fetcher: Fetcher,
    tasks: TaskTracker,
    stock: Mutex<Stock>,
}

#[derive(Default)]
struct Stock {
    places: HashMap<IsoOrder, Place>,
    /// Counts uses.
    uses: u64,
}

struct Place {
    making: Shared<BoxFuture<'static, Made>>,
    /// Number of its last use.
    used: u64,
}

#[derive(Clone)]
struct Made {
    at: Instant,
    outcome: Result<Arc<Image>, Problem>,
}

impl Images {
    /// None yet.
    pub fn new(fetcher: Fetcher) -> Self {
        Self { fetcher, tasks: TaskTracker::new(), stock: Mutex::default() }
    }

    /// The image of an order: made now, or before. Preparing goes on when the caller stops waiting, because BMCs that time out
    /// ask again. Also used to check whether an image can be served at all, before a BMC gets its URL.
    pub async fn prepare(&self, order: &IsoOrder) -> Result<Arc<Image>, Problem> {
        let making = {
            let mut stock = self.stock();
            stock.uses += 1;
            let used = stock.uses;
            if let Some(place) = stock.places.get_mut(order).filter(|place| place.is_fresh()) {
                place.used = used;
                place.making.clone()
            } else {
                let making = self.make(order.clone());
                stock.places.insert(order.clone(), Place { making: making.clone(), used });
                making
            }
        };
        let outcome = making.await.outcome;
        self.stock().tidy();
        outcome
    }

    /// Prepares an image again for the next reader, unless that has happened already.
    pub fn forget(&self, order: &IsoOrder, image: &Arc<Image>) {
        let mut stock = self.stock();
        if stock.places.get(order).and_then(Place::image).is_some_and(|current| Arc::ptr_eq(&current, image)) {
            stock.places.remove(order);
        }
    }

    fn make(&self, order: IsoOrder) -> Shared<BoxFuture<'static, Made>> {
        let fetcher = self.fetcher.clone();
        let task = self.tasks.spawn(async move {
            let made = timeout(MADE_WITHIN, Image::make(&fetcher, &order)).await;
            let outcome = made.unwrap_or_else(|_| {
                Err(FetchError::TooSlow { origin: Fetcher::origin_of(&order.url), within: MADE_WITHIN }.into())
            });
            let outcome = outcome.map(Arc::new);
            Made { at: Instant::now(), outcome }
        });
        let made = async move {
            task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "preparing an ISO failed");
                Made { at: Instant::now(), outcome: Err(Problem::Internal) }
            })
        };
        made.boxed().shared()
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock {
    /// Removes what was unused for longest. A reader of a removed image keeps it until it is done.
    fn tidy(&mut self) {
        loop {
            let weight: usize = self.places.values().filter_map(Place::image).map(|image| image.weight()).sum();
            if self.places.len() <= COUNT && weight <= WEIGHT {
                return;
            }
            let done = self.places.iter().filter(|(_, place)| place.made().is_some());
            let Some(oldest) = done.min_by_key(|(_, place)| place.used).map(|(order, _)| order.clone()) else { return };
            self.places.remove(&oldest);
        }
    }
}

impl Place {
    /// Its result, if it is done. Polls the future instead of peeking, since nobody may have awaited it.
    fn made(&self) -> Option<Made> {
        self.making.clone().now_or_never()
    }

    fn image(&self) -> Option<Arc<Image>> {
        self.made().and_then(|made| made.outcome.ok())
    }

    /// Whether it may be given to one more. What is being made always may.
    fn is_fresh(&self) -> bool {
        self.made().is_none_or(|made| match made.outcome {
            Ok(image) => image.is_certain() || made.at.elapsed() < UNCERTAIN_FOR,
            Err(_) => made.at.elapsed() < FAILED_FOR,
        })
    }
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Images").field("count", &self.stock().places.len()).finish_non_exhaustive()
    }
}
