//! The indexes that name the keys of the best rows.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use store_api::{
    ClientError, ColumnsPredicate, IndexServices, NearestRows, VectorSearch, WordSearch,
};

use super::definition::{IndexOrdering, VectorOrdering, WordOrdering};
use crate::bounds;

/// A question to one index.
#[derive(Clone, Debug)]
pub struct IndexQuestion<'s> {
    /// The ordering that the index serves.
    pub ordering: &'s IndexOrdering<'s>,
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

/// Indexes that name the keys of rows, the best first.
pub trait SearchedIndex: Sync {
    /// Whether a question may have this condition.
    fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool;

    /// Names the best rows.
    ///
    /// # Errors
    /// Failures of the service. [`ClientError::Behind`] means that the index did not know the
    /// newest write in time.
    fn search(
        &self,
        question: &IndexQuestion<'_>,
    ) -> impl Future<Output = Result<NearestRows, ClientError>> + Send;

    /// The scores that texts have by the statistics of an index, whose rows are those that satisfy
    /// `tenant`; `None` for a text that does not match, or is null.
    ///
    /// # Errors
    /// Failures of the service.
    fn score_texts(
        &self,
        words: &WordOrdering<'_>,
        tenant: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> impl Future<Output = Result<Vec<Option<f32>>, ClientError>> + Send;

    /// Notes that rows were ranked in place of a question.
    fn ranked_rows(&self, ordering: &IndexOrdering<'_>);
}

/// The indexes of the index services, in the same process or over HTTP.
#[derive(Debug)]
pub struct ServedIndexes<'a> {
    /// The services.
    pub stores: &'a IndexServices,
    /// The names of all columns of the primary key, partition key first.
    pub key_columns: Vec<&'a str>,
}

impl ServedIndexes<'_> {
    async fn nearest(
        &self,
        ordering: &VectorOrdering<'_>,
        question: &IndexQuestion<'_>,
    ) -> Result<NearestRows, ClientError> {
        let VectorOrdering {
            keyspace,
            index,
            vector,
            exact,
            ..
        } = ordering;
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

    async fn matching(
        &self,
        ordering: &WordOrdering<'_>,
        question: &IndexQuestion<'_>,
    ) -> Result<NearestRows, ClientError> {
        let WordOrdering {
            keyspace,
            index,
            query,
            ..
        } = ordering;
        let search = WordSearch {
            query: query.clone(),
            limit: NonZeroUsize::new(question.wanted).unwrap_or(NonZeroUsize::MIN),
            predicates: question.predicates.clone(),
            return_columns: question.returned.map(<[String]>::to_vec),
            min_time_us: question.newest.map(|(newest_us, _)| newest_us),
        };
        let (stores, key) = (self.stores, &self.key_columns);
        match question.newest {
            None => stores.words(keyspace, index, search, key).await,
            Some((_, wait)) => {
                stores
                    .words_within(wait, keyspace, index, search, key)
                    .await
            }
        }
    }
}

impl SearchedIndex for ServedIndexes<'_> {
    fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool {
        self.stores.can_search_by(predicate)
    }

    async fn search(&self, question: &IndexQuestion<'_>) -> Result<NearestRows, ClientError> {
        traces::note(|| {
            let (keyspace, index) = question.ordering.index();
            let (wanted, limit) = (question.wanted, question.limit);
            let restrictions = question.predicates.len();
            let how = match question.ordering {
                IndexOrdering::Vector(VectorOrdering { exact: true, .. }) => ", exact",
                IndexOrdering::Vector(_) => "",
                IndexOrdering::Words(_) => ", words",
            };
            format!(
                "Asking index {keyspace}.{index} for {wanted} candidates (k = {limit}, restrictions = {restrictions}{how})"
            )
        });
        match question.ordering {
            IndexOrdering::Vector(ordering) => self.nearest(ordering, question).await,
            IndexOrdering::Words(ordering) => self.matching(ordering, question).await,
        }
    }

    async fn score_texts(
        &self,
        words: &WordOrdering<'_>,
        tenant: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<f32>>, ClientError> {
        let WordOrdering {
            keyspace,
            index,
            query,
            ..
        } = words;
        traces::note(|| {
            let count = texts.len();
            format!("Scoring {count} texts by the statistics of index {keyspace}.{index}")
        });
        let (stores, query) = (self.stores, query.clone());
        stores
            .score_texts(keyspace, index, query, tenant, texts)
            .await
    }

    fn ranked_rows(&self, ordering: &IndexOrdering<'_>) {
        let (keyspace, index) = ordering.index();
        self.stores.ranked_rows(keyspace, index);
    }
}
