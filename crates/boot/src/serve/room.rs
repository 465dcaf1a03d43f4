//! Limits open connections, per address and in all. Idle connections are closed first.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long until dropped connections are logged again.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// The connections that there are.
pub(super) struct Room {
    in_all: usize,
    per_address: usize,
    guests: Mutex<Guests>,
}

#[derive(Default)]
struct Guests {
    by_number: HashMap<u64, Guest>,
    last: u64,
    told: Option<Instant>,
}

struct Guest {
    from: IpAddr,
    /// Whether it has shown a ticket that opened something.
    known: bool,
    /// Since when it waits for the next request; none while it is served.
    idle: Option<Instant>,
    close: CancellationToken,
}

/// A place for one connection. Gone when it is dropped.
pub(super) struct Place {
    room: Arc<Room>,
    number: u64,
    close: CancellationToken,
}

/// An answer that is being sent: until it is dropped, its connection is not idle.
pub(super) struct Served {
    room: Arc<Room>,
    number: u64,
}

impl Room {
    pub(super) fn new(in_all: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { in_all, per_address, guests: Mutex::default() })
    }

    /// A slot for a connection from this address. If there is none left, the connection that was idle for longest is closed,
    /// those without a ticket first; connections that are being served are never closed.
    pub(super) fn admit(self: &Arc<Self>, from: IpAddr) -> Option<Place> {
        let mut guests = self.guests();
        let of_address = guests.by_number.values().filter(|guest| guest.from == from).count();
        let all_of_address = of_address >= self.per_address;
        if all_of_address || guests.by_number.len() >= self.in_all {
            guests.tell(from, of_address);
            if !guests.put_out(|guest| !all_of_address || guest.from == from) {
                return None;
            }
        }
        guests.last += 1;
        let (number, close) = (guests.last, CancellationToken::new());
        let guest = Guest { from, known: false, idle: Some(Instant::now()), close: close.clone() };
        guests.by_number.insert(number, guest);
        Some(Place { room: self.clone(), number, close })
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests {
    /// Ends the connection that was idle for longest. Answers whether there was one.
    fn put_out(&mut self, eligible: impl Fn(&Guest) -> bool) -> bool {
        let idle = self.by_number.iter().filter(|(_, guest)| eligible(guest));
        let idle = idle.filter_map(|(number, guest)| Some(((guest.known, guest.idle?), *number)));
        let Some((_, number)) = idle.min() else { return false };
        if let Some(guest) = self.by_number.remove(&number) {
            guest.close.cancel();
        }
        true
    }

    fn tell(&mut self, from: IpAddr, of_address: usize) {
        let now = Instant::now();
        if self.told.is_none_or(|told| now - told >= TOLD_EVERY) {
            self.told = Some(now);
            let all = self.by_number.len();
            tracing::warn!(%from, of_address, all, "too many connections to the boot service; closing those that were idle longest");
        }
    }
}

impl Place {
    /// Ends when another connection needs the slot.
    pub(super) fn is_needed(&self) -> CancellationToken {
        self.close.clone()
    }

    /// A request came.
    pub(super) fn serve(&self) -> Served {
        if let Some(guest) = self.room.guests().by_number.get_mut(&self.number) {
            guest.idle = None;
        }
        Served { room: self.room.clone(), number: self.number }
    }

    /// It had a ticket.
    pub(super) fn is_known(&self) {
        if let Some(guest) = self.room.guests().by_number.get_mut(&self.number) {
            guest.known = true;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.guests().by_number.remove(&self.number);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(guest) = self.room.guests().by_number.get_mut(&self.number) {
            guest.idle = Some(Instant::now());
        }
    }
}

/// A body that keeps its connection from being idle until it is sent.
pub(super) struct Sending<B> {
    body: B,
    _served: Served,
}

impl<B> Sending<B> {
    pub(super) fn new(body: B, served: Served) -> Self {
        Self { body, _served: served }
    }
}

impl<B: Body + Unpin> Body for Sending<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_idle_for_longest_makes_room_and_strangers_go_before_those_with_a_ticket() {
        let room = Room::new(3, 3);
        let ticketed = room.admit(address(1)).unwrap();
        ticketed.is_known();
        drop(ticketed.serve());
        let mut strangers = Vec::new();
        for last in [2, 3] {
            tokio::time::advance(Duration::from_secs(1)).await;
            strangers.push(room.admit(address(last)).unwrap());
        }
        let busy = strangers[0].serve();
        let newcomer = room.admit(address(4)).unwrap();
        let ended = |place: &Place| place.is_needed().is_cancelled();
        assert_eq!([ended(&ticketed), ended(&strangers[0]), ended(&strangers[1])], [false, false, true]);
        let _busy = (busy, newcomer.serve());
        let next = room.admit(address(5)).unwrap();
        assert!(ended(&ticketed), "better than refusing somebody");
        let _served = next.serve();
        assert!(room.admit(address(6)).is_none(), "all are being served");
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_takes_no_room_from_others() {
        let room = Room::new(100, 4);
        let other = room.admit(address(2)).unwrap();
        let places: Vec<_> = (0..50).map(|_| room.admit(address(1)).unwrap()).collect();
        assert_eq!(places.iter().filter(|place| !place.is_needed().is_cancelled()).count(), 4);
        assert!(!other.is_needed().is_cancelled());
        assert_eq!(room.guests().by_number.len(), 5);
        drop(places);
        assert_eq!(room.guests().by_number.len(), 1);
    }
}
