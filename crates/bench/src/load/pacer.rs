//! When requests are due in an open loop.
//!
//! A thread of its own says so: timers of the runtime are no finer than a millisecond, and a thread's sleep ends within
//! some tens of microseconds. Where processors are scarce the system stops it for longer. As a latency counts from when
//! its request was due, that looks like the server's: so the pacer notes how late it was.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;

use super::latencies;

/// A running pacer.
pub struct Pacer {
    /// How many requests it makes due.
    pub total: u64,
    thread: JoinHandle<Histogram<u64>>,
}

impl Pacer {
    /// Waits for its end, which comes when the last request is due. Gives how late each request was handed out, in
    /// nanoseconds: until a worker takes it up is not counted, as it waits for one while the server keeps all busy.
    pub fn join(self) -> Histogram<u64> {
        self.thread.join().expect("the pacer does not panic")
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
        wake_in_time();
        let mut released = 0;
        let mut lateness = latencies();
        while released < total {
            let now = begin.elapsed();
            let by_now = ((now.as_secs_f64() * rate_per_s) as u64 + 1).min(total);
            if by_now > released {
                due.add_permits((by_now - released) as usize);
                // As of `now`: workers that wake may take this thread's core, and then they are at their requests.
                for number in released..by_now {
                    let late = now.saturating_sub(due_after(number, rate_per_s));
                    lateness.saturating_record(late.as_nanos() as u64);
                }
                released = by_now;
            }
            let next = due_after(released, rate_per_s);
            std::thread::sleep(next.saturating_sub(begin.elapsed()));
        }
        due.add_permits(workers);
        lateness
    });
    Pacer { total, thread }
}

/// Linux may let a thread sleep 50 µs longer than it asked for, so that processors wake less often; not this one.
fn wake_in_time() {
    #[cfg(target_os = "linux")]
    // Where it can't be, the pacer is later, and says so.
    let _: Result<(), _> = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
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

    #[test]
    fn a_stop_counts_for_each_request_that_was_due_meanwhile() {
        // The pacer comes 100 ms after the begin, as if it had been stopped: all are due by then.
        let begin = Instant::now() - Duration::from_millis(100);
        let due = Arc::new(Semaphore::new(0));
        let lateness = start(due, begin, 1_000.0, 100, 1).join();
        assert_eq!(lateness.len(), 100);
        let least_ms = lateness.value_at_quantile(0.0) as f64 / 1e6;
        let most_ms = lateness.value_at_quantile(1.0) as f64 / 1e6;
        assert!(most_ms >= 100.0, "{most_ms}");
        // However long the stop was, the first was due 99 ms before the last.
        assert!(most_ms - least_ms > 95.0, "{least_ms} to {most_ms}");
        let half = Duration::from_millis(50).as_nanos() as u64;
        assert!(lateness.count_between(half, u64::MAX) >= 50);
    }
}
