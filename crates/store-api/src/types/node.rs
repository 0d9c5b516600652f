//! What a service says of itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the service as a whole; `GET /api/v1/status` answers it as a bare JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeStatus {
    /// Starting.
    Initializing,
    /// Without a session to the database.
    ConnectingToDb,
    /// Looking for indexes, or building those that were found first.
    Bootstrapping,
    /// Every index found first is built, or there was none.
    Serving,
}

/// `GET /api/v1/clock`: the time of the database in the service's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockStatus {
    /// How far it is ahead of the machine's clock, which was set back: it never goes back itself. Milliseconds.
    pub lead_ms: u64,
}

/// `GET /api/v1/info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// The name of the program.
    pub service: String,
    /// Its version.
    pub version: String,
    /// The index engine and its version.
    pub engine: String,
}

/// Why a service can't answer yet. A database that fails over between services goes on to the
/// next one for the first reason only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnavailableReason {
    /// The whole service is still starting: ask another.
    NodeBootstrapping,
    /// The service is up, this index is still being built.
    IndexBuilding,
}

/// The body of a 503.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unavailable {
    /// Whether it is the service or the index that isn't ready.
    pub reason: UnavailableReason,
    /// A sentence for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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
        };
        assert_eq!(
            serde_json::to_string(&bootstrapping).unwrap(),
            r#"{"reason":"NODE_BOOTSTRAPPING"}"#
        );
    }
}
