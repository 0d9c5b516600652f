//! The listener: accepts connections of clients and limits their number.

use std::sync::Arc;
use std::time::Duration;

use net::sockets::prepare;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::connection;
use crate::shared::Shared;

/// The pause after a failed accept, which mostly fails for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the gateway stops.
pub(crate) async fn accept(socket: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(
        shared.options.connections_max.min(Semaphore::MAX_PERMITS),
    ));
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = shared.stop.cancelled() => return,
        };
        let client = match accepted {
            Ok((client, _)) => client,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!("too many connections: one refused");
            continue;
        };
        if let Err(error) = prepare(&client) {
            tracing::debug!(%error, "a connection was gone before it was served");
            continue;
        }
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
    }
}
