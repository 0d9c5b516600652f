//! Connections that have not begun yet. Where there are too many, one of them gives way.
//!
//! A client that connects and says nothing takes a place and some memory until its time is over. If
//! new connections were refused meanwhile, one such client could shut out all others. So the
//! longest silent one ends instead, and the new connection takes its place:
//!
//! - Connections count as silent from their beginning until the server [lets them in]. Bytes that
//!   come before make no difference, else a stranger would send some now and then.
//! - An address that has more than its share of them loses one of its own.
//! - A connection that was let in never gives way.
//!
//! An HTTP server has no such beginning: there a connection may give way at any time that it is
//! silent (`http_server`).
//!
//! [lets them in]: ConnectionAdmission::admit

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::address::network;
use crate::log_limiter::LogLimiter;

/// The part of all strangers that one address may have before it loses its own.
const SHARES: usize = 16;

/// The most strangers that give way so that one connection finds room.
const EVICTIONS_MAX: usize = 8;
/// The time that one of them has for it, before the next does.
const ROOM_WITHIN: Duration = Duration::from_millis(5);

/// The connections of a listener that have not begun. It is cheap to clone; clones are one.
#[derive(Clone, Debug)]
pub struct PendingConnections(Arc<AdmissionState>);

#[derive(Debug)]
struct AdmissionState {
    /// The most of them.
    number_max: usize,
    /// The most of one address, while another may have to give way.
    share: usize,
    present: Mutex<ConnectionsByAge>,
    eviction_log: LogLimiter,
}

#[derive(Debug, Default)]
struct ConnectionsByAge {
    /// The number of the next connection.
    next: u64,
    /// By their numbers, and so in the order in which they came.
    by_age: BTreeMap<u64, PendingConnection>,
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
}

#[derive(Debug)]
struct PendingConnection {
    address: IpAddr,
    eviction: CancellationToken,
}

/// A connection, which is a stranger until it is let in. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct ConnectionAdmission {
    pending: PendingConnections,
    number: u64,
    eviction: CancellationToken,
}

impl PendingConnections {
    /// Makes room for this many strangers, one at least.
    pub fn new(number_max: usize) -> PendingConnections {
        let number_max = number_max.max(1);
        PendingConnections(Arc::new(AdmissionState {
            number_max,
            share: (number_max / SHARES).max(1),
            present: Mutex::default(),
            eviction_log: LogLimiter::default(),
        }))
    }

    /// Adds a connection from an address. If there are too many strangers then, another gives way.
    pub fn enter(&self, address: IpAddr) -> ConnectionAdmission {
        let address = network(address);
        let sent_away = CancellationToken::new();
        let mut present = self.0.present.lock();
        let number = present.next;
        present.next += 1;
        present
            .by_address
            .entry(address)
            .or_default()
            .insert(number);
        let stranger = PendingConnection {
            address,
            eviction: sent_away.clone(),
        };
        present.by_age.insert(number, stranger);
        let are_too_many = present.by_age.len() > self.0.number_max;
        drop(present);
        if are_too_many {
            self.evict(Some(number));
        }
        ConnectionAdmission {
            pending: self.clone(),
            number,
            eviction: sent_away,
        }
    }

    /// Ends the longest silent stranger. Returns whether there is one.
    pub fn make_room(&self) -> bool {
        self.evict(None)
    }

    /// Ends a stranger, but not the one of this number. Returns whether there is one.
    fn evict(&self, but: Option<u64>) -> bool {
        let stranger = self.0.present.lock().take_longest(self.0.share, but);
        let Some(stranger) = stranger else {
            return false;
        };
        stranger.eviction.cancel();
        if let Some(connections) = self.0.eviction_log.is_due() {
            tracing::warn!(
                address = %stranger.address,
                connections,
                "too many connections: those that have not begun give way to new ones"
            );
        }
        true
    }
}

impl ConnectionsByAge {
    /// Takes out the longest silent stranger, of those whose address has most if that is more than
    /// its share.
    fn take_longest(&mut self, share: usize, but: Option<u64>) -> Option<PendingConnection> {
        let over_share = self.by_address.values().filter(|of| of.len() > share);
        let longest = match over_share.max_by_key(|of| of.len()) {
            Some(of_address) => of_address.iter().find(|number| Some(**number) != but),
            None => self.by_age.keys().find(|number| Some(**number) != but),
        };
        let longest = longest.copied()?;
        self.remove(longest)
    }

    fn remove(&mut self, number: u64) -> Option<PendingConnection> {
        let stranger = self.by_age.remove(&number)?;
        if let Entry::Occupied(mut of_address) = self.by_address.entry(stranger.address) {
            of_address.get_mut().remove(&number);
            if of_address.get().is_empty() {
                of_address.remove();
            }
        }
        Some(stranger)
    }
}

impl ConnectionAdmission {
    /// Notes that the connection has begun, or has ended. From now on it never gives way.
    pub fn admit(&self) {
        self.pending.0.present.lock().remove(self.number);
    }

    /// Waits until the connection must give way.
    pub async fn evicted(&self) {
        self.eviction.cancelled().await;
    }

    /// Runs the future until it ends, or until the connection must give way. Returns whether it
    /// gave way.
    pub async fn run<F: Future<Output = ()>>(&self, serving: F) -> bool {
        self.eviction.run_until_cancelled(serving).await.is_none()
    }

    /// Takes something that strangers may hold. If there is none left, a few other strangers give
    /// way.
    pub async fn find_room<T>(&self, mut take: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 0..EVICTIONS_MAX {
            let taken = take();
            if taken.is_some() {
                return taken;
            }
            if !self.pending.evict(Some(self.number)) {
                return None;
            }
            tokio::time::sleep(ROOM_WITHIN).await;
        }
        take()
    }
}

/// The only admission, for tests of a connection.
impl Default for ConnectionAdmission {
    fn default() -> ConnectionAdmission {
        PendingConnections::new(1).enter(Ipv4Addr::LOCALHOST.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn are_evicted(guests: &[ConnectionAdmission]) -> Vec<bool> {
        let sent_away = guests.iter().map(|guest| guest.eviction.is_cancelled());
        sent_away.collect()
    }

    #[test]
    fn the_longest_silent_gives_way_and_those_let_in_never_do() {
        let strangers = PendingConnections::new(100);
        let guests = [1, 2, 3].map(|last| strangers.enter(address(last)));
        guests[0].admit();
        assert!(strangers.make_room());
        assert_eq!(are_evicted(&guests), [false, true, false]);
        assert!(strangers.make_room());
        assert_eq!(are_evicted(&guests), [false, true, true]);
        assert!(!strangers.make_room(), "the other has begun");
        assert!(!guests[0].eviction.is_cancelled());
        assert!(strangers.0.present.lock().by_address.is_empty());
    }

    #[test]
    fn ten_thousand_of_one_address_shut_out_no_other() {
        let strangers = PendingConnections::new(10_000);
        let others: Vec<ConnectionAdmission> = (2..=101)
            .map(|last| strangers.enter(address(last)))
            .collect();
        let mut of_one = Vec::new();
        for _ in 0..20_000 {
            of_one.push(strangers.enter(address(1)));
        }
        assert!(!are_evicted(&others).contains(&true));
        let sent_away = are_evicted(&of_one);
        let number = sent_away.iter().filter(|is| **is).count();
        assert_eq!(number, 20_000 + 100 - 10_000);
        assert!(sent_away[..number].iter().all(|is| *is), "the oldest");
        // One more of another address comes in, and one of the many goes.
        let newest = strangers.enter(address(102));
        assert!(!newest.eviction.is_cancelled());
        assert!(of_one[number].eviction.is_cancelled());
    }

    #[test]
    fn where_no_address_has_more_than_its_share_the_oldest_goes() {
        let strangers = PendingConnections::new(32);
        let mut guests = Vec::new();
        for number in 0..32 {
            guests.push(strangers.enter(address(1 + number / 2)));
        }
        guests.push(strangers.enter(address(100)));
        let sent_away = are_evicted(&guests);
        assert!(sent_away[0] && !sent_away[1..].contains(&true));
    }

    #[test]
    fn a_pending_connection_does_not_evict_itself() {
        let strangers = PendingConnections::new(1);
        let first = strangers.enter(address(1));
        let second = strangers.enter(address(1));
        assert!(first.eviction.is_cancelled() && !second.eviction.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn others_give_way_for_room_and_a_few_at_most() {
        let strangers = PendingConnections::new(100);
        let others: Vec<ConnectionAdmission> =
            (0..20).map(|last| strangers.enter(address(last))).collect();
        let guest = strangers.enter(address(99));
        let sent_away = || are_evicted(&others).iter().filter(|is| **is).count();
        let third = guest.find_room(|| (sent_away() == 3).then_some("room"));
        assert_eq!(third.await, Some("room"));
        assert_eq!(guest.find_room(|| None::<()>).await, None);
        assert_eq!(sent_away(), 3 + EVICTIONS_MAX);
        for other in &others {
            other.admit();
        }
        assert_eq!(guest.find_room(|| None::<()>).await, None);
        assert!(!guest.eviction.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_served_until_it_is_evicted() {
        let strangers = PendingConnections::new(1);
        let guest = strangers.enter(address(1));
        assert!(!guest.run(async {}).await);
        strangers.make_room();
        assert!(guest.run(std::future::pending()).await);
        guest.evicted().await;
    }
}
