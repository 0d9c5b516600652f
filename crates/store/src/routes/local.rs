//! Serves the searches of a CQL node in the same process, without sockets and HTTP.
//!
//! Sockets and HTTP on both sides cost as much processor time as half a search
//! (docs/benchmarks/serving.md). A call gives the same results and the same errors. It has
//! a budget of its own, as a listener has.

use std::sync::OnceLock;
use std::time::Duration;

use futures::future::BoxFuture;
use store_api::types::SearchPlan;
use store_api::{ClientError, ColumnsPredicate, InProcessService, NearestRows, VectorSearch};
use uuid::Uuid;

use super::ApiState;
use super::error::status_of;
use crate::filter::suits;
use crate::identity::IndexName;
use crate::indexes::RankedRows;
use crate::options::ApiSocketOptions;
use crate::search::{ConcurrencyBudget, IndexAnswer, MissingRowsPolicy, SearchError};

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

impl InProcessService for InProcessStore {
    fn search<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: VectorSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        Box::pin(async move {
            let open = self.open.get().ok_or(ClientError::Unavailable)?;
            let name = IndexName {
                keyspace: keyspace.to_owned(),
                index: index.to_owned(),
            };
            open.search(name, search).await
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
        mut search: VectorSearch,
    ) -> Result<NearestRows, ClientError> {
        self.drop_unsupported_predicates(&name, &mut search);
        let admission = self.admissions.take(None, self.api.engine.metrics());
        let admission = admission.map_err(refused)?;
        let returned = search.return_columns.clone().unwrap_or_default();
        let write = move |rows: RankedRows<'_>| Ok(rows.into_neighbours(&returned));
        let searches = &self.api.searches;
        // The node reads rows by itself, as it knows all of WHERE.
        let lacking = MissingRowsPolicy::Reported;
        let found = searches
            .search(name, search.into(), admission, lacking, write)
            .await;
        let IndexAnswer { answer, is_short } = found.map_err(refused)?;
        Ok(NearestRows { is_short, ..answer })
    }

    /// Leaves out the conditions on columns that an index is to keep but does not yet, and on those
    /// whose type has changed since it keeps them: the node checks the rows, unless it requests
    /// columns in place of rows.
    fn drop_unsupported_predicates(&self, name: &IndexName, search: &mut VectorSearch) {
        let engine = &self.api.engine;
        if search.return_columns.is_none()
            && !search.predicates.is_empty()
            && let Some(index) = engine.index(name)
        {
            let identity = engine.identity_now(&index);
            let keeps_all = engine.keeps_all(&index);
            // A search that may be answered by another index names columns that this one lacks.
            let is_suited = |predicate: &ColumnsPredicate| {
                let mut columns = predicate.columns().iter();
                suits(&identity, predicate)
                    || keeps_all && !columns.all(|column| identity.keeps(column))
            };
            search.predicates.retain(is_suited);
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
