//! Queries by words without an ordering: all rows that match, in pages.
//!
//! The index names the keys in an order of its own, from where the page before ended. A row that is
//! gone or left out by the rest of WHERE makes place for the next one. The paging state carries the
//! place in the index, and what is left of LIMIT.

use std::num::NonZeroU32;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::{Response, ResponseContext};
use query::search::{SearchFreshness, SearchPredicate, SearchWarning, SearchedRows};
use store_api::{ClientError, ColumnsPredicate, IndexServices, MatchedRows, WordMatches};
use tokio::time::Instant;

use super::execution::{AnnExecution, BoundWords};
use super::freshness::FreshSearches;
use super::rows::ClusterRows;
use crate::key_read::Key;
use crate::node_requests::ClientRequestError;

/// The most keys that the index names at a time.
const KEYS_AT_ONCE: usize = 1_000;

/// The time after which a page ends even if it has few rows, where the client reads pages: a filter
/// that few rows pass must not run into the client's timeout.
const PAGE_TIME_MAX: Duration = Duration::from_secs(4);

/// The first byte of a paging state, by which others are told apart.
const STATE_VERSION: u8 = 0xb1;

/// A place among all rows that match, from which the next page goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MatchingCursor {
    /// The number of rows that LIMIT leaves; `None` for a query without LIMIT.
    left: Option<u32>,
    /// The place in the index; `None` for its beginning.
    after: Option<Bytes>,
}

impl MatchingCursor {
    /// The paging state that means this place. It is none at the beginning.
    fn encode(&self) -> Option<Bytes> {
        let after = self.after.as_ref()?;
        let mut out = BytesMut::with_capacity(5 + after.len());
        out.put_u8(STATE_VERSION);
        // A LIMIT of which nothing is left ends the answer.
        out.put_u32(self.left.unwrap_or(0));
        out.put_slice(after);
        Some(out.freeze())
    }

    /// The place that a paging state means.
    fn decode(mut state: Bytes) -> Result<MatchingCursor, CqlError> {
        if state.len() < 5 || state.get_u8() != STATE_VERSION {
            return Err(CqlError::protocol("Invalid value for the paging state"));
        }
        let left = state.get_u32();
        Ok(MatchingCursor {
            left: (left > 0).then_some(left),
            after: Some(state),
        })
    }
}

/// One query by words without an ordering, under way.
struct MatchingRun<'r, 'a> {
    execution: &'r AnnExecution<'a>,
    stores: &'r IndexServices,
    rows: &'r mut ClusterRows<'a>,
    /// The words that the index looks for. Those of other relations are among the predicates.
    words: &'r BoundWords<'a>,
    predicates: Vec<SearchPredicate>,
    /// The writes that are waited for.
    freshness: SearchFreshness,
    /// The warnings so far, each once.
    warned: Vec<SearchWarning>,
}

/// Answers a query by words without an ordering: a page of its rows, or their number.
///
/// # Errors
/// Failures of the index service and of the cluster, and paging states that are not the query's.
pub(super) async fn answer<'a>(
    execution: &'a AnnExecution<'a>,
    mut rows: ClusterRows<'a>,
    searches: &FreshSearches,
) -> Result<(ResponseContext, Response), ClientRequestError> {
    let Some((words, _)) = execution.words.split_first() else {
        return Err(CqlError::server("a query by words without words").into());
    };
    let given = execution.parameters.paging_state.clone();
    let mut cursor = match given {
        Some(state) => MatchingCursor::decode(state)?,
        None => MatchingCursor {
            left: execution.limit.map(NonZeroU32::get),
            after: None,
        },
    };
    let stores = &searches.stores;
    let all = execution.predicates(&execution.words[1..]);
    let mut matching = MatchingRun {
        execution,
        stores,
        words,
        predicates: all
            .into_iter()
            .filter(|one| stores.can_search_by(&one.predicate))
            .collect(),
        freshness: searches.freshness(execution.plan.table.id),
        rows: &mut rows,
        warned: Vec::new(),
    };
    if execution.plan.selection.counts {
        let count = matching.count().await?;
        return Ok(rows.into_count(count));
    }
    let next = matching.page(&mut cursor).await?;
    rows.into_answer(next).await
}

impl MatchingRun<'_, '_> {
    /// Puts the rows of the next page. Returns the paging state of the page after it.
    async fn page(
        &mut self,
        cursor: &mut MatchingCursor,
    ) -> Result<Option<Bytes>, ClientRequestError> {
        let page_size = self.execution.parameters.page_size;
        let of_page = page_size.map_or(usize::MAX, |rows| rows as usize);
        let wanted = cursor
            .left
            .map_or(of_page, |left| of_page.min(left as usize));
        let (mut put, began) = (0, Instant::now());
        self.rows.begin();
        loop {
            let found = self.matches(cursor, wanted - put).await?;
            cursor.after = found.next;
            put += self.put(found.keys).await?;
            let is_long = page_size.is_some() && began.elapsed() >= PAGE_TIME_MAX;
            if cursor.after.is_none() || put >= wanted || is_long {
                break;
            }
        }
        let put = u32::try_from(put).unwrap_or(u32::MAX);
        if let Some(left) = &mut cursor.left {
            *left = left.saturating_sub(put);
            if *left == 0 {
                return Ok(None);
            }
        }
        Ok(cursor.encode())
    }

    /// Counts all rows that match, none of which stays in memory.
    async fn count(&mut self) -> Result<u64, ClientRequestError> {
        let mut cursor = MatchingCursor::default();
        let mut count = 0;
        loop {
            self.rows.begin();
            let found = self.matches(&cursor, KEYS_AT_ONCE).await?;
            cursor.after = found.next;
            count += self.put(found.keys).await? as u64;
            self.rows.forget();
            if cursor.after.is_none() {
                return Ok(count);
            }
        }
    }

    /// Reads the rows of keys, and puts those that satisfy all of WHERE. Returns their number.
    async fn put(
        &mut self,
        sent: Vec<Vec<store_api::KeyValue>>,
    ) -> Result<usize, ClientRequestError> {
        let keys = sent.iter().map(|sent| match self.rows.key(sent) {
            Some(key) => Ok(key),
            None => Err(self.rows.search_failed(ClientError::InvalidJson)),
        });
        let keys = keys.collect::<Result<Vec<Key>, ClientRequestError>>()?;
        self.rows.put_matching(keys).await
    }

    /// Has the index name the next rows, up to so many.
    async fn matches(
        &mut self,
        cursor: &MatchingCursor,
        missing: usize,
    ) -> Result<MatchedRows, ClientRequestError> {
        let limit = missing.min(KEYS_AT_ONCE);
        let mut asked = self.ask(cursor, limit).await;
        if matches!(asked, Err(ClientError::Behind { .. })) && self.freshness.may_be_stale {
            self.freshness.newest_us = None;
            self.warn(SearchWarning::Stale);
            asked = self.ask(cursor, limit).await;
        }
        if matches!(asked, Err(ClientError::Status { .. }))
            && self.predicates.iter().any(|one| !one.is_named)
        {
            // The service may not have noticed the column's own index yet. The rows are checked.
            self.predicates.retain(|one| one.is_named);
            asked = self.ask(cursor, limit).await;
        }
        let found = asked.map_err(|error| self.rows.search_failed(error))?;
        // A search waits once; what follows does not wait again.
        self.freshness.newest_us = None;
        if found.is_short {
            self.warn(SearchWarning::NoRoom);
        }
        Ok(found)
    }

    async fn ask(&self, cursor: &MatchingCursor, limit: usize) -> Result<MatchedRows, ClientError> {
        let plan = self.execution.plan;
        let index = &self.words.condition.index;
        let predicates = self.predicates.iter();
        let predicates: Vec<ColumnsPredicate> =
            predicates.map(|one| one.predicate.clone()).collect();
        let search = WordMatches {
            predicates,
            after: cursor.after.clone(),
            min_time_us: self.freshness.newest_us,
            ..WordMatches::new(self.words.query.as_str(), limit)
        };
        let key = plan.table.primary_key().iter();
        let key: Vec<&str> = key.map(|column| column.name.as_str()).collect();
        let asked = self
            .stores
            .word_matches(&index.keyspace, &index.name, search, &key);
        match self.freshness.newest_us {
            None => asked.await,
            // A service that has not answered by then is taken to lag the writes.
            Some(_) => {
                let asked = tokio::time::timeout(self.freshness.wait, asked).await;
                asked.unwrap_or_else(|_| {
                    Err(ClientError::Behind {
                        message: format!("the index {} lacks the newest writes", index.name),
                        behind_us: None,
                    })
                })
            }
        }
    }

    fn warn(&mut self, warning: SearchWarning) {
        if !self.warned.contains(&warning) {
            self.warned.push(warning);
            self.rows.warn(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_the_way_to_the_client_and_back() {
        for left in [None, Some(7)] {
            let cursor = MatchingCursor {
                left,
                after: Some(Bytes::from_static(b"place")),
            };
            let state = cursor.encode().expect("a state");
            assert_eq!(MatchingCursor::decode(state), Ok(cursor));
        }
        assert_eq!(MatchingCursor::default().encode(), None);
        for state in [&b""[..], b"\xb1\0\0", b"\0\0\0\0\0\0"] {
            let error = MatchingCursor::decode(Bytes::from_static(state)).unwrap_err();
            assert_eq!(error.message, "Invalid value for the paging state");
        }
    }
}
