//! Checks of the consistency levels of statements.
//!
//! One node answers alike at every level. But a level that Cassandra refuses is a mistake of the
//! client that would otherwise show only in a cluster.

use cql::error::CqlError;
use cql::wire::Consistency;

use super::ExecutionParameters;

/// Checks the consistency level of a SELECT.
///
/// # Errors
/// If the level is `ANY`.
pub(crate) fn check_read(parameters: &ExecutionParameters) -> Result<(), CqlError> {
    match parameters.consistency {
        Consistency::Any => Err(CqlError::invalid(
            "ANY ConsistencyLevel is only supported for writes",
        )),
        _ => Ok(()),
    }
}

/// Checks the consistency level of an INSERT, UPDATE or DELETE without a condition.
///
/// # Errors
/// If the level is serial.
pub(crate) fn check_write(parameters: &ExecutionParameters) -> Result<(), CqlError> {
    match parameters.consistency.is_serial() {
        true => Err(CqlError::invalid(
            "You must use conditional updates for serializable writes",
        )),
        false => Ok(()),
    }
}

/// Checks both consistency levels of a conditional write: the serial level of its condition, and
/// the level of the write that follows.
///
/// # Errors
/// If the level of the condition is not serial, or the level of the write is.
pub(crate) fn check_conditional(parameters: &ExecutionParameters) -> Result<(), CqlError> {
    let serial = parameters.serial_consistency;
    if serial.is_some_and(|level| !level.is_serial()) {
        return Err(CqlError::invalid(
            "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
        ));
    }
    if parameters.consistency.is_serial() {
        return Err(CqlError::invalid(format!(
            "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is \
             accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
            parameters.consistency
        )));
    }
    Ok(())
}
