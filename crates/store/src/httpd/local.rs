//! Searches of a CQL node in the same process, without a socket or HTTP between.
//!
//! Two hops over sockets and HTTP on either side cost as much processor time as half a search (docs/benchmarks/serving-by-call.md).
//! What they come to is the same: the budget is one of its own, as that of a listener, and errors read alike.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::IntoResponse;
use futures::future::BoxFuture;
use store_api::types::AnnRequest;
use store_api::{ClientError, LocalStore};
use uuid::Uuid;

use super::admission::Admissions;
use super::error::ApiError;
use super::{Api, ann};
use crate::found::Found;
use crate::identity::IndexName;
use crate::options::ListenerOptions;

/// The statement that creates an index waits no longer for it: drivers give a statement ten seconds.
const CREATED_WITHIN: Duration = Duration::from_secs(5);

/// The door for the node. It is there before the service is, as an address is, so that either may start first.
#[derive(Default)]
pub struct LocalDoor {
    open: OnceLock<Open>,
}

struct Open {
    api: Api,
    admissions: Admissions,
}

impl LocalDoor {
    /// Opens it, with a budget as listeners have by default.
    pub fn open(&self, api: Api) {
        let admissions = Admissions::new(
            ListenerOptions::SEARCHES_MAX,
            ListenerOptions::SEARCH_WAIT_MAX,
        );
        if self.open.set(Open { api, admissions }).is_err() {
            unreachable!("a service starts once");
        }
    }
}

impl LocalStore for LocalDoor {
    fn search<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        vector: Vec<f32>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let open = self.open.get().ok_or(ClientError::Unavailable)?;
            let name = IndexName {
                keyspace: keyspace.to_owned(),
                index: index.to_owned(),
            };
            open.search(name, vector, limit).await.map_err(refused)
        })
    }

    fn created<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        version: Uuid,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(open) = self.open.get() else {
                return;
            };
            let name = IndexName {
                keyspace: keyspace.to_owned(),
                index: index.to_owned(),
            };
            let serves = open.api.engine.serves(&name, version);
            // A large table takes longer, and says so to who searches it.
            let _ = tokio::time::timeout(CREATED_WITHIN, serves).await;
        })
    }
}

impl Open {
    async fn search(
        &self,
        name: IndexName,
        vector: Vec<f32>,
        limit: usize,
    ) -> Result<Bytes, ApiError> {
        let limit = NonZeroUsize::new(limit)
            .ok_or_else(|| ApiError::Unprocessable("the limit is zero".to_owned()))?;
        let search = AnnRequest {
            vector,
            limit,
            filter: None,
        };
        let admission = self.admissions.take(None, self.api.engine.metrics())?;
        let write = |found: Found<'_>| Ok(found.binary());
        ann::search(&self.api, name, search, admission, write).await
    }
}

/// What a client over HTTP would make of it.
fn refused(error: ApiError) -> ClientError {
    match error {
        ApiError::NodeBootstrapping => ClientError::Unavailable,
        ApiError::Overloaded | ApiError::AnswersWait | ApiError::BodiesWait => {
            ClientError::overloaded(error.to_string())
        }
        error => {
            let message = error.to_string();
            ClientError::of_answer(error.into_response().status(), message)
        }
    }
}
