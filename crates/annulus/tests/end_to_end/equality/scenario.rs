//! What is tried, and which keys there are.

pub const DIMENSIONS: usize = 3;
/// Keys that the writers fight for: partitions, and rows of each.
pub const PARTITIONS: i32 = 20;
pub const ROWS: i32 = 15;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truncate {
    Never,
    /// While no write is under way, so that it is known which are gone.
    BetweenWrites,
    /// Among the writes: the table alone knows what is left.
    AmongWrites,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub keyspace: String,
    pub tablets: bool,
    pub clustering: bool,
    pub truncate: Truncate,
    pub seed: u64,
}

impl Scenario {
    pub fn key_columns(&self) -> &'static [&'static str] {
        if self.clustering { &["p", "c"] } else { &["p"] }
    }

    /// The key of one of the rows that the writers fight for.
    pub fn key(&self, p: i32, c: i32) -> Vec<i32> {
        if self.clustering {
            vec![p, c]
        } else {
            vec![p * ROWS + c]
        }
    }

    pub fn bystander(&self, n: i32) -> Vec<i32> {
        if self.clustering {
            vec![1_000 + n % 50, n]
        } else {
            vec![100_000 + n]
        }
    }
}

/// The vector of a number; the number can be told from its distance to the origin.
pub fn vector(number: i32) -> Vec<f32> {
    vec![number as f32, 1.0, 0.0]
}
