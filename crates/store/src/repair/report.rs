//! The counters of a repair, by the names under which its task shows them.

/// Ranges that were compared.
pub(super) const RANGES_COMPARED: &str = "ranges_compared";
/// Ranges in which at least one row differed.
pub(super) const RANGES_DIFFERED: &str = "ranges_differed";
/// Rows that were read to compare them.
pub(super) const ROWS_COMPARED: &str = "rows_compared";
/// Rows that the index lacked and now has.
pub(super) const ROWS_ADDED: &str = "rows_added";
/// Rows that differed between index and table, and now are the same.
pub(super) const ROWS_MENDED: &str = "rows_mended";
/// Rows that the table doesn't have and that were removed from the index.
pub(super) const ROWS_REMOVED: &str = "rows_removed";
/// Rows that still differ: the index has no room for them, or refuses them.
pub(super) const ROWS_LEFT: &str = "rows_left";

/// All counters.
pub(super) const COUNTERS: &[&str] = &[
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
pub(super) enum RowDifference {
    /// The index lacks the row.
    Missing,
    /// The table lacks the row, or its vector.
    Extra,
    /// Both have the row, and it is not the same.
    Differs,
}

impl RowDifference {
    /// The counter of such rows once they are mended.
    pub(super) fn counter(self) -> &'static str {
        match self {
            RowDifference::Missing => ROWS_ADDED,
            RowDifference::Extra => ROWS_REMOVED,
            RowDifference::Differs => ROWS_MENDED,
        }
    }
}
