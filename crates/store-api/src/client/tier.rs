//! A tier is all primary services, or all secondary ones. Any service of a tier can answer a
//! request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use hyper::header::HeaderValue;
use rand::seq::SliceRandom;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::address::ServiceAddress;
use super::outgoing::{RequestContent, ServiceRequest, ServiceResponse};
use super::transport::AddressConnector;
use super::uri::BaseUri;
use crate::types::IndexStatus;
use crate::{ClientError, InvalidUri};

/// The number of times that all services are tried before a request has failed.
const ROUNDS: usize = 3;

/// The shortest time between two look-ups of the names.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(5);

/// The longest time that a look-up may take.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two questions to a service about the state of a new index.
const INDEX_EVERY: Duration = Duration::from_millis(50);

/// A function that looks up names: from host and port to all addresses.
pub type Lookup =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The look-up by the operating system.
pub fn system_lookup() -> Lookup {
    Arc::new(|host, port| {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((host, port)).await?;
            Ok(addresses.collect())
        })
    })
}

/// A service as configured.
#[derive(Clone, Debug)]
pub struct ConfiguredService {
    /// The URI of the service.
    pub base: BaseUri,
    /// Whether the service is in the caller's own zone.
    pub own_zone: bool,
}

/// The options of connections.
#[derive(Clone)]
pub struct TransportOptions {
    /// The longest time that a connection may take to open.
    pub timeout: Duration,
    /// The most idle connections to each address.
    pub idle_max: usize,
    /// The TLS configuration, which `https` needs.
    pub tls: Option<Arc<ClientConfig>>,
    /// The value of the header `Authorization` of every request.
    pub authorization: Option<HeaderValue>,
}

fn serves(status: &[u8], version: Uuid) -> bool {
    serde_json::from_slice(status).is_ok_and(|status: IndexStatus| status.serves(version))
}

/// Services that can all answer the same requests.
pub struct FailoverTier {
    members: Vec<(ConfiguredService, Option<ServerName<'static>>)>,
    connections: TransportOptions,
    lookup: Lookup,
    nodes: ArcSwap<ResolvedAddresses>,
    /// The time of the last look-up of the names.
    looked_up: Mutex<Option<Instant>>,
}

/// All addresses of the services.
#[derive(Default)]
struct ResolvedAddresses {
    own_zone: Vec<Arc<ServiceAddress>>,
    elsewhere: Vec<Arc<ServiceAddress>>,
}

impl FailoverTier {
    /// Makes a tier. Names are looked up later, at the first request. It is an error if a service
    /// is `https` without authorities or with a host that has no valid name.
    pub fn new(
        members: Vec<ConfiguredService>,
        connections: TransportOptions,
        lookup: Lookup,
    ) -> Result<FailoverTier, InvalidUri> {
        let named = members.into_iter().map(|member| {
            let invalid = |reason: String| InvalidUri {
                uri: member.base.to_string(),
                reason,
            };
            let name = match (member.base.tls, &connections.tls) {
                (false, _) => None,
                (true, Some(_)) => {
                    let name = ServerName::try_from(member.base.host.clone());
                    Some(name.map_err(|error| invalid(error.to_string()))?)
                }
                (true, None) => {
                    let reason = "no authorities are given that sign the certificates";
                    return Err(invalid(reason.to_owned()));
                }
            };
            Ok((member, name))
        });
        Ok(FailoverTier {
            members: named.collect::<Result<_, _>>()?,
            connections,
            lookup,
            nodes: ArcSwap::default(),
            looked_up: Mutex::new(None),
        })
    }

    /// Returns the answer of the first service that has one; `None` if none has. There are up to
    /// three rounds over all services that are not in quarantine, in random order, those of the own
    /// zone first. A change is sent to one service only, as it may be under way there although no
    /// answer came.
    pub async fn send(
        &self,
        ask: &ServiceRequest<'_>,
    ) -> Option<Result<ServiceResponse, ClientError>> {
        for round in 0..ROUNDS {
            let mut order = self.nodes.load().order();
            // A name may have other addresses by now, most likely if no known one answers.
            if round > 0 || order.is_empty() {
                self.look_up().await;
                order = self.nodes.load().order();
            }
            if order.is_empty() {
                return None;
            }
            for node in order {
                match node.send(ask).await {
                    Err(ClientError::Unavailable)
                        if !matches!(ask.question, RequestContent::Change { .. }) => {}
                    answer => return Some(answer),
                }
            }
        }
        None
    }

    /// Waits until each service that can be reached says that the index of this version is serving.
    /// `send` requests the state of the index.
    pub async fn serve(&self, ask: &ServiceRequest<'_>, version: Uuid) {
        if !self.has_addresses() {
            self.look_up().await;
        }
        let nodes = self.nodes.load().order();
        let all = nodes.iter().map(|node| async move {
            loop {
                match node.probe(ask).await {
                    Ok(answer) if serves(&answer.body, version) => return,
                    Err(ClientError::Unavailable) => return,
                    _ => tokio::time::sleep(INDEX_EVERY).await,
                }
            }
        });
        futures::future::join_all(all).await;
    }

    /// Whether any address is known.
    pub fn has_addresses(&self) -> bool {
        !self.nodes.load().is_empty()
    }

    /// Forgets the time of the last look-up, so that names may be looked up at once.
    #[cfg(test)]
    pub async fn forget_look_up(&self) {
        *self.looked_up.lock().await = None;
    }

    /// Looks up the names again, unless that has just been done.
    async fn look_up(&self) {
        let mut looked_up = self.looked_up.lock().await;
        if looked_up.is_some_and(|when| when.elapsed() < LOOKUP_INTERVAL) {
            return;
        }
        let lookups = self.members.iter().map(|(member, _)| {
            let lookup = (self.lookup)(member.base.host.clone(), member.base.port);
            tokio::time::timeout(LOOKUP_TIMEOUT, lookup)
        });
        let found = futures::future::join_all(lookups).await;
        *looked_up = Some(Instant::now());
        let before = self.nodes.load();
        let mut nodes = ResolvedAddresses::default();
        for ((member, name), found) in self.members.iter().zip(found) {
            let of_zone = match member.own_zone {
                true => &mut nodes.own_zone,
                false => &mut nodes.elsewhere,
            };
            match found {
                Ok(Ok(addresses)) => of_zone.extend(addresses.into_iter().map(|address| {
                    let known = before.find(&member.base, address);
                    known.unwrap_or_else(|| Arc::new(self.node(member, name.as_ref(), address)))
                })),
                failed => {
                    let error = match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "no answer in time".to_owned(),
                    };
                    tracing::warn!(service = %member.base, error, "the name of an index service can't be looked up");
                    // The addresses known before are better than none.
                    of_zone.extend(before.of(&member.base));
                }
            }
        }
        self.nodes.store(Arc::new(nodes));
    }

    fn node(
        &self,
        member: &ConfiguredService,
        name: Option<&ServerName<'static>>,
        address: SocketAddr,
    ) -> ServiceAddress {
        let connections = &self.connections;
        let connector = AddressConnector {
            address,
            tls: name.cloned().zip(connections.tls.clone()),
            timeout: connections.timeout,
        };
        let node = ServiceAddress::new(member.base.clone(), connector, connections.idle_max);
        node.authorized(connections.authorization.clone())
    }
}

impl ResolvedAddresses {
    fn all(&self) -> impl Iterator<Item = &Arc<ServiceAddress>> {
        self.own_zone.iter().chain(&self.elsewhere)
    }

    fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    fn of(&self, base: &BaseUri) -> Vec<Arc<ServiceAddress>> {
        let of_base = self.all().filter(|node| node.base() == base);
        of_base.cloned().collect()
    }

    fn find(&self, base: &BaseUri, address: SocketAddr) -> Option<Arc<ServiceAddress>> {
        let mut all = self.all();
        all.find(|node| node.base() == base && node.address() == address)
            .cloned()
    }

    /// The services that may get requests, in the order in which they get them.
    fn order(&self) -> Vec<Arc<ServiceAddress>> {
        let available = |nodes: &[Arc<ServiceAddress>]| {
            let available = nodes.iter().filter(|node| node.is_available());
            let mut available: Vec<Arc<ServiceAddress>> = available.cloned().collect();
            available.shuffle(&mut rand::rng());
            available
        };
        let mut order = available(&self.own_zone);
        order.extend(available(&self.elsewhere));
        order
    }
}
