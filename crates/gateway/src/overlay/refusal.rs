//! A change of the schema that is not made, because of a vector index that Cassandra knows nothing of.

use cql::error::CqlError;
use cql::wire::Response;

use crate::catalog::probe;

/// A change of a table that is not made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    keyspace: String,
    table: String,
    /// What the client is told, if it may change the table.
    pub(crate) answer: Response,
}

impl Refusal {
    /// The change is an error.
    pub(crate) fn new(keyspace: &str, table: &str, error: CqlError) -> Refusal {
        Refusal {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            answer: Response::Error(error),
        }
    }

    /// The change is none, and that is what its author wants.
    pub(crate) fn in_silence(keyspace: &str, table: &str) -> Refusal {
        Refusal {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            answer: Response::Void,
        }
    }

    /// A statement by whose answer it is seen whether the client may alter the table: if not, it is to be told that.
    pub(crate) fn probe(&self) -> String {
        probe(&self.keyspace, &self.table)
    }

    /// The text of its error.
    #[cfg(test)]
    pub(crate) fn message(self) -> Option<String> {
        match self.answer {
            Response::Error(error) => Some(error.message),
            _ => None,
        }
    }
}
