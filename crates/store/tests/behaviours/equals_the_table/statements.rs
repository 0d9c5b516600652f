//! Tables of several shapes, and random statements for them, the same in each run.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The primary key of a table. All key columns are `int` and named by letters.
pub struct TableShape {
    pub table: &'static str,
    pub primary_key: &'static str,
    pub keys: &'static [&'static str],
    partition: usize,
}

pub const SHAPES: &[TableShape] = &[
    TableShape {
        table: "one_column",
        primary_key: "a",
        keys: &["a"],
        partition: 1,
    },
    TableShape {
        table: "clustered",
        primary_key: "a, b",
        keys: &["a", "b"],
        partition: 1,
    },
    TableShape {
        table: "composite",
        primary_key: "(a, b), c, d",
        keys: &["a", "b", "c", "d"],
        partition: 2,
    },
];

/// The words of texts. A text has two of them, which may be equal.
pub const WORDS: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

/// The column of a write to one of the indexed columns.
#[derive(Clone, Copy, Debug)]
enum WrittenColumn {
    Vector,
    Text,
}

#[derive(Clone, Debug)]
enum Step {
    Insert {
        key: u32,
        value: [i8; 2],
        using: Using,
    },
    Update {
        key: u32,
        column: WrittenColumn,
        value: [i8; 2],
        using: Using,
    },
    Null {
        key: u32,
        column: WrittenColumn,
        using: Using,
    },
    Delete {
        key: u32,
        using: Using,
    },
    DeletePartition {
        key: u32,
    },
    DeleteRange {
        key: u32,
    },
    Touch {
        key: u32,
    },
    Batch {
        keys: [u32; 3],
        value: [i8; 2],
    },
}

#[derive(Clone, Debug)]
enum Using {
    Nothing,
    Timestamp(i64),
    Ttl(u8),
}

fn using() -> impl Strategy<Value = Using> {
    const NOW: i64 = 1_900_000_000_000_000;
    prop_oneof![
        6 => Just(Using::Nothing),
        // The timestamps lie in the far past or the future, and are often equal.
        3 => prop_oneof![Just(1000), Just(NOW), Just(NOW + 1), 1..20i64].prop_map(Using::Timestamp),
        1 => (1..3u8).prop_map(Using::Ttl),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..60u32;
    let value = || any::<[i8; 2]>();
    let column = || prop_oneof![Just(WrittenColumn::Vector), Just(WrittenColumn::Text)];
    prop_oneof![
        8 => (key(), value(), using()).prop_map(|(key, value, using)| Step::Insert { key, value, using }),
        6 => (key(), column(), value(), using())
            .prop_map(|(key, column, value, using)| Step::Update { key, column, value, using }),
        3 => (key(), column(), using()).prop_map(|(key, column, using)| Step::Null { key, column, using }),
        3 => (key(), using()).prop_map(|(key, using)| Step::Delete { key, using }),
        1 => key().prop_map(|key| Step::DeletePartition { key }),
        1 => key().prop_map(|key| Step::DeleteRange { key }),
        1 => key().prop_map(|key| Step::Touch { key }),
        1 => (any::<[u8; 3]>(), value()).prop_map(|(keys, value)| Step::Batch { keys: keys.map(|key| u32::from(key) % 60), value }),
    ]
}

impl WrittenColumn {
    fn name(self) -> &'static str {
        match self {
            WrittenColumn::Vector => "v",
            WrittenColumn::Text => "body",
        }
    }

    /// A value of the column as CQL writes it.
    fn literal(self, value: [i8; 2]) -> String {
        match self {
            WrittenColumn::Vector => format!("{value:?}"),
            WrittenColumn::Text => {
                let word = |number: i8| WORDS[usize::from(number.unsigned_abs()) % WORDS.len()];
                format!("'{} {}'", word(value[0]), word(value[1]))
            }
        }
    }
}

/// The values of both indexed columns, in the order of an INSERT.
fn literals(value: [i8; 2]) -> String {
    let [vector, text] = [WrittenColumn::Vector, WrittenColumn::Text];
    // The vector and the text of a row don't go together.
    let text = text.literal([value[1], value[0].wrapping_add(1)]);
    format!("{}, {text}", vector.literal(value))
}

impl TableShape {
    /// Spreads a number over the key columns.
    fn key(&self, number: u32) -> Vec<u32> {
        let columns = self.keys.len() as u32;
        let base: u32 = if columns == 1 { 60 } else { 4 };
        (0..columns)
            .map(|at| number / base.pow(at) % base)
            .collect()
    }

    fn condition(&self, key: &[u32], columns: usize) -> String {
        let terms: Vec<String> = self
            .keys
            .iter()
            .zip(key)
            .take(columns)
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        terms.join(" AND ")
    }

    /// Returns the statement of a step. `None` if a table of this shape has no such statement.
    fn statement(&self, step: &Step) -> Option<String> {
        let TableShape { table, keys, .. } = self;
        let names = keys.join(", ");
        let values = |key: u32| {
            let values: Vec<String> = self.key(key).iter().map(u32::to_string).collect();
            values.join(", ")
        };
        let of = |key: u32| self.condition(&self.key(key), keys.len());
        Some(match step {
            Step::Insert { key, value, using } => format!(
                "INSERT INTO ks.{table} ({names}, v, body) VALUES ({}, {}){using}",
                values(*key),
                literals(*value)
            ),
            Step::Update {
                key,
                column,
                value,
                using,
            } => {
                format!(
                    "UPDATE ks.{table}{using} SET {} = {} WHERE {}",
                    column.name(),
                    column.literal(*value),
                    of(*key)
                )
            }
            Step::Null { key, column, using } => {
                let (column, key) = (column.name(), of(*key));
                match using {
                    Using::Ttl(_) => format!("DELETE {column} FROM ks.{table} WHERE {key}"),
                    _ => format!("UPDATE ks.{table}{using} SET {column} = null WHERE {key}"),
                }
            }
            Step::Delete { key, using } => {
                let key = of(*key);
                match using {
                    Using::Ttl(_) => format!("DELETE FROM ks.{table} WHERE {key}"),
                    _ => format!("DELETE FROM ks.{table}{using} WHERE {key}"),
                }
            }
            Step::DeletePartition { key } => format!(
                "DELETE FROM ks.{table} WHERE {}",
                self.condition(&self.key(*key), self.partition)
            ),
            Step::DeleteRange { key } => {
                let clustering = *keys.get(self.partition)?;
                let key = self.key(*key);
                format!(
                    "DELETE FROM ks.{table} WHERE {} AND {clustering} > {}",
                    self.condition(&key, self.partition),
                    key[self.partition] / 2
                )
            }
            Step::Touch { key } => {
                format!("UPDATE ks.{table} SET other = 'x' WHERE {}", of(*key))
            }
            Step::Batch { keys: rows, value } => {
                let inserts: Vec<String> = rows
                    .iter()
                    .map(|key| {
                        format!(
                            "INSERT INTO ks.{table} ({names}, v, body) VALUES ({}, {})",
                            values(*key),
                            literals(*value)
                        )
                    })
                    .collect();
                format!("BEGIN BATCH {}; APPLY BATCH", inserts.join("; "))
            }
        })
    }
}

impl std::fmt::Display for Using {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Using::Nothing => Ok(()),
            Using::Timestamp(timestamp) => write!(f, " USING TIMESTAMP {timestamp}"),
            Using::Ttl(seconds) => write!(f, " USING TTL {seconds}"),
        }
    }
}

/// Returns random statements, the same in each run.
pub fn statements(shape: &TableShape, count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let tree = proptest::collection::vec(step(), count)
        .new_tree(&mut runner)
        .unwrap();
    let steps = tree.current();
    steps
        .iter()
        .filter_map(|step| shape.statement(step))
        .collect()
}
