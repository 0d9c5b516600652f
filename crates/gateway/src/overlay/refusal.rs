//! Refusals of changes of the schema that conflict with a vector index. Cassandra knows nothing of
//! the index, so it would make them.

use cql::error::CqlError;
use cql::wire::Response;

use crate::catalog::probe;

/// A change of a table that the gateway refuses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableChangeRefusal {
    /// The keyspace of the table.
    keyspace: String,
    /// The table that would be changed.
    table: String,
    /// The answer for a client that may change the table.
    pub(crate) answer: Response,
}

impl TableChangeRefusal {
    /// Refuses the change with an error.
    pub(crate) fn new(keyspace: &str, table: &str, error: CqlError) -> TableChangeRefusal {
        TableChangeRefusal {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            answer: Response::Error(error),
        }
    }

    /// Answers as if the change were made, since with IF NOT EXISTS there is nothing to do.
    pub(crate) fn in_silence(keyspace: &str, table: &str) -> TableChangeRefusal {
        TableChangeRefusal {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            answer: Response::Void,
        }
    }

    /// A statement whose answer shows whether the client may alter the table. If it may not, it
    /// gets that answer.
    pub(crate) fn probe(&self) -> String {
        probe(&self.keyspace, &self.table)
    }

    /// The text of the error, if there is one.
    #[cfg(test)]
    pub(crate) fn message(self) -> Option<String> {
        match self.answer {
            Response::Error(error) => Some(error.message),
            _ => None,
        }
    }
}
