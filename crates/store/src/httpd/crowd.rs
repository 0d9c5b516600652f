//! The connections of a listener. At the limit one gives way, so one more can always come in.
//!
//! The connection that has been silent for the longest gives way. So clients that connect and send
//! no request can't keep others from `/metrics` or from searching.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// All connections of a listener.
#[derive(Default)]
pub struct Crowd {
    guests: Mutex<Vec<Arc<Guest>>>,
}

/// A connection.
pub struct Guest {
    began: Instant,
    /// Requests that are not answered yet.
    in_flight: AtomicUsize,
    /// The time of the last answer, microseconds since the connection began.
    silent_since: AtomicU64,
    /// Cancelled to end the connection, once its requests are answered.
    pub end: CancellationToken,
}

/// A request that is being answered.
pub struct Asking(Arc<Guest>);

impl Guest {
    /// A connection that begins now, and ends at the latest with `end`.
    pub fn new(end: CancellationToken) -> Arc<Guest> {
        Arc::new(Guest {
            began: Instant::now(),
            in_flight: AtomicUsize::new(0),
            silent_since: AtomicU64::new(0),
            end,
        })
    }

    /// Counts a request as in flight until the result is dropped.
    pub fn asks(self: &Arc<Guest>) -> Asking {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Asking(self.clone())
    }

    /// The time since when the connection has been silent. `None` while a request is in flight, or
    /// once the connection is to end.
    fn silent_since(&self) -> Option<Instant> {
        if self.in_flight.load(Ordering::Relaxed) > 0 || self.end.is_cancelled() {
            return None;
        }
        let after = self.silent_since.load(Ordering::Relaxed);
        Some(self.began + std::time::Duration::from_micros(after))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let guest = &self.0;
        let now = guest.began.elapsed().as_micros();
        guest.silent_since.store(now as u64, Ordering::Relaxed);
        guest.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Crowd {
    /// Adds a connection.
    pub fn enter(&self, guest: Arc<Guest>) {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.push(guest);
    }

    /// Removes a connection that has ended.
    pub fn leave(&self, guest: &Arc<Guest>) {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = guests.iter().position(|other| Arc::ptr_eq(other, guest)) {
            guests.swap_remove(at);
        }
    }

    /// Ends the connection that has been silent for the longest, if any is silent.
    pub fn make_room(&self) {
        let guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = guests
            .iter()
            .filter_map(|guest| Some((guest.silent_since()?, guest)));
        if let Some((_, guest)) = silent.min_by_key(|(since, _)| *since) {
            guest.end.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_silent_for_the_longest_gives_way() {
        let crowd = Crowd::default();
        let guests: Vec<_> = (0..4)
            .map(|_| Guest::new(CancellationToken::new()))
            .collect();
        for guest in &guests {
            crowd.enter(guest.clone());
        }
        let _busy = guests[0].asks();
        // Two answers in one microsecond would be equally old.
        std::thread::sleep(std::time::Duration::from_millis(2));
        drop(guests[1].asks());
        let ended = || {
            guests
                .iter()
                .map(|guest| guest.end.is_cancelled())
                .collect::<Vec<_>>()
        };
        crowd.make_room();
        assert_eq!(ended(), [false, false, true, false]);
        crowd.make_room();
        crowd.make_room();
        assert_eq!(ended(), [false, true, true, true]);
        crowd.make_room();
        assert_eq!(ended(), [false, true, true, true], "one is busy");
        crowd.leave(&guests[0]);
        assert_eq!(crowd.guests.lock().unwrap().len(), 3);
    }
}
