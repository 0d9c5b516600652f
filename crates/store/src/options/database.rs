//! Where the database is and how to talk to it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use cql::secret::Secret;
use scylla::statement::Consistency;

use super::Pem;

/// Where the database is and how to talk to it.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseOptions {
    /// `host:port` of nodes to begin with.
    pub contact_points: Vec<String>,
    /// Who to say we are.
    pub credentials: Option<Credentials>,
    /// How many replicas answer a scan or a re-read.
    pub consistency: Consistency,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a statement may take.
    pub request_timeout: Duration,
    /// Connections to each node; absent: one to each shard.
    pub connections: Option<NonZeroUsize>,
    /// How long to wait before connecting again; from failure to failure longer, up to ten times
    /// this.
    pub reconnect_interval: Duration,
    /// Talk TLS alone, with nodes whose certificates one of these authorities has signed. The
    /// driver knows nodes by their addresses, so certificates have to name those.
    pub certificate_authorities: Option<Pem>,
    /// Ask nodes of this data centre, and of this rack of it, before others.
    pub preferred: Option<Preferred>,
    /// Addresses that nodes say they have, and the ones that they are reached at from here.
    pub address_map: HashMap<SocketAddr, SocketAddr>,
    /// How often a connection without traffic is tried; absent: the driver's default.
    pub keepalive_interval: Option<Duration>,
    /// How long the answer to that may take; absent: the driver's default.
    pub keepalive_timeout: Option<Duration>,
    /// How often the system tries a connection without traffic; absent: never.
    pub tcp_keepalive_interval: Option<Duration>,
}

/// Nodes to ask before others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// The data centre.
    pub datacenter: String,
    /// A rack of it.
    pub rack: Option<String>,
}

/// A user of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The role.
    pub user: String,
    /// Its password.
    pub password: Secret<String>,
}

impl Default for DatabaseOptions {
    fn default() -> DatabaseOptions {
        DatabaseOptions {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            credentials: None,
            consistency: Consistency::LocalQuorum,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            connections: None,
            reconnect_interval: Duration::from_secs(1),
            certificate_authorities: None,
            preferred: None,
            address_map: HashMap::new(),
            keepalive_interval: None,
            keepalive_timeout: None,
            tcp_keepalive_interval: None,
        }
    }
}
