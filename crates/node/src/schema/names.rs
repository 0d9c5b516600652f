//! Checks of the names of keyspaces, tables and columns.

use cql::error::CqlError;

/// The longest name of a keyspace or table, as in Cassandra.
const MAX_LENGTH: usize = 48;

/// The end of the name of each CDC log.
const LOG_SUFFIX: &str = "_scylla_cdc_log";

/// The beginning of the names of all columns that a CDC log has beside those of its table.
const LOG_COLUMN_PREFIX: &str = "cdc$";

/// Checks the name of a new keyspace.
pub(super) fn check_keyspace(name: &str) -> Result<(), CqlError> {
    // Cassandra's error code for a keyspace name differs from that for a table name.
    check("Keyspace", name).map_err(|error| CqlError::invalid(error.message))
}

/// Checks the name of a new table.
pub(super) fn check_table(name: &str) -> Result<(), CqlError> {
    check("Table", name)?;
    if name.ends_with(LOG_SUFFIX) {
        return Err(CqlError::invalid(format!(
            "Table names that end with {LOG_SUFFIX} are reserved for CDC logs (got \"{name}\")"
        )));
    }
    Ok(())
}

/// Checks the name of a new column. The names of a CDC log's own columns are refused.
pub(super) fn check_column(name: &str) -> Result<(), CqlError> {
    if name.starts_with(LOG_COLUMN_PREFIX) {
        return Err(CqlError::invalid(format!(
            "Column names that begin with {LOG_COLUMN_PREFIX} are reserved for CDC logs (got \
             \"{name}\")"
        )));
    }
    if name.is_empty() || name.len() > usize::from(u16::MAX) {
        return Err(CqlError::invalid(
            "Column names must have between 1 and 65535 bytes",
        ));
    }
    Ok(())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn check(what: &str, name: &str) -> Result<(), CqlError> {
    if name.is_empty() || name.len() > MAX_LENGTH || !name.chars().all(is_word) {
        return Err(CqlError::config(format!(
            "{what} name must not be empty, more than {MAX_LENGTH} characters long, or contain \
             non-alphanumeric-underscore characters (got \"{name}\")"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_at_most_48_characters() {
        assert!(check_keyspace("Ks_1").is_ok());
        assert!(check_table(&"t".repeat(48)).is_ok());
        for name in ["", "a-b", "ä", &"t".repeat(49)] {
            let error = check_table(name).unwrap_err();
            assert_eq!(
                error.message,
                format!(
                    "Table name must not be empty, more than 48 characters long, or contain \
                     non-alphanumeric-underscore characters (got \"{name}\")"
                )
            );
        }
    }

    #[test]
    fn what_a_cdc_log_needs_is_reserved() {
        assert!(check_table("t_scylla_cdc_log").is_err());
        assert!(check_column("cdc$time").is_err());
        assert!(check_column("cdc time").is_ok());
    }
}
