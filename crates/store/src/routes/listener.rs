//! A listener of the index service: the server's, with the routes and the budgets of the service.

use std::net::SocketAddr;
use std::sync::Arc;

use http_server::{Authorizer, BoundHttpListener, ServedHttpListener};
use net::tls::{ServerTls, TlsOptions};

use super::table::{routes, routes_before_start};
use super::tasks::TaskRoutes;
use super::{ApiState, ListenerContext};
use crate::options::ApiSocketOptions;
use crate::start_error::StartError;

/// A listener that is served. Dropping it stops it without waiting.
pub(crate) type Listening = ServedHttpListener<ListenerContext>;

/// A socket that is bound, and whose service has not started yet. Dropping it closes it.
pub(crate) struct BoundSocket {
    http: BoundHttpListener<ListenerContext>,
    options: ApiSocketOptions,
}

impl BoundSocket {
    /// Binds the socket. Fails if the certificates can't be used or the address can't be bound.
    pub(crate) async fn bind(options: ApiSocketOptions) -> Result<BoundSocket, StartError> {
        let tls = server_tls(options.tls.as_ref())?;
        let http = BoundHttpListener::bind(options.http(), tls, routes_before_start()).await;
        let http = http.map_err(|error| StartError::Listen {
            address: error.address,
            source: error.source,
        })?;
        Ok(BoundSocket { http, options })
    }

    /// The address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Accepts connections from now on. Until [`BoundSocket::serve`] only the routes of health are
    /// answered.
    pub(crate) fn answer_health(&mut self) {
        self.http.answer_before_start();
    }

    /// Serves the API until the returned listener is stopped. `authorizer` checks logins; `None`
    /// lets everybody in.
    pub(crate) fn serve(self, api: ApiState, authorizer: Option<Arc<dyn Authorizer>>) -> Listening {
        let tasks = TaskRoutes {
            work: api.work.clone(),
            stop: self.http.stop_token(),
        };
        let listener = Arc::new(ListenerContext::new(api, &self.options));
        self.http.serve(routes(listener, &tasks), authorizer)
    }
}

/// Loads the certificates of a listener. Fails if they can't be used.
pub(crate) fn server_tls(options: Option<&TlsOptions>) -> Result<Option<ServerTls>, StartError> {
    http_server::server_tls(options).map_err(StartError::Certificates)
}
