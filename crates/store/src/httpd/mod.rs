//! The HTTP API (contract, section 1).
//!
//! Every listener serves the same routes. It has its own budgets of searches and of answers, so
//! users who overload one listener can't starve the database behind another. A database in the same
//! process has a door of its own ([`LocalDoor`]). A listener with a certificate speaks HTTPS and
//! HTTP on one port; searches in clear are then refused with 403.
//!
//! Text indexes are not implemented: every name is missing for `bm25` and `highlight`. The test
//! hooks under `/api/internals` answer 404 unless they are switched on.

mod ann;
mod answer_budget;
mod connection;
mod crowd;
mod entry;
mod error;
mod filter_values;
mod form;
mod front;
mod guard;
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
mod routes;
mod scrub;
mod table;
mod tasks;
mod unknown_keys;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::tasks::Registry;
use answer_budget::AnswerBudget;
use client_memory::Budget;
use http_server::Authorizer;
use tokio_util::sync::CancellationToken;
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
    /// Checks logins; `None` lets everybody in.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

/// The state that the requests of one listener share.
type Shared = Arc<Listener>;

/// The budgets and limits of a listener, and the state of the service.
struct Listener {
    api: Api,
    /// The address at which it listens.
    address: SocketAddr,
    /// The budget of searches.
    admissions: Admissions,
    /// The budget of bytes of answers that are on their way.
    answers: AnswerBudget,
    /// The budget of bytes of bodies that are on their way.
    bodies: Budget,
    /// The most bytes that a body may have.
    body_bytes_max: usize,
    /// The longest time that a body may take to arrive.
    body_timeout: Duration,
    /// The keys of searches that the service does not know.
    keys: KeysMet,
    /// Cancelled when the listener stops. A request that waits for a task is then answered with the
    /// task's present state.
    stop: CancellationToken,
}

impl Listener {
    fn new(
        api: Api,
        address: SocketAddr,
        options: &ListenerOptions,
        answers: AnswerBudget,
        stop: CancellationToken,
    ) -> Listener {
        Listener {
            api,
            address,
            admissions: Admissions::new(options.searches_max, options.search_wait_max),
            answers,
            bodies: Budget::new(options.bodies_bytes_max),
            body_bytes_max: options.body_bytes_max,
            body_timeout: options.body_timeout,
            keys: KeysMet::new(options.unknown_keys),
            stop,
        }
    }
}

/// The OpenAPI document, as text.
pub fn openapi() -> String {
    openapi::text()
}

#[cfg(test)]
mod tests;
