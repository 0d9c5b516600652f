//! `/api/v1/session`: what a page has to know of the server before it shows anything, and the login
//! and the logout of browsers ([`crate::browser_sessions`]).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::access::{ClientLogin, LoginKind};
use crate::access_check::{AccessCheck, RequestClient};
use crate::browser_sessions::{AUTHORIZATION_BYTES_MAX, AdoptedSession};
use crate::failure::RouteFailure;
use crate::guard::check_guard;
use crate::refusal::RequestRefusal;

/// The path of the routes.
pub(crate) const SESSION: &str = "/api/v1/session";

/// A document of OpenAPI that describes the routes, as JSON.
pub const SESSION_DESCRIPTION: &str = include_str!("session_routes.json");

/// The facts about a server that a page shows, and chooses its views by.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// The command that runs: `serve`, `store` or `gateway`.
    pub program: &'static str,
    /// The version of the program.
    pub version: String,
    /// The address for drivers; `None` where there is none.
    pub cql: Option<SocketAddr>,
    /// The parts of the API that the listener has.
    pub features: ServedFeatures,
}

/// The parts of the API that a listener has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedFeatures {
    /// Statements of CQL.
    pub cql: bool,
    /// Tables: their schema and rows.
    pub tables: bool,
    /// Searches of indexes.
    pub search: bool,
    /// The state of indexes, and work on them.
    pub indexes: bool,
    /// Embeddings of texts.
    pub embeddings: bool,
    /// The film sample.
    pub sample: bool,
    /// Backups.
    pub backups: bool,
    /// Long work.
    pub tasks: bool,
    /// Metrics and their history.
    pub metrics: bool,
    /// The settings of the process.
    pub settings: bool,
}

impl ServedFeatures {
    fn json(self) -> Value {
        json!({
            "cql": self.cql,
            "tables": self.tables,
            "search": self.search,
            "indexes": self.indexes,
            "embeddings": self.embeddings,
            "sample": self.sample,
            "backups": self.backups,
            "tasks": self.tasks,
            "metrics": self.metrics,
            "settings": self.settings,
        })
    }
}

/// The state that the handlers read.
#[derive(Clone)]
pub(crate) struct SessionRoutes {
    /// Knows how clients log in, and the sessions.
    pub(crate) check: AccessCheck,
    pub(crate) facts: Arc<SessionFacts>,
}

impl SessionRoutes {
    /// The login of a request. A session whose login is refused ends.
    async fn login(&self, parts: &Parts) -> Result<ClientLogin, RequestRefusal> {
        let client = parts.extensions.get::<RequestClient>();
        let login = self.check.identify(&parts.headers, client).await?;
        if !login.is_logged_in
            && let Some(AdoptedSession(key)) = parts.extensions.get::<AdoptedSession>()
        {
            self.check.sessions.end(key);
        }
        Ok(login)
    }

    /// The answer of all these routes. No copy of it is of use later. Who has yet to log in learns
    /// how, and neither the version nor an address.
    fn shown(&self, login: &ClientLogin) -> Response {
        let kind = match login.kind {
            LoginKind::Nothing => "none",
            LoginKind::Password => "password",
            LoginKind::Token => "token",
        };
        let is_let_in = login.is_logged_in || login.kind == LoginKind::Nothing;
        let facts = &self.facts;
        let http = SocketAddr::new(self.check.listener, self.check.sessions.port());
        let body = Json(json!({
            "program": facts.program,
            "version": is_let_in.then_some(&facts.version),
            "login": kind,
            "logged_in": login.is_logged_in,
            "role": login.role,
            "superuser": login.is_superuser,
            "features": facts.features.json(),
            "cql": facts.cql.filter(|_| is_let_in),
            "http": is_let_in.then_some(http),
        }));
        let no_store = HeaderValue::from_static("no-store");
        ([(CACHE_CONTROL, no_store)], body).into_response()
    }

    /// Ends the sessions that the cookies of a request name.
    fn end(&self, parts: &Parts) {
        let sessions = &self.check.sessions;
        for key in sessions.keys_of(&parts.headers) {
            sessions.end(&key);
        }
    }

    /// Begins a session with the login of a request, which was let in.
    fn begin(&self, parts: &Parts, login: &ClientLogin) -> Result<Response, RouteFailure> {
        let authorization = parts.headers.get(AUTHORIZATION);
        let authorization = match (login.kind, authorization) {
            (LoginKind::Nothing, _) => {
                return Err(RouteFailure::new(
                    StatusCode::BAD_REQUEST,
                    "this server needs no login",
                    "send requests without one",
                ));
            }
            (_, Some(value)) if login.is_logged_in && value.len() <= AUTHORIZATION_BYTES_MAX => {
                value.clone()
            }
            _ => {
                return Err(RouteFailure::new(
                    StatusCode::BAD_REQUEST,
                    "a session begins with a login in the header Authorization, of 4 KiB at most",
                    "send Authorization: Basic with a role's name and password, or Bearer with a token",
                ));
            }
        };
        self.end(parts);
        let sessions = &self.check.sessions;
        let id = sessions.begin(authorization, Instant::now());
        let cookie = id.and_then(|id| sessions.cookie(&id));
        let cookie = cookie.ok_or_else(|| {
            RouteFailure::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "no session could be made: the system has no random bytes",
                "look at the log of the system",
            )
        })?;
        let mut response = self.shown(login);
        response.headers_mut().insert(SET_COOKIE, cookie);
        Ok(response)
    }
}

/// Says what the server is, and whether this client has logged in.
pub(crate) async fn show(
    State(routes): State<SessionRoutes>,
    request: Request,
) -> Result<Response, RequestRefusal> {
    let (parts, _) = request.into_parts();
    let login = routes.login(&parts).await?;
    Ok(routes.shown(&login))
}

/// Begins a session.
pub(crate) async fn log_in(
    State(routes): State<SessionRoutes>,
    request: Request,
) -> Result<Response, Response> {
    let (parts, _) = request.into_parts();
    check_guard(&parts.headers).map_err(IntoResponse::into_response)?;
    let login = routes.login(&parts).await;
    let login = login.map_err(IntoResponse::into_response)?;
    let begun = routes.begin(&parts, &login);
    begun.map_err(IntoResponse::into_response)
}

/// Ends a session.
pub(crate) async fn log_out(
    State(routes): State<SessionRoutes>,
    request: Request,
) -> Result<Response, Response> {
    let (mut parts, _) = request.into_parts();
    check_guard(&parts.headers).map_err(IntoResponse::into_response)?;
    routes.end(&parts);
    // The login of the session was put into the request before it came here.
    if parts.extensions.get::<AdoptedSession>().is_some() {
        parts.headers.remove(AUTHORIZATION);
    }
    let login = routes.login(&parts).await;
    let login = login.map_err(IntoResponse::into_response)?;
    let mut response = routes.shown(&login);
    if let Some(cookie) = routes.check.sessions.no_cookie() {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}
