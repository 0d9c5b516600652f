//! When requests are due in an open loop.
//!
//! A thread of its own says so: timers of the runtime are no finer than a millisecond, and a thread's sleep ends within
//! some tens of microseconds.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// A running pacer.
pub struct Pacer {
    /// How many requests it makes due.
    pub total: u64,
    thread: JoinHandle<()>,
}

impl Pacer {
    /// Waits for its end, which comes when the last request is due.
    pub fn join(self) {
        self.thread.join().expect("the pacer does not panic");
    }
}

/// How long after the begin the `number`th request is due.
pub fn due_after(number: u64, rate_per_s: f64) -> Duration {
    Duration::from_secs_f64(number as f64 / rate_per_s)
}

/// Puts a permit into `due` for each of `total` requests when it is time, and in the end one for each of the `workers`,
/// so that those who wait see that there is nothing more.
pub fn start(
    due: Arc<Semaphore>,
    begin: Instant,
    rate_per_s: f64,
    total: u64,
    workers: usize,
) -> Pacer {
    let thread = std::thread::spawn(move || {
        let mut released = 0;
        while released < total {
            let now = begin.elapsed();
            let by_now = ((now.as_secs_f64() * rate_per_s) as u64 + 1).min(total);
            if by_now > released {
                due.add_permits((by_now - released) as usize);
                released = by_now;
            }
            let next = due_after(released, rate_per_s);
            std::thread::sleep(next.saturating_sub(begin.elapsed()));
        }
        due.add_permits(workers);
    });
    Pacer { total, thread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_due_at_their_rate() {
        let due = Arc::new(Semaphore::new(0));
        let begin = Instant::now();
        let pacer = start(Arc::clone(&due), begin, 1_000.0, 100, 3);
        pacer.join();
        // The hundredth is due after 99 intervals.
        assert!(begin.elapsed() >= Duration::from_millis(99));
        assert_eq!(due.available_permits(), 103);
        assert_eq!(due_after(500, 1_000.0), Duration::from_millis(500));
    }
}
