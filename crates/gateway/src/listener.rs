//! The listener: accepts connections of clients and limits their number. Those that the node has
//! not let in give way to new ones.

use std::pin::pin;
use std::sync::Arc;

use client_memory::FLOOR_BYTES;
use net::listener::{Limits, Listener, Place};

use crate::connection;
use crate::shared::Shared;

/// Accepts connections until the gateway stops.
pub(crate) async fn accept(listener: Listener, shared: Arc<Shared>) {
    let serve = |client, place: Place| {
        let shared = shared.clone();
        let reactors = shared.options.reactors.clone();
        let tracked = shared.tasks.token();
        let served = reactors.serve(client, move |client| async move {
            {
                let guest = place.guest();
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
    let limits = Limits {
        connections: shared.options.connections_max,
        // They take half of the memory at most.
        strangers: shared.options.memory.bytes_max() / 2 / FLOOR_BYTES,
    };
    let accepting = listener.accept_up_to(limits, stop, || (), serve);
    accepting.await;
}
