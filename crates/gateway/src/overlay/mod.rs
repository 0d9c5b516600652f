//! The overlay over Cassandra's own answers: the indexes that gateways keep, and the tables of
//! ScyllaDB that an index service reads.
//!
//! No code here queries the cluster. The text of a statement shows what it concerns
//! (`crate::statement`):
//!
//! - a SELECT of [ScyllaDB's tables](rewrite) goes to the node as a SELECT of the tables that
//!   replace them;
//! - a [poll of a change log](log_read) is answered without the node while the table is idle;
//! - a SELECT of [`system_schema.indexes`](indexes) and a [DESCRIBE](describe) go to the node as
//!   they are, and rows of the gateways' indexes are added to its answer;
//! - for the definition of such an index, the node first gets a probe whose answer shows whether
//!   the client may make it, and then the catalog carries it out;
//! - for a [change of a table](alter) that would break its indexes, and for an index of
//!   Cassandra's own under the [name](names) of one of these, the node gets the same probe, and
//!   then the statement is refused.

mod alter;
pub(crate) mod describe;
pub(crate) mod indexes;
pub(crate) mod log_read;
mod names;
pub(crate) mod refusal;
pub(crate) mod rewrite;
