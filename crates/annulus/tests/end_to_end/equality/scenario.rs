//! The scenarios of the test, and their keys.

pub const DIMENSIONS: usize = 3;
/// The keys that the writers contend for: partitions, and rows of each.
pub const PARTITIONS: i32 = 20;
pub const ROWS: i32 = 15;

/// The moments at which the table is truncated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truncate {
    Never,
    /// While no write is in progress, so that the removed rows are known.
    BetweenWrites,
    /// Among the writes. Only the table then knows what is left.
    AmongWrites,
}

/// The variant of the test, with a keyspace of its own and the seed of its writers.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub keyspace: String,
    pub tablets: bool,
    pub clustering: bool,
    pub truncate: Truncate,
    pub seed: u64,
}

impl Scenario {
    /// The columns of the primary key.
    pub fn key_columns(&self) -> &'static [&'static str] {
        if self.clustering { &["p", "c"] } else { &["p"] }
    }

    /// The key of one of the rows that the writers contend for.
    pub fn key(&self, p: i32, c: i32) -> Vec<i32> {
        if self.clustering {
            vec![p, c]
        } else {
            vec![p * ROWS + c]
        }
    }

    /// The key of a row that the writers leave alone.
    pub fn bystander(&self, n: i32) -> Vec<i32> {
        if self.clustering {
            vec![1_000 + n % 50, n]
        } else {
            vec![100_000 + n]
        }
    }
}

/// The vector of a number. The distance to the origin gives the number back.
pub fn vector(number: i32) -> Vec<f32> {
    vec![number as f32, 1.0, 0.0]
}
