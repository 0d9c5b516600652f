//! Serves the searches of a CQL node in the same process, without sockets and HTTP.
//!
//! Sockets and HTTP on both sides cost as much processor time as half a search
//! (docs/benchmarks/serving.md). A call gives the same results and the same errors. It has
//! a budget of its own, as a listener has.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use store_api::types::{HighlightForm, SearchPlan};
use store_api::{
    ClientError, ColumnsPredicate, InProcessService, MatchedRows, NearestRows, VectorSearch,
    WordMatches, WordSearch,
};
use uuid::Uuid;

use super::ApiState;
use super::error::status_of;
use crate::filter::suits;
use crate::identity::IndexName;
use crate::indexes::RankedRows;
use crate::options::ApiSocketOptions;
use crate::search::{
    ConcurrencyBudget, ConcurrencyPermit, IndexAnswer, MissingRowsPolicy, ReceivedSearch,
    SearchError, TextsQuestion,
};

/// The longest time that the statement which creates an index waits for it. Drivers give a
/// statement ten seconds.
const CREATED_WITHIN: Duration = Duration::from_secs(5);

/// The store by which a node in the same process searches. It exists before the service is started,
/// as an address does, so either may start first. Until then searches fail with
/// [`ClientError::Unavailable`].
#[derive(Default)]
pub(crate) struct InProcessStore {
    open: OnceLock<InProcessApi>,
}

struct InProcessApi {
    api: ApiState,
    admissions: ConcurrencyBudget,
}

impl InProcessStore {
    /// Opens the store for searches, with the budget that listeners have by default. Panics if it
    /// is open already.
    pub(crate) fn open(&self, api: ApiState) {
        let admissions = ConcurrencyBudget::new(
            ApiSocketOptions::SEARCHES_MAX,
            ApiSocketOptions::SEARCH_WAIT_MAX,
        );
        if self.open.set(InProcessApi { api, admissions }).is_err() {
            unreachable!("a service starts once");
        }
    }
}

impl InProcessStore {
    /// The open store, and the index that a search names.
    fn open_for(
        &self,
        keyspace: &str,
        index: &str,
    ) -> Result<(&InProcessApi, IndexName), ClientError> {
        let open = self.open.get().ok_or(ClientError::Unavailable)?;
        let name = IndexName {
            keyspace: keyspace.to_owned(),
            index: index.to_owned(),
        };
        Ok((open, name))
    }
}

impl InProcessService for InProcessStore {
    fn search<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: VectorSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        Box::pin(async move {
            let (open, name) = self.open_for(keyspace, index)?;
            open.search(name, search.into()).await
        })
    }

    fn search_words<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: WordSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        Box::pin(async move {
            let (open, name) = self.open_for(keyspace, index)?;
            open.search(name, search.into()).await
        })
    }

    fn match_words<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: WordMatches,
    ) -> BoxFuture<'a, Result<MatchedRows, ClientError>> {
        Box::pin(async move {
            let (open, name) = self.open_for(keyspace, index)?;
            open.match_words(name, search).await
        })
    }

    fn highlight<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        query: String,
        documents: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, ClientError>> {
        Box::pin(async move {
            let (open, name) = self.open_for(keyspace, index)?;
            let asked = TextsQuestion {
                query,
                filter: None,
                tenant: Vec::new(),
                texts: documents,
            };
            let form = HighlightForm::default();
            let searches = &open.api.searches;
            let marked = searches
                .highlight(name, asked, form, open.admitted()?)
                .await;
            marked.map_err(refused)
        })
    }

    fn score_texts<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        query: String,
        tenant: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<f32>>, ClientError>> {
        Box::pin(async move {
            let (open, name) = self.open_for(keyspace, index)?;
            let asked = TextsQuestion {
                query,
                filter: None,
                tenant,
                texts,
            };
            let searches = &open.api.searches;
            let scores = searches.score_texts(name, asked, open.admitted()?).await;
            scores.map_err(refused)
        })
    }

    fn ranked_rows(&self, keyspace: &str, index: &str) {
        let name = IndexName {
            keyspace: keyspace.to_owned(),
            index: index.to_owned(),
        };
        let open = self.open.get();
        if let Some(index) = open.and_then(|open| open.api.engine.index(&name)) {
            index.metrics.searched(SearchPlan::RankedRows);
            let plan = SearchPlan::RankedRows.name();
            tracing::debug!(index = %name, plan, "searched");
        }
    }

    fn created<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        version: Uuid,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(open) = self.open.get() else {
                return;
            };
            let name = IndexName {
                keyspace: keyspace.to_owned(),
                index: index.to_owned(),
            };
            let serves = open.api.engine.serves(&name, version);
            // The index of a large table takes longer to build. Until then its searches are refused
            // with its progress.
            let _ = tokio::time::timeout(CREATED_WITHIN, serves).await;
        })
    }

    fn serves(&self, keyspace: &str, index: &str, version: Uuid) -> bool {
        let name = IndexName {
            keyspace: keyspace.to_owned(),
            index: index.to_owned(),
        };
        let open = self.open.get();
        open.is_some_and(|open| open.api.engine.serves_now(&name, version))
    }
}

impl InProcessApi {
    async fn search(
        &self,
        name: IndexName,
        mut search: ReceivedSearch,
    ) -> Result<NearestRows, ClientError> {
        if search.return_columns.is_none() {
            self.drop_unsupported(&name, &mut search.predicates);
        }
        let returned = search.return_columns.clone().unwrap_or_default();
        let write = move |rows: RankedRows<'_>| Ok(rows.into_neighbours(&returned));
        let IndexAnswer { answer, is_short } = self.answer(name, search, write).await?;
        Ok(NearestRows { is_short, ..answer })
    }

    async fn match_words(
        &self,
        name: IndexName,
        mut search: WordMatches,
    ) -> Result<MatchedRows, ClientError> {
        self.drop_unsupported(&name, &mut search.predicates);
        let write = |rows: RankedRows<'_>| Ok(rows.into_page());
        let IndexAnswer { answer, is_short } = self.answer(name, search.into(), write).await?;
        Ok(MatchedRows { is_short, ..answer })
    }

    /// Does an admitted search.
    async fn answer<A: Send + 'static>(
        &self,
        name: IndexName,
        search: ReceivedSearch,
        write: impl Fn(RankedRows<'_>) -> Result<A, String> + Send + Sync + 'static,
    ) -> Result<IndexAnswer<A>, ClientError> {
        let admission = self.admitted()?;
        let searches = &self.api.searches;
        // The node reads rows by itself, as it knows all of WHERE.
        let lacking = MissingRowsPolicy::Reported;
        let found = searches.search(name, search, admission, lacking, write);
        found.await.map_err(refused)
    }

    /// A place for a search.
    fn admitted(&self) -> Result<ConcurrencyPermit, ClientError> {
        let admission = self.admissions.take(None, self.api.engine.metrics());
        admission.map_err(refused)
    }

    /// Leaves out the conditions on columns that an index is to keep but does not yet, and on those
    /// whose type has changed since it keeps them: the node checks the rows, unless it requests
    /// columns in place of rows.
    fn drop_unsupported(&self, name: &IndexName, predicates: &mut Vec<ColumnsPredicate>) {
        let engine = &self.api.engine;
        if !predicates.is_empty()
            && let Some(index) = engine.index(name)
        {
            let identity = engine.identity_now(&index);
            let keeps_all = engine.keeps_all(&index);
            // A search that may be answered by another index names columns that this one lacks.
            let is_suited = |predicate: &ColumnsPredicate| {
                let mut columns = predicate.columns().into_iter();
                suits(&identity, predicate)
                    || keeps_all && !columns.all(|column| identity.keeps(column))
            };
            predicates.retain(is_suited);
        }
    }
}

/// The error that a client over HTTP would give for the same answer.
fn refused(error: SearchError) -> ClientError {
    let message = error.to_string();
    match &error {
        SearchError::NodeBootstrapping => ClientError::Unavailable,
        SearchError::Overloaded | SearchError::Behind(_) | SearchError::Short(_) => {
            ClientError::overloaded(message)
        }
        SearchError::BehindTime { lag, .. } => ClientError::Behind {
            message,
            behind_us: lag.behind_us,
        },
        SearchError::Internal(text) => {
            tracing::error!(text, "a request failed");
            ClientError::of_answer(status_of(&error), message)
        }
        SearchError::MissingIndex(_)
        | SearchError::IndexBuilding { .. }
        | SearchError::Unsuitable(_)
        | SearchError::TooManyValues { .. } => ClientError::of_answer(status_of(&error), message),
    }
}
