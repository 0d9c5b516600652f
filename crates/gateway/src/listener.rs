//! The listener: accepts connections of clients and limits their number.

use std::sync::Arc;

use net::listener::Listener;

use crate::connection;
use crate::shared::Shared;

/// Accepts connections until the gateway stops.
pub(crate) async fn accept(listener: Listener, shared: Arc<Shared>) {
    let serve = |client, place| {
        let shared = shared.clone();
        let reactors = shared.options.reactors.clone();
        let tracked = shared.tasks.token();
        let served = reactors.serve(client, move |client| async move {
            connection::serve(client, shared).await;
            drop((place, tracked));
        });
        if let Err(error) = served {
            tracing::debug!(%error, "a connection was gone before it was served");
        }
    };
    let stop = shared.stop.clone();
    let connections_max = shared.options.connections_max;
    let accepting = listener.accept_up_to(connections_max, stop, || (), serve);
    accepting.await;
}
