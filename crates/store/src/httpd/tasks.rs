//! Long work: `/api/v1/tasks`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::tasks::{AbortError, State, Status, Tree};
use axum::Json;
use axum::extract::{Path, RawQuery, State as Shares};
use store_api::types::{TaskState, TaskStatus, TaskTokenRange, TaskTree};
use uuid::Uuid;

use super::Shared;
use super::error::ApiError;
use super::query::parameter;
use crate::keys::timestamp;

/// How long a task is waited for if the request doesn't say.
const WAIT_S: u64 = 60;

/// And at most. Who waits longer asks again.
const WAIT_S_MAX: u64 = 600;

/// Tasks that run or ended lately.
#[utoipa::path(
    get,
    path = "/api/v1/tasks",
    params(("parts" = Option<bool>, Query, description = "Parts of other tasks too")),
    responses((status = 200, description = "In the order of their beginning", body = Vec<TaskStatus>)),
)]
pub async fn list(
    Shares(shared): Shares<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<TaskStatus>>, ApiError> {
    let parts = parameter(query.as_deref(), "parts")?.unwrap_or(false);
    let list = shared.api.work.list(parts);
    Ok(Json(list.into_iter().map(shown).collect()))
}

/// One task.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}",
    params(("id" = String, Path, description = "The task's UUID")),
    responses(
        (status = 200, description = "The task", body = TaskStatus),
        (status = 404, description = "No such task, or no longer", body = String),
    ),
)]
pub async fn status(
    Shares(shared): Shares<Shared>,
    Path(id): Path<String>,
) -> Result<Json<TaskStatus>, ApiError> {
    let found = parsed(&id).and_then(|id| shared.api.work.status(id));
    let status = found.ok_or(ApiError::MissingTask(id))?;
    Ok(Json(shown(status)))
}

/// A task and its parts.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}/tree",
    params(("id" = String, Path, description = "The task's UUID")),
    responses(
        (status = 200, description = "The task and its parts", body = TaskTree),
        (status = 404, description = "No such task, or no longer", body = String),
    ),
)]
pub async fn tree(
    Shares(shared): Shares<Shared>,
    Path(id): Path<String>,
) -> Result<Json<TaskTree>, ApiError> {
    let found = parsed(&id).and_then(|id| shared.api.work.tree(id));
    let tree = found.ok_or(ApiError::MissingTask(id))?;
    Ok(Json(shown_tree(tree)))
}

/// A task once it has ended, or as it is when the time is up or the service is stopped: `state` says which.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}/wait",
    params(
        ("id" = String, Path, description = "The task's UUID"),
        ("timeout" = Option<u64>, Query, description = "Seconds to wait at most: 60, up to 600"),
    ),
    responses(
        (status = 200, description = "The task", body = TaskStatus),
        (status = 404, description = "No such task, or no longer", body = String),
    ),
)]
pub async fn wait(
    Shares(shared): Shares<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<TaskStatus>, ApiError> {
    let timeout_s = parameter(query.as_deref(), "timeout")?.unwrap_or(WAIT_S);
    let timeout = Duration::from_secs(timeout_s.min(WAIT_S_MAX));
    let status = match parsed(&id) {
        Some(known) => {
            let work = &shared.api.work;
            // The service would else wait for this request to end, and this for the task.
            let waited = shared.stop.run_until_cancelled(work.wait(known, timeout));
            waited.await.unwrap_or_else(|| work.status(known))
        }
        None => None,
    };
    Ok(Json(shown(status.ok_or(ApiError::MissingTask(id))?)))
}

/// Asks a task to stop. It may take a while to do so: `wait` for it.
#[utoipa::path(
    delete,
    path = "/api/v1/tasks/{id}",
    params(("id" = String, Path, description = "The task's UUID")),
    responses(
        (status = 200, description = "It was asked to stop, or has ended before", body = TaskStatus),
        (status = 404, description = "No such task, or no longer", body = String),
        (status = 409, description = "Tasks of its kind can't be aborted", body = String),
    ),
)]
pub async fn abort(
    Shares(shared): Shares<Shared>,
    Path(id): Path<String>,
) -> Result<Json<TaskStatus>, ApiError> {
    let aborted = match parsed(&id) {
        Some(known) => shared.api.work.abort(known),
        None => Err(AbortError::Missing),
    };
    match aborted {
        Ok(status) => Ok(Json(shown(status))),
        Err(AbortError::Missing) => Err(ApiError::MissingTask(id)),
        Err(error @ AbortError::NotAbortable) => {
            let text = format!("{error}; drop the index if it is not wanted");
            Err(ApiError::Conflict(text))
        }
    }
}

/// What is no name of a task names none.
fn parsed(id: &str) -> Option<Uuid> {
    Uuid::try_parse(id).ok()
}

/// A task as the API shows it.
pub fn shown(status: Status) -> TaskStatus {
    let scope = status.scope.level().to_owned();
    let token_range = status.scope.token_range.map(|range| TaskTokenRange {
        start: range.start.to_string(),
        end: range.end.to_string(),
    });
    let counters = status.counters.into_iter();
    TaskStatus {
        id: status.id.to_string(),
        sequence_number: status.sequence_number,
        kind: status.kind.to_owned(),
        scope,
        keyspace: status.scope.keyspace,
        table: status.scope.table,
        index: status.scope.index,
        token_range,
        entity: status.scope.entity,
        state: match status.state {
            State::Running => TaskState::Running,
            State::Done => TaskState::Done,
            State::Failed => TaskState::Failed,
            State::Aborted => TaskState::Aborted,
        },
        is_abortable: status.is_abortable,
        abort_requested: status.abort_requested,
        start_time: time(status.start_time),
        end_time: status.end_time.map(time),
        error: status.error,
        parent_id: status.parent_id.map(|id| id.to_string()),
        children_ids: status.children_ids.iter().map(Uuid::to_string).collect(),
        children_left_out: status.children_left_out,
        progress_units: status.progress_units.to_owned(),
        progress_completed: status.progress_completed,
        progress_total: status.progress_total,
        counters: counters
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
    }
}

fn shown_tree(tree: Tree) -> TaskTree {
    TaskTree {
        status: shown(tree.status),
        children: tree.children.into_iter().map(shown_tree).collect(),
    }
}

/// RFC 3339, milliseconds, UTC.
fn time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
