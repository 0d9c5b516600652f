//! The metric families of turns on the processor: which class of work gets how much of it.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{CounterVec, IntGaugeVec, Opts};
use turns::{Class, Counts, Turns};

const CLASS: &[&str] = &["class"];

/// Collects the counts of turns when they are scraped.
pub struct TurnFamilies {
    turns: Turns,
    running: IntGaugeVec,
    waiting: IntGaugeVec,
}

impl TurnFamilies {
    /// The families of these turns.
    pub fn new(turns: Turns) -> prometheus::Result<TurnFamilies> {
        let gauge = |name, help| IntGaugeVec::new(Opts::new(name, help), CLASS);
        Ok(TurnFamilies {
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

impl Collector for TurnFamilies {
    fn desc(&self) -> Vec<&Desc> {
        let mut descriptions = self.running.desc();
        descriptions.extend(self.waiting.desc());
        descriptions
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let totals = TurnFamilies::totals();
        for class in Class::ALL {
            let Counts {
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
