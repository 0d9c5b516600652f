//! The HTTP API (contract, section 1).
//!
//! Every listener serves the same routes and has its own budget of searches, so that users who
//! overload one can't starve the database behind another.
//!
//! Left out: TLS, text indexes (every name is missing for `bm25` and `highlight`), and the test
//! hooks under `/api/internals`, which answer 404. A search with restrictions is refused.

mod ann;
mod error;
mod openapi;
mod request;
mod routes;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::compute::Compute;
use crate::engine::Engine;
use crate::options::ListenerOptions;

/// What every request may read.
#[derive(Clone)]
pub struct Api {
    /// Every index.
    pub engine: Arc<Engine>,
    /// Where searches run.
    pub compute: Compute,
    /// What `/api/v1/info` answers.
    pub info: Arc<store_api::types::Info>,
}

/// What the requests of one listener share.
#[derive(Clone)]
struct Shared {
    api: Api,
    /// Searches that may still be taken in.
    admissions: Arc<Semaphore>,
}

/// The routes, for one listener.
pub fn router(api: Api, options: &ListenerOptions) -> Router {
    let index = "/api/v1/indexes/{keyspace}/{index}";
    Router::new()
        .route("/api/v1/status", get(routes::status))
        .route("/api/v1/info", get(routes::info))
        .route("/api/v1/indexes", get(routes::indexes))
        .route(index, get(routes::index))
        .route(&format!("{index}/status"), get(routes::index_status))
        .route(&format!("{index}/ann"), post(ann::ann))
        .route(&format!("{index}/bm25"), post(routes::no_text_index))
        .route(&format!("{index}/highlight"), post(routes::no_text_index))
        .route("/metrics", get(routes::metrics))
        .route("/api-docs/openapi.json", get(openapi::document))
        .layer(DefaultBodyLimit::max(options.body_bytes_max))
        .with_state(Shared {
            api,
            admissions: Arc::new(Semaphore::new(options.searches_max)),
        })
}

/// A socket that is bound but not yet served.
pub struct Bound {
    listener: TcpListener,
    options: ListenerOptions,
}

impl Bound {
    /// Binds a listener.
    pub async fn bind(options: ListenerOptions) -> io::Result<Bound> {
        Ok(Bound {
            listener: TcpListener::bind(options.address).await?,
            options,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the token is cancelled: then the socket is closed, and requests in flight are
    /// answered.
    pub async fn serve(self, api: Api, stop: CancellationToken) -> io::Result<()> {
        let router = router(api, &self.options);
        let listener = self.listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY");
            }
        });
        axum::serve(listener, router)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await
    }
}

/// The OpenAPI document, as text.
pub fn openapi() -> String {
    openapi::text()
}

#[cfg(test)]
mod tests;
