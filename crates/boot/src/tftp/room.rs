//! Limits transfers, per address and in all. Those that were never answered end first.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netboot::tftp::ReadRequest;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A transfer without progress for that long ends if its slot is needed.
const STALLED: Duration = Duration::from_secs(5);
/// How late the network delivers a request twice. After that, it is a client that started anew with the port that it had before.
const REPEATED_WITHIN: Duration = Duration::from_secs(1);

/// The transfers that there are.
pub(super) struct Room {
    in_all: usize,
    per_address: usize,
    opened: Instant,
    guests: Mutex<Guests>,
    end: CancellationToken,
}

#[derive(Default)]
struct Guests {
    by_client: HashMap<SocketAddr, Guest>,
    last: u64,
}

struct Guest {
    number: u64,
    request: ReadRequest,
    pulse: Arc<Pulse>,
    end: CancellationToken,
}

/// Written with each acknowledgement, so without a lock.
struct Pulse {
    answered: AtomicBool,
    /// In milliseconds since the room was opened.
    heard: AtomicU64,
}

/// A slot for one transfer. Free when it is dropped.
pub(super) struct Place {
    room: Arc<Room>,
    client: SocketAddr,
    number: u64,
    pulse: Arc<Pulse>,
    end: CancellationToken,
}

/// What becomes of a request.
pub(super) enum Admission {
    Place(Place),
    /// Its transfer is under way.
    Repeated,
    Full,
}

impl Room {
    pub(super) fn new(in_all: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self {
            in_all,
            per_address,
            opened: Instant::now(),
            guests: Mutex::default(),
            end: CancellationToken::new(),
        })
    }

    /// A slot for a transfer to this client. If there is none left, an unanswered or stalled transfer ends, of the same address if
    /// that one has used up its share.
    pub(super) fn admit(self: &Arc<Self>, client: SocketAddr, request: &ReadRequest) -> Admission {
        let now = self.now();
        let mut guests = self.guests();
        match guests.by_client.get(&client) {
            Some(guest) if guest.request == *request && guest.is_alive(now) => return Admission::Repeated,
            Some(_) => guests.put_out(client),
            None => {}
        }
        let address = client.ip().to_canonical();
        let is_neighbour = |guest: &SocketAddr| guest.ip().to_canonical() == address;
        let address_is_full = guests.by_client.keys().filter(|guest| is_neighbour(guest)).count() >= self.per_address;
        if address_is_full || guests.by_client.len() >= self.in_all {
            match guests.dispensable(now, |guest| !address_is_full || is_neighbour(guest)) {
                Some(dispensable) => guests.put_out(dispensable),
                None => return Admission::Full,
            }
        }
        guests.last += 1;
        let (number, end) = (guests.last, self.end.child_token());
        let pulse = Arc::new(Pulse { answered: AtomicBool::new(false), heard: AtomicU64::new(millis(now)) });
        let guest = Guest { number, request: request.clone(), pulse: pulse.clone(), end: end.clone() };
        guests.by_client.insert(client, guest);
        Admission::Place(Place { room: self.clone(), client, number, pulse, end })
    }

    /// Ends the transfers that were never answered.
    pub(super) fn end_unanswered(&self) {
        for guest in self.guests().by_client.values().filter(|guest| !guest.is_answered()) {
            guest.end.cancel();
        }
    }

    /// Ends all transfers, also those to come.
    pub(super) fn end_all(&self) {
        self.end.cancel();
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests {
    fn put_out(&mut self, client: SocketAddr) {
        if let Some(guest) = self.by_client.remove(&client) {
            guest.end.cancel();
        }
    }

    /// Who waits longest for an answer, else who is stalled longest.
    fn dispensable(&self, now: Duration, eligible: impl Fn(&SocketAddr) -> bool) -> Option<SocketAddr> {
        let eligible = self.by_client.iter().filter(|(client, _)| eligible(client));
        eligible
            .filter(|(_, guest)| !guest.is_answered() || guest.silent_for(now) >= STALLED)
            .min_by_key(|(_, guest)| (guest.is_answered(), guest.pulse.heard.load(Ordering::Relaxed), guest.number))
            .map(|(client, _)| *client)
    }
}

impl Guest {
    fn is_answered(&self) -> bool {
        self.pulse.answered.load(Ordering::Relaxed)
    }

    fn silent_for(&self, now: Duration) -> Duration {
        now.saturating_sub(Duration::from_millis(self.pulse.heard.load(Ordering::Relaxed)))
    }

    /// Whether the same request again means this transfer: one that waits for an answer repeats its offer by itself.
    fn is_alive(&self, now: Duration) -> bool {
        !self.is_answered() || self.silent_for(now) < REPEATED_WITHIN
    }
}

impl Place {
    /// Cancelled when the transfer must end.
    pub(super) fn is_needed(&self) -> &CancellationToken {
        &self.end
    }

    /// The client has answered, and the transfer made progress.
    pub(super) fn is_answered(&self) {
        self.pulse.heard.store(millis(self.room.now()), Ordering::Relaxed);
        self.pulse.answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut guests = self.room.guests();
        if guests.by_client.get(&self.client).is_some_and(|guest| guest.number == self.number) {
            guests.by_client.remove(&self.client);
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use netboot::tftp::Options;
    use tokio::time::advance;

    use super::*;

    fn client(address: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, address], port))
    }

    fn admit(room: &Arc<Room>, client: SocketAddr) -> Option<Place> {
        ask(room, client, "a.efi").0
    }

    fn ask(room: &Arc<Room>, client: SocketAddr, name: &str) -> (Option<Place>, bool) {
        match room.admit(client, &ReadRequest { name: name.to_owned(), options: Options::default() }) {
            Admission::Place(place) => (Some(place), false),
            Admission::Repeated => (None, true),
            Admission::Full => (None, false),
        }
    }

    fn ended(place: &Place) -> bool {
        place.is_needed().is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_transfers_make_room_then_stalled_ones_and_active_ones_never() {
        let room = Room::new(3, 3);
        let [active, first, second] = [1, 2, 3].map(|address| admit(&room, client(address, 1)).unwrap());
        active.is_answered();
        advance(Duration::from_secs(1)).await;
        let third = admit(&room, client(4, 1)).unwrap();
        assert_eq!([&active, &first, &second].map(ended), [false, true, false]);
        second.is_answered();
        third.is_answered();
        assert!(admit(&room, client(5, 1)).is_none());
        advance(Duration::from_secs(4)).await;
        let next = admit(&room, client(5, 1)).unwrap();
        assert_eq!([&active, &second, &third, &next].map(ended), [true, false, false, false]);
        drop(next);
        assert!(admit(&room, client(6, 1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_takes_no_room_from_others() {
        let room = Room::new(100, 4);
        let other = admit(&room, client(2, 1)).unwrap();
        let places: Vec<_> = (1..=50).map(|port| admit(&room, client(1, port)).unwrap()).collect();
        assert!(places.iter().map(ended).eq((1..=50).map(|port| port <= 46)), "the oldest end");
        assert!(!ended(&other));
        assert_eq!(room.guests().by_client.len(), 5);
        drop(places);
        assert_eq!(room.guests().by_client.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_request_is_the_same_transfer_and_a_new_one_replaces_it() {
        let room = Room::new(10, 10);
        let place = admit(&room, client(1, 1)).unwrap();
        advance(Duration::from_secs(9)).await;
        assert!(ask(&room, client(1, 1), "a.efi").1, "while it waits for an answer");
        place.is_answered();
        assert!(ask(&room, client(1, 1), "a.efi").1, "while it is active");
        advance(REPEATED_WITHIN).await;
        let anew = admit(&room, client(1, 1)).expect("a client that restarted");
        assert_eq!([&place, &anew].map(ended), [true, false]);
        drop(place);
        let other_file = ask(&room, client(1, 1), "b.efi").0.unwrap();
        assert_eq!([&anew, &other_file].map(ended), [true, false]);
        assert_eq!(room.guests().by_client.len(), 1);
    }
}
