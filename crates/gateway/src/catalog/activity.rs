//! Which change logs may get rows at present, so that nobody need look into the others.
//!
//! An index service asks for the newest rows of each log again and again: with the official library 64 streams twice a second, for each
//! table. Most tables are idle most of the time. A poll of the log of an idle table is answered by the gateway that it comes through
//! ([`Activity::may_be_idle`]), and no node is asked.
//!
//! # What a gateway says
//!
//! *A log of this table may get rows from me, dated up to a time T*: a mark in the gateway's row of the table of gateways. The mark is
//! there, at a quorum, before the first row is dated; while writes to the table are under way, or were a moment ago, it goes along with
//! each [word](super::lease) of the gateway, T being some seconds ahead. So a write to a table that was idle costs one more write,
//! and others none.
//!
//! # Why no row is missed
//!
//! A poll asks for the rows dated from `a` to `b`. It is answered here only after a look at all gateways' marks that began *after the poll
//! came in*, and only if no mark that was ever seen reaches beyond `a`. Take a row of the log that the node would have shown:
//!
//! - *It was there when the poll came.* Then so was its mark, and the look, at a quorum, sees it. No clock is compared for this: a
//!   row whose mark the look did not see was sent to the node after the poll came, and the node would not have shown it either.
//! - *Its mark is gone*, as its gateway had nothing to write any more, has left or has died. A gateway takes a mark back long after its last row,
//!   and one that leaves or dies leaves its row for the time of its lease. Whoever looks all the time has seen the mark, and remembers how far it reached. Who
//!   did not look for [a while](GAP_MAX), or begins, answers no polls for times before that; [`SKEW`] covers clocks that differ.
//! - *Its gateway is of an earlier version* and says nothing of logs: while one lives, no poll is answered here.
//!
//! What a gateway itself has under way it knows without a look.
//!
//! A write that does not go through a gateway leaves no log row, as ever, and is found by repair.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cql::error::{CqlError, ErrorKind};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::gateways::LiveGateway;
use super::table::LoggedTable;

/// How far ahead a mark reaches.
const REACH: Duration = Duration::from_secs(20);

/// What must be left of it for a row to be dated: longer than a gateway goes on whose words don't come through.
const LEFT_MIN: Duration = Duration::from_secs(8);

/// How long after the last write a table counts as written to.
const LINGERS: Duration = Duration::from_secs(10);

/// How long a write waits for its mark: less than drivers wait for an answer.
const MARKED_WITHIN: Duration = Duration::from_secs(5);

/// Who has not looked for so long may have missed a mark: less than the lease of a gateway that has died, less the pause between two
/// of its words.
const GAP_MAX: Duration = Duration::from_secs(5);

/// Clocks that differ by more date nothing.
const SKEW: Duration = Duration::from_secs(10);

/// Polls for times longer ago are the node's to answer: how far each mark reached need not be remembered for ever.
const HORIZON: Duration = Duration::from_secs(600);

/// Between two looks that polls wait for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long a poll waits for a look; then the node is asked.
const LOOKED_WITHIN: Duration = Duration::from_secs(2);

/// The name of a table as marks have it.
pub(super) fn mark_of(keyspace: &str, table: &str) -> String {
    format!("{keyspace}.{table}")
}

/// What is known of the logs of a cluster.
#[derive(Debug)]
pub(crate) struct Activity {
    /// Whether marks are kept in a cluster.
    is_kept: bool,
    own: Mutex<HashMap<String, OwnMark>>,
    /// Something is to be said at once.
    to_say: Notify,
    /// Counts the words that were said.
    said: watch::Sender<u64>,
    seen: Mutex<Seen>,
    /// Somebody waits for a look.
    wanted: Notify,
    /// When the last look began that is taken in.
    looked: watch::Sender<Option<Instant>>,
}

/// A table that is written to through this gateway.
#[derive(Debug)]
struct OwnMark {
    under_way: usize,
    touched: Instant,
    /// Up to when the cluster has been told, by the clock of logs; 0: not yet. Microseconds.
    until: i64,
}

impl OwnMark {
    fn is_active(&self, now: Instant) -> bool {
        self.under_way > 0 || now.duration_since(self.touched) < LINGERS
    }
}

/// What was seen of all gateways' marks. Times by the clock of logs, microseconds since the epoch.
#[derive(Debug, Default)]
struct Seen {
    /// No mark was missed that reaches beyond this; `None` before the first look.
    since: Option<i64>,
    until: HashMap<String, i64>,
    looked: Option<Instant>,
}

/// A write under way: the log of its table may get rows.
#[derive(Debug)]
pub(crate) struct Entered {
    activity: Arc<Activity>,
    tables: Vec<String>,
}

impl Drop for Entered {
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

impl Activity {
    /// `is_kept`: whether there is a cluster that is told.
    pub(crate) fn new(is_kept: bool) -> Activity {
        Activity {
            is_kept,
            own: Mutex::default(),
            to_say: Notify::new(),
            said: watch::Sender::new(0),
            seen: Mutex::default(),
            wanted: Notify::new(),
            looked: watch::Sender::new(None),
        }
    }

    /// A write to these tables begins at the time `now_micros` of the clock of logs. Waits until all may know that their logs get rows.
    ///
    /// # Errors
    /// If the cluster can't be told. Upon this drivers ask another gateway.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        tables: impl Iterator<Item = &Arc<LoggedTable>>,
        now_micros: impl Fn() -> i64,
    ) -> Result<Entered, CqlError> {
        self.enter_within(MARKED_WITHIN, tables, now_micros).await
    }

    async fn enter_within(
        self: &Arc<Self>,
        within: Duration,
        tables: impl Iterator<Item = &Arc<LoggedTable>>,
        now_micros: impl Fn() -> i64,
    ) -> Result<Entered, CqlError> {
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
        let mut said = self.said.subscribe();
        let marked = async {
            while !self.are_marked(&entered.tables, now_micros()) {
                self.to_say.notify_one();
                // The sender is here.
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

    fn begin(self: &Arc<Self>, tables: Vec<String>) -> Entered {
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
        Entered {
            activity: self.clone(),
            tables,
        }
    }

    fn are_marked(&self, tables: &[String], now_micros: i64) -> bool {
        let own = self.own.lock();
        let left = |table| own.get(table).map_or(0, |mark| mark.until - now_micros);
        tables.iter().all(|table| left(table) >= micros(LEFT_MIN))
    }

    /// Waits until something is to be said at once.
    pub(super) async fn has_news(&self) {
        self.to_say.notified().await;
    }

    /// The marks that go with a word at this time, with how far they reach.
    pub(super) fn marks(&self, now_micros: i64) -> Vec<(String, i64)> {
        self.marks_at(Instant::now(), now_micros)
    }

    fn marks_at(&self, now: Instant, now_micros: i64) -> Vec<(String, i64)> {
        let mut own = self.own.lock();
        own.retain(|_, mark| mark.is_active(now));
        let until = now_micros.saturating_add(micros(REACH));
        own.keys().map(|table| (table.clone(), until)).collect()
    }

    /// The cluster was told.
    pub(super) fn were_said(&self, marks: &[(String, i64)]) {
        let mut own = self.own.lock();
        for (table, until) in marks {
            if let Some(mark) = own.get_mut(table) {
                mark.until = mark.until.max(*until);
            }
        }
        drop(own);
        self.said.send_modify(|said| *said += 1);
    }

    /// Takes in the marks of all live gateways, as a look found them that began then, `from_micros` by the clock of logs.
    pub(super) fn take_in(&self, live: &[LiveGateway], began: Instant, from_micros: i64) {
        let mut seen = self.seen.lock();
        let has_gap = seen
            .looked
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
            // To the end of that millisecond.
            let until = (until_ms + 1).saturating_mul(1_000);
            let known = seen.until.entry(table.clone()).or_insert(until);
            *known = until.max(*known);
        }
        seen.looked = seen.looked.max(Some(began));
        drop(seen);
        self.looked.send_if_modified(|looked| {
            let is_later = *looked < Some(began);
            if is_later {
                *looked = Some(began);
            }
            is_later
        });
    }

    /// Whether no log row of a table is dated from `from_micros` on, by what is known at the time `now_micros`.
    pub(crate) fn may_be_idle(&self, table: &str, from_micros: i64, now_micros: i64) -> bool {
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

    /// Waits for a look that begins now or later; false if it takes too long.
    pub(crate) async fn look(&self) -> bool {
        let asked = Instant::now();
        let mut looked = self.looked.subscribe();
        self.wanted.notify_one();
        let is_later = |began: &Option<Instant>| began.is_some_and(|began| began >= asked);
        timeout(LOOKED_WITHIN, looked.wait_for(is_later))
            .await
            .is_ok_and(|looked| looked.is_ok())
    }

    /// Waits until a look is wanted, and some time has passed since the last one.
    pub(super) async fn look_is_due(&self) {
        self.wanted.notified().await;
        let last = *self.looked.borrow();
        if let Some(last) = last {
            tokio::time::sleep_until(last + LOOK_EVERY).await;
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

    /// One that has looked since a minute ago, and found no mark.
    fn looked() -> (Arc<Activity>, Instant) {
        let activity = Arc::new(Activity::new(true));
        let began = Instant::now();
        activity.take_in(&[gateway(Some(&[]))], began, NOW - 60 * S);
        (activity, began)
    }

    #[tokio::test]
    async fn a_table_is_idle_if_no_mark_was_seen_that_reaches_so_far() {
        let (activity, began) = looked();
        assert!(activity.may_be_idle(TABLE, NOW, NOW));
        // What was before the first look is not known, and clocks differ.
        assert!(!activity.may_be_idle(TABLE, NOW - 55 * S, NOW));
        let marks = [(TABLE, NOW + 5 * S)];
        activity.take_in(&[gateway(Some(&marks))], began, NOW);
        assert!(!activity.may_be_idle(TABLE, NOW, NOW));
        assert!(activity.may_be_idle("shop.events", NOW, NOW));
        // Its gateway has gone; what it had marked is remembered.
        activity.take_in(&[gateway(Some(&[]))], began, NOW + S);
        assert!(!activity.may_be_idle(TABLE, NOW + 4 * S, NOW + S));
        assert!(activity.may_be_idle(TABLE, NOW + 6 * S, NOW + S));
    }

    #[tokio::test]
    async fn nothing_is_idle_for_who_has_not_looked_or_beside_a_gateway_that_does_not_say() {
        let activity = Arc::new(Activity::new(true));
        assert!(!activity.may_be_idle(TABLE, NOW, NOW));
        let (activity, began) = looked();
        activity.take_in(&[gateway(None)], began, NOW);
        assert!(!activity.may_be_idle(TABLE, NOW + S, NOW + S));
        let (activity, began) = looked();
        activity.take_in(&[gateway(Some(&[]))], began + 2 * GAP_MAX, NOW);
        assert!(!activity.may_be_idle(TABLE, NOW + S, NOW + S));
        assert!(activity.may_be_idle(TABLE, NOW + 11 * S, NOW + 12 * S));
        // Longer ago than marks are remembered.
        assert!(!activity.may_be_idle(TABLE, NOW + 11 * S, NOW + 1_000 * S));
    }

    #[tokio::test]
    async fn a_write_begins_once_its_mark_is_said() {
        let (activity, _) = looked();
        let table = Arc::new(products());
        let writing = activity.clone();
        let writing =
            tokio::spawn(async move { writing.enter([&table].into_iter(), || NOW).await });
        activity.has_news().await;
        assert!(!activity.may_be_idle(TABLE, NOW, NOW));
        // A word that was on its way before it says nothing of it.
        activity.were_said(&[]);
        activity.has_news().await;
        assert!(!writing.is_finished());
        let marks = activity.marks(NOW);
        assert_eq!(marks, [(TABLE.to_owned(), NOW + 20 * S)]);
        activity.were_said(&marks);
        let entered = writing.await.unwrap().unwrap();
        // The next one waits for nothing.
        let table = Arc::new(products());
        let again = activity.enter([&table].into_iter(), || NOW + 5 * S).await;
        drop((entered, again));
        // It lingers, and goes along with the next word.
        assert_eq!(activity.marks(NOW + S).len(), 1);
        assert!(!activity.may_be_idle(TABLE, NOW + S, NOW + S));
    }

    #[tokio::test]
    async fn a_write_whose_mark_cannot_be_said_is_refused() {
        let (activity, _) = looked();
        let table = Arc::new(products());
        let tables = || [&table].into_iter();
        let refused = activity.enter_within(Duration::from_millis(5), tables(), || NOW);
        let refused = refused.await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::IsBootstrapping);
        // Without a cluster there is nobody to tell.
        let alone = Arc::new(Activity::new(false));
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
    async fn a_poll_waits_for_a_look_that_begins_later() {
        let (activity, began) = looked();
        let polling = activity.clone();
        let polling = tokio::spawn(async move { polling.look().await });
        activity.look_is_due().await;
        activity.take_in(&[gateway(Some(&[]))], began, NOW);
        tokio::task::yield_now().await;
        assert!(!polling.is_finished());
        activity.take_in(&[gateway(Some(&[]))], Instant::now(), NOW);
        assert!(polling.await.unwrap());
    }
}
