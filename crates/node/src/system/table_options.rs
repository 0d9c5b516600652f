//! The options of a table as `system_schema.tables` shows them: the values that the user gave, else
//! Cassandra's defaults. Most have no effect here, but drivers and tools read all of them.

use cql::ast::{AlterTable, AlterTableChange, OptionValue, Statement};
use schema::Table;
use value::Value;

use super::record::text;

/// The default of an option, which also says the option's type.
#[derive(Clone, Copy)]
enum OptionDefault {
    Text(&'static str),
    Boolean(bool),
    Double(f64),
    Int(i32),
    /// A map, with its pairs in the order of their keys.
    Map(&'static [(&'static str, &'static str)]),
}

/// The options that [`Table::options`] may hold, if Cassandra 5 has a column for them. The column
/// has the option's name.
const OPTIONS: &[(&str, OptionDefault)] = &[
    ("additional_write_policy", OptionDefault::Text("99p")),
    ("allow_auto_snapshot", OptionDefault::Boolean(true)),
    ("bloom_filter_fp_chance", OptionDefault::Double(0.01)),
    (
        "caching",
        OptionDefault::Map(&[("keys", "ALL"), ("rows_per_partition", "NONE")]),
    ),
    ("comment", OptionDefault::Text("")),
    (
        "compaction",
        OptionDefault::Map(&[
            (
                "class",
                "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy",
            ),
            ("max_threshold", "32"),
            ("min_threshold", "4"),
        ]),
    ),
    (
        "compression",
        OptionDefault::Map(&[
            ("chunk_length_in_kb", "16"),
            ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
        ]),
    ),
    ("crc_check_chance", OptionDefault::Double(1.0)),
    ("dclocal_read_repair_chance", OptionDefault::Double(0.0)),
    ("incremental_backups", OptionDefault::Boolean(true)),
    ("max_index_interval", OptionDefault::Int(2048)),
    ("memtable_flush_period_in_ms", OptionDefault::Int(0)),
    ("min_index_interval", OptionDefault::Int(128)),
    ("read_repair", OptionDefault::Text("BLOCKING")),
    ("read_repair_chance", OptionDefault::Double(0.0)),
    ("speculative_retry", OptionDefault::Text("99p")),
];

/// The columns of `system_schema.tables` that show these options, with their values.
pub(super) fn columns(table: &Table) -> impl Iterator<Item = (&'static str, Value)> {
    OPTIONS.iter().map(|&(name, default)| {
        let given = table
            .options
            .get(name)
            .and_then(|value| read(value))
            .and_then(|value| typed(&value, default));
        (name, given.unwrap_or_else(|| default_value(default)))
    })
}

/// Parses the text of an option's value; `None` if it can't be parsed.
fn read(value: &str) -> Option<OptionValue> {
    let parsed = cql::parser::parse_statement(&format!("ALTER TABLE t WITH o = {value}")).ok()?;
    match parsed.statement {
        Statement::AlterTable(AlterTable {
            change: AlterTableChange::Options(options),
            ..
        }) => options.into_iter().next().map(|(_, value)| value),
        _ => None,
    }
}

/// Converts a value to the type of the option; `None` if it does not fit.
fn typed(value: &OptionValue, default: OptionDefault) -> Option<Value> {
    match (default, value) {
        (OptionDefault::Text(_), OptionValue::Scalar(value)) => Some(text(value)),
        (OptionDefault::Boolean(_), OptionValue::Scalar(value)) => {
            value.to_lowercase().parse().ok().map(Value::Boolean)
        }
        (OptionDefault::Double(_), OptionValue::Scalar(value)) => {
            value.parse().ok().map(Value::Double)
        }
        (OptionDefault::Int(_), OptionValue::Scalar(value)) => value.parse().ok().map(Value::Int),
        (OptionDefault::Map(_), OptionValue::Map(pairs)) => {
            let mut pairs: Vec<_> = pairs.iter().collect();
            pairs.sort();
            pairs.dedup_by(|(a, _), (b, _)| a == b);
            let pairs = pairs.into_iter();
            Some(Value::Map(
                pairs.map(|(key, value)| (text(key), text(value))).collect(),
            ))
        }
        _ => None,
    }
}

fn default_value(default: OptionDefault) -> Value {
    match default {
        OptionDefault::Text(value) => text(value),
        OptionDefault::Boolean(value) => Value::Boolean(value),
        OptionDefault::Double(value) => Value::Double(value),
        OptionDefault::Int(value) => Value::Int(value),
        OptionDefault::Map(pairs) => {
            let pairs = pairs.iter();
            Value::Map(
                pairs
                    .map(|(key, value)| (text(*key), text(*value)))
                    .collect(),
            )
        }
    }
}
