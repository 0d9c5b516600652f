//! A service as it describes itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the service as a whole; `GET /api/v1/status` answers it as a bare JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeStatus {
    /// The service is starting.
    Initializing,
    /// The service has no session with the database yet.
    ConnectingToDb,
    /// The service looks for indexes, or builds those that it found first.
    Bootstrapping,
    /// Every index that was found first is built, or there was none.
    Serving,
}

/// `GET /api/v1/clock`: the time of the database in the service's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockStatus {
    /// The lead of the database's time over the machine's clock after that was set back, as the
    /// database's time never goes back. Milliseconds.
    pub lead_ms: u64,
}

/// `GET /api/v1/info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// The name of the program.
    pub service: String,
    /// The version of the program.
    pub version: String,
    /// The index engine and its version.
    pub engine: String,
}

/// The reason why a service can't answer yet. A database that fails over between services tries the
/// next one only for `NODE_BOOTSTRAPPING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnavailableReason {
    /// The whole service is still starting; another one should be tried.
    NodeBootstrapping,
    /// The service is up, but this index is still being built.
    IndexBuilding,
    /// The index lacks writes that the search requires by `min_time_us`.
    IndexBehind,
}

/// The body of a 503.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unavailable {
    /// The reason: the service isn't ready, or the index isn't.
    pub reason: UnavailableReason,
    /// A sentence for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of an index that lags: the microseconds before `min_time_us` of which it may lack writes.
    /// Absent if it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_us: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_wire() {
        let text = |status| serde_json::to_string(&status).unwrap();
        assert_eq!(text(NodeStatus::ConnectingToDb), "\"CONNECTING_TO_DB\"");
        assert_eq!(text(NodeStatus::Serving), "\"SERVING\"");
        let bootstrapping = Unavailable {
            reason: UnavailableReason::NodeBootstrapping,
            message: None,
            behind_us: None,
        };
        let behind = Unavailable {
            reason: UnavailableReason::IndexBehind,
            message: None,
            behind_us: Some(7),
        };
        assert_eq!(
            serde_json::to_string(&behind).unwrap(),
            r#"{"reason":"INDEX_BEHIND","behind_us":7}"#
        );
        assert_eq!(
            serde_json::to_string(&bootstrapping).unwrap(),
            r#"{"reason":"NODE_BOOTSTRAPPING"}"#
        );
    }
}
