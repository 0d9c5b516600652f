//! The requests of clients with statements: read, planned, executed, and noted in the audit log and
//! in traces. [`StatementService`] is the service that answers the connections of
//! [`crate::server`], and those of clients by other ways than the native protocol
//! ([`RequestSessions`]); [`InternalExecutor`] has statements of the process itself.

mod audited;
mod convert;
mod counts;
mod events;
mod in_process;
mod local;
mod parsing;
mod prepared;
mod redaction;
mod statements;
mod traced;
mod values;
mod weight;

pub use counts::statement_families;
pub(crate) use in_process::{RequestSessions, SessionClient, StatementSession};
pub use local::InternalExecutor;
pub(crate) use statements::StatementService;
