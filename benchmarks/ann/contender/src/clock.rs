//! Measures time by the clock and of the processor.

use std::iter::Sum;
use std::ops::{Add, Div};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A stopwatch, which starts when it is made and is read with [`Stopwatch::elapsed`].
pub struct Stopwatch {
    clock: ClockId,
    cpu_at_start: Duration,
    wall_at_start: Instant,
}

/// The seconds that some work took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Elapsed {
    /// Processor time, of one thread or of the process.
    pub cpu_seconds: f64,
    /// Time by the clock.
    pub wall_seconds: f64,
}

impl Stopwatch {
    /// Starts a stopwatch that counts the processor time of the calling thread.
    pub fn of_thread() -> Stopwatch {
        Stopwatch::start(ClockId::ThreadCPUTime)
    }

    /// Starts a stopwatch that counts the processor time of all threads of the process.
    pub fn of_process() -> Stopwatch {
        Stopwatch::start(ClockId::ProcessCPUTime)
    }

    fn start(clock: ClockId) -> Stopwatch {
        Stopwatch {
            clock,
            wall_at_start: Instant::now(),
            cpu_at_start: cpu_time(clock),
        }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Elapsed {
        Elapsed {
            cpu_seconds: (cpu_time(self.clock) - self.cpu_at_start).as_secs_f64(),
            wall_seconds: self.wall_at_start.elapsed().as_secs_f64(),
        }
    }
}

impl Add for Elapsed {
    type Output = Elapsed;

    fn add(self, other: Elapsed) -> Elapsed {
        Elapsed {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            wall_seconds: self.wall_seconds + other.wall_seconds,
        }
    }
}

impl Sum for Elapsed {
    fn sum<I: Iterator<Item = Elapsed>>(all: I) -> Elapsed {
        all.fold(Elapsed::default(), Add::add)
    }
}

impl Div<f64> for Elapsed {
    type Output = Elapsed;

    fn div(self, by: f64) -> Elapsed {
        Elapsed {
            cpu_seconds: self.cpu_seconds / by,
            wall_seconds: self.wall_seconds / by,
        }
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // Both parts of a processor clock are positive, and the nanoseconds are below 10^9.
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_takes_wall_time_and_no_cpu_time() {
        let stopwatch = Stopwatch::of_thread();
        std::thread::sleep(Duration::from_millis(50));
        let elapsed = stopwatch.elapsed();
        assert!(elapsed.wall_seconds >= 0.05, "{elapsed:?}");
        assert!(elapsed.cpu_seconds < 0.04, "{elapsed:?}");
    }

    #[test]
    fn work_of_another_thread_counts_for_the_process_alone() {
        let (process, thread) = (Stopwatch::of_process(), Stopwatch::of_thread());
        let spin = || {
            let own = Stopwatch::of_thread();
            while own.elapsed().cpu_seconds < 0.05 {
                std::hint::spin_loop();
            }
        };
        std::thread::scope(|scope| scope.spawn(spin).join()).expect("the spinning thread");
        assert!(process.elapsed().cpu_seconds >= 0.05);
        assert!(thread.elapsed().cpu_seconds < 0.04);
    }
}
