//! The settings of a gateway. Every limit has a default.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use client_memory::{MemoryBudget, MemoryShares};
use clock::{Clock, SystemClock};
use cql::wire::DEFAULT_BODY_LIMIT;
use http_server::{MaintenanceMode, TokenAuthorizer};
use net::reactors::ReactorPool;
use rustls::{ClientConfig, ServerConfig};
use slow_statements::SlowQueries;
use store_api::IndexServices;
use web_console::SettingLines;

use crate::catalog::InternalSessionOptions;
use crate::ring::Ring;

/// The knowledge that a search must have of writes that its gateway acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct FreshnessOptions {
    /// The longest time for which a search waits until its index knows the newest write to the
    /// table that this gateway acknowledged. Zero: it does not wait.
    pub wait: Duration,
    /// The answer of a search whose time to wait is over.
    pub when_behind: WhenBehind,
}

/// The answer of a search whose index lacks the newest write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBehind {
    /// The rows that the index knows, with a warning.
    #[default]
    Stale,
    /// An error, upon which drivers try again.
    Error,
}

impl Default for FreshnessOptions {
    fn default() -> Self {
        FreshnessOptions {
            wait: Duration::from_millis(250),
            when_behind: WhenBehind::default(),
        }
    }
}

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The address to listen on; port 0 takes a free port.
    pub address: SocketAddr,
    /// The address at which `GET /metrics` is answered; `None` if nowhere.
    pub metrics_address: Option<SocketAddr>,
    /// The tokens that `GET /metrics` needs.
    pub tokens: Arc<TokenAuthorizer>,
    /// The settings of the process, which the same listener shows.
    pub settings: SettingLines,
    /// The gateway's node, as `HOST:PORT`. A name is resolved for each connection.
    pub cassandra: String,
    /// The TLS for connections to the node: the authorities that are trusted, and the certificate
    /// that the gateway shows if the node requires one. The node's certificate has to name the host
    /// of `cassandra`. `None`: connections are in clear.
    pub cassandra_tls: Option<Arc<ClientConfig>>,
    /// The TLS for connections of clients: the gateway's certificate, and the clients that are let
    /// in. A client without TLS is then refused. `None`: connections are in clear.
    pub client_tls: Option<Arc<ServerConfig>>,
    /// The gateways in front of the nodes of the cluster.
    pub ring: Ring,
    /// The storage of the definitions of vector indexes. `None`: the gateway passes everything
    /// through and defines no index.
    pub catalog: Option<InternalSessionOptions>,
    /// Client connections that are open at once. Beyond it the longest silent one that the node has
    /// not let in gives way, and if all are let in, more are closed as they come.
    pub connections_max: usize,
    /// Bytes of a request's body, compressed or not; larger requests are refused.
    pub frame_body_max: usize,
    /// The memory for requests that are coming in. A request waits in the socket until there is
    /// room.
    pub memory: MemoryBudget,
    /// Bytes that the rows of searches may take.
    pub answer_bytes_max: usize,
    /// The time that a client has to send a whole request.
    pub frame_timeout: Duration,
    /// The time that a client has until the node lets it in, without the time that the node takes.
    /// So a stranger does not hold a connection for long.
    pub handshake_timeout: Duration,
    /// The time that connecting to the node may take.
    pub connect_timeout: Duration,
    /// The time for which the gateway waits for the answers to a client that sends no more
    /// requests.
    pub drain_timeout: Duration,
    /// Bytes that the remembered prepared statements may take, about. Beyond that the least used
    /// are forgotten, and drivers prepare them again.
    pub prepared_bytes_max: usize,
    /// The index services that find nearest neighbours.
    pub stores: IndexServices,
    /// The knowledge that searches have of acknowledged writes.
    pub freshness: FreshnessOptions,
    /// Whether a search at consistency ONE or LOCAL_ONE is answered without rows where its index
    /// keeps all that it needs. Such an answer is as old as the index.
    pub answer_from_index: bool,
    /// The size up to which a write to a table with a vector index goes to the node in one batch
    /// with its log rows: the `batch_size_warn_threshold` of Cassandra. Bytes, as Cassandra counts
    /// those of a batch.
    pub batch_bytes_max: usize,
    /// Whether no new statements are taken. An index service in the same process shares it.
    pub maintenance: MaintenanceMode,
    /// The log of slow searches, and of slow writes to tables with a vector index.
    pub slow_queries: Arc<SlowQueries>,
    /// The clock by which log rows are dated.
    pub clock: Arc<dyn Clock>,
    /// The threads that serve the connections of clients, with the requests to the node and to
    /// index services that they need.
    pub reactors: ReactorPool,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        GatewayOptions {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9043),
            metrics_address: None,
            tokens: Arc::default(),
            settings: SettingLines::default(),
            cassandra: "127.0.0.1:9042".to_owned(),
            cassandra_tls: None,
            client_tls: None,
            ring: Ring::default(),
            catalog: None,
            connections_max: 10_000,
            frame_body_max: DEFAULT_BODY_LIMIT,
            memory: MemoryBudget::new(MemoryShares::default().cql),
            answer_bytes_max: MemoryShares::default().internal,
            frame_timeout: Duration::from_secs(120),
            handshake_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(60),
            prepared_bytes_max: MemoryShares::default().prepared,
            stores: IndexServices::disabled(),
            freshness: FreshnessOptions::default(),
            answer_from_index: false,
            batch_bytes_max: 5 << 10,
            maintenance: MaintenanceMode::default(),
            slow_queries: Arc::default(),
            clock: Arc::new(SystemClock),
            reactors: ReactorPool::default(),
        }
    }
}
