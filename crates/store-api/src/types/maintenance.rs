//! Maintenance, before a service is stopped.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `PUT /api/v1/maintenance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// Whether the service is to take no new requests.
    pub maintenance: bool,
}

/// The answer of `/api/v1/maintenance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceStatus {
    /// Whether the service takes no new requests.
    pub maintenance: bool,
    /// The searches and statements that it still works on. During maintenance, 0 means that it can
    /// be stopped without a failed request.
    pub requests_in_progress: u64,
}
