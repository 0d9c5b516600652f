//! The routes of an index's map: `/api/v1/indexes/{keyspace}/{index}/map`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use store_api::types::{IndexMap, IndexState, MapProgress, MapRequest, Unavailable};
use value::iso_timestamp;

use super::Shared;
use super::error::ApiError;
use super::index_path::IndexPath;
use super::request::AdmittedJson;
use super::tasks::shown;
use crate::identity::{IndexName, StructureClass};
use crate::indexes::IndexHandle;
use crate::maps::{HeldMap, MapState};
use crate::search::{SearchError, WantedRows};

/// The fewest and the most points that a map may be requested with.
const POINTS: (usize, usize) = (500, 20_000);

/// Begins to make a map of an index on vectors, or finds the one that there is.
///
/// A sample of the rows is laid out in two dimensions, as work in the background that takes
/// seconds. One map is made at a time. `GET` of the same path returns it.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/map",
    params(IndexPath),
    request_body = MapRequest,
    responses(
        (status = 200, description = "The map is there, or its task makes it", body = MapProgress),
        (status = 400, description = "The index is none of vectors, or the number of points is out of range", body = String),
        (status = 404, description = "No such index", body = String),
        (status = 409, description = "Another map is being made", body = String),
        (status = 503, description = "The index does not serve", body = Unavailable),
    ),
)]
pub(super) async fn start(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: AdmittedJson<MapRequest>,
) -> Result<Json<MapProgress>, ApiError> {
    let MapRequest {
        points,
        seed,
        fresh,
    } = request.body;
    let index = of_vectors(&shared, path)?;
    let (fewest, most) = POINTS;
    if !(fewest..=most).contains(&points) {
        return Err(ApiError::BadRequest(format!(
            "points is {points}, and may be {fewest} to {most}"
        )));
    }
    if index.state() != IndexState::Serving {
        let (name, progress) = (index.identity.name.clone(), index.progress());
        return Err(SearchError::IndexBuilding { name, progress }.into());
    }
    let wanted = WantedRows { points, seed };
    let started = shared.api.maps.start(&index, wanted, fresh);
    let state = started.map_err(|busy| ApiError::Conflict(busy.to_string()))?;
    Ok(Json(progress(state)))
}

/// Returns the map of an index that was requested last.
#[utoipa::path(
    get,
    path = "/api/v1/indexes/{keyspace}/{index}/map",
    params(IndexPath),
    responses(
        (status = 200, description = "The map", body = IndexMap),
        (status = 202, description = "The first map is being made", body = MapProgress),
        (status = 400, description = "The index is none of vectors", body = String),
        (status = 404, description = "No such index, or no map of it", body = String),
        (status = 503, description = "The index does not serve", body = Unavailable),
    ),
)]
pub(super) async fn last(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
) -> Result<Response, ApiError> {
    let index = of_vectors(&shared, path)?;
    let maps = &shared.api.maps;
    if let Some(held) = maps.last(&index.identity) {
        let now = shared.api.engine.now();
        return Ok(Json(ShownMap::of(&held, now)).into_response());
    }
    match maps.running(&index.identity) {
        Some(task) => {
            let state = MapState {
                task: Some(task),
                is_ready: false,
            };
            Ok((StatusCode::ACCEPTED, Json(progress(state))).into_response())
        }
        None => Err(ApiError::NoMap(index.identity.name.clone())),
    }
}

/// An index on vectors.
fn of_vectors(shared: &Shared, path: IndexPath) -> Result<Arc<IndexHandle>, ApiError> {
    let name = IndexName::from(path);
    let found = shared.api.engine.find(&name);
    let index = found.map_err(|no_route| SearchError::no_route(name.clone(), &no_route))?;
    match index.identity.options.class() {
        StructureClass::Vector => Ok(index),
        StructureClass::FullText => Err(ApiError::BadRequest(format!(
            "index {name} has no vectors, which a map could show"
        ))),
    }
}

fn progress(state: MapState) -> MapProgress {
    MapProgress {
        task: state.task.map(shown),
        ready: state.is_ready,
    }
}

/// A map in the form of [`IndexMap`], whose arrays are pieces of JSON.
#[derive(Serialize)]
struct ShownMap<'a> {
    method: &'static str,
    points: usize,
    rows: usize,
    seed: u32,
    made_at: String,
    age_s: u64,
    seconds: f64,
    neighbours: usize,
    neighbours_kept: Option<f64>,
    neighbours_kept_by_pca: Option<f64>,
    x: &'a RawValue,
    y: &'a RawValue,
    primary_keys: &'a RawValue,
    column_values: &'a RawValue,
}

impl ShownMap<'_> {
    /// A map as it is shown at `now`, since the epoch.
    fn of(held: &HeldMap, now: Duration) -> ShownMap<'_> {
        let map = &held.map;
        let made_at_ms = i64::try_from(map.made_at.as_millis()).unwrap_or(i64::MAX);
        ShownMap {
            method: point_map::METHOD,
            points: map.points,
            rows: map.rows,
            seed: held.wanted.seed,
            made_at: iso_timestamp(made_at_ms),
            age_s: now.saturating_sub(map.made_at).as_secs(),
            seconds: rounded(map.took.as_secs_f64()),
            neighbours: point_map::COMPARED_NEIGHBOURS,
            neighbours_kept: map.neighbours_kept.map(rounded),
            neighbours_kept_by_pca: map.neighbours_kept_by_pca.map(rounded),
            x: &map.x,
            y: &map.y,
            primary_keys: &map.columns.primary_keys,
            column_values: &map.columns.column_values,
        }
    }
}

/// A number to the fourth decimal.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
