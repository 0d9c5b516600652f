//! A node: the database, its system tables and the listeners in front of it, started and stopped as one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use storage::Storage;

use crate::query::Database;
use crate::server::{
    BindError, BoundListener, CounterValues, ListenerOptions, NodeOptions, Server, Statements,
    serve,
};
use crate::system::{SystemOptions, SystemTables};

/// A running CQL server on embedded storage.
///
/// It does not open or close the storage: whoever starts it closes the storage after [`Node::stop`].
pub struct Node {
    server: Server<Statements>,
    service: Arc<Statements>,
}

impl Node {
    /// Listens and serves. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If one of the addresses cannot be listened on; then none is.
    pub async fn start(
        storage: Storage,
        stores: store_api::Client,
        options: NodeOptions,
    ) -> Result<Node, BindError> {
        let listeners = bind(options.listeners).await?;
        let rpc_address = options
            .advertised
            .unwrap_or_else(|| advertised(listeners.first().map(BoundListener::address)));
        let database = Arc::new(Database {
            storage,
            system: SystemTables::new(SystemOptions { rpc_address }),
            stores,
        });
        let service = Arc::new(Statements::new(database, options.prepared_bytes_max));
        Ok(Node {
            server: serve(listeners, service.clone()),
            service,
        })
    }

    /// Where the listeners listen, in the order of [`NodeOptions::listeners`].
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.server.addresses()
    }

    /// The database that is served.
    pub fn database(&self) -> &Arc<Database> {
        self.service.database()
    }

    /// What the listeners counted, by their names.
    pub fn counters(&self) -> Vec<(&'static str, CounterValues)> {
        self.server.counters()
    }

    /// Stops listening, answers the requests in flight for at most `grace`, and closes every
    /// connection. True if all requests were answered.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.server.stop(grace).await
    }
}

async fn bind(options: Vec<ListenerOptions>) -> Result<Vec<BoundListener>, BindError> {
    let mut listeners = Vec::with_capacity(options.len());
    for listener in options {
        listeners.push(BoundListener::bind(listener).await?);
    }
    Ok(listeners)
}

/// What drivers are told when nobody says otherwise. An address that stands for all of a machine's own means nothing to them;
/// loopback is what is right on the same machine, and drivers keep the address they came by
/// for a node's first connection.
fn advertised(listening: Option<SocketAddr>) -> SocketAddr {
    let mut address =
        listening.unwrap_or_else(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9042));
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_told_an_address_they_can_connect_to() {
        for (listening, told) in [
            ("127.0.0.1:9042", "127.0.0.1:9042"),
            ("10.1.2.3:9043", "10.1.2.3:9043"),
            ("0.0.0.0:9042", "127.0.0.1:9042"),
            ("[::]:1", "[::1]:1"),
        ] {
            let listening: SocketAddr = listening.parse().unwrap();
            assert_eq!(advertised(Some(listening)), told.parse().unwrap());
        }
    }
}
