//! The door for searches. A search comes by HTTP ([`crate::httpd`]) or by a call of a node in the
//! same process. Both take the same way from here on, and get the same results and errors.

mod admission;
mod error;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use store_api::types::AnnRequest;

use crate::compute::{Compute, NotSearched};
use crate::filter::{Restricted, RowFilter};
use crate::identity::{IndexIdentity, IndexName};
use crate::indexes::{Engine, RankedRows, Routed, VectorError};

pub use admission::{Admission, Admissions};
pub use error::SearchError;

/// The most rows of an answer. A limit has no upper bound (contract, section 1.3), but the database
/// asks for no more than this: 1000 rows, oversampled 100 times. More would be memory and time
/// without bounds.
const ROWS_MAX: usize = 100_000;

/// The door for searches. Clones are cheap and lead to the same indexes.
#[derive(Clone)]
pub struct SearchDoor {
    engine: Arc<Engine>,
    compute: Compute,
}

impl SearchDoor {
    /// A door to the indexes of `engine`. Searches run on the threads of `compute`.
    pub fn new(engine: Arc<Engine>, compute: Compute) -> SearchDoor {
        SearchDoor { engine, compute }
    }

    /// Searches an index. `write` turns the result into the body of the answer, on the thread that
    /// searched. Its error is a fault of the service.
    pub async fn search(
        &self,
        name: IndexName,
        search: AnnRequest,
        admission: Admission,
        write: impl FnOnce(RankedRows<'_>) -> Result<Bytes, String> + Send + 'static,
    ) -> Result<Bytes, SearchError> {
        let began = Instant::now();
        let restricted = Restricted::by(search.filter.as_ref());
        refuse_unknown(&search)?;
        let Routed { index, requested } = self
            .engine
            .current_route(&name, &restricted, admission.time_left())
            .await
            .map_err(|no_route| SearchError::no_route(name.clone(), &no_route))?;
        check(&search, index.identity.options.dimensions)?;
        check_allowed(&restricted, &index.identity)?;
        let filter = RowFilter::new(&index.identity, search.filter.as_ref())
            .map_err(|error| SearchError::Unsuitable(error.to_string()))?;
        let left = admission.time_left();
        if !index.freshness.take_up_acknowledged(left).await {
            self.engine.metrics().search_refused("behind");
            return Err(SearchError::Behind(name));
        }
        let rows = search.limit.get().min(ROWS_MAX);
        let engine = self.engine.clone();
        let work = move || -> Result<Bytes, SearchError> {
            let now_s = match index.freshness.acknowledged_us() {
                Some(_) => engine.now_s(),
                // A cluster tells the rest of a TTL in whole seconds, so the row may be there for
                // a moment longer.
                None => 0,
            };
            let ranked = index
                .vectors
                .search(&search.vector, rows, now_s, filter.as_deref());
            let ranked = ranked.map_err(|error| match error {
                VectorError::Query(error) => SearchError::Unsuitable(error.to_string()),
                VectorError::Internal(text) => SearchError::Internal(text),
            })?;
            write(ranked).map_err(SearchError::Internal)
        };
        let answer = self.compute.search(admission.deadline, rows, work).await;
        let answer = answer.map_err(|error| match error {
            NotSearched::TooLate => {
                self.engine.metrics().search_refused("deadline");
                SearchError::Overloaded
            }
            NotSearched::Stopped(_) | NotSearched::Panicked => {
                SearchError::Internal(error.to_string())
            }
        })??;
        drop(admission);
        let took = began.elapsed().as_secs_f64();
        requested.metrics.request_latency.observe(took);
        Ok(answer)
    }
}

/// Refuses a search that no index of these dimensions can serve.
fn check(request: &AnnRequest, dimensions: usize) -> Result<(), SearchError> {
    let actual = request.vector.len();
    if actual != dimensions {
        return Err(SearchError::Unsuitable(format!(
            "Wrong embedding dimension: expected {dimensions}, got {actual}"
        )));
    }
    if let Some(position) = ann::first_not_finite(&request.vector) {
        return Err(SearchError::Unsuitable(format!(
            "vector[{position}] is not a finite 32-bit number"
        )));
    }
    Ok(())
}

/// Refuses what a request asks for and this version can't give.
fn refuse_unknown(search: &AnnRequest) -> Result<(), SearchError> {
    let asked = [
        ("return_columns", search.return_columns.is_some()),
        ("min_time_us", search.min_time_us.is_some()),
        ("routing: false", !search.routing),
    ];
    match asked.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((what, _)) => Err(SearchError::Unsuitable(format!(
            "{what} is not supported by this version of the index service: leave it out"
        ))),
        None => Ok(()),
    }
}

/// Refuses a filter beyond the key of a local index, unless the user said ALLOW FILTERING.
fn check_allowed(restricted: &Restricted<'_>, index: &IndexIdentity) -> Result<(), SearchError> {
    let left: BTreeSet<&str> = restricted.left_by(index).collect();
    if left.is_empty() || restricted.is_allowed {
        return Ok(());
    }
    let left: Vec<&str> = left.into_iter().collect();
    Err(SearchError::Unsuitable(format!(
        "a search restricted by {} requires ALLOW FILTERING",
        left.join(", ")
    )))
}
