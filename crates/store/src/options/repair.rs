//! How indexes are compared with their tables.

use std::time::Duration;

/// How indexes are compared with their tables, and mended.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// When indexes are repaired without being asked; an index may have a schedule of its own.
    /// Absent: never.
    pub schedule: Option<RepairSchedule>,
    /// The same where the database is Apache Cassandra behind gateways and nothing else is said: writes that go round the gateways, and rows
    /// that reach nodes by hinted handoff, leave no log row in time.
    pub behind_gateways: Option<RepairSchedule>,
    /// How long ranges that are being compared may go on after a repair was asked to stop.
    pub grace: Duration,
    /// A table whose index has no more rows than this is compared in one piece.
    pub small_table_rows: usize,
    /// About how many rows a range of a larger one is to hold.
    pub range_rows: usize,
    /// How long at most the readers of the log are waited for before a difference is believed.
    pub settle_max: Duration,
}

/// When an index is repaired, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairSchedule {
    /// From the beginning of one repair to that of the next.
    pub interval: Duration,
    /// Sets of replicas at a time; 0: as many as share no node.
    pub parallel: usize,
    /// Ranges at a time for each of them; 0: as fast as the nodes allow, which is also the
    /// most.
    pub intensity: usize,
}

impl RepairSchedule {
    /// Once a day, gently.
    pub const DAILY: RepairSchedule = RepairSchedule {
        interval: Duration::from_secs(24 * 60 * 60),
        parallel: 0,
        intensity: 1,
    };
}

impl Default for RepairOptions {
    fn default() -> RepairOptions {
        RepairOptions {
            schedule: None,
            behind_gateways: None,
            grace: Duration::from_secs(30),
            small_table_rows: 10_000,
            range_rows: 10_000,
            // A reader that is safe from late rows follows 40 s behind.
            settle_max: Duration::from_secs(120),
        }
    }
}
