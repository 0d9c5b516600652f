//! The state that the connections of a listener share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::Admission;
use super::counters::Counters;
use super::options::ListenerOptions;

/// The parts that the connections of a listener share.
pub(super) struct Shared<S> {
    pub service: Arc<S>,
    pub options: ListenerOptions,
    pub admission: Admission,
    pub counters: Counters,
    pub shutdown: Shutdown,
}

/// Tells the tasks of a server to stop, and tells the server when they have stopped.
#[derive(Clone, Default)]
pub(super) struct Shutdown {
    /// Cancelled when no more connections and requests may be taken.
    pub stop: CancellationToken,
    /// Cancelled when the server no longer waits for clients to take their answers.
    pub kill: CancellationToken,
    /// The tasks of listeners, connections and requests.
    pub tasks: TaskTracker,
}
