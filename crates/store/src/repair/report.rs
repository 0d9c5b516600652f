//! The counters of a repair, by the names under which its task shows them.

/// Ranges that were compared.
pub const RANGES_COMPARED: &str = "ranges_compared";
/// Ranges in which at least one row differed.
pub const RANGES_DIFFERED: &str = "ranges_differed";
/// Rows that were read to compare them.
pub const ROWS_COMPARED: &str = "rows_compared";
/// Rows that the index lacked and now has.
pub const ROWS_ADDED: &str = "rows_added";
/// Rows that differed between index and table, and now are the same.
pub const ROWS_MENDED: &str = "rows_mended";
/// Rows that the table doesn't have and that were removed from the index.
pub const ROWS_REMOVED: &str = "rows_removed";
/// Rows that still differ: the index has no room for them, or refuses them.
pub const ROWS_LEFT: &str = "rows_left";

/// All counters.
pub const COUNTERS: &[&str] = &[
    RANGES_COMPARED,
    RANGES_DIFFERED,
    ROWS_COMPARED,
    ROWS_ADDED,
    ROWS_MENDED,
    ROWS_REMOVED,
    ROWS_LEFT,
];

/// The difference of a row between table and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The index lacks the row.
    Missing,
    /// The table lacks the row, or its vector.
    Extra,
    /// Both have the row, and it is not the same.
    Differs,
}

impl Fault {
    /// The counter of such rows once they are mended.
    pub fn counter(self) -> &'static str {
        match self {
            Fault::Missing => ROWS_ADDED,
            Fault::Extra => ROWS_REMOVED,
            Fault::Differs => ROWS_MENDED,
        }
    }
}
