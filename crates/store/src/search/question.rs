//! A search in the terms of the index that answers it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use full_text::TextQuery;
use index::FullTextOptions;

use super::input::{ReceivedSearch, SearchSubject};
use super::words::WordsSource;
use super::{ConcurrencyPermit, SearchError, VectorSearcher};
use crate::filter::{SearchFilter, SearchRequirements, UnsupportedRestriction};
use crate::identity::{IndexIdentity, IndexName, StructureOptions};
use crate::indexes::{
    IndexHandle, RequestedColumn, RoutedSearch, StructureError, StructureQuery, check_query,
};
use crate::keys::RowPlace;

/// A search in the terms of the index that answers it.
pub(super) struct ResolvedSearch {
    /// The index.
    pub routed: RoutedSearch,
    /// The value to look for.
    pub subject: ResolvedSubject,
    /// The conditions on rows.
    pub filter: Option<Box<SearchFilter>>,
    /// The rows whose statistics count; `None` for all.
    pub tenant: Option<Box<SearchFilter>>,
    /// The full-text indexes that answer the words of the filter, one for each of them.
    pub words: Vec<WordsSource>,
    /// The columns whose values are wanted.
    pub returned: Option<Vec<RequestedColumn>>,
}

impl ResolvedSearch {
    /// A full-text index of the filter's words that lacks rows for want of room; `None` if there is
    /// none. The texts of such rows match neither the words nor their negation.
    pub(super) fn lacking_words(&self) -> Option<&IndexName> {
        let mut indexes = self.words.iter().map(|words| &words.index);
        let lacking = indexes.find(|index| index.lacks_rows());
        lacking.map(|index| &index.identity.name)
    }
}

/// The value that an index looks for.
pub(super) enum ResolvedSubject {
    /// A vector.
    Vector(Vec<f32>),
    /// The texts that match best.
    Words(Box<TextQuery>),
    /// All texts that match.
    Matches {
        /// The query.
        query: Box<TextQuery>,
        /// The place after which the page begins.
        after: Option<RowPlace>,
    },
}

impl ResolvedSubject {
    /// The part of the search that the structure of an index reads.
    pub(super) fn query(&self) -> StructureQuery<'_> {
        match self {
            ResolvedSubject::Vector(vector) => StructureQuery::Vector(vector),
            ResolvedSubject::Words(query) => StructureQuery::Words(query),
            ResolvedSubject::Matches { query, after } => StructureQuery::Matches {
                query,
                after: after.as_ref(),
            },
        }
    }

    /// The query on texts; `None` for vectors.
    pub(super) fn text_query(&self) -> Option<&TextQuery> {
        match self {
            ResolvedSubject::Vector(_) => None,
            ResolvedSubject::Words(query) | ResolvedSubject::Matches { query, .. } => Some(query),
        }
    }
}

impl VectorSearcher {
    /// Finds the index that answers a search, and resolves its conditions and columns there. The
    /// full-text indexes that answer the words of its conditions have taken up the writes that the
    /// search must know.
    pub(super) async fn question(
        &self,
        name: &IndexName,
        asked: &mut ReceivedSearch,
        admission: &ConcurrencyPermit,
    ) -> Result<ResolvedSearch, SearchError> {
        let max = self.filter_values_max;
        if asked.values() > max {
            return Err(SearchError::TooManyValues { max });
        }
        // An index of another class is none that the search can mean.
        if let Some(index) = self.engine.index(name)
            && index.identity.options.class() != asked.subject.class()
        {
            return Err(SearchError::MissingIndex(name.clone()));
        }
        // The search needs no value any more, and a vector is long.
        let nothing = SearchSubject::Vector(Vec::new());
        let subject = std::mem::replace(&mut asked.subject, nothing);
        let asked = &*asked;
        let needed = asked.requirements();
        let routed = self
            .engine
            .current_route(name, &needed, admission.time_left())
            .await
            .map_err(|no_route| SearchError::no_route(name.clone(), &no_route))?;
        let identity = routed.identity();
        let subject = resolved(subject, &routed)?;
        check_query(subject.query(), &identity.options)?;
        check_allowed(&needed, identity)?;
        let unsuitable = |error: UnsupportedRestriction| SearchError::Unsuitable(error.to_string());
        let (filter, predicates) = (asked.filter.as_ref(), &asked.predicates);
        let tenant = match subject.text_query() {
            Some(_) => SearchFilter::of_tenant(identity, filter, predicates).map_err(unsuitable)?,
            None => None,
        };
        let filter = SearchFilter::new(identity, filter, predicates).map_err(unsuitable)?;
        let returned = asked.return_columns.as_deref();
        let returned = returned.map(|names| RequestedColumn::all_of(identity, names));
        let returned = returned.transpose().map_err(unsuitable)?;
        let words = match filter.as_deref() {
            Some(filter) => self.words_of(filter, identity, asked, admission).await?,
            None => Vec::new(),
        };
        Ok(ResolvedSearch {
            routed,
            subject,
            filter,
            tenant,
            words,
            returned,
        })
    }

    /// The full-text indexes that answer the words of a filter. They have taken up the writes that
    /// the search must know.
    async fn words_of(
        &self,
        filter: &SearchFilter,
        identity: &IndexIdentity,
        asked: &ReceivedSearch,
        admission: &ConcurrencyPermit,
    ) -> Result<Vec<WordsSource>, SearchError> {
        let mut sources = Vec::with_capacity(filter.words().len());
        for words in filter.words() {
            let left = admission.time_left();
            let index =
                self.engine
                    .current_text_index(&identity.table, &words.column, &words.index, left);
            let index = index.await.map_err(|no_route| {
                let name = match words.index.is_empty() {
                    true => words.column.clone(),
                    false => words.index.clone(),
                };
                let keyspace = identity.name.keyspace.clone();
                let name = IndexName {
                    keyspace,
                    index: name,
                };
                SearchError::no_route(name, &no_route)
            })?;
            let query = text_query(&words.query, &index.identity)?;
            self.wait_for(&index, index.identity.name.clone(), asked, admission)
                .await?;
            sources.push(WordsSource {
                index,
                query: Arc::new(query),
                is_negated: words.is_negated,
            });
        }
        Ok(sources)
    }

    /// Waits until an index has taken up the writes that a search must know. `name` is the index of
    /// the request.
    pub(super) async fn wait_for(
        &self,
        index: &IndexHandle,
        name: IndexName,
        asked: &ReceivedSearch,
        admission: &ConcurrencyPermit,
    ) -> Result<(), SearchError> {
        let taken_up = wait_for_writes(index, name, asked.min_time_us, admission.time_left()).await;
        taken_up.inspect_err(|_| self.engine.metrics().search_refused("behind"))
    }
}

/// Reads the end of the page before.
fn place(after: &[u8]) -> Result<RowPlace, SearchError> {
    let place = RowPlace::read(after);
    place.ok_or_else(|| SearchError::Unsuitable("after: no end of a page".to_owned()))
}

fn resolved(subject: SearchSubject, routed: &RoutedSearch) -> Result<ResolvedSubject, SearchError> {
    let identity = routed.identity();
    Ok(match subject {
        SearchSubject::Vector(vector) => ResolvedSubject::Vector(vector),
        SearchSubject::Words(query) => {
            ResolvedSubject::Words(Box::new(text_query(&query, identity)?))
        }
        SearchSubject::Matches { query, after } => ResolvedSubject::Matches {
            query: Box::new(text_query(&query, identity)?),
            after: after.map(|after| place(&after)).transpose()?,
        },
    })
}

/// The query for the texts of an index.
fn text_query(query: &str, index: &IndexIdentity) -> Result<TextQuery, SearchError> {
    let parsed = TextQuery::parse(query, text_options(index)?);
    parsed.map_err(|error| SearchError::Unsuitable(error.to_string()))
}

/// The options of an index on texts.
pub(super) fn text_options(index: &IndexIdentity) -> Result<FullTextOptions, SearchError> {
    match &index.options {
        StructureOptions::FullText(options) => Ok(*options),
        StructureOptions::Vector(_) => Err(SearchError::MissingIndex(index.name.clone())),
    }
}

/// Waits until an index has taken up the writes that a search must know. `name` is the index of the
/// request.
async fn wait_for_writes(
    index: &IndexHandle,
    name: IndexName,
    min_time_us: Option<i64>,
    within: Duration,
) -> Result<(), SearchError> {
    let Some(time_us) = min_time_us else {
        return match index.freshness.wait_for_acknowledged(within).await {
            true => Ok(()),
            false => Err(SearchError::Behind(name)),
        };
    };
    let taken_up = index.freshness.wait_until(time_us, within).await;
    taken_up.map_err(|lag| SearchError::BehindTime { name, lag })
}

/// Refuses a filter beyond the key of a local index, unless the user said ALLOW FILTERING.
fn check_allowed(
    needed: &SearchRequirements<'_>,
    index: &IndexIdentity,
) -> Result<(), SearchError> {
    let left: BTreeSet<&str> = needed.left_by(index).collect();
    if left.is_empty() || needed.is_allowed {
        return Ok(());
    }
    let left: Vec<&str> = left.into_iter().collect();
    Err(SearchError::Unsuitable(format!(
        "a search restricted by {} requires ALLOW FILTERING",
        left.join(", ")
    )))
}

impl From<StructureError> for SearchError {
    fn from(error: StructureError) -> SearchError {
        match error {
            StructureError::Query(_) | StructureError::TooManyBytes(_) => {
                SearchError::Unsuitable(error.to_string())
            }
            StructureError::Internal(text) => SearchError::Internal(text),
        }
    }
}
