//! Timeuuids made here.

use std::time::{SystemTime, UNIX_EPOCH};

use cql::value::timeuuid;
use uuid::Uuid;

use super::cluster::ClusterError;

/// A timeuuid of now.
///
/// # Errors
/// If the clock shows a time that none can have.
pub(super) fn now() -> Result<Uuid, ClusterError> {
    of(now_micros())
}

fn now_micros() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.as_micros() as i64
}

fn of(micros: i64) -> Result<Uuid, ClusterError> {
    let random = Uuid::new_v4().as_u64_pair().1;
    timeuuid::from_micros(micros, random).map_err(|error| ClusterError::Clock(error.to_string()))
}
