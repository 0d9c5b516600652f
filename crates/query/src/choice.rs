//! The choice among several indexes on one column.

use std::sync::Arc;

use cql::ast::{ComparisonSubject, Select};
use schema::SearchIndexMetadata;
use uuid::Uuid;
use value::timeuuid;

/// The definition of an index, as far as the choice depends on it.
pub trait IndexDefinition {
    /// The version, a timeuuid: the newer of two indexes has the later one.
    fn version(&self) -> Uuid;

    /// The key columns of a local index, whose values each search names; empty for a global one.
    fn local_key(&self) -> &[String];

    /// The columns whose values the index stores in addition to its key columns.
    fn filter_columns(&self) -> &[String];

    /// Whether the index names a column in addition to the vectors.
    fn names(&self, column: &str) -> bool {
        let mut names = self.local_key().iter().chain(self.filter_columns());
        names.any(|name| name == column)
    }
}

impl IndexDefinition for SearchIndexMetadata {
    fn version(&self) -> Uuid {
        self.version
    }

    fn local_key(&self) -> &[String] {
        &self.local_key
    }

    fn filter_columns(&self) -> &[String] {
        &self.filter_columns
    }
}

/// The index that serves a query, of those on its column: the newest that keeps all columns of
/// WHERE and whose own key, if it has one, WHERE names; failing these the newest that has no key of
/// its own. `is_kept` says whether an index stores the values of a column.
pub fn serving<'i, I: IndexDefinition + 'i>(
    indexes: impl Iterator<Item = &'i Arc<I>> + Clone,
    select: &Select,
    is_kept: impl Fn(&I, &str) -> bool,
) -> Option<&'i Arc<I>> {
    let restricted: Vec<&String> = select
        .relations
        .iter()
        .filter_map(|relation| match &relation.subject {
            ComparisonSubject::Column(name) | ComparisonSubject::Element { column: name, .. } => {
                Some(name)
            }
            _ => None,
        })
        .collect();
    let fits = |index: &&Arc<I>| {
        let mut key = index.local_key().iter();
        let names_key = key.all(|key| restricted.contains(&key));
        let mut restricted = restricted.iter();
        names_key && restricted.all(|name| is_kept(index, name))
    };
    let has_no_key = |index: &&Arc<I>| index.local_key().is_empty();
    newest(indexes.clone().filter(fits))
        .or_else(|| newest(indexes.clone().filter(has_no_key)))
        .or_else(|| newest(indexes))
}

/// The newest of the indexes, by their versions. It was made to replace the others.
fn newest<'i, I: IndexDefinition + 'i>(
    indexes: impl Iterator<Item = &'i Arc<I>>,
) -> Option<&'i Arc<I>> {
    indexes.max_by_key(|index| {
        let version = index.version();
        (timeuuid::unix_micros(&version), version)
    })
}
