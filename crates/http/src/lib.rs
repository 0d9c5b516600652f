//! The one HTTP server. `annulus serve`, `annulus store` and `annulus gateway` start it, each with
//! rows of its own in a table of routes ([`RouteTable`]).
//!
//! ```text
//!   socket --> listener --> connection --> front --> a row's handler
//!              limit of     TLS, time      names and origins,
//!              connections  limits         the right of the row,
//!                                          bytes of the answer
//! ```
//!
//! - **A listener** ([`BoundHttpListener`], [`ServedHttpListener`]) has its own budgets, so clients
//!   who overload one can't starve those of another. It may be bound and answer some routes long
//!   before its program has started. Its certificate and its names can change while it is served.
//!   With a certificate it speaks HTTPS and HTTP on one port, and refuses private routes in clear.
//! - **A row** ([`RouteRow`]) is a path, a method, the right that it needs and a handler with its
//!   state. What an answer says is the concern of those who add the row. One row may go past the
//!   router ([`DirectRoute`]).
//! - **Rights** are checked by an [`Authorizer`] before a handler: by tokens ([`TokenAuthorizer`])
//!   or by the logins of a database. A route that needs [`RequiredRight::Nothing`] is open.
//! - **Browsers** log in once ([`RouteTable::with_session`]), and are then let in by a cookie with
//!   the header of the guard ([`check_guard`]), which pages of other origins can't send. Each of
//!   their requests is checked like one that bears the login itself.
//! - **Bodies** are read within [`BodyLimits`], by the handlers that take one.
//! - **Refusals** of the server itself are values ([`RequestRefusal`]).
//! - **Maintenance** ([`MaintenanceMode`]) has a program finish its requests and begin no others.
//! - **Metrics** of all parts of a program are families of one [`MetricsRegistry`]. The values of
//!   the main ones in the last hours are remembered ([`MetricsHistory`]).

#![warn(clippy::unwrap_used)]

mod access;
mod access_check;
mod answer_budget;
mod body;
mod browser_sessions;
mod connection;
mod connections;
mod failure;
mod foreign_metrics;
mod front;
mod guard;
pub mod health;
mod history;
mod host_rules;
mod listener;
mod maintenance;
mod metrics;
mod options;
mod refusal;
mod routes;
mod session_routes;
mod tokens;
mod traffic;

pub use access::{
    AuthorizationRefusal, Authorizer, ClientLogin, LoginKind, RequestOrigin, RequestedOperation,
    RequiredRight,
};
pub use access_check::RequestClient;
pub use body::{BodyLimits, ReceivedBody};
pub use failure::RouteFailure;
pub use foreign_metrics::{ReadCounts, ReadValues};
pub use guard::{check_guard, is_guarded};
pub use history::{MAIN_FAMILIES, MetricsHistory};
pub use listener::{BoundHttpListener, ServedHttpListener, server_tls};
pub use maintenance::{BorrowedWork, InMaintenance, MaintenanceMode, WorkInProgress};
pub use metrics::{FamilyDescription, MetricsRegistry, OlderName};
pub use options::{ConnectionLimits, HttpListenerOptions, OverflowPolicy};
pub use refusal::{RefusalAnswer, RequestRefusal};
pub use routes::{AddedRoutes, DirectRoute, NoDirectRoute, RouteRow, RouteTable};
pub use session_routes::{SESSION_DESCRIPTION, ServedFeatures, SessionFacts};
pub use tokens::{TokenAuthorizer, TokenSet, first_token};
pub use traffic::HttpTraffic;
