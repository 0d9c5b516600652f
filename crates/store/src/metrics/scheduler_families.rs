//! The metric families of turns on the processor: which class of work gets how much of it.

use cpu_scheduler::{CpuScheduler, PermitCounts, WorkClass};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{CounterVec, IntGaugeVec, Opts};

const CLASS: &[&str] = &["class"];

/// Collects the counts of turns when they are scraped.
pub(super) struct SchedulerCollector {
    turns: CpuScheduler,
    running: IntGaugeVec,
    waiting: IntGaugeVec,
}

impl SchedulerCollector {
    /// The families of these turns.
    pub(super) fn new(turns: CpuScheduler) -> prometheus::Result<SchedulerCollector> {
        let gauge = |name, help| IntGaugeVec::new(Opts::new(name, help), CLASS);
        Ok(SchedulerCollector {
            turns,
            running: gauge("turns_running", "Turns on the processor that are held")?,
            waiting: gauge("turns_waiting", "Work that waits for a turn")?,
        })
    }

    /// Families that only rise, with the counts of this moment.
    fn totals() -> prometheus::Result<[CounterVec; 2]> {
        let counter = |name, help| CounterVec::new(Opts::new(name, help), CLASS);
        Ok([
            counter(
                "turns_given_total",
                "Turns on the processor that were given",
            )?,
            counter("turns_held_seconds_total", "Time for which turns were held")?,
        ])
    }
}

impl Collector for SchedulerCollector {
    fn desc(&self) -> Vec<&Desc> {
        let mut descriptions = self.running.desc();
        descriptions.extend(self.waiting.desc());
        descriptions
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let totals = SchedulerCollector::totals();
        for class in WorkClass::ALL {
            let PermitCounts {
                running,
                waiting,
                given,
                held,
            } = self.turns.counts(class);
            let labels = &[class.name()];
            self.running.with_label_values(labels).set(running as i64);
            self.waiting.with_label_values(labels).set(waiting as i64);
            if let Ok([of_given, of_held]) = &totals {
                of_given.with_label_values(labels).inc_by(given as f64);
                of_held.with_label_values(labels).inc_by(held.as_secs_f64());
            }
        }
        let mut families = self.running.collect();
        families.extend(self.waiting.collect());
        for total in totals.iter().flatten() {
            families.extend(total.collect());
        }
        families
    }
}
