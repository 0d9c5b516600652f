//! The indexes that name the keys of the nearest rows.

use std::time::Duration;

use store_api::{ClientError, ColumnsPredicate, IndexServices, NearestRows, VectorSearch};

use super::definition::VectorOrdering;
use crate::bounds;

/// A question to one index.
#[derive(Clone, Debug)]
pub struct IndexQuestion<'s> {
    /// The ordering that the index serves.
    pub ordering: &'s VectorOrdering<'s>,
    /// The number of rows to name at most.
    pub wanted: usize,
    /// The number of rows that the answer of the search shall have.
    pub limit: usize,
    /// The conditions to search by.
    pub predicates: Vec<ColumnsPredicate>,
    /// The columns whose values the answer shall have; `None` if rows are read for them.
    pub returned: Option<&'s [String]>,
    /// The time of a write that the answer must know, in microseconds since the epoch, and the
    /// longest time to wait for it.
    pub newest: Option<(i64, Duration)>,
}

/// Indexes that name the keys of rows, the nearest first.
pub trait SearchedIndex: Sync {
    /// Whether a question may have this condition.
    fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool;

    /// Names the nearest rows.
    ///
    /// # Errors
    /// Failures of the service. [`ClientError::Behind`] means that the index did not know the
    /// newest write in time.
    fn search(
        &self,
        question: &IndexQuestion<'_>,
    ) -> impl Future<Output = Result<NearestRows, ClientError>> + Send;

    /// Notes that rows were ranked in place of a question.
    fn ranked_rows(&self, ordering: &VectorOrdering<'_>);
}

/// The indexes of the index services, in the same process or over HTTP.
#[derive(Debug)]
pub struct ServedIndexes<'a> {
    /// The services.
    pub stores: &'a IndexServices,
    /// The names of all columns of the primary key, partition key first.
    pub key_columns: Vec<&'a str>,
}

impl SearchedIndex for ServedIndexes<'_> {
    fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool {
        self.stores.can_search_by(predicate)
    }

    async fn search(&self, question: &IndexQuestion<'_>) -> Result<NearestRows, ClientError> {
        let VectorOrdering {
            keyspace,
            index,
            vector,
            exact,
            ..
        } = question.ordering;
        traces::note(|| {
            let (wanted, limit) = (question.wanted, question.limit);
            let restrictions = question.predicates.len();
            let exact = if *exact { ", exact" } else { "" };
            format!(
                "Asking index {keyspace}.{index} for {wanted} candidates (k = {limit}, restrictions = {restrictions}{exact})"
            )
        });
        let search = VectorSearch {
            predicates: question.predicates.clone(),
            return_columns: question.returned.map(<[String]>::to_vec),
            min_time_us: question.newest.map(|(newest_us, _)| newest_us),
            exact: *exact,
            ..VectorSearch::new(bounds::elements(vector), question.wanted)
        };
        let (stores, key) = (self.stores, &self.key_columns);
        match question.newest {
            None => stores.ann(keyspace, index, search, key).await,
            // The service itself waits until it knows the writes.
            Some((_, wait)) => stores.ann_within(wait, keyspace, index, search, key).await,
        }
    }

    fn ranked_rows(&self, ordering: &VectorOrdering<'_>) {
        self.stores.ranked_rows(ordering.keyspace, ordering.index);
    }
}
