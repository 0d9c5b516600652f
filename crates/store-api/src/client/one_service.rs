//! A client of one service, which is reached at one address.
//!
//! A name may mean several services, and any of them can answer a search. But a task is known only
//! to the service in which it runs, so a client that starts a task has to send all requests about
//! it to the same service. A change is never requested twice
//! ([`super::outgoing::RequestContent::Change`]).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tier::{LOOKUP_TIMEOUT, Lookup, system_lookup};
use super::uri::BaseUri;
use super::{ClientOptions, StoreClient};
use crate::NotOneService;

impl StoreClient {
    /// Makes a client of the one service that the options name. Its name is looked up now and never
    /// again. If the name has more than one address, they have to be those of this machine, as
    /// `localhost` may have two. Then the first that takes a connection is used.
    pub async fn of_one_service(options: ClientOptions) -> Result<StoreClient, NotOneService> {
        StoreClient::of_one_service_by(options, system_lookup()).await
    }

    pub(super) async fn of_one_service_by(
        options: ClientOptions,
        lookup: Lookup,
    ) -> Result<StoreClient, NotOneService> {
        let several = |names: String, services: Vec<String>| NotOneService::Several {
            names,
            services: services.join(", "),
        };
        let uris = [&options.base_uris[..], &options.secondary_uris[..]].concat();
        let base = match &uris[..] {
            [] => BaseUri::parse("")?,
            [uri] => BaseUri::parse(uri)?,
            _ => return Err(several("the configuration".to_owned(), uris)),
        };
        // A name that can't be looked up has no address, and each request will say so.
        let found = timeout(LOOKUP_TIMEOUT, lookup(base.host.clone(), base.port)).await;
        let mut addresses = found.unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_default();
        addresses.sort_unstable();
        addresses.dedup();
        if names_several(&addresses) {
            let addresses = addresses.iter().map(SocketAddr::to_string);
            return Err(several(base.to_string(), addresses.collect()));
        }
        let address = match addresses[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(first_to_answer(&addresses, options.connect_timeout).await),
        };
        let found: Vec<SocketAddr> = address.into_iter().collect();
        let always: Lookup = Arc::new(move |_, _| Box::pin(future::ready(Ok(found.clone()))));
        Ok(StoreClient::with_lookup(options, always)?)
    }
}

/// Whether the addresses may be those of several machines.
fn names_several(addresses: &[SocketAddr]) -> bool {
    let elsewhere = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
    addresses.iter().filter(elsewhere).count() > 1
}

/// The first address that takes a connection. If none does, it is the first of all, so that a
/// request to it gives the reason.
async fn first_to_answer(addresses: &[SocketAddr], patience: Duration) -> SocketAddr {
    for address in addresses {
        if let Ok(Ok(_)) = timeout(patience, TcpStream::connect(address)).await {
            return *address;
        }
    }
    addresses[0]
}
