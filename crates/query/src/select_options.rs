//! The options of a SELECT: `WITH ann_options = {...} AND hybrid_options = {...}`.

use cql::ast::{OptionValue, Select};
use cql::error::CqlError;

/// The options of a search for neighbours.
pub const ANN_OPTIONS: &str = "ann_options";
/// The options of a ranking of several searches.
pub const HYBRID_OPTIONS: &str = "hybrid_options";

/// The entries of the map of this name, of which each has another key; none if it is not given.
///
/// # Errors
/// Options of another name than the two that there are, a value that is no map, and a key that
/// comes twice.
pub(crate) fn entries<'s>(
    select: &'s Select,
    name: &str,
    example: &str,
) -> Result<&'s [(String, String)], CqlError> {
    // The parser lets none of them come twice.
    let is_known = |name: &String| name == ANN_OPTIONS || name == HYBRID_OPTIONS;
    if let Some((unknown, _)) = select.options.iter().find(|(name, _)| !is_known(name)) {
        return Err(CqlError::syntax(format!(
            "Unknown property '{unknown}': WITH of a SELECT takes {ANN_OPTIONS} and {HYBRID_OPTIONS}"
        )));
    }
    let given = select.options.iter().find(|(known, _)| known == name);
    let entries = match given {
        None => return Ok(&[]),
        Some((_, OptionValue::Map(entries))) => entries,
        Some((_, OptionValue::Scalar(_))) => {
            return Err(CqlError::syntax(format!(
                "Invalid value for property '{name}'. It should be a map, such as {{{example}}}"
            )));
        }
    };
    for (at, (key, _)) in entries.iter().enumerate() {
        if entries[..at].iter().any(|(before, _)| before == key) {
            return Err(CqlError::syntax(format!(
                "Multiple definition for key '{key}' of property '{name}': give it once"
            )));
        }
    }
    Ok(entries)
}

/// Whether a SELECT has options of this name.
pub(crate) fn has(select: &Select, name: &str) -> bool {
    select.options.iter().any(|(known, _)| known == name)
}
