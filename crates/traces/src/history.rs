//! The traces that have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::trace::FinishedTrace;

/// The time for which a trace is retained, if there is room. It is that of Cassandra's traces.
pub const TIME_TO_LIVE_S: i64 = 86_400;

/// The most bytes that all traces take together.
const BYTES_MAX: usize = 4 << 20;

/// The traces that have ended: the newest of the last day, within a bound in bytes.
#[derive(Debug, Default)]
pub struct FinishedTraces(Mutex<TraceQueue>);

#[derive(Debug, Default)]
struct TraceQueue {
    /// The oldest comes first.
    traces: VecDeque<Arc<FinishedTrace>>,
    bytes: usize,
}

impl FinishedTraces {
    /// Keeps a trace, in the place of the oldest ones if there is no room.
    pub fn keep(&self, ended: FinishedTrace) {
        let mut kept = self.0.lock();
        let now_micros = ended.begun.started_at_micros;
        kept.bytes += ended.bytes;
        kept.traces.push_back(Arc::new(ended));
        while let Some(oldest) = kept.traces.front() {
            if kept.bytes <= BYTES_MAX && is_fresh(oldest, now_micros) {
                break;
            }
            let bytes = oldest.bytes;
            kept.bytes -= bytes;
            kept.traces.pop_front();
        }
    }

    /// The traces at a time, in microseconds since the epoch: the one with the id, or all. The
    /// oldest comes first.
    pub fn at(&self, now_micros: i64, id: Option<Uuid>) -> Vec<Arc<FinishedTrace>> {
        let kept = self.0.lock();
        let is_wanted = |ended: &&Arc<FinishedTrace>| {
            id.is_none_or(|id| ended.begun.id == id) && is_fresh(ended, now_micros)
        };
        kept.traces.iter().filter(is_wanted).cloned().collect()
    }
}

fn is_fresh(ended: &FinishedTrace, now_micros: i64) -> bool {
    now_micros - ended.begun.started_at_micros < TIME_TO_LIVE_S * 1_000_000
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use super::*;
    use crate::trace::RequestDescription;

    fn ended(id: u128, started_at_micros: i64, bytes: usize) -> FinishedTrace {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        FinishedTrace {
            begun: RequestDescription {
                id: Uuid::from_u128(id),
                request: "Execute CQL3 query",
                parameters: BTreeMap::new(),
                client: address,
                coordinator: SocketAddr::new(address, 9042),
                started_at_micros,
            },
            duration_micros: 1,
            steps: Vec::new(),
            bytes,
        }
    }

    fn ids(traces: &FinishedTraces, now_micros: i64) -> Vec<u128> {
        let kept = traces.at(now_micros, None).into_iter();
        kept.map(|ended| ended.begun.id.as_u128()).collect()
    }

    #[test]
    fn the_oldest_make_room() {
        let traces = FinishedTraces::default();
        for id in 1..=5 {
            traces.keep(ended(id, 0, BYTES_MAX / 3));
        }
        assert_eq!(ids(&traces, 0), [3, 4, 5]);
        let one = traces.at(0, Some(Uuid::from_u128(4)));
        assert_eq!(one.len(), 1);
        assert!(traces.at(0, Some(Uuid::from_u128(1))).is_empty());
    }

    #[test]
    fn a_trace_lives_for_a_day() {
        let traces = FinishedTraces::default();
        let day = TIME_TO_LIVE_S * 1_000_000;
        traces.keep(ended(1, 0, 100));
        traces.keep(ended(2, day / 2, 100));
        assert_eq!(ids(&traces, day - 1), [1, 2]);
        assert_eq!(ids(&traces, day), [2]);
        traces.keep(ended(3, day, 100));
        assert_eq!(traces.0.lock().bytes, 200);
    }
}
