//! The names in a statement, before anything is looked up by them.

use cql::error::CqlError;

/// The keyspace of a name: the one given with the name (`own`), else the keyspace in use.
///
/// # Errors
/// If there is neither.
pub(crate) fn keyspace_name<'a>(
    own: Option<&'a str>,
    in_use: Option<&'a str>,
) -> Result<&'a str, CqlError> {
    own.or(in_use).ok_or_else(|| {
        CqlError::invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify \
             keyspace.tablename",
        )
    })
}
