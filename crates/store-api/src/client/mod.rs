//! A client that sends requests to index services.
//!
//! The rules of failover are those of the contract (section 2.2). A host name means all its
//! addresses. The services are tried in random order, in up to three rounds, then the secondary
//! ones likewise. The next service is tried only if one is unavailable: there is no connection, or
//! it is still starting. An unavailable service goes to quarantine until it says that it serves.
//! ScyllaDB has the same rules, so a node or a gateway here behaves like a node of ScyllaDB.
//!
//! Beyond the contract, services of the caller's own zone come before the others, so that traffic
//! stays in the zone. A request says how long its answer is waited for. Searches are binary for a
//! service that has shown that it understands them (`send`), which ScyllaDB's own never does.

mod address;
mod admin;
mod answer;
mod json_filter;
mod one_service;
mod outgoing;
mod tier;
mod transport;
mod uri;
mod words;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use answer::neighbours;
use bytes::Bytes;
use hyper::header::HeaderValue;
use net::tls::Pem;
use rustls::ClientConfig;
use serde_json::Value;
use uuid::Uuid;

use crate::types::{AnnRequest, IndexStatus, NodeStatus};
use crate::{ClientError, InvalidUri};
use answer::ExpectedColumns;
pub use json_filter::{can_restrict_by, filter_of, request_of};
use outgoing::{RequestContent, ServiceRequest, ServiceResponse};
use tier::{ConfiguredService, FailoverTier, Lookup, TransportOptions};
use uri::{BaseUri, segment};

/// The services that get the requests, and the limits of the requests.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The URI of each index service: `http://host:port` or `https://host:port`. Vector search is
    /// disabled if this list and `secondary_uris` are empty.
    pub base_uris: Vec<String>,
    /// Services that get requests when none of the others is available.
    pub secondary_uris: Vec<String>,
    /// Zones of the services and of the caller.
    pub zones: ServiceZones,
    /// The authorities that sign the certificates of `https` services, in PEM. `None` allows no
    /// such services.
    pub certificate_authorities: Option<Vec<u8>>,
    /// The client's own certificate and its key, for `https` services that require one.
    pub own_certificate: Option<(Pem, Pem)>,
    /// The value of the header `Authorization` of every request, for services that require a login.
    pub authorization: Option<HeaderValue>,
    /// The longest time that a request may take, from the first byte sent to the last received.
    pub request_timeout: Duration,
    /// The longest time that a connection may take to open, and that an open one may be without a
    /// sign of life. The status of a service in quarantine is requested after twice this time at
    /// the latest.
    pub connect_timeout: Duration,
    /// The most idle connections that each reactor keeps to each address.
    pub idle_connections_max: usize,
    /// Whether searches and answers are binary with services that understand it. Otherwise they are
    /// always JSON.
    pub binary: bool,
}

/// The zones of the services and of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceZones {
    /// The caller's own zone.
    pub own: Option<String>,
    /// The zone of each service, by its URI as it is in the options. Other services are in no zone.
    pub of: HashMap<String, String>,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            base_uris: Vec::new(),
            secondary_uris: Vec::new(),
            zones: ServiceZones::default(),
            certificate_authorities: None,
            own_certificate: None,
            authorization: None,
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            idle_connections_max: 256,
            binary: true,
        }
    }
}

/// Requests neighbours from index services. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct StoreClient {
    inner: Option<Arc<SharedTiers>>,
}

struct SharedTiers {
    primary: FailoverTier,
    secondary: FailoverTier,
    request_timeout: Duration,
    binary: bool,
}

impl std::fmt::Debug for SharedTiers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

/// An `/ann` answer, reduced to the parts that a CQL node needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearestRows {
    /// The primary key of each row, nearest first: the values of its columns in the requested
    /// order.
    pub keys: Vec<Vec<KeyValue>>,
    /// The similarity score of each row; higher is nearer.
    pub similarity_scores: Vec<f32>,
    /// The values of each column of `return_columns`, in their order: one for each row, `None` for
    /// null.
    pub column_values: Vec<Vec<Option<KeyValue>>>,
    /// Whether rows may be missing, as the index has had no room for some rows of the table.
    pub is_short: bool,
}

/// The value of a column, in the form that the service answered in.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyValue {
    /// The value as JSON (contract, section 1.8).
    Json(Value),
    /// The value as CQL serialises it, unchecked.
    Cql(Bytes),
}

impl StoreClient {
    /// Makes a client of the services of the options. Without services it is
    /// [`StoreClient::disabled`].
    pub fn new(options: ClientOptions) -> Result<StoreClient, InvalidUri> {
        StoreClient::with_lookup(options, tier::system_lookup())
    }

    fn with_lookup(options: ClientOptions, lookup: Lookup) -> Result<StoreClient, InvalidUri> {
        if options.base_uris.is_empty() && options.secondary_uris.is_empty() {
            return Ok(StoreClient::disabled());
        }
        let authorities = options.certificate_authorities.as_deref();
        let own = options.own_certificate.as_ref();
        let connections = TransportOptions {
            timeout: options.connect_timeout,
            idle_max: options.idle_connections_max,
            tls: authorities.map(|pem| tls(pem, own)).transpose()?,
            authorization: options.authorization.clone(),
        };
        let tier = |uris: &[String]| {
            let members = uris.iter().map(|uri| {
                let zone = options.zones.of.get(uri);
                Ok(ConfiguredService {
                    base: BaseUri::parse(uri)?,
                    own_zone: zone.is_some() && zone == options.zones.own.as_ref(),
                })
            });
            let members = members.collect::<Result<_, InvalidUri>>()?;
            FailoverTier::new(members, connections.clone(), lookup.clone())
        };
        Ok(StoreClient {
            inner: Some(Arc::new(SharedTiers {
                primary: tier(&options.base_uris)?,
                secondary: tier(&options.secondary_uris)?,
                request_timeout: options.request_timeout,
                binary: options.binary,
            })),
        })
    }

    /// A client that answers every request with [`ClientError::Disabled`].
    pub fn disabled() -> StoreClient {
        StoreClient { inner: None }
    }

    /// Finds the nearest rows of an index. An exact search fails with [`ClientError::NotExact`] if
    /// the service does not know such searches.
    ///
    /// `key_columns` are the names of all columns of the primary key, partition key first.
    pub async fn ann(
        &self,
        keyspace: &str,
        index: &str,
        search: &AnnRequest,
        key_columns: &[&str],
    ) -> Result<NearestRows, ClientError> {
        let path = index_path(keyspace, index, "ann");
        let answer = self.request(path, RequestContent::Search(search)).await?;
        if search.exact && !answer.is_exact {
            return Err(ClientError::NotExact);
        }
        let returned = search.return_columns.as_ref();
        neighbours(answer, ExpectedColumns::of(returned, key_columns))
    }

    /// The state of the first service that answers.
    pub async fn node_status(&self) -> Result<NodeStatus, ClientError> {
        let path = "/api/v1/status".to_owned();
        let answer = self.request(path, RequestContent::Read).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }

    /// The state of an index, from the first service that answers.
    pub async fn index_status(
        &self,
        keyspace: &str,
        index: &str,
    ) -> Result<IndexStatus, ClientError> {
        let path = index_path(keyspace, index, "status");
        let answer = self.request(path, RequestContent::Read).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }

    /// Waits until all services that can be reached serve an index of this version, which was just
    /// created, but no longer than `within`. Unavailable services are not waited for.
    pub async fn created(&self, keyspace: &str, index: &str, version: Uuid, within: Duration) {
        let Some(inner) = &self.inner else { return };
        let ask = ServiceRequest {
            path: index_path(keyspace, index, "status"),
            question: RequestContent::Read,
            takes_binary: false,
            deadline: tokio::time::Instant::now() + within,
        };
        let all = async {
            tokio::join!(
                inner.primary.serve(&ask, version),
                inner.secondary.serve(&ask, version)
            );
        };
        let _ = tokio::time::timeout_at(ask.deadline, all).await;
    }

    /// Sends a request to the services and returns a successful answer.
    async fn request(
        &self,
        path: String,
        question: RequestContent<'_>,
    ) -> Result<ServiceResponse, ClientError> {
        self.request_with_extra_time(path, question, Duration::ZERO)
            .await
    }

    /// Sends a request to the services and returns a successful answer, which may take `longer`
    /// than others.
    async fn request_with_extra_time(
        &self,
        path: String,
        question: RequestContent<'_>,
        longer: Duration,
    ) -> Result<ServiceResponse, ClientError> {
        let inner = self.inner.as_ref().ok_or(ClientError::Disabled)?;
        let deadline = tokio::time::Instant::now() + inner.request_timeout + longer;
        let ask = ServiceRequest {
            path,
            question,
            takes_binary: inner.binary,
            deadline,
        };
        tokio::time::timeout_at(deadline, inner.send(&ask))
            .await
            .unwrap_or(Err(ClientError::Aborted))
    }
}

impl SharedTiers {
    async fn send(&self, ask: &ServiceRequest<'_>) -> Result<ServiceResponse, ClientError> {
        for tier in [&self.primary, &self.secondary] {
            if let Some(answer) = tier.send(ask).await {
                return answer;
            }
        }
        Err(
            match self.primary.has_addresses() || self.secondary.has_addresses() {
                true => ClientError::Unavailable,
                false => ClientError::NoAddress,
            },
        )
    }
}

fn index_path(keyspace: &str, index: &str, what: &str) -> String {
    let (keyspace, index) = (segment(keyspace), segment(index));
    format!("/api/v1/indexes/{keyspace}/{index}/{what}")
}

/// A TLS configuration that trusts only these authorities.
fn tls(authorities: &[u8], own: Option<&(Pem, Pem)>) -> Result<Arc<ClientConfig>, InvalidUri> {
    let authorities = Pem {
        bytes: authorities.into(),
        origin: "the authorities that sign certificates".to_owned(),
    };
    let own = own.map(|(certificate, key)| (certificate, key));
    net::tls::client(&authorities, own).map_err(|error| InvalidUri {
        uri: "https".to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
