//! A condition on the rows of a SELECT by searches, in addition to its WHERE.

use store_api::ColumnsPredicate;

/// A condition that no relation of WHERE has a form for, such as one with OR and NOT. It comes from
/// a caller in this process, and restricts a SELECT by searches, no other.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedCondition {
    /// The condition. It has no words and no tokens.
    pub predicate: ColumnsPredicate,
    /// Whether it may have columns whose values no index keeps, as with ALLOW FILTERING.
    pub allows_filtering: bool,
}
