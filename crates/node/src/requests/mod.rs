//! The requests of clients with statements: read, planned, executed, and noted in the audit log and
//! in traces. [`Statements`] is the service that answers the connections of [`crate::server`];
//! [`Local`] has statements of the process itself.

mod audited;
mod convert;
mod events;
mod local;
mod masked;
mod parsing;
mod prepared;
mod statements;
mod traced;
mod values;
mod weight;

pub use local::Local;
pub(crate) use statements::Statements;
