//! Options for comparing indexes with their tables.

use std::time::Duration;

/// The options for comparing indexes with their tables and mending them.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The schedule of repairs; `None` for no scheduled repairs. An index may have a schedule of
    /// its own.
    pub schedule: Option<PeriodicRepair>,
    /// The schedule for Apache Cassandra with gateways, if neither `schedule` nor the index sets
    /// one. Writes that go round the gateways, and rows that reach nodes by hinted handoff, leave
    /// no log row in time.
    pub behind_gateways: Option<PeriodicRepair>,
    /// The time that comparisons in progress may go on after a repair was requested to stop.
    pub grace: Duration,
    /// A table whose index has no more rows than this is compared in one piece.
    pub small_table_rows: usize,
    /// The approximate number of rows in one range of a larger table.
    pub range_rows: usize,
    /// The longest time that a repair waits for the readers of the log before it believes a
    /// difference.
    pub settle_max: Duration,
}

/// The interval and the speed of repairs of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicRepair {
    /// The time from the beginning of one repair to that of the next.
    pub interval: Duration,
    /// The number of replica sets that are repaired at a time; 0 for as many as share no node.
    pub parallel: usize,
    /// The number of ranges compared at a time for each replica set; 0 for as many as the nodes
    /// allow, which is also the limit.
    pub intensity: usize,
}

impl PeriodicRepair {
    /// Once a day, gently.
    pub const DAILY: PeriodicRepair = PeriodicRepair {
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
            // The slow reader, which waits until late rows have arrived, lags 40 s.
            settle_max: Duration::from_secs(120),
        }
    }
}
