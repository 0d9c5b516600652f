//! Slows the guessing of passwords: after a failed login, the next attempts from its address wait.
//!
//! Each attempt of an address with failures gets a time of its own, later than that of the one
//! before. So many connections at once guess no faster than one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The wait after the first failure. Each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// An attempt that would wait for longer is refused at once.
pub(super) const QUEUE_MAX: Duration = Duration::from_secs(20);
/// Failures are forgotten after this time without another.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// The most addresses that are remembered, 1 MiB. Beyond it the oldest failures are forgotten.
const ADDRESSES_MAX: usize = 16_384;

/// The failed logins of each address.
#[derive(Default)]
pub(super) struct Slowing {
    addresses: Mutex<HashMap<IpAddr, Failures>>,
}

struct Failures {
    count: u32,
    last: Instant,
    /// The time of the next attempt.
    next: Instant,
}

impl Slowing {
    /// The time for which an attempt from this address has to wait; `None` if so many are waiting
    /// already that it is refused.
    pub fn wait(&self, address: IpAddr) -> Option<Duration> {
        let now = Instant::now();
        let mut addresses = self.lock();
        let Some(failures) = addresses.get_mut(&address) else {
            return Some(Duration::ZERO);
        };
        if now.duration_since(failures.last) > FORGOTTEN_AFTER {
            addresses.remove(&address);
            return Some(Duration::ZERO);
        }
        let at = failures.next.max(now);
        let wait = at.duration_since(now);
        if wait > QUEUE_MAX {
            return None;
        }
        failures.next = at + pause(failures.count);
        Some(wait)
    }

    /// Notes a failed attempt.
    pub fn failed(&self, address: IpAddr) {
        let now = Instant::now();
        let mut addresses = self.lock();
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&address) {
            let oldest = addresses.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                addresses.remove(&oldest);
            }
        }
        let failures = addresses.entry(address).or_insert(Failures {
            count: 0,
            last: now,
            next: now,
        });
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.next = failures.next.max(now + pause(failures.count));
    }

    /// Forgets the failures of an address from which somebody has logged in.
    pub fn succeeded(&self, address: IpAddr) {
        self.lock().remove(&address);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, Failures>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_WAIT * (1 << doublings)).min(WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[tokio::test(start_paused = true)]
    async fn waits_double_and_attempts_at_once_wait_for_one_another() {
        let slowing = Slowing::default();
        assert_eq!(slowing.wait(ADDRESS), Some(Duration::ZERO));
        slowing.failed(ADDRESS);
        slowing.failed(ADDRESS);
        assert_eq!(slowing.wait(ADDRESS), Some(Duration::from_millis(200)));
        assert_eq!(slowing.wait(ADDRESS), Some(Duration::from_millis(400)));
        let another = "10.0.0.2".parse().unwrap();
        assert_eq!(slowing.wait(another), Some(Duration::ZERO));
        for _ in 0..40 {
            slowing.failed(ADDRESS);
        }
        let waits = std::iter::from_fn(|| slowing.wait(ADDRESS));
        assert!(waits.take(100).count() < 6, "the queue has an end");
        slowing.succeeded(ADDRESS);
        assert_eq!(slowing.wait(ADDRESS), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_forgotten_and_addresses_bounded() {
        let slowing = Slowing::default();
        slowing.failed(ADDRESS);
        tokio::time::advance(FORGOTTEN_AFTER + Duration::from_secs(1)).await;
        assert_eq!(slowing.wait(ADDRESS), Some(Duration::ZERO));
        for number in 0..ADDRESSES_MAX as u32 + 10 {
            slowing.failed(IpAddr::V4((number + 1).into()));
        }
        assert_eq!(slowing.lock().len(), ADDRESSES_MAX);
    }
}
