//! How many may do something at a time.

use std::sync::{Condvar, Mutex, PoisonError};

/// A counting semaphore; whoever finds no permit left sleeps until one is back.
pub(crate) struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    pub(crate) fn new(count: usize) -> Permits {
        Permits {
            free: Mutex::new(count),
            returned: Condvar::new(),
        }
    }

    /// Held until dropped.
    pub(crate) fn take(&self) -> Permit<'_> {
        // The count is right whatever a panicking holder did: its permit comes back by its drop.
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            let woken = self.returned.wait(free);
            free = woken.unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Permit { of: self }
    }
}

/// One of the [`Permits`], taken.
pub(crate) struct Permit<'a> {
    of: &'a Permits,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.of.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.of.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_than_the_count_hold_one_at_a_time() {
        let permits = Permits::new(3);
        let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _permit = permits.take();
                        let now = held.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        held.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert_eq!(*permits.free.lock().expect("not poisoned"), 3);
    }
}
