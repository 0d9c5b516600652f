//! Which consistency levels a statement takes. One node answers alike at each, but a level that Cassandra refuses is a
//! mistake of the client, which would show only beside a cluster.

use cql::error::CqlError;
use cql::wire::Consistency;

use crate::query::Parameters;

/// The levels of a SELECT.
///
/// # Errors
/// For `ANY`.
pub(crate) fn check_read(parameters: &Parameters) -> Result<(), CqlError> {
    match parameters.consistency {
        Consistency::Any => Err(CqlError::invalid(
            "ANY ConsistencyLevel is only supported for writes",
        )),
        _ => Ok(()),
    }
}

/// The levels of an INSERT, UPDATE or DELETE without a condition.
///
/// # Errors
/// For a serial one.
pub(crate) fn check_write(parameters: &Parameters) -> Result<(), CqlError> {
    match parameters.consistency.is_serial() {
        true => Err(CqlError::invalid(
            "You must use conditional updates for serializable writes",
        )),
        false => Ok(()),
    }
}

/// The levels of a conditional write: one for its condition, one for what it then writes.
///
/// # Errors
/// If the one is not serial, or the other is.
pub(crate) fn check_conditional(parameters: &Parameters) -> Result<(), CqlError> {
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
