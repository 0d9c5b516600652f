//! The check of logins before a handler, on listeners that have an authorizer.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_server::{Refusal, RequestOrigin, RequiredRight};

use super::Shared;
use super::error::ApiError;

/// The client of a request, which stands among the request's extensions.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The address of the client.
    pub address: IpAddr,
    /// The identity that it has proved by a certificate.
    pub identity: Option<Arc<str>>,
}

/// Checks a request of a route behind the router.
pub async fn admit_routed(
    State((shared, need)): State<(Shared, RequiredRight)>,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let part = |name| {
        let mut params = params.iter();
        let found = params.find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    };
    let caller = request.extensions().get();
    let (keyspace, index) = (part("keyspace"), part("index"));
    let admitted = admit(&shared, need, keyspace, index, request.headers(), caller);
    match admitted.await {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

/// Checks a request by its headers. Without an authorizer all are let in.
pub async fn admit(
    shared: &Shared,
    need: RequiredRight,
    keyspace: &str,
    index: &str,
    headers: &HeaderMap,
    caller: Option<&Caller>,
) -> Result<(), ApiError> {
    let (Some(authorizer), Some(operation)) =
        (&shared.api.authorizer, need.operation(keyspace, index))
    else {
        return Ok(());
    };
    let Some(caller) = caller else {
        return Err(ApiError::Internal(
            "bug: a request without a client".to_owned(),
        ));
    };
    let authorization = headers.get(AUTHORIZATION);
    // One that is no text is wrong, not absent: a certificate must not stand in for it.
    let authorization = authorization.map(|value| value.to_str().unwrap_or_default());
    let origin = RequestOrigin {
        authorization,
        identity: caller.identity.as_deref(),
        client: caller.address,
        listener: shared.address.ip(),
    };
    let admitted = authorizer.admit(origin, operation).await;
    admitted.map_err(|refusal| match refusal {
        Refusal::Login(text) => ApiError::NoLogin(text),
        Refusal::Token(text) => ApiError::NoToken(text),
        Refusal::Right(text) => ApiError::NoRight(text),
        Refusal::Busy(text) => ApiError::LoginsWait(text),
    })
}
