//! The choice among several indexes that serve a query.

use uuid::Uuid;
use value::timeuuid;

/// The newest of the indexes, by their versions. All indexes of a column serve the queries of that
/// column, and the newest was made to replace the others.
pub fn newest<I>(indexes: impl Iterator<Item = I>, version: impl Fn(&I) -> Uuid) -> Option<I> {
    indexes.max_by_key(|index| {
        let version = version(index);
        (timeuuid::unix_micros(&version), version)
    })
}
