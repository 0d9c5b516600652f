//! The addresses, credentials and TLS settings with which a session is opened.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use net::tls::{self, Pem};
use rustls::ClientConfig;
use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{NewSessionError, TranslationError};
use scylla::policies::address_translator::{AddressTranslator, UntranslatedPeer};
use scylla::policies::load_balancing::DefaultPolicy;

use crate::options::DatabaseOptions;
use crate::start_error::StartError;

/// The options of the database, with certificates that have been parsed.
#[derive(Clone)]
pub(crate) struct SessionTarget {
    /// The options as configured.
    pub options: DatabaseOptions,
    tls: Option<Arc<ClientConfig>>,
}

impl PartialEq for SessionTarget {
    /// Compares only the options, as the TLS configuration follows from them.
    fn eq(&self, other: &SessionTarget) -> bool {
        self.options == other.options
    }
}

impl SessionTarget {
    /// A target with these options. Fails if the authorities that sign the database's certificates
    /// can't be read.
    pub(crate) fn new(options: DatabaseOptions) -> Result<SessionTarget, StartError> {
        let tls = |authorities: &Pem| tls::client(authorities, None);
        let tls = options.certificate_authorities.as_ref().map(tls);
        Ok(SessionTarget {
            tls: tls.transpose().map_err(StartError::DatabaseAuthorities)?,
            options,
        })
    }

    /// Tries once to open a session.
    pub(crate) async fn open(&self) -> Result<Session, NewSessionError> {
        let options = &self.options;
        let nodes = DefaultPolicy::builder()
            .token_aware(true)
            // Nodes of the preferred datacenter come first. If none of them is up, others are used.
            .permit_dc_failover(true)
            .build();
        let profile = ExecutionProfile::builder()
            .consistency(options.consistency)
            .request_timeout(Some(options.request_timeout))
            .load_balancing_policy(nodes)
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(&options.contact_points)
            .connection_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .schema_agreement_timeout(Duration::from_secs(60))
            .tls_context(self.tls.clone().map(TlsContext::Rustls023))
            .default_execution_profile_handle(profile.into_handle());
        if let Some(connections) = options.connections {
            builder = builder.pool_size(PoolSize::PerHost(connections));
        }
        if let Some(credentials) = &options.credentials {
            builder = builder.user(&credentials.user, credentials.password.expose());
        }
        if let Some(preferred) = options.preferred.clone() {
            builder = match preferred.rack {
                Some(rack) => builder.prefer_datacenter_and_rack(preferred.datacenter, rack),
                None => builder.prefer_datacenter(preferred.datacenter),
            };
        }
        if !options.address_map.is_empty() {
            let map = NodeAddresses(options.address_map.clone());
            builder = builder.address_translator(Arc::new(map));
        }
        if let Some(interval) = options.keepalive_interval {
            builder = builder.keepalive_interval(interval);
        }
        if let Some(timeout) = options.keepalive_timeout {
            builder = builder.keepalive_timeout(timeout);
        }
        if let Some(interval) = options.tcp_keepalive_interval {
            builder = builder.tcp_keepalive_interval(interval);
        }
        builder.build().await
    }
}

/// The addresses at which nodes are reached, by the addresses that the nodes report. A node without
/// an entry is reached at the address it reports.
struct NodeAddresses(HashMap<SocketAddr, SocketAddr>);

#[async_trait]
impl AddressTranslator for NodeAddresses {
    async fn translate_address(
        &self,
        peer: &UntranslatedPeer,
    ) -> Result<SocketAddr, TranslationError> {
        let address = peer.untranslated_address();
        Ok(self.0.get(&address).copied().unwrap_or(address))
    }
}
