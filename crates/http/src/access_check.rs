//! The check of rights before a handler, on listeners that have an [`Authorizer`].

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;

use crate::access::{AuthorizationRefusal, Authorizer, ClientLogin, RequestOrigin, RequiredRight};
use crate::browser_sessions::BrowserSessions;
use crate::refusal::{RefusalAnswer, RequestRefusal};

/// The client of a request, one of the request's extensions.
#[derive(Clone, Debug)]
pub struct RequestClient {
    /// The address of the client.
    pub address: IpAddr,
    /// The identity that it has proved by a certificate.
    pub identity: Option<Arc<str>>,
}

/// The check of the requests to one listener.
#[derive(Clone)]
pub(crate) struct AccessCheck {
    /// Checks the requests; `None` lets all in.
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    /// The address of the listener.
    pub(crate) listener: IpAddr,
    /// The sessions of its browsers.
    pub(crate) sessions: Arc<BrowserSessions>,
}

/// The check of the requests of one route of the router.
#[derive(Clone)]
pub(crate) struct RouteCheck {
    pub(crate) check: AccessCheck,
    pub(crate) right: RequiredRight,
    pub(crate) refused: RefusalAnswer,
}

impl AccessCheck {
    /// Checks a request by its headers. Without an authorizer all are let in.
    pub(crate) async fn admit(
        &self,
        right: RequiredRight,
        (keyspace, index): (&str, &str),
        headers: &HeaderMap,
        client: Option<&RequestClient>,
    ) -> Result<(), RequestRefusal> {
        let (Some(authorizer), Some(operation)) =
            (&self.authorizer, right.operation(keyspace, index))
        else {
            return Ok(());
        };
        let origin = self.origin(headers, client)?;
        let admitted = authorizer.admit(origin, operation).await;
        admitted.map_err(refusal)
    }

    /// The login of the client of a request, by its headers.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        client: Option<&RequestClient>,
    ) -> Result<ClientLogin, RequestRefusal> {
        let Some(authorizer) = &self.authorizer else {
            return Ok(ClientLogin::NOT_NEEDED);
        };
        let origin = self.origin(headers, client)?;
        authorizer.identify(origin).await.map_err(refusal)
    }

    fn origin<'a>(
        &self,
        headers: &'a HeaderMap,
        client: Option<&'a RequestClient>,
    ) -> Result<RequestOrigin<'a>, RequestRefusal> {
        let Some(client) = client else {
            return Err(RequestRefusal::Internal(
                "bug: a request without a client".to_owned(),
            ));
        };
        let authorization = headers.get(AUTHORIZATION);
        Ok(RequestOrigin {
            // One that is no text is wrong, not absent: a certificate must not replace it.
            authorization: authorization.map(|value| value.to_str().unwrap_or_default()),
            identity: client.identity.as_deref(),
            client: client.address,
            listener: self.listener,
        })
    }
}

fn refusal(refusal: AuthorizationRefusal) -> RequestRefusal {
    match refusal {
        AuthorizationRefusal::Login(text) => RequestRefusal::NoLogin(text),
        AuthorizationRefusal::Token(text) => RequestRefusal::NoToken(text),
        AuthorizationRefusal::Right(text) => RequestRefusal::NoRight(text),
        AuthorizationRefusal::Busy(text) => RequestRefusal::LoginsWait(text),
    }
}

/// Checks a request of a route of the router.
pub(crate) async fn admit_routed(
    State(route): State<RouteCheck>,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let part = |name| {
        let mut params = params.iter();
        let found = params.find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    };
    let names = (part("keyspace"), part("index"));
    route.admit(names, request, next).await
}

/// Checks a request that no route is for.
pub(crate) async fn admit_unrouted(
    State(route): State<RouteCheck>,
    request: Request,
    next: Next,
) -> Response {
    route.admit(("", ""), request, next).await
}

impl RouteCheck {
    async fn admit(&self, names: (&str, &str), request: Request, next: Next) -> Response {
        let (right, client) = (self.right, request.extensions().get());
        let admitted = self.check.admit(right, names, request.headers(), client);
        match admitted.await {
            Ok(()) => next.run(request).await,
            Err(refusal) => (self.refused)(refusal),
        }
    }
}
