//! Turns log rows into hints.

use std::sync::Arc;

use async_trait::async_trait;
use scylla::frame::response::result::ColumnType;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::CellWriter;
use scylla::value::CqlValue;
use scylla_cdc::consumer::{CDCRow, Consumer, ConsumerFactory, OperationType};
use value::CqlType;

use super::native_type::for_driver;
use crate::database::LogRun;
use crate::keys::{KeyColumn, KeySchema};
use crate::message::{ChangeHint, HintTarget};

/// The number of 100-nanosecond intervals from the start of the Gregorian calendar to the Unix
/// epoch.
const GREGORIAN_TICKS: u64 = 0x01b2_1dd2_1381_4000;

/// Makes a consumer for each group of streams.
pub(super) struct HintConsumers {
    run: Arc<LogRun>,
}

impl HintConsumers {
    /// Consumers that give their hints to `run`.
    pub(super) fn new(run: Arc<LogRun>) -> HintConsumers {
        HintConsumers { run }
    }
}

#[async_trait]
impl ConsumerFactory for HintConsumers {
    async fn new_consumer(&self) -> Box<dyn Consumer> {
        Box::new(HintConsumer {
            run: self.run.clone(),
            last: None,
        })
    }
}

struct HintConsumer {
    run: Arc<LogRun>,
    /// The last hint. An equal one that follows is left out, as a statement often leaves several
    /// log rows for one key.
    last: Option<ChangeHint>,
}

#[async_trait]
impl Consumer for HintConsumer {
    async fn consume_cdc(&mut self, mut row: CDCRow<'_>) -> anyhow::Result<()> {
        let keys = self.run.keys();
        let scope = scope(&row.operation, keys.has_clustering());
        let noticed_us = time_us(&row.time);
        let target = match hint_target(keys, scope, |name| row.take_value(name)) {
            Ok(Some(target)) => target,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.run.not_understood(&error);
                return Ok(());
            }
        };
        let hint = ChangeHint { target, noticed_us };
        if self.last.as_ref() == Some(&hint) {
            return Ok(());
        }
        self.last = Some(hint.clone());
        Ok(self.run.hint(hint).await?)
    }
}

/// The part of the table that a log row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogRowScope {
    Nothing,
    Row,
    Partition,
}

fn scope(operation: &OperationType, has_clustering: bool) -> LogRowScope {
    match operation {
        OperationType::PreImage => LogRowScope::Nothing,
        OperationType::RowUpdate
        | OperationType::RowInsert
        | OperationType::RowDelete
        | OperationType::PostImage => LogRowScope::Row,
        OperationType::PartitionDelete if !has_clustering => LogRowScope::Row,
        OperationType::PartitionDelete
        | OperationType::RowRangeDelInclLeft
        | OperationType::RowRangeDelExclLeft
        | OperationType::RowRangeDelInclRight
        | OperationType::RowRangeDelExclRight => LogRowScope::Partition,
    }
}

/// Returns the row or partition that has to be read again for a log row. An update of only static
/// columns has no clustering key. Fails if the log row lacks a value of the partition key or has
/// one of another type.
fn hint_target(
    keys: &KeySchema,
    scope: LogRowScope,
    mut take: impl FnMut(&str) -> Option<CqlValue>,
) -> Result<Option<HintTarget>, String> {
    let columns: Vec<&KeyColumn> = match scope {
        LogRowScope::Nothing => return Ok(None),
        LogRowScope::Row => keys.columns().collect(),
        LogRowScope::Partition => keys.partition.iter().collect(),
    };
    let mut values = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        match take(&column.name) {
            Some(value) => values.push(serialised(&value, &column.cql_type)?),
            None if at < keys.partition.len() => {
                return Err(format!("no value of key column {}", column.name));
            }
            None => {
                let partition = values[..keys.partition.len()].iter().map(Vec::as_slice);
                return Ok(Some(HintTarget::Static(keys.encode_partition(partition))));
            }
        }
    }
    let values = values.iter().map(Vec::as_slice);
    Ok(Some(match scope {
        LogRowScope::Partition => HintTarget::Partition(keys.encode_partition(values)),
        _ => HintTarget::Row(keys.encode(values)),
    }))
}

/// A value as the database serialises it.
fn serialised(value: &CqlValue, cql_type: &CqlType) -> Result<Vec<u8>, String> {
    let native = for_driver(cql_type).ok_or_else(|| format!("{cql_type} is no type of a key"))?;
    let mut framed = Vec::new();
    value
        .serialize(&ColumnType::Native(native), CellWriter::new(&mut framed))
        .map_err(|error| error.to_string())?;
    // The writer puts the length before the value.
    Ok(framed.split_off(size_of::<i32>()))
}

/// The time of a time-based UUID, microseconds since the epoch.
fn time_us(time: &uuid::Uuid) -> Option<i64> {
    let (ticks, _) = time.get_timestamp()?.to_gregorian();
    i64::try_from(ticks.checked_sub(GREGORIAN_TICKS)? / 10).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::text_schema;

    fn take<'a>(values: &'a [(&str, &str)]) -> impl FnMut(&str) -> Option<CqlValue> + 'a {
        |name| {
            values
                .iter()
                .find(|(column, _)| *column == name)
                .map(|(_, value)| CqlValue::Text((*value).to_owned()))
        }
    }

    #[test]
    fn every_operation_has_its_scope() {
        let scopes = |has_clustering| -> Vec<LogRowScope> {
            (0i8..=9)
                .chain([-3, -4])
                .map(|code| scope(&OperationType::try_from(code).unwrap(), has_clustering))
                .collect()
        };
        use LogRowScope::{Nothing as N, Partition as P, Row as R};
        assert_eq!(scopes(true), [N, R, R, R, P, P, P, P, P, R, R, P]);
        assert_eq!(scopes(false), [N, R, R, R, R, P, P, P, P, R, R, R]);
    }

    #[test]
    fn targets_are_the_keys_of_the_table() {
        let keys = text_schema(1, 1);
        let row = take(&[("p0", "a"), ("c0", "b"), ("v", "x")]);
        assert_eq!(
            hint_target(&keys, LogRowScope::Row, row),
            Ok(Some(HintTarget::Row(keys.encode([b"a".as_slice(), b"b"]))))
        );
        let row = take(&[("p0", "a")]);
        assert_eq!(
            hint_target(&keys, LogRowScope::Partition, row),
            Ok(Some(HintTarget::Partition(
                keys.encode_partition([b"a".as_slice()])
            )))
        );
        // Only static columns.
        assert_eq!(
            hint_target(&keys, LogRowScope::Row, take(&[("p0", "a")])),
            Ok(Some(HintTarget::Static(
                keys.encode_partition([b"a".as_slice()])
            )))
        );
        assert!(hint_target(&keys, LogRowScope::Row, take(&[("c0", "b")])).is_err());
        assert_eq!(
            hint_target(&keys, LogRowScope::Nothing, take(&[])),
            Ok(None)
        );
    }

    #[test]
    fn a_value_of_another_type_is_an_error() {
        assert!(serialised(&CqlValue::Int(1), &CqlType::Text).is_err());
        assert_eq!(
            serialised(&CqlValue::BigInt(1), &CqlType::Bigint),
            Ok(vec![0, 0, 0, 0, 0, 0, 0, 1])
        );
    }

    #[test]
    fn times_are_microseconds_since_the_epoch() {
        let time = uuid::Uuid::new_v1(
            uuid::Timestamp::from_unix(uuid::NoContext, 1_700_000_000, 123_456_000),
            &[0; 6],
        );
        assert_eq!(time_us(&time), Some(1_700_000_000_123_456));
        assert_eq!(time_us(&uuid::Uuid::nil()), None);
    }
}
