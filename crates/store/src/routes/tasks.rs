//! The routes for long work: `/api/v1/tasks`.
//!
//! They have a state of their own, as they show the work of every part of the program and know
//! nothing of indexes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::tasks::{AbortError, CompletionState, TaskHierarchy, TaskRegistry, TaskSnapshot};
use axum::Json;
use axum::extract::{Path, RawQuery, State as Shares};
use store_api::types::{TaskState, TaskStatus, TaskTokenRange, TaskTree};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use value::iso_timestamp;

use super::error::ApiError;
use super::query_string::parameter;

/// The time that a request waits for a task if it doesn't say, seconds.
const WAIT_S: u64 = 60;

/// The longest time that a request waits for a task, seconds. To wait longer, a client sends
/// another.
const WAIT_S_MAX: u64 = 600;

/// The state that these routes read.
#[derive(Clone)]
pub(super) struct TaskRoutes {
    /// The tasks.
    pub work: TaskRegistry,
    /// Cancelled when the listener stops. A request that waits for a task is then answered with the
    /// task's present state.
    pub stop: CancellationToken,
}

/// Lists the tasks that run or ended lately.
#[utoipa::path(
    get,
    path = "/api/v1/tasks",
    params(("parts" = Option<bool>, Query, description = "True: list tasks that are parts of others too")),
    responses((status = 200, description = "The tasks, in the order of their beginning", body = Vec<TaskStatus>)),
)]
pub(super) async fn list(
    Shares(tasks): Shares<TaskRoutes>,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<TaskStatus>>, ApiError> {
    let parts = parameter(query.as_deref(), "parts")?.unwrap_or(false);
    let list = tasks.work.list(parts);
    Ok(Json(list.into_iter().map(shown).collect()))
}

/// Returns one task.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}",
    params(("id" = String, Path, description = "The task's UUID")),
    responses(
        (status = 200, description = "The task", body = TaskStatus),
        (status = 404, description = "No such task, or no longer", body = String),
    ),
)]
pub(super) async fn status(
    Shares(tasks): Shares<TaskRoutes>,
    Path(id): Path<String>,
) -> Result<Json<TaskStatus>, ApiError> {
    let found = parsed(&id).and_then(|id| tasks.work.status(id));
    let status = found.ok_or(ApiError::MissingTask(id))?;
    Ok(Json(shown(status)))
}

/// Returns a task and its parts.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}/tree",
    params(("id" = String, Path, description = "The task's UUID")),
    responses(
        (status = 200, description = "The task and its parts", body = TaskTree),
        (status = 404, description = "No such task, or no longer", body = String),
    ),
)]
pub(super) async fn tree(
    Shares(tasks): Shares<TaskRoutes>,
    Path(id): Path<String>,
) -> Result<Json<TaskTree>, ApiError> {
    let found = parsed(&id).and_then(|id| tasks.work.tree(id));
    let tree = found.ok_or(ApiError::MissingTask(id))?;
    Ok(Json(shown_tree(tree)))
}

/// Waits until a task has ended, the time is up or the service is stopped.
///
/// Returns the task as it is then; `state` says whether it has ended.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}/wait",
    params(
        ("id" = String, Path, description = "The task's UUID"),
        ("timeout" = Option<u64>, Query, description = "The most seconds to wait; 60 by default, 600 at most"),
    ),
    responses(
        (status = 200, description = "The task", body = TaskStatus),
        (status = 404, description = "No such task, or no longer", body = String),
    ),
)]
pub(super) async fn wait(
    Shares(tasks): Shares<TaskRoutes>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<TaskStatus>, ApiError> {
    let timeout_s = parameter(query.as_deref(), "timeout")?.unwrap_or(WAIT_S);
    let timeout = Duration::from_secs(timeout_s.min(WAIT_S_MAX));
    let status = match parsed(&id) {
        Some(known) => {
            let work = &tasks.work;
            // Without this the service would wait for this request to end, and the request for the
            // task.
            let waited = tasks.stop.run_until_cancelled(work.wait(known, timeout));
            waited.await.unwrap_or_else(|| work.status(known))
        }
        None => None,
    };
    Ok(Json(shown(status.ok_or(ApiError::MissingTask(id))?)))
}

/// Stops a task.
///
/// Stopping may take a while: `wait` returns once the task has ended.
#[utoipa::path(
    delete,
    path = "/api/v1/tasks/{id}",
    params(("id" = String, Path, description = "The task's UUID")),
    responses(
        (status = 200, description = "The task was asked to stop, or had ended before", body = TaskStatus),
        (status = 404, description = "No such task, or no longer", body = String),
        (status = 409, description = "Tasks of this kind can't be aborted", body = String),
    ),
)]
pub(super) async fn abort(
    Shares(tasks): Shares<TaskRoutes>,
    Path(id): Path<String>,
) -> Result<Json<TaskStatus>, ApiError> {
    let aborted = match parsed(&id) {
        Some(known) => tasks.work.abort(known),
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

/// Parses the id of a task. Any other text names no task, which is `None`.
fn parsed(id: &str) -> Option<Uuid> {
    Uuid::try_parse(id).ok()
}

/// A task as the API shows it.
pub fn shown(status: TaskSnapshot) -> TaskStatus {
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
            CompletionState::Running => TaskState::Running,
            CompletionState::Done => TaskState::Done,
            CompletionState::Failed => TaskState::Failed,
            CompletionState::Aborted => TaskState::Aborted,
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

fn shown_tree(tree: TaskHierarchy) -> TaskTree {
    TaskTree {
        status: shown(tree.status),
        children: tree.children.into_iter().map(shown_tree).collect(),
    }
}

/// RFC 3339, milliseconds, UTC.
fn time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    iso_timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
