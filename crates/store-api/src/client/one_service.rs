//! A client of one service, asked at one address.
//!
//! A name may stand for several services, and any of them can answer a search. What runs in a service is
//! known to that one alone: who starts something and then asks for it has to ask the same one again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tier::{LOOKUP_TIMEOUT, Lookup, system_lookup};
use super::uri::BaseUri;
use super::{Client, ClientOptions};
use crate::NotOneService;

impl Client {
    /// A client of the one service that the options name. Its name is looked up now and never again: if
    /// that gives more than one address, they have to be those of this machine, as `localhost` may have
    /// two, and the first that takes a connection is asked.
    pub async fn of_one_service(options: ClientOptions) -> Result<Client, NotOneService> {
        Client::of_one_service_by(options, system_lookup()).await
    }

    pub(super) async fn of_one_service_by(
        options: ClientOptions,
        lookup: Lookup,
    ) -> Result<Client, NotOneService> {
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
        // A name that can't be looked up has no address, which whoever asks is told.
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
        Ok(Client::with_lookup(options, always)?)
    }
}

/// Whether these may be those of several machines.
fn names_several(addresses: &[SocketAddr]) -> bool {
    let elsewhere = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
    addresses.iter().filter(elsewhere).count() > 1
}

/// The first that takes a connection; if none does, any of them, so that asking it tells why.
async fn first_to_answer(addresses: &[SocketAddr], patience: Duration) -> SocketAddr {
    for address in addresses {
        if let Ok(Ok(_)) = timeout(patience, TcpStream::connect(address)).await {
            return *address;
        }
    }
    addresses[0]
}
