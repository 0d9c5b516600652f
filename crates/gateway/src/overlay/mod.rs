//! What Cassandra's own answers lack: the vector indexes, and the tables of ScyllaDB that an index service reads.
//!
//! Nothing here asks the cluster. What a statement is about is seen in its text, and then
//!
//! - a SELECT of [ScyllaDB's tables](rewrite) goes to the node as one of the tables that stand in for them;
//! - a [poll of a change log](log_read) of a table that is idle is not asked at all;
//! - a SELECT of [`system_schema.indexes`](indexes) and a [DESCRIBE](describe) go to the node as they are, and the rows of
//!   our indexes are added to its answer;
//! - a definition of a vector index goes to the node as a statement that says whether the client may, and is then carried out
//!   by the catalog;
//! - a [change of a table](alter) that would break its indexes, and an index of Cassandra's own under the [name](names) of one of
//!   ours, go to the node as the same statement, and are refused.

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

/// What a statement is about that concerns vector indexes.
#[derive(Clone, Debug)]
pub(crate) enum Concern {
    /// It defines one.
    Define(Arc<IndexStatement>),
    /// It reads the table that tells of them.
    Indexes(Arc<IndexesRead>),
    /// It describes what may have some.
    Describe(Arc<Description>),
    /// It takes something away that they need, or the name of one.
    Refuse(Arc<Refusal>),
}

/// The same of a prepared statement, with the columns of its result, if it has some.
#[derive(Clone, Debug)]
pub(crate) struct PreparedConcern {
    pub(crate) concern: Concern,
    pub(crate) columns: Option<Arc<Metadata>>,
}

/// What is done once the node has answered.
#[derive(Clone, Debug)]
pub(crate) enum Answering {
    /// The statement is carried out, unless the node says that the client may not.
    Define(Arc<IndexStatement>),
    /// Rows are added.
    Indexes(Box<IndexRows>),
    /// Descriptions are added.
    Describe(Arc<Description>),
    /// The statement is refused; if the node says that the client may not, in its words.
    Refuse(Arc<Refusal>),
}

impl Concern {
    /// What a statement is about; `None` if it is nothing that concerns vector indexes.
    ///
    /// # Errors
    /// If it defines one that cannot be.
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
            // Told from the text alone, so that one who prepared it need not prepare it again for each new index.
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

    /// What is to be done with the answer to such a statement with these values.
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
