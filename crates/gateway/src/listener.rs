//! The listener: accepts connections of clients and limits their number. Those that the node has
//! not let in give way to new ones.

use std::pin::pin;
use std::sync::Arc;

use client_memory::FLOOR_BYTES;
use net::listener::{AcceptLimits, ConnectionPermit, Listener};

use crate::connection;
use crate::shared::ServingState;

/// Accepts connections until the gateway stops.
pub(crate) async fn accept(listener: Listener, shared: Arc<ServingState>) {
    let serve = |client, place: ConnectionPermit| {
        let shared = shared.clone();
        let reactors = shared.options.reactors.clone();
        let tracked = shared.tasks.token();
        shared.metrics.connection_opened();
        let served = reactors.serve(client, move |client| async move {
            {
                let guest = place.admission();
                let metrics = shared.metrics.clone();
                let serving = pin!(connection::serve(client, shared, guest.clone()));
                if guest.run(serving).await {
                    metrics.connection_gave_way();
                }
            }
            drop((place, tracked));
        });
        if let Err(error) = served {
            tracing::debug!(%error, "a connection was gone before it was served");
        }
    };
    let stop = shared.stop.clone();
    let limits = AcceptLimits {
        connections: shared.options.connections_max,
        // They take half of the memory at most.
        unauthenticated: shared.options.memory.bytes_max() / 2 / FLOOR_BYTES,
    };
    let accepting = listener.accept_up_to(limits, stop, || (), serve);
    accepting.await;
}
