//! The HTTP API (contract, section 1): the index service's rows of the table of routes.
//!
//! The server is `http_server`. Every listener serves the same routes. It has its own budgets of
//! searches and of answers, so users who overload one listener can't starve the database on
//! another. A database in the same process has its own way here ([`InProcessStore`]). A listener
//! with a certificate speaks HTTPS and HTTP on one port; searches in clear are then refused with
//! 403.
//!
//! The test hooks under `/api/internals` answer 404 unless they are switched on.

mod ann;
mod documentation;
mod error;
mod filter_values;
mod form;
mod health;
mod index_path;
mod internals;
mod listener;
mod local;
mod maintenance;
mod map;
mod no_tables;
mod openapi;
mod query_string;
pub(crate) mod quick_json;
mod recall;
mod repair;
mod request;
mod scrub;
mod state;
mod table;
mod tasks;
mod unknown_keys;
mod words;

use std::sync::Arc;

use ::tasks::TaskRegistry;
use http_server::{AddedRoutes, BodyLimits, MaintenanceMode, MetricsHistory, SessionFacts};
use unknown_keys::UnknownKeyCheck;

use crate::indexes::IndexEngine;
use crate::maps::IndexMaps;
use crate::options::ApiSocketOptions;
use crate::repair::{IndexSchedules, Repairs};
use crate::scrub::Scrubs;
use crate::search::{ConcurrencyBudget, VectorSearcher};

pub(crate) use listener::{BoundSocket, Listening, server_tls};
pub(crate) use local::InProcessStore;
pub(crate) use state::refresh_gauges;
pub use tasks::shown as shown_task;

/// The state that every request may read.
#[derive(Clone)]
pub(crate) struct ApiState {
    /// Every index.
    pub engine: Arc<IndexEngine>,
    /// Searches the indexes.
    pub searches: VectorSearcher,
    /// The values of the main metrics in the last hours.
    pub history: MetricsHistory,
    /// Long work.
    pub work: TaskRegistry,
    /// Repairs of indexes.
    pub repairs: Repairs,
    /// The schedules by which indexes are repaired without a request.
    pub schedules: IndexSchedules,
    /// The checks of files.
    pub scrubs: Scrubs,
    /// The maps of indexes.
    pub maps: IndexMaps,
    /// Whether no new searches are taken.
    pub maintenance: MaintenanceMode,
    /// The answer of `/api/v1/info`.
    pub info: Arc<store_api::types::Info>,
    /// Whether there are routes under `/api/internals`.
    pub internals: bool,
    /// The routes of a database in the same process, for its tables. Without them their paths are
    /// answered with the reason why there are none.
    pub of_database: Option<AddedRoutes>,
    /// The routes that the process around the service adds, whatever its database is.
    pub of_process: Vec<AddedRoutes>,
    /// The facts that a page of the process shows. Without them browsers can't log in.
    pub session: Option<SessionFacts>,
}

/// The state that the requests of one listener share.
type Shared = Arc<ListenerContext>;

/// The budgets and limits of a listener, and the state of the service.
pub(crate) struct ListenerContext {
    api: ApiState,
    /// The budget of searches.
    admissions: ConcurrencyBudget,
    /// The bounds of bodies.
    bodies: BodyLimits,
    /// The most bytes of a body.
    body_bytes_max: usize,
    /// The keys of searches that the service does not know.
    keys: UnknownKeyCheck,
}

impl ListenerContext {
    fn new(api: ApiState, options: &ApiSocketOptions) -> ListenerContext {
        let bodies = BodyLimits::new(
            options.bodies_bytes_max,
            options.body_bytes_max,
            options.body_timeout,
        );
        ListenerContext {
            api,
            admissions: ConcurrencyBudget::new(options.searches_max, options.search_wait_max),
            bodies,
            body_bytes_max: options.body_bytes_max,
            keys: UnknownKeyCheck::new(options.unknown_keys),
        }
    }
}

/// The OpenAPI document, as text.
pub fn openapi() -> String {
    openapi::text()
}

#[cfg(test)]
mod tests;
