//! Makes the requests of an open loop due.
//!
//! The pacer has a thread of its own: timers of the runtime are no finer than a millisecond, but a
//! thread's sleep ends within some tens of microseconds. If processors are scarce the system stops
//! the thread for longer. A latency counts from when its request was due, so such a stop looks like
//! a slow server. That is why the pacer records how late it was.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;

use super::latencies;

/// A running pacer.
pub struct Pacer {
    /// The number of requests that it makes due.
    pub total: u64,
    thread: JoinHandle<Histogram<u64>>,
}

impl Pacer {
    /// Waits until the pacer ends, which it does when the last request is due. Returns how late
    /// each request was handed out, in nanoseconds. The time until a worker takes the request is
    /// not counted, as a request waits for a worker while the server keeps all busy.
    pub fn join(self) -> Histogram<u64> {
        self.thread.join().expect("the pacer does not panic")
    }
}

/// The time from the begin of the load until its `number`th request is due.
pub fn due_after(number: u64, rate_per_s: f64) -> Duration {
    Duration::from_secs_f64(number as f64 / rate_per_s)
}

/// Starts a pacer. It puts a permit into `due` for each of `total` requests when it is due. In the
/// end it adds one for each of the `workers`, so that those that wait see that there are no more
/// requests.
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
                // Lateness is taken at `now`. Workers that wake may take this thread's core, and
                // are then already at their requests.
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

/// Has the system end the sleeps of this thread in time. Linux may let a thread sleep 50 µs longer
/// than requested, so that processors wake less often.
fn wake_in_time() {
    #[cfg(target_os = "linux")]
    // If this fails the pacer is later, and records that.
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
        // The hundredth request is due after 99 intervals.
        assert!(begin.elapsed() >= Duration::from_millis(99));
        assert_eq!(due.available_permits(), 103);
        assert_eq!(due_after(500, 1_000.0), Duration::from_millis(500));
    }

    #[test]
    fn a_stop_counts_for_each_request_that_was_due_meanwhile() {
        // The pacer starts 100 ms after the begin, as if it had been stopped: all requests are due
        // by then.
        let begin = Instant::now() - Duration::from_millis(100);
        let due = Arc::new(Semaphore::new(0));
        let lateness = start(due, begin, 1_000.0, 100, 1).join();
        assert_eq!(lateness.len(), 100);
        let least_ms = lateness.value_at_quantile(0.0) as f64 / 1e6;
        let most_ms = lateness.value_at_quantile(1.0) as f64 / 1e6;
        assert!(most_ms >= 100.0, "{most_ms}");
        // However long the stop was, the first request was due 99 ms before the last.
        assert!(most_ms - least_ms > 95.0, "{least_ms} to {most_ms}");
        let half = Duration::from_millis(50).as_nanos() as u64;
        assert!(lateness.count_between(half, u64::MAX) >= 50);
    }
}
