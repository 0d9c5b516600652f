//! The route that measures the recall of an index: `/api/v1/indexes/{keyspace}/{index}/recall`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use store_api::types::{IndexState, MeasuredRecall, RecallRequest, Unavailable};

use super::Shared;
use super::error::ApiError;
use super::index_path::IndexPath;
use super::request::AdmittedJson;
use crate::identity::{IndexName, StructureClass};
use crate::indexes::IndexHandle;
use crate::long_work;
use crate::search::SearchError;

/// The most rows that a check takes as queries.
const QUERIES_MAX: usize = 10_000;

/// Measures how many of the ten nearest rows searches find, by a scan of all vectors for some rows.
///
/// It takes as long as that many scans, as work in the background, and a task shows how far it is.
/// It ends when the client closes the connection.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/recall",
    params(IndexPath),
    request_body = RecallRequest,
    responses(
        (status = 200, description = "The recall", body = MeasuredRecall),
        (status = 400, description = "The index is none of vectors, or the number of queries is out of range", body = String),
        (status = 404, description = "No such index", body = String),
        (status = 409, description = "The task was aborted", body = String),
        (status = 503, description = "The index does not serve", body = Unavailable),
    ),
)]
pub(super) async fn measure(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: AdmittedJson<RecallRequest>,
) -> Result<Json<MeasuredRecall>, ApiError> {
    let queries = request.body.queries;
    // It holds no place of a search meanwhile.
    drop(request);
    let index = measurable(&shared, path.into())?;
    if !(1..=QUERIES_MAX).contains(&queries) {
        return Err(ApiError::BadRequest(format!(
            "queries is {queries}, and may be 1 to {QUERIES_MAX}"
        )));
    }
    let spec = long_work::recall(&index.identity, queries);
    let task = shared.api.work.start(spec);
    let searches = &shared.api.searches;
    match searches.measure_recall(&index, queries, &task).await {
        Ok(Some(measured)) => {
            task.done();
            Ok(Json(measured))
        }
        Ok(None) => {
            let text = format!("task {} was aborted, which measured the recall", task.id());
            task.stopped();
            Err(ApiError::Conflict(text))
        }
        Err(error) => {
            task.failed(&error);
            Err(error.into())
        }
    }
}

/// An index on vectors that serves.
fn measurable(shared: &Shared, name: IndexName) -> Result<Arc<IndexHandle>, ApiError> {
    let found = shared.api.engine.find(&name);
    let index = found.map_err(|no_route| SearchError::no_route(name.clone(), &no_route))?;
    if index.identity.options.class() != StructureClass::Vector {
        return Err(ApiError::BadRequest(format!(
            "index {name} has no vectors: its searches find all rows, so that there is no recall to measure"
        )));
    }
    if index.state() != IndexState::Serving {
        let progress = index.progress();
        return Err(SearchError::IndexBuilding { name, progress }.into());
    }
    Ok(index)
}
