//! Hints, and the log rows that are made of them.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use cql::wire::BoundValue;
use value::{
    timeuuid,
    token::{Partitioner, routing_key},
};

use crate::catalog::LoggedTable;
use crate::log_clock::LogClock;

/// A hint: names a row, partition or range of a table that is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WriteHint {
    /// The table that is written to.
    pub(super) table: Arc<LoggedTable>,
    /// The value of `cdc$operation`.
    pub(super) operation: i8,
    /// The serialised values of the partition key.
    pub(super) partition: Vec<Bytes>,
    /// The serialised values of the clustering key; empty for a partition, a range and static
    /// columns.
    pub(super) clustering: Vec<Bytes>,
}

impl WriteHint {
    /// The part of a hint that identifies it. A second hint with the same identity adds nothing to
    /// a request.
    fn identity(&self) -> (*const LoggedTable, i8, &[Bytes], &[Bytes]) {
        let table = Arc::as_ptr(&self.table);
        (table, self.operation, &self.partition, &self.clustering)
    }

    fn same_partition(&self, other: &WriteHint) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.partition == other.partition
    }
}

/// Removes the hints that a request has twice. The others stay in the order of its statements.
pub(super) fn distinct(hints: Vec<WriteHint>) -> Vec<WriteHint> {
    let mut seen = HashSet::with_capacity(hints.len());
    let first: Vec<bool> = hints
        .iter()
        .map(|hint| seen.insert(hint.identity()))
        .collect();
    let mut first = first.into_iter();
    hints
        .into_iter()
        .filter(|_| first.next().unwrap_or_default())
        .collect()
}

/// A row of a log, in the form of the values of its INSERT ([`super::inserts::text`]).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogRowValues {
    pub(super) table: Arc<LoggedTable>,
    /// The time of the row. Microseconds since the epoch.
    pub(super) micros: i64,
    pub(super) values: Vec<BoundValue>,
}

/// Makes the log rows of hints, dated now. Successive hints of one partition share stream and time
/// and are numbered, like the changes of one write in ScyllaDB's logs.
pub(super) fn log_rows(hints: &[WriteHint], clock: &LogClock) -> Vec<LogRowValues> {
    let mut rows = Vec::with_capacity(hints.len());
    for group in hints.chunk_by(WriteHint::same_partition) {
        let [first, ..] = group else { continue };
        let time = clock.next();
        let token = Partitioner::Murmur3.token(&routing_key(&first.partition));
        let stream = first
            .table
            .streams
            .stream_of(timeuuid::unix_millis(&time), token.0 as u64);
        for (number, hint) in (0i32..).zip(group) {
            let is_last = number as usize + 1 == group.len();
            let mut values = vec![
                value(&stream),
                value(time.as_bytes()),
                value(&number.to_be_bytes()),
                value(&hint.operation.to_be_bytes()),
                // An unset value leaves no tombstone.
                if is_last {
                    value(&[1])
                } else {
                    BoundValue::Unset
                },
            ];
            values.extend(hint.partition.iter().cloned().map(BoundValue::Value));
            values.extend(hint.clustering.iter().cloned().map(BoundValue::Value));
            let key_count = hint.table.primary_key().len();
            let unset = key_count - hint.partition.len() - hint.clustering.len();
            values.extend(std::iter::repeat_n(BoundValue::Unset, unset));
            rows.push(LogRowValues {
                table: hint.table.clone(),
                micros: timeuuid::unix_micros(&time),
                values,
            });
        }
    }
    rows
}

fn value(bytes: &[u8]) -> BoundValue {
    BoundValue::Value(Bytes::copy_from_slice(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::test_tables::{events, products};
    use super::*;

    fn hint(
        table: &Arc<LoggedTable>,
        operation: i8,
        partition: &[u8],
        clustering: &[u8],
    ) -> WriteHint {
        let key = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| Bytes::from(vec![0, 0, 0, *byte]))
                .collect()
        };
        WriteHint {
            table: table.clone(),
            operation,
            partition: key(partition),
            clustering: key(clustering),
        }
    }

    fn bytes(value: &BoundValue) -> &[u8] {
        match value {
            BoundValue::Value(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_hint_is_given_once() {
        let (events, products) = (Arc::new(events()), Arc::new(products()));
        let row = hint(&events, 1, &[1, 2], &[3, 4]);
        let hints = vec![
            row.clone(),
            hint(&events, 2, &[1, 2], &[3, 4]),
            row.clone(),
            hint(&products, 1, &[1], &[]),
            hint(&events, 1, &[1, 2], &[3, 5]),
            row,
        ];
        let expected = [&hints[..2], &hints[3..5]].concat();
        assert_eq!(distinct(hints), expected);
    }

    #[test]
    fn rows_of_a_partition_share_time_and_stream_and_are_counted() {
        let table = Arc::new(events());
        let clock = LogClock::default();
        let rows = log_rows(
            &[
                hint(&table, 5, &[1, 2], &[]),
                hint(&table, 7, &[1, 2], &[]),
                hint(&table, 2, &[1, 9], &[3, 4]),
            ],
            &clock,
        );
        let column = |row: usize, at: usize| bytes(&rows[row].values[at]).to_vec();
        assert_eq!(rows.len(), 3);
        assert_eq!(column(0, 0), column(1, 0));
        assert_eq!(column(0, 1), column(1, 1));
        assert_ne!(column(1, 1), column(2, 1));
        assert_eq!(
            [column(0, 2), column(1, 2), column(2, 2)],
            [[0, 0, 0, 0], [0, 0, 0, 1], [0; 4]]
        );
        assert_eq!([column(0, 3), column(1, 3), column(2, 3)], [[5], [7], [2]]);
        assert_eq!(rows[0].values[4], BoundValue::Unset);
        assert_eq!([column(1, 4), column(2, 4)], [[1], [1]]);
        assert_eq!(column(2, 8), [0, 0, 0, 4]);
        assert_eq!(rows[0].values[7..], [BoundValue::Unset, BoundValue::Unset]);
        let key: Vec<&[u8]> = rows[2].values[5..].iter().map(bytes).collect();
        assert_eq!(
            key,
            [[0, 0, 0, 1], [0, 0, 0, 9], [0, 0, 0, 3], [0, 0, 0, 4]]
        );
    }

    #[test]
    fn partitions_spread_over_the_streams_and_each_keeps_to_its_own() {
        let table = Arc::new(products());
        let clock = LogClock::default();
        let streams: Vec<Vec<u8>> = (0..100)
            .map(|id| {
                let rows = log_rows(&[hint(&table, 2, &[id], &[])], &clock);
                let again = log_rows(&[hint(&table, 3, &[id], &[])], &clock);
                assert_eq!(rows[0].values[0], again[0].values[0]);
                bytes(&rows[0].values[0]).to_vec()
            })
            .collect();
        let distinct: HashSet<_> = streams.iter().collect();
        assert_eq!(distinct.len(), 4, "as many as the table has");
    }
}
