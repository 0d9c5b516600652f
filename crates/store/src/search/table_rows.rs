//! Answers from the rows of a table, where its index has had no room for some of them.
//!
//! The rows are read page by page. Those of a page are put into an index of their own for a moment,
//! so that filters, distances and values come out as from the index itself. The nearest of all
//! pages are the answer. Texts are scored by the statistics of the rows that the index has.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use full_text::QueryStatistics;
use index::score::DistanceAndScore;
use store_api::types::SearchPlan;
use tokio::time::Instant;

use super::question::ResolvedSubject;
use super::words::{NamingFilter, naming_by_key};
use super::{IndexAnswer, PreparedSearch, SearchError, VectorSearcher};
use crate::compute::NotSearched;
use crate::database::{RowReader, SourceDatabase, TablePart};
use crate::feed::TablePager;
use crate::identity::IndexIdentity;
use crate::indexes::{
    ChangeBlock, ChangeBlocks, FreshChange, IndexContent, IndexSearch, PreparedValue, RankedRows,
    StructureError, StructureQuery,
};
use crate::items::{IndexedRows, RowObservation, RowState, StructureChange};
use crate::keys::PrimaryKey;
use crate::observed::{ObservedColumn, ReadCell};
use crate::options::{FullVectorPlacement, IndexesOptions};
use crate::rows::joined;

/// The approximate bytes of a page.
const PAGE_BYTES: usize = 1 << 20;

/// The longest time that one search reads rows.
const READS_FOR: Duration = Duration::from_secs(60);

/// A row that may be among the nearest.
struct NearestCandidate {
    key: PrimaryKey,
    scored: DistanceAndScore,
    /// The values of the columns that are returned, as CQL serialises them.
    values: Vec<Option<Bytes>>,
}

impl VectorSearcher {
    /// Searches all rows of the table that the index of a search may have. They are read after the
    /// call, so they have each write that was acknowledged before it.
    pub(super) async fn search_rows<A, W>(
        &self,
        database: &Arc<dyn SourceDatabase>,
        job: Arc<PreparedSearch<W>>,
    ) -> Result<IndexAnswer<A>, SearchError>
    where
        W: Fn(RankedRows<'_>) -> Result<A, String> + Send + Sync + 'static,
    {
        let identity = &job.question.routed.index.identity;
        traces::note(|| "The index has had no room for some rows, so all rows are read".to_owned());
        let columns = ObservedColumn::all_of(identity);
        let places: Vec<usize> = (0..columns.len()).collect();
        let reader = RowReader {
            table: identity.table.clone(),
            keys: identity.keys.clone(),
            columns,
        };
        let rows = database.rows(&reader, PAGE_BYTES);
        let mut pages = TablePager::new(&rows, TablePart::Range(identity.range));
        let mut best = Vec::new();
        let until = Instant::now() + READS_FOR;
        let of_index = job.clone();
        let means = self
            .compute
            .search(until, job.rows, move || of_index.page_means());
        let means = means.await.map_err(|error| self.not_searched(&error))??;
        let means = Arc::new(means);
        loop {
            let page = tokio::time::timeout_at(until, pages.next()).await;
            let too_late = |_| SearchError::Short(identity.name.clone());
            let Some(page) = page.map_err(too_late)? else {
                break;
            };
            let page = joined(&page, &places, identity.local_filters());
            let (count, of_page, means) = (page.len(), job.clone(), means.clone());
            let found = self
                .compute
                .search(until, count, move || of_page.of_page(page, &means));
            best.extend(found.await.map_err(|error| self.not_searched(&error))??);
            keep_nearest(&mut best, job.rows);
        }
        let metrics = &job.question.routed.index.metrics;
        metrics.searched(SearchPlan::RankedRows);
        job.write_rows(best)
    }

    /// The error for a search that was not done.
    pub(super) fn not_searched(&self, error: &NotSearched) -> SearchError {
        match error {
            NotSearched::TooLate => {
                self.engine.metrics().search_refused("deadline");
                SearchError::Overloaded
            }
            NotSearched::Stopped(_) | NotSearched::Panicked => {
                SearchError::Internal(error.to_string())
            }
        }
    }
}

/// The means by which all pages of a search are looked at.
struct PageMeans {
    /// The filter by the rows that its words name; `None` without words.
    filter: Option<NamingFilter>,
    /// The statistics by which texts are scored; `None` for vectors.
    statistics: Option<QueryStatistics>,
}

impl<W> PreparedSearch<W> {
    fn page_means(&self) -> Result<PageMeans, SearchError> {
        let question = &self.question;
        let content = &question.routed.index.content;
        let tenant = question.tenant.as_deref();
        let statistics = question.subject.text_query();
        let statistics = statistics.map(|query| content.text_statistics(query, tenant));
        Ok(PageMeans {
            // What had expired was not read.
            filter: naming_by_key(question.filter.as_deref(), &question.words, 0)?,
            statistics: statistics.transpose()?,
        })
    }

    /// The nearest of some rows.
    fn of_page(
        &self,
        rows: Vec<(PrimaryKey, ReadCell)>,
        means: &PageMeans,
    ) -> Result<Vec<NearestCandidate>, SearchError> {
        let identity = &self.question.routed.index.identity;
        let (content, block) = content_of(identity, rows)?;
        let question = &self.question;
        let named = means.filter.as_ref().map(|named| &named.filter);
        let (query, limit) = match &question.subject {
            ResolvedSubject::Vector(vector) => (StructureQuery::Vector(vector), self.rows),
            // All that match, as the page does not know their scores.
            ResolvedSubject::Words(query) | ResolvedSubject::Matches { query, .. } => {
                let after = None;
                (
                    StructureQuery::Matches { query, after },
                    block.changes.len(),
                )
            }
        };
        let found = content.search(&IndexSearch {
            query,
            limit,
            // What had expired was not read.
            now_s: 0,
            filter: named.or(question.filter.as_deref()),
            tenant: None,
            returned: question.returned.as_deref(),
            exact: true,
            keys: None,
        });
        let found = found.map_err(SearchError::from)?;
        let keys = content.keys();
        let changes = block.changes.iter();
        let by_id: HashMap<u32, &PreparedValue> = changes
            .filter_map(|change| Some((change.id, change.value.as_ref()?)))
            .collect();
        let candidates = found.rows().into_iter().map(|row| {
            let scored = match &means.statistics {
                None => row.scored,
                Some(statistics) => {
                    let key = identity.keys.saved_key(row.key);
                    let id = key.and_then(|key| keys.id(key.as_bytes()));
                    let value = id.and_then(|id| by_id.get(&id).copied());
                    self.scored_text(value, statistics)
                }
            };
            let values = row.values.into_iter();
            NearestCandidate {
                key: PrimaryKey::from_encoded(row.key),
                scored,
                values: values
                    .map(|value| value.map(Bytes::copy_from_slice))
                    .collect(),
            }
        });
        Ok(candidates.collect())
    }

    /// The score of the text of a row.
    fn scored_text(
        &self,
        value: Option<&PreparedValue>,
        statistics: &QueryStatistics,
    ) -> DistanceAndScore {
        let text = match value {
            Some(PreparedValue::Text(text)) => Some(text),
            Some(PreparedValue::Vector(_)) | None => None,
        };
        let query = self.question.subject.text_query();
        let score = query.zip(text);
        let score = score.and_then(|(query, text)| query.score(text, statistics));
        let score = score.unwrap_or_default();
        DistanceAndScore {
            distance: -score,
            similarity: score,
            measured: -score,
        }
    }

    /// Writes the answer of these rows.
    fn write_rows<A>(&self, best: Vec<NearestCandidate>) -> Result<IndexAnswer<A>, SearchError>
    where
        W: Fn(RankedRows<'_>) -> Result<A, String>,
    {
        let keys = &self.question.routed.identity().keys;
        let returned = self.question.returned.as_deref();
        let mut rows = RankedRows::with_capacity(keys, best.len()).returning(returned);
        for candidate in best {
            rows.push(candidate.key.as_bytes(), candidate.scored);
            for (values, value) in rows.returned().iter_mut().zip(&candidate.values) {
                values.push(value.as_deref().map(Cow::Borrowed));
            }
            rows.check().map_err(StructureError::from)?;
        }
        let answer = (self.write)(rows).map_err(SearchError::Internal)?;
        let is_short = false;
        Ok(IndexAnswer { answer, is_short })
    }
}

/// Keeps the nearest `limit` rows, nearest first. A row that was read twice counts once.
fn keep_nearest(rows: &mut Vec<NearestCandidate>, limit: usize) {
    rows.sort_by(|a, b| {
        let by_distance = a.scored.measured.total_cmp(&b.scored.measured);
        by_distance.then_with(|| a.key.as_bytes().cmp(b.key.as_bytes()))
    });
    rows.dedup_by(|a, b| a.key == b.key);
    rows.truncate(limit);
}

/// The content of an index that has only these rows, all of them as fresh changes.
fn content_of(
    identity: &IndexIdentity,
    rows: Vec<(PrimaryKey, ReadCell)>,
) -> Result<(IndexContent, Arc<ChangeBlock<PreparedValue>>), SearchError> {
    let indexes = IndexesOptions {
        vectors: FullVectorPlacement::Memory,
        ..IndexesOptions::default()
    };
    let keys = identity.keys.clone();
    let content = IndexContent::new(&identity.options, keys.clone(), &indexes)?;
    let mut items = IndexedRows::new(keys);
    let mut changes = Vec::new();
    let mut keys = content.keys_mut();
    keys.keep_filters(identity.filter_types());
    for (key, cell) in rows {
        // A row without a value, or with one that makes no sense, is in no index.
        let ReadCell::Value(cell) = cell else {
            continue;
        };
        let state = RowState::Present(cell);
        let change = items.observe(&mut keys, 1, RowObservation { key, state });
        if let Some(StructureChange::Insert { id, value }) = change {
            let prepared = content.prepare(&value);
            let prepared = prepared.map_err(|error| SearchError::Internal(error.to_string()))?;
            let value = Some(prepared);
            changes.push(FreshChange { id, value });
        }
    }
    drop(keys);
    let block = Arc::new(ChangeBlock::new(changes));
    let blocks = vec![block.clone()];
    content.publish(ChangeBlocks { first: 0, blocks }, &[]);
    Ok((content, block))
}
