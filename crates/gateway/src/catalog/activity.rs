//! The activity of change logs: which of them may get rows at present. Polls of all others are
//! answered without a request to a node.
//!
//! An index service polls each log again and again for its newest rows. With the official library
//! it reads 64 streams twice a second, for each table. Most tables are idle most of the time. The
//! gateway answers a poll of an idle table's log itself ([`LogMarks::may_be_idle`]).
//!
//! # Marks
//!
//! A *mark* says: the log of this table may get rows from this gateway, dated up to a time T. It is
//! stored in the gateway's row of the table of gateways. The gateway writes it at a quorum before
//! it dates the first row. While writes to the table are under way, and for a while afterwards,
//! each [heartbeat](super::lease) writes it again, with T some seconds ahead. So a write costs one
//! more write if its table was idle, and none otherwise.
//!
//! # Why no row is missed
//!
//! A *look* reads the marks of all gateways. A poll reads the rows dated from `a` to `b`. The
//! gateway answers it only after a look that began *after the poll came in*, and only if no mark
//! that was ever seen reaches beyond `a`. A row of the log that the node would have shown is one of
//! these cases:
//!
//! - *The row was there when the poll came.* Then its mark was there too, and the look sees it at a
//!   quorum. This compares no clocks: a row whose mark the look did not see was sent to the node
//!   after the poll came, and the node would not have shown it either.
//! - *Its mark is no longer there*, because its gateway had nothing to write any more, has left or
//!   has died. A gateway removes a mark long after its last row, and the row of a gateway that
//!   leaves or dies stays for the time of its lease. A gateway that looks all the time has seen the
//!   mark and remembers how far it reached. One that has just started, or did not look for [a
//!   while](GAP_MAX), answers no polls for earlier times. [`SKEW`] covers clocks that differ.
//! - *Its gateway is of an earlier version*, which writes no marks. While such a gateway lives, no
//!   poll is answered here.
//!
//! A gateway knows its own writes under way without a look.
//!
//! A write that does not go through a gateway never leaves a log row. Repair finds it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cql::error::{CqlError, ErrorKind};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::gateways::LiveGateway;
use super::table::LoggedTable;

/// The reach of a mark: the time from its heartbeat until its end.
const REACH: Duration = Duration::from_secs(20);

/// The part of a mark's reach that must be left when a row is dated. It is longer than a gateway
/// goes on while its heartbeats fail.
const LEFT_MIN: Duration = Duration::from_secs(8);

/// The time for which a table stays marked after the last write to it.
const LINGERS: Duration = Duration::from_secs(10);

/// The time limit for a write to wait for its mark. It is less than drivers wait for an answer.
const MARKED_WITHIN: Duration = Duration::from_secs(5);

/// A gateway that has not looked for this long may have missed a mark. This is less than the lease
/// of a gateway that has died, minus the pause between two of its heartbeats.
const GAP_MAX: Duration = Duration::from_secs(5);

/// Log rows are dated only while clocks differ by less than this.
const SKEW: Duration = Duration::from_secs(10);

/// Polls for times longer ago than this go to the node, so that the reach of each mark need not be
/// remembered for ever.
const HORIZON: Duration = Duration::from_secs(600);

/// The least time between two looks that polls wait for.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);

/// The time limit for a poll to wait for a look. After that the poll goes to the node.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// The name of a table in marks: `keyspace.table`.
pub(super) fn mark_of(keyspace: &str, table: &str) -> String {
    format!("{keyspace}.{table}")
}

/// The marks of all gateways, as far as this one knows: its own and those that it has seen.
#[derive(Debug)]
pub(crate) struct LogMarks {
    /// Whether marks are written to a cluster. A gateway that passes everything through writes
    /// none.
    is_kept: bool,
    /// The tables that are written to through this gateway, by their names in marks.
    own: Mutex<HashMap<String, OwnMark>>,
    /// Requests a heartbeat at once, as there is a new mark.
    heartbeat_requested: Notify,
    /// The number of heartbeats that the cluster has acknowledged.
    acknowledged_heartbeats: watch::Sender<u64>,
    /// The marks of all gateways, as far as they were seen.
    seen: Mutex<ObservedMarks>,
    /// Requests a look, as a poll waits for one.
    refresh_requested: Notify,
    /// The beginning of the latest look whose marks were taken in; `None` before the first.
    refreshed: watch::Sender<Option<Instant>>,
}

/// A table that is written to through this gateway.
#[derive(Debug)]
struct OwnMark {
    /// The number of writes to the table that are under way.
    under_way: usize,
    /// The time at which a write to the table last began or ended.
    touched: Instant,
    /// The time up to which the cluster knows the mark, by the log clock; 0 if it does not know it
    /// yet. Microseconds since the epoch.
    until: i64,
}

impl OwnMark {
    fn is_active(&self, now: Instant) -> bool {
        self.under_way > 0 || now.duration_since(self.touched) < LINGERS
    }
}

/// The marks of all gateways, as far as they were seen. Times are by the log clock, in microseconds
/// since the epoch.
#[derive(Debug, Default)]
struct ObservedMarks {
    /// Every mark that reaches beyond this time was seen; `None` before the first look.
    since: Option<i64>,
    /// The time that the marks of each table reach to, by the table's name in marks.
    until: HashMap<String, i64>,
    /// The beginning of the latest look; `None` before the first.
    refreshed: Option<Instant>,
}

/// A write under way. While this value lives, the logs of its tables are marked.
#[derive(Debug)]
pub(crate) struct MarkedWrite {
    activity: Arc<LogMarks>,
    tables: Vec<String>,
}

impl Drop for MarkedWrite {
    fn drop(&mut self) {
        let mut own = self.activity.own.lock();
        for table in &self.tables {
            if let Some(mark) = own.get_mut(table) {
                mark.under_way -= 1;
                mark.touched = Instant::now();
            }
        }
    }
}

impl LogMarks {
    /// `is_kept` says whether marks are written to a cluster.
    pub(crate) fn new(is_kept: bool) -> LogMarks {
        LogMarks {
            is_kept,
            own: Mutex::default(),
            heartbeat_requested: Notify::new(),
            acknowledged_heartbeats: watch::Sender::new(0),
            seen: Mutex::default(),
            refresh_requested: Notify::new(),
            refreshed: watch::Sender::new(None),
        }
    }

    /// Begins a write to these tables. Waits until the cluster knows marks of their logs that reach
    /// far enough beyond `now_micros`, the present by the log clock in microseconds since the
    /// epoch.
    ///
    /// # Errors
    /// [`ErrorKind::IsBootstrapping`] if the marks can't be written in time. Drivers then try
    /// another gateway.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        tables: impl Iterator<Item = &Arc<LoggedTable>>,
        now_micros: impl Fn() -> i64,
    ) -> Result<MarkedWrite, CqlError> {
        self.enter_within(MARKED_WITHIN, tables, now_micros).await
    }

    async fn enter_within(
        self: &Arc<Self>,
        within: Duration,
        tables: impl Iterator<Item = &Arc<LoggedTable>>,
        now_micros: impl Fn() -> i64,
    ) -> Result<MarkedWrite, CqlError> {
        let mut names: Vec<String> = Vec::new();
        for table in tables {
            let name = mark_of(&table.keyspace, &table.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let entered = self.begin(names);
        if !self.is_kept {
            return Ok(entered);
        }
        // Before the first look at the marks, so that no heartbeat after it is missed.
        let mut said = self.acknowledged_heartbeats.subscribe();
        let marked = async {
            while !self.are_marked(&entered.tables, now_micros()) {
                self.heartbeat_requested.notify_one();
                // The sender lives as long as `self`, so this never fails.
                let _ = said.changed().await;
            }
        };
        match timeout(within, marked).await {
            Ok(()) => Ok(entered),
            Err(_) => Err(CqlError::new(
                ErrorKind::IsBootstrapping,
                "the cluster could not be told in time that a table with a vector index is written to, and the write was not carried \
                 out: use another gateway",
            )),
        }
    }

    fn begin(self: &Arc<Self>, tables: Vec<String>) -> MarkedWrite {
        let now = Instant::now();
        let mut own = self.own.lock();
        for table in &tables {
            let mark = own.entry(table.clone()).or_insert(OwnMark {
                under_way: 0,
                touched: now,
                until: 0,
            });
            mark.under_way += 1;
            mark.touched = now;
        }
        drop(own);
        MarkedWrite {
            activity: self.clone(),
            tables,
        }
    }

    fn are_marked(&self, tables: &[String], now_micros: i64) -> bool {
        let own = self.own.lock();
        let left = |table| own.get(table).map_or(0, |mark| mark.until - now_micros);
        tables.iter().all(|table| left(table) >= micros(LEFT_MIN))
    }

    /// Waits until a heartbeat is wanted at once.
    pub(super) async fn has_new_mark(&self) {
        self.heartbeat_requested.notified().await;
    }

    /// The marks for a heartbeat at the time `now_micros`, each with the time that it reaches to.
    /// Both are by the log clock, in microseconds since the epoch.
    pub(super) fn marks(&self, now_micros: i64) -> Vec<(String, i64)> {
        self.marks_at(Instant::now(), now_micros)
    }

    fn marks_at(&self, now: Instant, now_micros: i64) -> Vec<(String, i64)> {
        let mut own = self.own.lock();
        own.retain(|_, mark| mark.is_active(now));
        let until = now_micros.saturating_add(micros(REACH));
        own.keys().map(|table| (table.clone(), until)).collect()
    }

    /// Notes that the cluster has acknowledged a heartbeat with these marks.
    pub(super) fn marks_were_written(&self, marks: &[(String, i64)]) {
        let mut own = self.own.lock();
        for (table, until) in marks {
            if let Some(mark) = own.get_mut(table) {
                mark.until = mark.until.max(*until);
            }
        }
        drop(own);
        self.acknowledged_heartbeats.send_modify(|said| *said += 1);
    }

    /// Takes in the marks that a look found at all live gateways. The look began at `began`, which
    /// is `from_micros` by the log clock, in microseconds since the epoch.
    pub(super) fn take_in(&self, live: &[LiveGateway], began: Instant, from_micros: i64) {
        let mut seen = self.seen.lock();
        let has_gap = seen
            .refreshed
            .is_none_or(|looked| began.saturating_duration_since(looked) > GAP_MAX);
        let says_nothing =
            |gateway: &LiveGateway| gateway.confirmed.is_some() && gateway.active.is_none();
        if has_gap || live.iter().any(says_nothing) {
            seen.since = Some(from_micros);
        }
        let horizon = from_micros.saturating_sub(micros(2 * HORIZON));
        seen.until.retain(|_, until| *until > horizon);
        let marks = live.iter().filter_map(|gateway| gateway.active.as_ref());
        for (table, until_ms) in marks.flatten() {
            // The mark reaches to the end of its millisecond.
            let until = (until_ms + 1).saturating_mul(1_000);
            let known = seen.until.entry(table.clone()).or_insert(until);
            *known = until.max(*known);
        }
        seen.refreshed = seen.refreshed.max(Some(began));
        drop(seen);
        self.refreshed.send_if_modified(|looked| {
            let is_later = *looked < Some(began);
            if is_later {
                *looked = Some(began);
            }
            is_later
        });
    }

    /// Whether no log row of a table, given by its name in marks, is dated from `from_micros` on,
    /// as far as is known at the time `now_micros`. Both times are by the log clock, in
    /// microseconds since the epoch.
    pub(crate) fn may_be_idle(&self, table: &str, from_micros: i64, now_micros: i64) -> bool {
        // Rows of this gateway's own writes may be on their way, which no look at the cluster
        // shows.
        if self.own.lock().contains_key(table) {
            return false;
        }
        let seen = self.seen.lock();
        let since = seen
            .since
            .map(|since| since.saturating_add(micros(SKEW)))
            .map(|since| since.max(now_micros.saturating_sub(micros(HORIZON))));
        since.is_some_and(|since| from_micros >= since)
            && seen
                .until
                .get(table)
                .is_none_or(|until| from_micros >= *until)
    }

    /// Waits for a look that begins now or later; false if that takes too long.
    pub(crate) async fn wait_for_refresh(&self) -> bool {
        // A look that began earlier may have missed a mark that was there when the poll came.
        let wanted_at = Instant::now();
        let mut looked = self.refreshed.subscribe();
        self.refresh_requested.notify_one();
        let is_later = |began: &Option<Instant>| began.is_some_and(|began| began >= wanted_at);
        timeout(REFRESH_TIMEOUT, looked.wait_for(is_later))
            .await
            .is_ok_and(|looked| looked.is_ok())
    }

    /// Waits until a look is wanted and [`REFRESH_INTERVAL`] has passed since the last one.
    pub(super) async fn refresh_is_due(&self) {
        self.refresh_requested.notified().await;
        let last = *self.refreshed.borrow();
        if let Some(last) = last {
            tokio::time::sleep_until(last + REFRESH_INTERVAL).await;
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;
    use crate::writes::test_tables::products;

    const NOW: i64 = 1_700_000_000_000_000;
    const S: i64 = 1_000_000;
    const TABLE: &str = "shop.products";

    fn gateway(active: Option<&[(&str, i64)]>) -> LiveGateway {
        let active = active.map(|marks| {
            let marks = marks.iter();
            marks
                .map(|(table, until)| ((*table).to_owned(), until / 1_000))
                .collect::<BTreeMap<_, _>>()
        });
        LiveGateway {
            gateway: Uuid::from_u128(7),
            address: None,
            confirmed: Some(1),
            said_ms: None,
            active,
        }
    }

    /// Returns an [`LogMarks`] whose first look was a minute ago, by the log clock, and found no
    /// mark.
    fn looked() -> (Arc<LogMarks>, Instant) {
        let activity = Arc::new(LogMarks::new(true));
        let began = Instant::now();
        activity.take_in(&[gateway(Some(&[]))], began, NOW - 60 * S);
        (activity, began)
    }

    #[tokio::test]
    async fn a_table_is_idle_if_no_mark_was_seen_that_reaches_so_far() {
        let (activity, began) = looked();
        assert!(activity.may_be_idle(TABLE, NOW, NOW));
        // Times before the first look are not known, and clocks may differ.
        assert!(!activity.may_be_idle(TABLE, NOW - 55 * S, NOW));
        let marks = [(TABLE, NOW + 5 * S)];
        activity.take_in(&[gateway(Some(&marks))], began, NOW);
        assert!(!activity.may_be_idle(TABLE, NOW, NOW));
        assert!(activity.may_be_idle("shop.events", NOW, NOW));
        // The mark was removed with its gateway, but is remembered.
        activity.take_in(&[gateway(Some(&[]))], began, NOW + S);
        assert!(!activity.may_be_idle(TABLE, NOW + 4 * S, NOW + S));
        assert!(activity.may_be_idle(TABLE, NOW + 6 * S, NOW + S));
    }

    #[tokio::test]
    async fn no_log_is_idle_before_a_refresh_or_with_a_gateway_that_writes_no_marks() {
        let activity = Arc::new(LogMarks::new(true));
        assert!(!activity.may_be_idle(TABLE, NOW, NOW));
        let (activity, began) = looked();
        activity.take_in(&[gateway(None)], began, NOW);
        assert!(!activity.may_be_idle(TABLE, NOW + S, NOW + S));
        let (activity, began) = looked();
        activity.take_in(&[gateway(Some(&[]))], began + 2 * GAP_MAX, NOW);
        assert!(!activity.may_be_idle(TABLE, NOW + S, NOW + S));
        assert!(activity.may_be_idle(TABLE, NOW + 11 * S, NOW + 12 * S));
        // This time is before the horizon, so marks may have been forgotten.
        assert!(!activity.may_be_idle(TABLE, NOW + 11 * S, NOW + 1_000 * S));
    }

    #[tokio::test]
    async fn a_write_begins_once_its_mark_is_written() {
        let (activity, _) = looked();
        let table = Arc::new(products());
        let writing = activity.clone();
        let writing =
            tokio::spawn(async move { writing.enter([&table].into_iter(), || NOW).await });
        activity.has_new_mark().await;
        assert!(!activity.may_be_idle(TABLE, NOW, NOW));
        // A heartbeat that was under way before the write does not hold its mark.
        activity.marks_were_written(&[]);
        activity.has_new_mark().await;
        assert!(!writing.is_finished());
        let marks = activity.marks(NOW);
        assert_eq!(marks, [(TABLE.to_owned(), NOW + 20 * S)]);
        activity.marks_were_written(&marks);
        let entered = writing.await.unwrap().unwrap();
        // The next write finds the mark, and does not wait.
        let table = Arc::new(products());
        let again = activity.enter([&table].into_iter(), || NOW + 5 * S).await;
        drop((entered, again));
        // The mark lingers, and the next heartbeat holds it.
        assert_eq!(activity.marks(NOW + S).len(), 1);
        assert!(!activity.may_be_idle(TABLE, NOW + S, NOW + S));
    }

    #[tokio::test]
    async fn a_write_whose_mark_cannot_be_written_is_refused() {
        let (activity, _) = looked();
        let table = Arc::new(products());
        let tables = || [&table].into_iter();
        let refused = activity.enter_within(Duration::from_millis(5), tables(), || NOW);
        let refused = refused.await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::IsBootstrapping);
        // Without a cluster no heartbeat is waited for.
        let alone = Arc::new(LogMarks::new(false));
        assert!(alone.enter(tables(), || NOW).await.is_ok());
    }

    #[tokio::test]
    async fn a_mark_goes_a_while_after_the_last_write() {
        let (activity, _) = looked();
        let entered = activity.begin(vec![TABLE.to_owned()]);
        let marks = |later| activity.marks_at(Instant::now() + later, NOW).len();
        assert_eq!(marks(3 * LINGERS), 1, "it is under way");
        drop(entered);
        assert_eq!(marks(LINGERS / 2), 1);
        assert_eq!(marks(LINGERS), 0);
        assert!(activity.may_be_idle(TABLE, NOW, NOW));
    }

    #[tokio::test]
    async fn a_poll_waits_for_a_refresh_that_begins_later() {
        let (activity, began) = looked();
        let polling = activity.clone();
        let polling = tokio::spawn(async move { polling.wait_for_refresh().await });
        activity.refresh_is_due().await;
        activity.take_in(&[gateway(Some(&[]))], began, NOW);
        tokio::task::yield_now().await;
        assert!(!polling.is_finished());
        activity.take_in(&[gateway(Some(&[]))], Instant::now(), NOW);
        assert!(polling.await.unwrap());
    }
}
