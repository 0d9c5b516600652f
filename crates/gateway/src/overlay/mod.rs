//! The overlay over Cassandra's own answers: the vector indexes, and the tables of ScyllaDB that an
//! index service reads.
//!
//! No code here asks the cluster. The text of a statement shows what it concerns:
//!
//! - a SELECT of [ScyllaDB's tables](rewrite) goes to the node as a SELECT of the tables that stand
//!   in for them;
//! - a [poll of a change log](log_read) is answered without the node while the table is idle;
//! - a SELECT of [`system_schema.indexes`](indexes) and a [DESCRIBE](describe) go to the node as
//!   they are, and rows of vector indexes are added to its answer;
//! - for the definition of a vector index, the node first gets a probe whose answer shows whether
//!   the client may make it, and then the catalog carries it out;
//! - for a [change of a table](alter) that would break its vector indexes, and for an index of
//!   Cassandra's own under the [name](names) of a vector index, the node gets the same probe, and
//!   then the statement is refused.

mod alter;
pub(crate) mod describe;
pub(crate) mod indexes;
pub(crate) mod log_read;
mod names;
pub(crate) mod refusal;
pub(crate) mod rewrite;

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{Metadata, Values};

use self::describe::Description;
use self::indexes::{IndexRows, IndexesRead};
use self::refusal::Refusal;
use crate::catalog::{IndexStatement, Snapshot};
use crate::recognise::{Verb, contains_in_any_case};

/// A statement that concerns vector indexes.
#[derive(Clone, Debug)]
pub(crate) enum Concern {
    /// The statement creates or drops a vector index.
    Define(Arc<IndexStatement>),
    /// The statement reads `system_schema.indexes`.
    Indexes(Arc<IndexesRead>),
    /// The statement is a DESCRIBE, which may have to show vector indexes.
    Describe(Arc<Description>),
    /// The statement would take away a column that a vector index needs, or the name of one.
    Refuse(Arc<Refusal>),
}

/// A prepared statement that concerns vector indexes.
#[derive(Clone, Debug)]
pub(crate) struct PreparedConcern {
    /// The statement.
    pub(crate) concern: Concern,
    /// The columns of its result, if it has some.
    pub(crate) columns: Option<Arc<Metadata>>,
}

/// The use of the node's answer to such a statement or to its probe.
#[derive(Clone, Debug)]
pub(crate) enum Answering {
    /// The definition is carried out, unless the answer says that the client may not make it.
    Define(Arc<IndexStatement>),
    /// Rows of vector indexes are added to the answer.
    Indexes(Box<IndexRows>),
    /// Descriptions of vector indexes are added to the answer.
    Describe(Arc<Description>),
    /// The statement is refused. If the node says that the client may not make the change, the
    /// client gets the node's answer.
    Refuse(Arc<Refusal>),
}

impl Concern {
    /// Looks at a statement; `None` if it does not concern vector indexes.
    ///
    /// # Errors
    /// If the statement defines a vector index that cannot be.
    pub(crate) fn of(
        verb: Verb,
        text: &str,
        keyspace_in_use: Option<&str>,
        snapshot: &Snapshot,
    ) -> Result<Option<Concern>, CqlError> {
        let holds = |word: &[u8]| contains_in_any_case(text.as_bytes(), word);
        Ok(match verb {
            Verb::Create if holds(b"index") => {
                let ours = match holds(b"vector_index") {
                    true => IndexStatement::read(text, keyspace_in_use, snapshot)?,
                    false => None,
                };
                match ours {
                    Some(statement) => Some(Concern::Define(Arc::new(statement))),
                    None if snapshot.is_empty() => None,
                    None => Refusal::of_create(text, keyspace_in_use, snapshot)
                        .map(|refusal| Concern::Refuse(Arc::new(refusal))),
                }
            }
            Verb::Drop if !snapshot.is_empty() && holds(b"index") => {
                IndexStatement::read(text, keyspace_in_use, snapshot)?
                    .map(|statement| Concern::Define(Arc::new(statement)))
            }
            // The text alone decides here, so that a prepared statement need not be prepared again
            // for each new index.
            Verb::Select if holds(b"indexes") => IndexesRead::read(text, keyspace_in_use)
                .map(|read| Concern::Indexes(Arc::new(read))),
            Verb::Describe if !snapshot.all_indexes().is_empty() => {
                Description::read(text, keyspace_in_use)
                    .map(|description| Concern::Describe(Arc::new(description)))
            }
            Verb::Alter if !snapshot.is_empty() && (holds(b"drop") || holds(b"rename")) => {
                Refusal::of_alter(text, keyspace_in_use, snapshot)
                    .map(|refusal| Concern::Refuse(Arc::new(refusal)))
            }
            _ => None,
        })
    }

    /// The use of the node's answer to the statement with these values. `columns` are those of the
    /// prepared statement.
    pub(crate) fn answering(
        &self,
        values: &Values,
        columns: Option<&Arc<Metadata>>,
        snapshot: &Snapshot,
    ) -> Answering {
        match self {
            Concern::Define(statement) => Answering::Define(statement.clone()),
            Concern::Describe(description) => Answering::Describe(description.clone()),
            Concern::Refuse(refusal) => Answering::Refuse(refusal.clone()),
            Concern::Indexes(read) => {
                Answering::Indexes(Box::new(read.rows(values, columns.cloned(), snapshot)))
            }
        }
    }
}
