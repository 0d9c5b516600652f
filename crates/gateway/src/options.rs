//! How a gateway serves. Every bound has a default.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use client_memory::{Budget, Shares};
use clock::{Clock, SystemClock};
use cql::wire::DEFAULT_BODY_LIMIT;
use reactors::Reactors;
use rustls::{ClientConfig, ServerConfig};
use store_api::Stores;

use crate::catalog::CatalogOptions;
use crate::ring::Ring;

/// How a gateway serves.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The node behind, as `HOST:PORT`. A name is resolved for each connection.
    pub cassandra: String,
    /// Talk TLS with the node: whom to believe, and what to prove the gateway with if the node asks. Its certificate has
    /// to name the host of `cassandra`. `None`: in clear.
    pub cassandra_tls: Option<Arc<ClientConfig>>,
    /// Talk TLS with clients, and with them alone: what to prove the gateway with, and whom to let in. `None`: in clear.
    pub client_tls: Option<Arc<ServerConfig>>,
    /// Which gateways stand before the nodes of the cluster.
    pub ring: Ring,
    /// How the definitions of vector indexes are kept; `None` passes everything through, and defines none.
    pub catalog: Option<CatalogOptions>,
    /// Client connections open at once; more are closed as they come.
    pub connections_max: usize,
    /// Bytes of a request's body, plain or compressed; more are refused.
    pub frame_body_max: usize,
    /// What requests may hold that are on their way in: they are left in the socket until there is room.
    pub memory: Budget,
    /// Bytes that the rows of searches may hold.
    pub answer_bytes_max: usize,
    /// How long a client may take to send the whole of a request.
    pub frame_timeout: Duration,
    /// How long a client may take until the node has let it in, but for the time that the node takes: who has no business
    /// here has no place among the connections for long.
    pub handshake_timeout: Duration,
    /// How long connecting to the node may take.
    pub connect_timeout: Duration,
    /// How long to wait for the answers that are still due to a client which has said that it asks nothing more.
    pub drain_timeout: Duration,
    /// Bytes that the prepared statements which are remembered may take, about; beyond it the least used are forgotten, and
    /// drivers prepare them again.
    pub prepared_bytes_max: usize,
    /// The index services that know nearest neighbours.
    pub stores: Stores,
    /// Bytes up to which a write to a table with a vector index goes to the node in one batch with its log rows, as
    /// Cassandra counts the bytes of a batch: its `batch_size_warn_threshold`.
    pub batch_bytes_max: usize,
    /// The clock by which log rows are dated.
    pub clock: Arc<dyn Clock>,
    /// Which threads serve the connections of clients, with what they ask of the node and of index services.
    pub reactors: Reactors,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        GatewayOptions {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9043),
            cassandra: "127.0.0.1:9042".to_owned(),
            cassandra_tls: None,
            client_tls: None,
            ring: Ring::default(),
            catalog: None,
            connections_max: 10_000,
            frame_body_max: DEFAULT_BODY_LIMIT,
            memory: Budget::new(Shares::default().cql),
            answer_bytes_max: Shares::default().internal,
            frame_timeout: Duration::from_secs(120),
            handshake_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(60),
            prepared_bytes_max: Shares::default().prepared,
            stores: Stores::disabled(),
            batch_bytes_max: 5 << 10,
            clock: Arc::new(SystemClock),
            reactors: Reactors::default(),
        }
    }
}
