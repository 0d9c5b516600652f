//! The routes of HTTP for backups, restores, drills and local snapshots.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::handler::Handler;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use backup::LocationOptions;
use http_server::{AddedRoutes, BodyLimits, RequestClient, RequiredRight, RouteRow};
use serde::de::DeserializeOwned;
use store_api::types::{
    BackupPreview, BackupRequest, BackupScheduleStatus, BackupsStatus, DrillRequest,
    LocalSnapshotRequest, RestoreRequest, TaskStatus,
};
use utoipa::OpenApi;

use crate::BackupTaskError;
use crate::order::{BackupOrder, DrillOrder, RestoreOrder};
use crate::service::{BackupRunner, LongWork};

/// The longest body of a request, in bytes. It has names and paths.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The bytes of bodies that are on their way.
const BODIES_BYTES_MAX: usize = 1 << 20;
/// The longest time in which a body must arrive.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The state that the handlers read.
#[derive(Clone)]
struct BackupRoutes {
    tasks: BackupRunner,
    bodies: Arc<BodyLimits>,
}

#[derive(OpenApi)]
#[openapi(paths(back_up, status, remove_schedule, restore, drill, snapshot))]
struct BackupApi;

/// The description of the routes, as JSON.
static DESCRIPTION: LazyLock<String> = LazyLock::new(|| {
    let text = BackupApi::openapi().to_json();
    text.expect("a description made of names and types serialises")
});

impl BackupRunner {
    /// The rows of the table of routes, with their description.
    pub fn routes(&self) -> AddedRoutes {
        let bodies = BodyLimits::new(BODIES_BYTES_MAX, BODY_BYTES_MAX, BODY_WITHIN);
        let state = BackupRoutes {
            tasks: self.clone(),
            bodies: Arc::new(bodies),
        };
        let rows = table().into_iter();
        AddedRoutes {
            rows: rows.map(|row| row.with_state(state.clone())).collect(),
            description: DESCRIPTION.as_str(),
        }
    }
}

fn operates<H, T>(method: MethodFilter, path: &'static str, handler: H) -> RouteRow<BackupRoutes>
where
    H: Handler<T, BackupRoutes>,
    T: 'static,
{
    let row = RouteRow::new(method, path, handler);
    row.private().needs(RequiredRight::Operate)
}

fn table() -> [RouteRow<BackupRoutes>; 6] {
    const POST: MethodFilter = MethodFilter::POST;
    const BACKUPS: &str = "/api/v1/backups";
    const SCHEDULE: &str = "/api/v1/backups/schedules/{id}";
    [
        operates(POST, BACKUPS, back_up),
        RouteRow::new(MethodFilter::GET, BACKUPS, status).private(),
        operates(MethodFilter::DELETE, SCHEDULE, remove_schedule),
        operates(POST, "/api/v1/restores", restore),
        operates(POST, "/api/v1/drills", drill),
        operates(POST, "/api/v1/snapshots", snapshot),
    ]
}

impl BackupRoutes {
    /// Reads the JSON of a request, and whether its client is on this machine. An error is the
    /// answer that refuses it.
    async fn read<T: DeserializeOwned>(
        &self,
        request: Request<Body>,
    ) -> Result<(T, bool), Response> {
        let client = request.extensions().get::<RequestClient>();
        let is_near = client.is_some_and(|client| client.address.to_canonical().is_loopback());
        let received = self.bodies.read(request.into_body()).await;
        let received = received.map_err(IntoResponse::into_response)?;
        let Json(body) = Json::from_bytes(&received.bytes).map_err(IntoResponse::into_response)?;
        Ok((body, is_near))
    }

    /// Checks the location of a request.
    fn check(&self, options: &LocationOptions, is_near: bool) -> Result<(), BackupTaskError> {
        let bounds = &self.tasks.options().bounds;
        bounds.check_location(options, is_near)
    }

    fn start(&self, work: LongWork) -> Response {
        match self.tasks.start(work) {
            Ok(status) => Json(store::shown_task(status)).into_response(),
            Err(error) => error.into_response(),
        }
    }
}

/// Begins a backup. With an interval or a crontab line it makes or replaces the schedule of the
/// location, too. With `dry_run` it answers what a backup would send.
#[utoipa::path(
    post,
    path = "/api/v1/backups",
    request_body = BackupRequest,
    responses(
        (status = 200, description = "The backup has begun; its task. With dry_run, its plan", body = TaskStatus),
        (status = 400, description = "The request can't be carried out", body = String),
        (status = 403, description = "Out of the bounds of what requests may name", body = String),
        (status = 409, description = "A backup, a restore or a drill runs", body = String),
        (status = 502, description = "With dry_run: the location can't be used", body = String),
    ),
)]
async fn back_up(
    State(state): State<BackupRoutes>,
    request: Request<Body>,
) -> Result<Response, Response> {
    let (request, is_near) = state.read::<BackupRequest>(request).await?;
    let order = BackupOrder::of(&request).map_err(IntoResponse::into_response)?;
    let checked = state.check(&order.options, is_near);
    checked.map_err(IntoResponse::into_response)?;
    if request.dry_run {
        let plan = state.tasks.preview(order).await;
        let plan: BackupPreview = plan.map_err(IntoResponse::into_response)?;
        return Ok(Json(plan).into_response());
    }
    Ok(state.start(LongWork::BackUp(Box::new(order))))
}

/// Returns the schedules, the last results by location, and what runs.
#[utoipa::path(
    get,
    path = "/api/v1/backups",
    responses((status = 200, description = "Schedules and results", body = BackupsStatus)),
)]
async fn status(State(state): State<BackupRoutes>) -> Json<BackupsStatus> {
    Json(state.tasks.status())
}

/// Removes a schedule. A backup that runs goes on.
#[utoipa::path(
    delete,
    path = "/api/v1/backups/schedules/{id}",
    params(("id" = String, Path, description = "The id of the schedule")),
    responses(
        (status = 200, description = "The schedule that was removed", body = BackupScheduleStatus),
        (status = 404, description = "No such schedule", body = String),
    ),
)]
async fn remove_schedule(
    State(state): State<BackupRoutes>,
    Path(id): Path<String>,
) -> Result<Json<BackupScheduleStatus>, BackupTaskError> {
    state.tasks.remove_schedule(&id).map(Json)
}

/// Begins a restore of a point, or of some of its tables, next to the tables that are there.
#[utoipa::path(
    post,
    path = "/api/v1/restores",
    request_body = RestoreRequest,
    responses(
        (status = 200, description = "The restore has begun; its task", body = TaskStatus),
        (status = 400, description = "The request can't be carried out", body = String),
        (status = 403, description = "Out of the bounds of what requests may name", body = String),
        (status = 409, description = "A backup, a restore or a drill runs", body = String),
    ),
)]
async fn restore(
    State(state): State<BackupRoutes>,
    request: Request<Body>,
) -> Result<Response, Response> {
    let (request, is_near) = state.read::<RestoreRequest>(request).await?;
    let order = RestoreOrder::of(request).map_err(IntoResponse::into_response)?;
    let checked = state.check(&order.options, is_near);
    checked.map_err(IntoResponse::into_response)?;
    Ok(state.start(LongWork::Restore(Box::new(order))))
}

/// Begins a drill: a point is restored into a scratch directory and compared.
#[utoipa::path(
    post,
    path = "/api/v1/drills",
    request_body = DrillRequest,
    responses(
        (status = 200, description = "The drill has begun; its task", body = TaskStatus),
        (status = 400, description = "The request can't be carried out", body = String),
        (status = 403, description = "Out of the bounds of what requests may name", body = String),
        (status = 409, description = "A backup, a restore or a drill runs", body = String),
    ),
)]
async fn drill(
    State(state): State<BackupRoutes>,
    request: Request<Body>,
) -> Result<Response, Response> {
    let (request, is_near) = state.read::<DrillRequest>(request).await?;
    let order = DrillOrder::of(&request).map_err(IntoResponse::into_response)?;
    let checked = state.check(&order.options, is_near);
    checked.map_err(IntoResponse::into_response)?;
    Ok(state.start(LongWork::Drill(Box::new(order))))
}

/// Begins a local snapshot: a data directory of hard links, on the file system of the data.
#[utoipa::path(
    post,
    path = "/api/v1/snapshots",
    request_body = LocalSnapshotRequest,
    responses(
        (status = 200, description = "The snapshot has begun; its task", body = TaskStatus),
        (status = 403, description = "Out of the bounds of what requests may name", body = String),
        (status = 409, description = "A backup, a restore or a drill runs", body = String),
    ),
)]
async fn snapshot(
    State(state): State<BackupRoutes>,
    request: Request<Body>,
) -> Result<Response, Response> {
    let (request, is_near) = state.read::<LocalSnapshotRequest>(request).await?;
    let directory = PathBuf::from(request.directory);
    let bounds = &state.tasks.options().bounds;
    let checked = bounds.check_directory(&directory, is_near);
    checked.map_err(IntoResponse::into_response)?;
    Ok(state.start(LongWork::Snapshot(directory)))
}

impl IntoResponse for BackupTaskError {
    fn into_response(self) -> Response {
        let status = match &self {
            BackupTaskError::Wrong(_) => StatusCode::BAD_REQUEST,
            BackupTaskError::Forbidden(_) => StatusCode::FORBIDDEN,
            BackupTaskError::NoRoom(_) => StatusCode::INSUFFICIENT_STORAGE,
            BackupTaskError::Busy(_) => StatusCode::CONFLICT,
            BackupTaskError::NoSchedule(_) => StatusCode::NOT_FOUND,
            BackupTaskError::Location(_) | BackupTaskError::Cluster(_) => StatusCode::BAD_GATEWAY,
            BackupTaskError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            BackupTaskError::Storage(_)
            | BackupTaskError::File { .. }
            | BackupTaskError::Differs(_)
            | BackupTaskError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, self.to_string()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_none_changes_by_get() {
        let document: serde_json::Value = serde_json::from_str(&DESCRIPTION).unwrap();
        for row in table() {
            let path = &document["paths"][row.path()];
            assert!(path.is_object(), "{}", row.path());
            assert!(row.is_private(), "{}", row.path());
            let is_read = row.method() == MethodFilter::GET;
            assert_eq!(row.right() == RequiredRight::See, is_read, "{}", row.path());
        }
        let schemas = &document["components"]["schemas"];
        for name in [
            "BackupRequest",
            "RestoreRequest",
            "BackupsStatus",
            "TaskStatus",
        ] {
            assert!(schemas[name].is_object(), "{name}");
        }
    }

    #[test]
    fn refusals_have_their_status() {
        for (error, status) in [
            (BackupTaskError::Busy("drill"), 409),
            (BackupTaskError::Wrong("why".to_owned()), 400),
            (BackupTaskError::Forbidden("why".to_owned()), 403),
            (BackupTaskError::NoRoom("why".to_owned()), 507),
            (BackupTaskError::NoSchedule("id".to_owned()), 404),
            (BackupTaskError::Internal("why".to_owned()), 500),
        ] {
            assert_eq!(error.into_response().status(), status);
        }
    }
}
