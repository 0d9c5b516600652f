//! What a repair counts, by the names under which its task shows it.

/// Ranges that were compared.
pub const RANGES_COMPARED: &str = "ranges_compared";
/// Ranges of which at least one row differed.
pub const RANGES_DIFFERED: &str = "ranges_differed";
/// Rows that were read to compare them.
pub const ROWS_COMPARED: &str = "rows_compared";
/// Rows that the index lacked and now has.
pub const ROWS_ADDED: &str = "rows_added";
/// Rows that the index held otherwise than the table, and now holds as it does.
pub const ROWS_MENDED: &str = "rows_mended";
/// Rows that the table does not have and the index no longer has.
pub const ROWS_REMOVED: &str = "rows_removed";
/// Rows that still differ: the index has no room for them, or refuses them.
pub const ROWS_LEFT: &str = "rows_left";

/// All of them.
pub const COUNTERS: &[&str] = &[
    RANGES_COMPARED,
    RANGES_DIFFERED,
    ROWS_COMPARED,
    ROWS_ADDED,
    ROWS_MENDED,
    ROWS_REMOVED,
    ROWS_LEFT,
];

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The index lacks it.
    Missing,
    /// The table lacks it, or its vector.
    Extra,
    /// Both have it, and it is not the same.
    Differs,
}

impl Fault {
    /// What counts such rows once they are mended.
    pub fn counter(self) -> &'static str {
        match self {
            Fault::Missing => ROWS_ADDED,
            Fault::Extra => ROWS_REMOVED,
            Fault::Differs => ROWS_MENDED,
        }
    }
}
