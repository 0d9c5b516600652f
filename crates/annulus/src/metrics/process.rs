//! The metrics of the process and of the machine's clock.

use std::fs;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use clock::{Clock, SystemClock};
use http_server::MetricsRegistry;
use rustix::process::{Resource, getrlimit};

use super::single;

/// A step of the machine's clock by at least this much counts as one. What a clock is slewed by
/// between two looks is less. Microseconds.
const STEP_MICROS: i64 = 50_000;

/// The commands that run a server, as the metrics name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessMode {
    /// `annulus serve`.
    Serve,
    /// `annulus store`.
    Store,
    /// `annulus gateway`.
    Gateway,
}

impl ProcessMode {
    fn name(self) -> &'static str {
        match self {
            ProcessMode::Serve => "serve",
            ProcessMode::Store => "store",
            ProcessMode::Gateway => "gateway",
        }
    }
}

/// Shows the process among the metrics: its version, its use of the machine, its clock, and whether
/// it serves clients.
pub fn show_process(
    metrics: &MetricsRegistry,
    mode: ProcessMode,
    is_ready: impl Fn() -> bool + Send + Sync + 'static,
) {
    // The first look is at the start, not at the first request for metrics.
    LazyLock::force(&CLOCK);
    let labels = vec![
        env!("CARGO_PKG_VERSION"),
        env!("ANNULUS_BUILD_COMMIT"),
        mode.name(),
    ];
    metrics.show_gauge(
        "annulus_build_info",
        "1, with the version and the commit of the program",
        &["version", "commit", "mode"],
        Arc::new(move || vec![(labels.clone(), 1)]),
    );
    metrics.show_gauge(
        "annulus_process_ready",
        "1 while clients are served",
        &[],
        single(move || u64::from(is_ready())),
    );
    show_use(metrics);
    show_clock(metrics);
}

/// Shows how much of the machine the process uses.
fn show_use(metrics: &MetricsRegistry) {
    metrics.show_gauge_values(
        "annulus_process_start_time_seconds",
        "The time at which the process began",
        &[],
        Arc::new(|| vec![(Vec::new(), CLOCK.began_micros as f64 / 1e6)]),
    );
    metrics.show_counter_values(
        "annulus_process_cpu_seconds_total",
        "Time of processors that the process took",
        &[],
        Arc::new(|| number(processor_seconds())),
    );
    metrics.show_gauge_values(
        "annulus_process_resident_bytes",
        "Memory of the process, files that are mapped included",
        &[],
        Arc::new(|| number(status_field("VmRSS:").map(|kib| kib * 1024.0))),
    );
    metrics.show_gauge_values(
        "annulus_process_threads",
        "Threads of the process",
        &[],
        Arc::new(|| number(status_field("Threads:"))),
    );
    metrics.show_gauge_values(
        "annulus_process_open_files",
        "Files and sockets that the process has open",
        &[],
        Arc::new(|| number(open_files())),
    );
    metrics.show_gauge_values(
        "annulus_process_open_files_limit",
        "Files and sockets that the process may have open",
        &[],
        Arc::new(|| {
            number(
                getrlimit(Resource::Nofile)
                    .current
                    .map(|limit| limit as f64),
            )
        }),
    );
}

/// Shows what the machine's clock has done.
fn show_clock(metrics: &MetricsRegistry) {
    metrics.show_gauge_values(
        "annulus_clock_offset_seconds",
        "Time by which the machine's clock was moved since the start of the process",
        &[],
        Arc::new(|| vec![(Vec::new(), CLOCK.look(&SystemClock) as f64 / 1e6)]),
    );
    let backward = || {
        CLOCK.look(&SystemClock);
        CLOCK.backward.load(Ordering::Relaxed)
    };
    metrics.show_counter(
        "annulus_clock_backward_total",
        "Times that the machine's clock was seen to go back",
        &[],
        single(backward),
    );
}

/// A value without labels; no series if it is not known.
fn number(value: Option<f64>) -> Vec<(Vec<String>, f64)> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// The time of processors that the process took. Seconds.
fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name of the program, which may contain blanks.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let a_second = rustix::param::clock_ticks_per_second();
    Some((user + system) as f64 / a_second as f64)
}

/// A number of the status of the process.
fn status_field(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn open_files() -> Option<f64> {
    // The one of the directory itself is open only meanwhile.
    Some(
        fs::read_dir("/proc/self/fd")
            .ok()?
            .count()
            .saturating_sub(1) as f64,
    )
}

/// The machine's clock, compared with a steady one.
struct ClockWatch {
    /// The time of the first look. Microseconds since the epoch.
    began_micros: i64,
    /// The clock's lead over the steady one at the first look.
    first_lead: i64,
    /// The lead at the last look.
    last_lead: AtomicI64,
    /// The number of steps back that looks have shown.
    backward: AtomicU64,
}

static CLOCK: LazyLock<ClockWatch> = LazyLock::new(|| ClockWatch::new(&SystemClock));

impl ClockWatch {
    fn new(clock: &impl Clock) -> ClockWatch {
        let lead = lead(clock);
        ClockWatch {
            began_micros: clock.now_micros(),
            first_lead: lead,
            last_lead: AtomicI64::new(lead),
            backward: AtomicU64::new(0),
        }
    }

    /// Looks at the clock. Returns the time by which it was moved since the first look.
    fn look(&self, clock: &impl Clock) -> i64 {
        let lead = lead(clock);
        let last = self.last_lead.swap(lead, Ordering::Relaxed);
        if last - lead >= STEP_MICROS {
            self.backward.fetch_add(1, Ordering::Relaxed);
        }
        lead - self.first_lead
    }
}

/// The lead of a clock over the steady one. Microseconds.
fn lead(clock: &impl Clock) -> i64 {
    clock.now_micros() - clock.steady_micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock whose two readings are set.
    #[derive(Debug, Default)]
    struct SetClock {
        now: AtomicI64,
        steady: AtomicI64,
    }

    impl Clock for SetClock {
        fn now_micros(&self) -> i64 {
            self.now.load(Ordering::Relaxed)
        }

        fn steady_micros(&self) -> i64 {
            self.steady.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_clock_that_goes_back_is_counted_once() {
        let clock = SetClock::default();
        let watch = ClockWatch::new(&clock);
        clock.now.store(10_000_000, Ordering::Relaxed);
        clock.steady.store(10_000_000, Ordering::Relaxed);
        assert_eq!(watch.look(&clock), 0);
        clock.now.store(9_000_000, Ordering::Relaxed);
        assert_eq!(watch.look(&clock), -1_000_000);
        assert_eq!(watch.look(&clock), -1_000_000);
        assert_eq!(watch.backward.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_process_is_shown() {
        let metrics = MetricsRegistry::default();
        show_process(&metrics, ProcessMode::Store, || true);
        let text = metrics.text().unwrap();
        for beginning in [
            "annulus_build_info{",
            "annulus_process_ready 1",
            "annulus_process_start_time_seconds ",
            "annulus_process_cpu_seconds_total ",
            "annulus_process_resident_bytes ",
            "annulus_process_threads ",
            "annulus_process_open_files ",
            "annulus_clock_backward_total ",
        ] {
            let mut lines = text.lines();
            assert!(
                lines.any(|line| line.starts_with(beginning)),
                "{beginning}\n{text}"
            );
        }
    }
}
