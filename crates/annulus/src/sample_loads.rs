//! `POST /api/v1/samples/movies`: loads the film sample into the running server, as a task.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::MethodFilter;
use http_server::{AddedRoutes, RequiredRight, RouteFailure, RouteRow, check_guard};
use node::InternalExecutor;
use store_api::types::TaskStatus;
use tasks::{Task, TaskRegistry, TaskScope, TaskSpec};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::sample::load_movies_as_task;

/// A load: its task, and what carries it out.
type RunningLoad = (Uuid, JoinHandle<()>);

/// The loads of the sample, of which one runs at a time.
#[derive(Clone)]
pub struct SampleLoads {
    database: InternalExecutor,
    tasks: TaskRegistry,
    /// The last load.
    running: Arc<Mutex<Option<RunningLoad>>>,
}

impl SampleLoads {
    /// Loads into this database, which these tasks show.
    pub fn new(database: InternalExecutor, tasks: TaskRegistry) -> SampleLoads {
        SampleLoads {
            database,
            tasks,
            running: Arc::default(),
        }
    }

    /// The row of the table of routes, with its description.
    pub fn routes(&self) -> AddedRoutes {
        let row: RouteRow<SampleLoads> =
            RouteRow::new(MethodFilter::POST, "/api/v1/samples/movies", load);
        let row = row.private().needs(RequiredRight::Operate);
        AddedRoutes {
            rows: vec![row.with_state(self.clone())],
            description: include_str!("sample_loads.json"),
        }
    }

    /// Begins a load.
    ///
    /// # Errors
    /// If one runs.
    fn start(&self) -> Result<TaskStatus, RouteFailure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let before = running.as_ref().and_then(|(id, _)| self.tasks.status(*id));
        if before.is_some_and(|task| !task.state.is_final()) {
            return Err(RouteFailure::new(
                StatusCode::CONFLICT,
                "the film sample is being loaded",
                "wait for the task of kind `sample` (GET /api/v1/tasks)",
            ));
        }
        let task = self.tasks.start(TaskSpec {
            kind: "sample",
            scope: TaskScope {
                keyspace: Some("samples".to_owned()),
                table: Some("movies".to_owned()),
                ..TaskScope::default()
            },
            units: "rows",
            total: None,
            counters: &[],
            abortable: true,
        });
        let (id, status) = (task.id(), store::shown_task(task.status()));
        *running = Some((id, tokio::spawn(run(self.database.clone(), task))));
        Ok(status)
    }

    /// Ends a load that runs. Rows that it has written stay.
    pub async fn stop(&self) {
        let running = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.take()
        };
        if let Some((_, load)) = running {
            load.abort();
            // It has ended in any case.
            let _ = load.await;
        }
    }
}

async fn run(database: InternalExecutor, task: Task) {
    let loaded = tokio::select! {
        () = task.aborted() => None,
        loaded = load_movies_as_task(&database, &task) => Some(loaded),
    };
    match loaded {
        None => task.stopped(),
        Some(Ok(())) => task.done(),
        Some(Err(error)) => {
            tracing::warn!(%error, "the film sample could not be loaded");
            task.failed(format!("{error:#}"));
        }
    }
}

/// Begins to load the film sample.
async fn load(
    State(loads): State<SampleLoads>,
    headers: HeaderMap,
) -> Result<Json<TaskStatus>, RouteFailure> {
    check_guard(&headers)?;
    loads.start().map(Json)
}
