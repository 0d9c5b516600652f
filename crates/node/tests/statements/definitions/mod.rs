//! CREATE, ALTER and DROP of keyspaces, tables and indexes, from text to the catalog.

mod alter_table;
mod cdc;
mod changes;
mod concurrent;
mod counters;
mod describe;
mod full_text_indexes;
mod keyspaces;
mod protected;
mod row_ttl;
mod secondary_indexes;
mod tables;
mod vector_indexes;

use cql::error::{CqlError, ErrorKind};
use node::statement::ExecutionParameters;

use crate::fixture::Fixture;

/// The error of a statement that is refused.
fn error(f: &Fixture, cql: &str) -> CqlError {
    match f.execute(cql, ExecutionParameters::default()) {
        Ok(_) => panic!("not refused: {cql}"),
        Err(error) => error,
    }
}

/// Runs statements that are all refused as invalid, each with its message.
fn all_invalid(f: &Fixture, cases: &[(&str, &str)]) {
    for (cql, message) in cases {
        let error = error(f, cql);
        assert_eq!(error.message, *message, "{cql}");
        assert_eq!(error.kind, ErrorKind::Invalid, "{cql}");
    }
}
