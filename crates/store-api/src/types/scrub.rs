//! The scrub, which reads all files and checks their checksums.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /api/v1/scrub`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScrubRequest {
    /// The most MiB that are read in a second; 32 if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mib_per_second: Option<u64>,
}
