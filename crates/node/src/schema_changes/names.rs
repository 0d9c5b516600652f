//! Checks of the names of keyspaces, tables and columns.

use cql::error::CqlError;

/// The longest names, as in Cassandra.
const KEYSPACE_LENGTH_MAX: usize = 48;
const TABLE_LENGTH_MAX: usize = 222;

/// The end of the name of each CDC log.
const LOG_SUFFIX: &str = "_scylla_cdc_log";

/// The beginning of the names of all columns that a CDC log has in addition to those of its table.
const LOG_COLUMN_PREFIX: &str = "cdc$";

/// Checks the name of a new keyspace.
pub(super) fn check_keyspace(name: &str) -> Result<(), CqlError> {
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(CqlError::invalid(format!(
            "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"{name}\")"
        )));
    }
    if name.len() > KEYSPACE_LENGTH_MAX {
        return Err(CqlError::invalid(too_long(
            "Keyspace",
            name,
            KEYSPACE_LENGTH_MAX,
        )));
    }
    Ok(())
}

/// Checks the name of a new table.
pub(super) fn check_table(keyspace: &str, name: &str) -> Result<(), CqlError> {
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(CqlError::config(format!(
            "{keyspace}.{name}: Table name must not be empty or not contain non-alphanumeric-underscore characters \
             (got \"{name}\")"
        )));
    }
    if name.len() > TABLE_LENGTH_MAX {
        let reason = too_long("Table", name, TABLE_LENGTH_MAX);
        return Err(CqlError::config(format!("{keyspace}.{name}: {reason}")));
    }
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

fn too_long(what: &str, name: &str, max: usize) -> String {
    let length = name.len();
    format!(
        "{what} name must not be more than {max} characters long (got {length} characters for \"{name}\")"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_so_many_characters() {
        assert!(check_keyspace("Ks_1").is_ok());
        assert!(check_keyspace(&"k".repeat(48)).is_ok());
        assert!(check_table("ks", &"t".repeat(222)).is_ok());
        for name in ["", "a-b", "ä"] {
            assert!(check_keyspace(name).is_err());
            let error = check_table("ks", name).unwrap_err();
            assert_eq!(
                error.message,
                format!(
                    "ks.{name}: Table name must not be empty or not contain non-alphanumeric-underscore characters \
                     (got \"{name}\")"
                )
            );
        }
        let long = "k".repeat(49);
        let error = check_keyspace(&long).unwrap_err();
        let expected = format!(
            "Keyspace name must not be more than 48 characters long (got 49 characters for \"{long}\")"
        );
        assert_eq!(error.message, expected);
        let error = check_table("ks", &"t".repeat(223)).unwrap_err();
        let expected = "Table name must not be more than 222 characters long (got 223";
        assert!(error.message.contains(expected), "{}", error.message);
    }

    #[test]
    fn names_that_a_cdc_log_needs_are_reserved() {
        assert!(check_table("ks", "t_scylla_cdc_log").is_err());
        assert!(check_column("cdc$time").is_err());
        assert!(check_column("cdc time").is_ok());
    }
}
