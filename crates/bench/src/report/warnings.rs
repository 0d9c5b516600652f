//! Warns of doubtful figures of a result.

use super::measurement::Measurement;

/// The share of failed requests from which a warning is given. If more fail than P99 leaves out,
/// P99 says nothing of the slowest.
const FAILED_SHARE_MAX: f64 = 0.01;

/// The share of the latency up to which the lateness of the pacer, in the same quantile, is
/// harmless.
const LATENESS_SHARE_MAX: f64 = 0.1;

/// The share of stolen time up to which no warning is given. A stop is a few milliseconds. With a
/// larger share P99 measures the stops rather than the server.
const STOLEN_SHARE_MAX: f64 = 0.002;

impl Measurement {
    /// The warnings that a reader of the result should know.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (kind, count) in &self.errors {
            warnings.push(format!("{count} failed: {kind}"));
        }
        let failed = self.failed() as f64 / (self.failed() + self.operations).max(1) as f64;
        if failed >= FAILED_SHARE_MAX {
            warnings.push(format!(
                "{:.1} % failed: latencies are those of the answered ones, and a P99 with the failed ones would be higher",
                failed * 100.0
            ));
        }
        // With fewer requests the quantile is the longest of all.
        let longest = match self.operations {
            // A result that is not of requests has no latencies.
            _ if self.concurrency == 0 => None,
            1..100 => Some("P99 and P99.9 are"),
            100..1000 => Some("P99.9 is"),
            _ => None,
        };
        if let Some(quantiles) = longest {
            warnings.push(format!(
                "{} answers only: {quantiles} the longest of them",
                self.operations
            ));
        }
        if self.not_sent > 0 {
            warnings.push(format!(
                "{} requests were due but not sent before the time was up: the server, the concurrency or this client is below \
                 the rate asked for, and the latencies are lower bounds",
                self.not_sent
            ));
        }
        warnings.extend(self.pacer_warning());
        if self.short_answers > 0 {
            warnings.push(format!(
                "{} answers had fewer rows than asked for",
                self.short_answers
            ));
        }
        if self.client_cpu_cores > 0.8 * self.client_cores as f64 {
            warnings.push(format!(
                "the client kept {:.1} of {} cores busy: the client itself may be what is slow",
                self.client_cpu_cores, self.client_cores
            ));
        }
        if let Some(share) = self.stolen_share.filter(|share| *share > STOLEN_SHARE_MAX) {
            warnings.push(format!(
                "the hypervisor gave {:.1} % of this machine's processors to others: latencies include these stops",
                share * 100.0
            ));
        }
        warnings
    }

    /// A warning if the lateness of the pacer may be a good part of the slow latencies.
    fn pacer_warning(&self) -> Option<String> {
        let (late, latency) = (self.pacer_lateness_ms?, self.latency_ms);
        let matters = |late: f64, latency: f64| late > LATENESS_SHARE_MAX * latency;
        if self.operations == 0
            || !(matters(late.p99, latency.p99) || matters(late.p999, latency.p999))
        {
            return None;
        }
        Some(format!(
            "the client's pacer was late by P50 {:.2}, P99 {:.2}, P99.9 {:.2}, max {:.2} ms: this much of the latencies may \
             be the client's",
            late.p50, late.p99, late.p999, late.max
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::measurement::LatencyMs;

    #[test]
    fn problems_of_a_measurement_are_warned_of() {
        let measurement = Measurement {
            errors: BTreeMap::from([("timeout".to_owned(), 3)]),
            operations: 97,
            concurrency: 1,
            not_sent: 1,
            short_answers: 2,
            client_cpu_cores: 1.9,
            client_cores: 2,
            stolen_share: Some(0.011),
            ..Measurement::default()
        };
        let warnings = measurement.warnings();
        assert_eq!(warnings.len(), 7);
        assert!(warnings[6].contains("gave 1.1 %"), "{warnings:?}");
        assert!(warnings[1].starts_with("3.0 % failed"), "{warnings:?}");
        assert!(warnings[2].contains("P99 and"), "{warnings:?}");
        assert_eq!(Measurement::default().warnings(), [""; 0]);
        // The failures are listed, but are too few to affect P99. P99.9 has requests beyond it.
        let many = Measurement {
            operations: 1000,
            concurrency: 1,
            errors: BTreeMap::from([("timeout".to_owned(), 3)]),
            ..Measurement::default()
        };
        assert_eq!(many.warnings(), ["3 failed: timeout"]);
    }

    #[test]
    fn a_late_pacer_is_told_of_when_it_is_a_good_part_of_the_latency() {
        let warnings = |late_p99: f64, late_p999: f64| {
            let latency_ms = LatencyMs {
                p99: 10.0,
                p999: 20.0,
                ..LatencyMs::default()
            };
            let late = LatencyMs {
                p50: 0.0625,
                p99: late_p99,
                p999: late_p999,
                max: 8.25,
                ..LatencyMs::default()
            };
            let measurement = Measurement {
                operations: 10_000,
                concurrency: 1,
                latency_ms,
                pacer_lateness_ms: Some(late),
                ..Measurement::default()
            };
            measurement.warnings()
        };
        assert_eq!(warnings(0.9, 1.9), [""; 0]);
        let said = &warnings(1.1, 1.9)[0];
        let figures = "P50 0.06, P99 1.10, P99.9 1.90, max 8.25 ms";
        assert!(said.contains(figures), "{said}");
        assert_eq!(warnings(0.9, 2.1).len(), 1);
    }
}
