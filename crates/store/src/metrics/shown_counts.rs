//! The families whose counts other parts keep: turns on the processor, and tasks. They are read
//! when metrics are requested.

use std::sync::Arc;

use cpu_scheduler::{CpuScheduler, PermitCounts, WorkClass};
use http_server::{MetricsRegistry, ReadCounts, ReadValues};
use tasks::{KindCounts, TaskRegistry};

const CLASS: &[&str] = &["class"];
const KIND: &[&str] = &["kind"];

/// Shows which class of work gets how much of the processor.
pub(super) fn show_turns(registry: &MetricsRegistry, turns: &CpuScheduler) {
    let read = |value: fn(&PermitCounts) -> f64| -> ReadValues {
        let turns = turns.clone();
        Arc::new(move || {
            let classes = WorkClass::ALL.iter();
            let values = classes.map(|class| {
                let counts = turns.counts(*class);
                (vec![class.name().to_owned()], value(&counts))
            });
            values.collect::<Vec<_>>()
        })
    };
    registry.show_gauge_values(
        "annulus_scheduler_running_turns",
        "Turns on the processor that are held",
        CLASS,
        read(|counts| counts.running as f64),
    );
    registry.show_gauge_values(
        "annulus_scheduler_waiting_turns",
        "Work that waits for a turn",
        CLASS,
        read(|counts| counts.waiting as f64),
    );
    registry.show_counter_values(
        "annulus_scheduler_given_turns_total",
        "Turns on the processor that were given",
        CLASS,
        read(|counts| counts.given as f64),
    );
    registry.show_counter_values(
        "annulus_scheduler_held_seconds_total",
        "Time for which turns were held",
        CLASS,
        read(|counts| counts.held.as_secs_f64()),
    );
}

/// Shows how many tasks run, and how many have ended in which way. Parts of tasks count nothing.
pub(super) fn show_tasks(registry: &MetricsRegistry, tasks: &TaskRegistry) {
    let read = |value: fn(&KindCounts) -> u64| -> ReadCounts {
        let tasks = tasks.clone();
        Arc::new(move || {
            let counts = tasks.counts().into_iter();
            let values = counts.map(|(kind, counts)| (vec![kind], value(&counts)));
            values.collect::<Vec<_>>()
        })
    };
    registry.show_gauge(
        "annulus_task_running",
        "Tasks that run, by kind",
        KIND,
        read(|counts| counts.running),
    );
    registry.show_counter(
        "annulus_task_done_total",
        "Tasks that have done all they had to",
        KIND,
        read(|counts| counts.done),
    );
    registry.show_counter(
        "annulus_task_failed_total",
        "Tasks that have failed",
        KIND,
        read(|counts| counts.failed),
    );
    registry.show_counter(
        "annulus_task_aborted_total",
        "Tasks that were stopped before their end",
        KIND,
        read(|counts| counts.aborted),
    );
}

#[cfg(test)]
mod tests {
    use tasks::{TaskScope, TaskSpec};

    use super::*;

    fn spec(kind: &'static str) -> TaskSpec {
        TaskSpec {
            kind,
            scope: TaskScope::default(),
            units: "rows",
            total: None,
            counters: &[],
            abortable: true,
        }
    }

    #[test]
    fn tasks_are_counted_by_the_way_in_which_they_end() {
        let (registry, tasks) = (MetricsRegistry::default(), TaskRegistry::default());
        show_tasks(&registry, &tasks);
        let running = tasks.start(spec("scan"));
        tasks.start(spec("repair")).failed("no disk");
        tasks.start(spec("repair")).done();
        drop(tasks.start(spec("repair")));
        let text = registry.text().unwrap();
        for line in [
            r#"annulus_task_running{kind="scan"} 1"#,
            r#"annulus_task_running{kind="repair"} 0"#,
            r#"annulus_task_done_total{kind="repair"} 1"#,
            r#"annulus_task_failed_total{kind="repair"} 1"#,
            r#"annulus_task_aborted_total{kind="repair"} 1"#,
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
        running.done();
        let text = registry.text().unwrap();
        assert!(
            text.contains(r#"annulus_task_running{kind="scan"} 0"#),
            "{text}"
        );
    }
}
