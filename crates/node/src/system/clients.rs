//! The connections that are open, as `system_views.clients` and `system.clients` show them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use cql::wire::ProtocolVersion;
use net::stream::TlsSession;

use crate::statement::LoggedInRole;

/// The most options of STARTUP that are stored for a connection, and the most bytes of them all.
const OPTIONS_MAX: usize = 32;
const OPTIONS_BYTES_MAX: usize = 2 << 10;

/// The connections that are open. Listeners bound their number.
#[derive(Debug, Default)]
pub(crate) struct ConnectionRegistry {
    open: Mutex<BTreeMap<u64, Arc<OpenConnection>>>,
    next: AtomicU64,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    /// The client's address.
    pub address: SocketAddr,
    /// The TLS of the connection; `None` if it is in clear.
    pub tls: Option<TlsSession>,
    /// Whether the client has to log in.
    requires_login: bool,
    /// The role that has logged in.
    pub role: OnceLock<LoggedInRole>,
    /// The keyspace in use.
    pub keyspace: ArcSwapOption<String>,
    /// The statements that the connection has sent.
    pub requests: AtomicU64,
    begun: OnceLock<StartupOptions>,
}

/// The choices of a client at the begin of its connection.
#[derive(Debug)]
struct StartupOptions {
    version: ProtocolVersion,
    options: BTreeMap<String, String>,
}

/// A connection among those that are open. It is taken out when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionRegistration {
    client: Arc<OpenConnection>,
    clients: Arc<ConnectionRegistry>,
    number: u64,
}

impl ConnectionRegistry {
    /// Adds the connection of a client at an address.
    pub fn register(
        self: &Arc<Self>,
        address: SocketAddr,
        tls: Option<TlsSession>,
        asks_for_login: bool,
    ) -> ConnectionRegistration {
        let client = Arc::new(OpenConnection {
            address,
            tls,
            requires_login: asks_for_login,
            role: OnceLock::new(),
            keyspace: ArcSwapOption::empty(),
            requests: AtomicU64::new(0),
            begun: OnceLock::new(),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().insert(number, Arc::clone(&client));
        ConnectionRegistration {
            client,
            clients: Arc::clone(self),
            number,
        }
    }

    /// The connections that are open, the oldest first.
    pub fn all(&self) -> Vec<Arc<OpenConnection>> {
        self.open().values().cloned().collect()
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<OpenConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnection {
    /// Notes that the connection has begun, with these options of STARTUP. Those beyond a bound are
    /// not stored.
    pub fn started(&self, version: ProtocolVersion, options: &[(String, String)]) {
        let mut left = OPTIONS_BYTES_MAX;
        let mut kept = BTreeMap::new();
        for (name, value) in options.iter().take(OPTIONS_MAX) {
            let bytes = name.len() + value.len();
            if bytes <= left {
                left -= bytes;
                kept.insert(name.clone(), value.clone());
            }
        }
        // A connection begins once.
        let _ = self.begun.set(StartupOptions {
            version,
            options: kept,
        });
    }

    /// The stage of the connection, by Cassandra's name.
    pub fn stage(&self) -> &'static str {
        match self.begun.get() {
            None => "established",
            Some(_) if self.requires_login && self.role.get().is_none() => "authenticating",
            Some(_) => "ready",
        }
    }

    /// The options of STARTUP; `None` before it.
    pub fn options(&self) -> Option<&BTreeMap<String, String>> {
        self.begun.get().map(|begun| &begun.options)
    }

    /// The version of the protocol; `None` before STARTUP.
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.begun.get().map(|begun| begun.version)
    }
}

impl std::ops::Deref for ConnectionRegistration {
    type Target = OpenConnection;

    fn deref(&self) -> &OpenConnection {
        &self.client
    }
}

impl Drop for ConnectionRegistration {
    fn drop(&mut self) {
        self.clients.open().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_there_while_they_are_open() {
        let clients = Arc::new(ConnectionRegistry::default());
        let first = clients.register("127.0.0.1:1".parse().unwrap(), None, false);
        let second = clients.register("127.0.0.1:2".parse().unwrap(), None, false);
        let ports = |clients: &ConnectionRegistry| -> Vec<u16> {
            let all = clients.all();
            all.iter().map(|client| client.address.port()).collect()
        };
        assert_eq!(ports(&clients), [1, 2]);
        drop(first);
        assert_eq!(ports(&clients), [2]);
        drop(second);
        assert!(clients.all().is_empty());
    }

    #[test]
    fn a_connection_goes_from_stage_to_stage() {
        let clients = Arc::new(ConnectionRegistry::default());
        let client = clients.register("127.0.0.1:1".parse().unwrap(), None, true);
        assert_eq!(client.stage(), "established");
        client.started(ProtocolVersion::V5, &[]);
        assert_eq!(client.stage(), "authenticating");
        client.role.set("ann".into()).unwrap();
        assert_eq!(client.stage(), "ready");
    }

    #[test]
    fn options_have_a_bound() {
        let clients = Arc::new(ConnectionRegistry::default());
        let client = clients.register("127.0.0.1:1".parse().unwrap(), None, false);
        assert!(client.options().is_none());
        let long = ("LONG".to_owned(), "x".repeat(OPTIONS_BYTES_MAX));
        let mut options = vec![long];
        options.extend((0..100).map(|n| (format!("o{n:02}"), "value".to_owned())));
        client.started(ProtocolVersion::V5, &options);
        let kept = client.options().unwrap();
        assert_eq!(kept.len(), OPTIONS_MAX - 1);
        assert_eq!(kept["o00"], "value");
    }
}
