//! The HTTP API (contract, section 1): the index service's rows of the table of routes.
//!
//! The server is `http_server`. Every listener serves the same routes. It has its own budgets of
//! searches and of answers, so users who overload one listener can't starve the database on
//! another. A database in the same process has a door of its own ([`LocalDoor`]). A listener with a
//! certificate speaks HTTPS and HTTP on one port; searches in clear are then refused with 403.
//!
//! Text indexes are not implemented: every name is missing for `bm25` and `highlight`. The test
//! hooks under `/api/internals` answer 404 unless they are switched on.

mod ann;
mod error;
mod filter_values;
mod form;
mod health;
mod index_path;
mod internals;
mod listener;
mod local;
mod openapi;
mod query;
pub(crate) mod quick_json;
mod repair;
mod request;
mod scrub;
mod state;
mod table;
mod tasks;
mod unknown_keys;

use std::sync::Arc;

use ::tasks::Registry;
use http_server::BodyLimits;
use unknown_keys::KeysMet;

use crate::indexes::Engine;
use crate::options::ListenerOptions;
use crate::repair::{Repairs, Schedules};
use crate::scrub::Scrubs;
use crate::search::{Admissions, SearchDoor};

pub use listener::{Bound, Listening, server_tls};
pub use local::LocalDoor;

/// The state that every request may read.
#[derive(Clone)]
pub struct Api {
    /// Every index.
    pub engine: Arc<Engine>,
    /// The door for searches.
    pub searches: SearchDoor,
    /// Long work.
    pub work: Registry,
    /// Repairs of indexes.
    pub repairs: Repairs,
    /// The schedules by which indexes are repaired without a request.
    pub schedules: Schedules,
    /// The checks of files.
    pub scrubs: Scrubs,
    /// The answer of `/api/v1/info`.
    pub info: Arc<store_api::types::Info>,
    /// Whether there are routes under `/api/internals`.
    pub internals: bool,
}

/// The state that the requests of one listener share.
type Shared = Arc<Listener>;

/// The budgets and limits of a listener, and the state of the service.
pub struct Listener {
    api: Api,
    /// The budget of searches.
    admissions: Admissions,
    /// The bounds of bodies.
    bodies: BodyLimits,
    /// The keys of searches that the service does not know.
    keys: KeysMet,
}

impl Listener {
    fn new(api: Api, options: &ListenerOptions) -> Listener {
        let bodies = BodyLimits::new(
            options.bodies_bytes_max,
            options.body_bytes_max,
            options.body_timeout,
        );
        Listener {
            api,
            admissions: Admissions::new(options.searches_max, options.search_wait_max),
            bodies,
            keys: KeysMet::new(options.unknown_keys),
        }
    }
}

/// The OpenAPI document, as text.
pub fn openapi() -> String {
    openapi::text()
}

#[cfg(test)]
mod tests;
