//! Checks of the clock that dates log rows. It is compared with the clocks of the node and of the
//! other gateways.
//!
//! Index services read each time of a log once, so a row that is dated too far back is never read.
//! Nothing else would show this: the write is acknowledged, and its row is in the log. So a gateway
//! whose clock differs logs a warning from [`WARN_FROM`] on. From [`REFUSE_FROM`] on it refuses
//! writes to tables with an index.
//!
//! # How clocks are compared
//!
//! The gateway reads its own clock before and after another one. So the difference is only known to
//! be between two numbers, and its [certain](ClockDifference::certain) part counts. A slow answer
//! is therefore no difference.
//!
//! - *The node* answers a query of `now()`. It gives writes their timestamps, and usually runs next
//!   to its gateway.
//! - *Another gateway* writes its time into its row of the table of gateways every few seconds. A
//!   new time was written after the previous look at that table.
//!
//! # Which clock is wrong
//!
//! The difference of two clocks does not show which of them is wrong. If the gateway's clock
//! differs from the node's, the gateway's counts as wrong. Among all gateways, this one included,
//! the median clock counts as right, and of two in the middle the later one. For the rows of a
//! gateway whose clock lags are missed, while those of one whose clock is ahead are only found
//! late.
//!
//! # A clock that is set while the gateway runs
//!
//! If the machine's clock is set back, the log clock goes on at its pace ([`crate::log_clock`]) and
//! is right for a while. If the machine's clock is set forward, the log clock is wrong from the
//! next comparison on. Once the machine's clock is right again, the log clock starts over.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::cluster::InternalSession;
use super::gateways::{BEAT_WITHIN, LiveGateway};
use super::tables::LEASE;
use crate::log_clock::LogClock;

/// The pause between comparisons with the node's clock. The clocks of gateways are compared
/// whenever their table is read.
const COMPARE_EVERY: Duration = Duration::from_secs(2);

/// The difference from which on the gateway logs a warning. Microseconds.
const WARN_FROM: i64 = 1_000_000;

/// The difference from which on writes are refused. Readers of a log that wait for late rows wait
/// 30 s, and a row needs some of that for its way. Microseconds.
const REFUSE_FROM: i64 = 10_000_000;

/// The least time between two log lines with the same verdict.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// The bounds of a clock difference: another clock is ahead of this gateway's by at least `least`
/// and at most `most`. Microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockDifference {
    least: i64,
    most: i64,
}

impl ClockDifference {
    /// The difference of a clock that showed `theirs` at some moment between `from` and `to` of
    /// this gateway's clock. All in microseconds.
    fn of(theirs: i64, from: i64, to: i64) -> ClockDifference {
        ClockDifference {
            least: theirs.saturating_sub(to),
            most: theirs.saturating_sub(from),
        }
    }

    /// The certain part of the difference, in microseconds; 0 if the two clocks may show the same
    /// time.
    fn certain(self) -> i64 {
        match self {
            ClockDifference { least, .. } if least > 0 => least,
            ClockDifference { most, .. } if most < 0 => most,
            _ => 0,
        }
    }
}

/// The clock of another gateway, as it was last seen.
#[derive(Clone, Debug)]
struct ObservedClock {
    /// The address at which drivers reach the gateway; empty if it is not known.
    address: String,
    /// The time in the gateway's last heartbeat. Microseconds since the epoch.
    heartbeat_micros: i64,
    /// The difference to this gateway's clock.
    difference: ClockDifference,
}

/// The meaning of a clock difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClockVerdict {
    /// The difference does not matter.
    Right,
    /// The difference is reported.
    Differs,
    /// The difference is so large that writes are refused.
    Wrong,
}

impl ClockVerdict {
    fn of(difference: i64) -> ClockVerdict {
        match difference.saturating_abs() {
            REFUSE_FROM.. => ClockVerdict::Wrong,
            WARN_FROM.. => ClockVerdict::Differs,
            _ => ClockVerdict::Right,
        }
    }
}

/// The clock that this gateway's is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceClock {
    /// The clock of the node.
    Node,
    /// The median clock of all gateways.
    Gateways,
    /// The clock of one gateway, given by its address.
    Gateway(String),
}

impl fmt::Display for ReferenceClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceClock::Node => f.write_str("the node's"),
            ReferenceClock::Gateways => f.write_str("those of the other gateways"),
            ReferenceClock::Gateway(address) => write!(f, "that of the gateway at {address}"),
        }
    }
}

/// A difference to another clock, with its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockComparison {
    /// The meaning of the difference.
    pub(crate) verdict: ClockVerdict,
    /// The time by which the other clock is ahead. Microseconds, negative if it lags.
    pub(crate) difference: i64,
    /// The clock that this gateway's was compared with.
    pub(crate) reference: ReferenceClock,
}

impl fmt::Display for ClockComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.difference.unsigned_abs() as f64 / 1e6;
        let side = match self.difference {
            1.. => "behind",
            _ => "ahead of",
        };
        write!(
            f,
            "the gateway's clock is {seconds:.1} s {side} {}",
            self.reference
        )
    }
}

/// The clocks of a cluster, as a gateway sees them.
#[derive(Debug, Default)]
pub(crate) struct ClusterClocks {
    own: Arc<LogClock>,
    state: Mutex<ClockReadings>,
}

#[derive(Debug, Default)]
struct ClockReadings {
    /// The difference to the node's clock; `None` before the first comparison.
    node: Option<ClockDifference>,
    /// The clocks of the other live gateways, by their ids.
    gateways: HashMap<Uuid, ObservedClock>,
    /// The beginning of the last look at the table of gateways, by this gateway's clock.
    /// Microseconds since the epoch.
    gateways_read_at: Option<i64>,
    /// The verdict that was last logged, with the time of that; `None` while no clock differs.
    logged: Option<(ClockVerdict, Instant)>,
}

impl ClusterClocks {
    /// Makes the comparison of `own`, the clock that dates log rows, with other clocks.
    pub(crate) fn new(own: Arc<LogClock>) -> ClusterClocks {
        ClusterClocks {
            own,
            state: Mutex::default(),
        }
    }

    /// The present by which log rows are dated. Microseconds since the epoch.
    pub(super) fn now_micros(&self) -> i64 {
        self.own.now_micros()
    }

    /// The time by which the node's clock is certainly ahead. Microseconds; `None` before the first
    /// comparison.
    pub(crate) fn of_node(&self) -> Option<i64> {
        self.state.lock().node.map(ClockDifference::certain)
    }

    /// The time by which the clock of each other live gateway is certainly ahead, with the
    /// gateway's address. Microseconds.
    pub(crate) fn of_gateways(&self) -> Vec<(String, i64)> {
        let state = self.state.lock();
        let seen = state.gateways.values();
        seen.map(|seen| (seen.address.clone(), seen.difference.certain()))
            .collect()
    }

    /// Whether writes are refused because this gateway's clock is wrong.
    pub(crate) fn is_wrong(&self) -> bool {
        self.own.check().is_err()
    }

    /// Compares with the node's clock at intervals, until the future is dropped.
    pub(super) async fn keep(&self, cluster: &InternalSession) {
        loop {
            tokio::time::sleep(COMPARE_EVERY).await;
            self.compare_with_node(cluster).await;
        }
    }

    /// Compares with the node's clock once. If the node does not answer, the last difference stays.
    pub(super) async fn compare_with_node(&self, cluster: &InternalSession) {
        let from = self.own.now_micros();
        match cluster.node_time().await {
            Ok(theirs) => {
                let to = self.own.now_micros();
                self.node_showed(theirs, from, to);
            }
            Err(error) => tracing::debug!(%error, "the node's clock cannot be looked at"),
        }
    }

    fn node_showed(&self, theirs: i64, from: i64, to: i64) {
        let difference = ClockDifference::of(theirs, from, to);
        let lead = self.own.lead_micros();
        // The difference of the machine's clock leaves out the lead that the log clock retained
        // when the machine's was set back.
        let of_machine = difference.certain().saturating_add(lead);
        if ClockVerdict::of(difference.certain()) > ClockVerdict::Right
            && difference.certain() < 0
            && ClockVerdict::of(of_machine) == ClockVerdict::Right
        {
            tracing::warn!(
                "the machine's clock was ahead and is right again: log rows are dated by it anew"
            );
            // The difference is that of the former times, so the next comparison starts over.
            self.own.reset();
            self.state.lock().node = None;
            return self.judge();
        }
        self.state.lock().node = Some(difference);
        self.judge();
    }

    /// Takes in the rows of the live gateways. They were read between `from` and `to` of this
    /// gateway's clock, in microseconds since the epoch. `own` is the id of this gateway, whose row
    /// is passed over.
    pub(super) fn take_in(&self, rows: &[LiveGateway], own: Uuid, from: i64, to: i64) {
        let mut state = self.state.lock();
        // A row that has not expired was written within its lease.
        let oldest = from.saturating_sub(micros(LEASE));
        let before = state
            .gateways_read_at
            .map_or(oldest, |looked| looked.max(oldest));
        // Gateways that are no longer in the table are forgotten.
        let known = std::mem::take(&mut state.gateways);
        let others = rows.iter().filter(|row| row.gateway != own);
        state.gateways = others
            .filter_map(|row| {
                let said_micros = row.said_ms? * 1_000;
                let known = known.get(&row.gateway);
                // The same heartbeat as last time: to compare it with a later moment would only
                // widen its bounds.
                if let Some(known) = known.filter(|known| known.heartbeat_micros == said_micros) {
                    return Some((row.gateway, known.clone()));
                }
                // A heartbeat can be on its way for this long between its time and its being
                // readable.
                let since = match known {
                    Some(_) => before,
                    None => oldest,
                };
                let since = since.saturating_sub(micros(BEAT_WITHIN));
                let seen = ObservedClock {
                    address: row.address.clone().unwrap_or_default(),
                    heartbeat_micros: said_micros,
                    difference: ClockDifference::of(said_micros, since, to),
                };
                Some((row.gateway, seen))
            })
            .collect();
        state.gateways_read_at = Some(from);
        // `judge` takes the lock again.
        drop(state);
        self.judge();
    }

    /// Decides whether this gateway's clock is wrong, and logs the verdict if it is new or was not
    /// logged for a while.
    fn judge(&self) {
        let mut state = self.state.lock();
        let verdict = worst(&state);
        let why = verdict
            .as_ref()
            .filter(|compared| compared.verdict == ClockVerdict::Wrong)
            .map(ToString::to_string);
        self.own.set_wrong(why);
        let now = Instant::now();
        let told = state.logged.map(|(told, _)| told);
        match verdict {
            Some(compared) => {
                let is_due = state.logged.is_none_or(|(told, at)| {
                    told != compared.verdict || now.duration_since(at) >= AGAIN_AFTER
                });
                if is_due {
                    state.logged = Some((compared.verdict, now));
                    match compared.verdict {
                        ClockVerdict::Wrong => tracing::error!(
                            "{compared}: writes to tables with a vector index are refused until it is right"
                        ),
                        _ => tracing::warn!(
                            "{compared}: index services may find writes late; from {} s on writes are refused",
                            REFUSE_FROM / 1_000_000
                        ),
                    }
                }
            }
            None if told.is_some() => {
                state.logged = None;
                tracing::info!("the gateway's clock agrees with the others again");
            }
            None => {}
        }
    }
}

/// The worst difference; `None` if no difference matters.
fn worst(state: &ClockReadings) -> Option<ClockComparison> {
    let compared = |difference: i64, whose: ReferenceClock| ClockComparison {
        verdict: ClockVerdict::of(difference),
        difference,
        reference: whose,
    };
    let of_node = state
        .node
        .map(|node| compared(node.certain(), ReferenceClock::Node));
    let of_gateways = compared(middle(state), ReferenceClock::Gateways);
    // The difference to a single gateway is reported, but does not make this gateway's clock wrong.
    let single = state.gateways.values().map(|seen| {
        let difference = seen.difference.certain();
        ClockComparison {
            verdict: ClockVerdict::of(difference).min(ClockVerdict::Differs),
            difference,
            reference: ReferenceClock::Gateway(seen.address.clone()),
        }
    });
    of_node
        .into_iter()
        .chain([of_gateways])
        .chain(single)
        .filter(|compared| compared.verdict > ClockVerdict::Right)
        .max_by_key(|compared| (compared.verdict, compared.difference.saturating_abs()))
}

/// The time by which the median clock of all gateways is ahead of this one's. Microseconds.
fn middle(state: &ClockReadings) -> i64 {
    let others = state.gateways.values();
    let others = others.map(|seen| seen.difference.certain());
    let mut all: Vec<i64> = others.chain([0]).collect();
    all.sort_unstable();
    // The later one of two in the middle: rows of a clock that lags are missed.
    all[all.len() / 2]
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use clock::ManualClock;

    use super::*;

    const START: i64 = 1_700_000_000_000_000;
    const S: i64 = 1_000_000;

    fn clocks() -> (Arc<ManualClock>, Arc<LogClock>, ClusterClocks) {
        let hand = ManualClock::new(START);
        let own = Arc::new(LogClock::new(hand.clone()));
        (hand, own.clone(), ClusterClocks::new(own))
    }

    fn row(number: u128, said_micros: i64) -> LiveGateway {
        LiveGateway {
            gateway: Uuid::from_u128(number),
            address: Some(format!("gateway {number}")),
            confirmed: Some(1),
            said_ms: Some(said_micros / 1_000),
            active: None,
        }
    }

    #[test]
    fn the_duration_of_a_reading_is_no_difference() {
        for (theirs, from, to, certain) in [
            (50, 40, 60, 0),
            (50, 50, 50, 0),
            (90, 40, 60, 30),
            (10, 40, 60, -30),
            // The answer took long.
            (90, 40, 1_000, 0),
        ] {
            assert_eq!(ClockDifference::of(theirs, from, to).certain(), certain);
        }
    }

    #[test]
    fn a_clock_that_differs_from_the_nodes_is_logged_and_then_dates_no_rows() {
        let (_, own, clocks) = clocks();
        for (ahead, verdict) in [
            (0, ClockVerdict::Right),
            (S - 1, ClockVerdict::Right),
            (S, ClockVerdict::Differs),
            (-9 * S, ClockVerdict::Differs),
            (10 * S, ClockVerdict::Wrong),
            (-90 * S, ClockVerdict::Wrong),
            (0, ClockVerdict::Right),
        ] {
            clocks.node_showed(START + ahead, START, START);
            let told = worst(&clocks.state.lock()).map_or(ClockVerdict::Right, |told| told.verdict);
            assert_eq!(told, verdict, "{ahead}");
            assert_eq!(
                own.check().is_err(),
                verdict == ClockVerdict::Wrong,
                "{ahead}"
            );
            assert_eq!(clocks.of_node(), Some(ahead));
        }
    }

    #[test]
    fn the_gateway_whose_clock_differs_from_the_others_is_the_one_that_is_wrong() {
        let own = Uuid::from_u128(1);
        for (others, is_wrong) in [
            (vec![START], false),
            (vec![START + 90 * S], true),
            // Of two gateways the one whose clock lags is wrong.
            (vec![START - 90 * S], false),
            (vec![START + 90 * S, START + 90 * S], true),
            (vec![START - 90 * S, START - 90 * S], true),
            (vec![START + 90 * S, START], false),
            (vec![START + 90 * S, START - 90 * S], false),
        ] {
            let (_, log, clocks) = clocks();
            let rows: Vec<_> = (1..)
                .zip([vec![START], others.clone()].concat())
                .map(|(number, said)| row(number, said))
                .collect();
            clocks.take_in(&rows, own, START, START);
            assert_eq!(log.check().is_err(), is_wrong, "{others:?}");
            // A difference to a single gateway is reported in any case.
            let differs = others.iter().any(|said| *said != START);
            assert_eq!(worst(&clocks.state.lock()).is_some(), differs);
        }
    }

    #[test]
    fn a_heartbeat_that_was_read_before_changes_no_difference() {
        let (hand, _, clocks) = clocks();
        let own = Uuid::from_u128(1);
        let mut rows = [row(2, START)];
        clocks.take_in(&rows, own, START, START);
        for second in 1..14 {
            hand.advance_seconds(1);
            let now = START + second * S;
            clocks.take_in(&rows, own, now, now);
            assert_eq!(clocks.of_gateways(), [("gateway 2".to_owned(), 0)]);
        }
        // The other clock went on by one second in fourteen. The heartbeat may have been on its way
        // for two.
        rows = [row(2, START + S)];
        hand.advance_seconds(1);
        clocks.take_in(&rows, own, START + 14 * S, START + 14 * S);
        assert_eq!(clocks.of_gateways()[0].1, -10 * S);
        // A gateway that has left is forgotten.
        clocks.take_in(&[], own, START + 15 * S, START + 15 * S);
        assert!(clocks.of_gateways().is_empty());
    }

    #[test]
    fn a_clock_that_was_set_forward_is_right_as_soon_as_it_is_set_right() {
        let (hand, own, clocks) = clocks();
        hand.set_micros(START + 90 * S);
        let ahead = own.next();
        clocks.node_showed(START, START + 90 * S, START + 90 * S);
        assert!(own.check().is_err());
        hand.set_micros(START + S);
        let now = own.now_micros();
        assert_eq!(now, START + 90 * S);
        clocks.node_showed(START + S, now, now);
        assert_eq!(own.check(), Ok(()));
        assert_eq!(own.now_micros(), START + S);
        assert_ne!(own.next(), ahead);
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on_and_stays_right() {
        let (hand, own, clocks) = clocks();
        own.next();
        hand.set_micros(START - 90 * S);
        own.now_micros();
        hand.advance_seconds(1);
        let now = own.now_micros();
        clocks.node_showed(START + S, now, now);
        assert_eq!(own.check(), Ok(()));
        assert!(now > START);
    }
}
