//! One address of a service, and whether it is worth asking.
//!
//! A service that was once unavailable is left alone until it says itself that it serves: it is
//! asked for its status in the background, at growing intervals. So at most one request pays for
//! a service that is down.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::answer::refusal;
use super::transport::Connector;
use super::uri::BaseUri;
use crate::ClientError;
use crate::types::NodeStatus;

/// An answer beyond this is refused: 100,000 rows, the most that a CQL query can ask for, with
/// keys of 2 KiB.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// The first pause between two looks at a service in quarantine.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The name of the header that tells a service how many milliseconds its answer is waited for.
const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

/// A request, the same for whichever service answers it.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub body: Bytes,
    /// When nobody waits for the answer any more.
    pub deadline: tokio::time::Instant,
}

/// One address of a service.
pub struct Node {
    base: BaseUri,
    address: SocketAddr,
    http: HttpClient<Connector, Full<Bytes>>,
    /// Whether it was unavailable and has not yet said that it serves.
    quarantined: AtomicBool,
    look_interval_max: Duration,
}

impl Node {
    /// Connections are opened when they are needed.
    pub fn new(base: BaseUri, connector: Connector, idle_connections_max: usize) -> Node {
        Node {
            base,
            address: connector.address,
            look_interval_max: (2 * connector.timeout).max(LOOK_INTERVAL_MIN),
            http: HttpClient::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_max_idle_per_host(idle_connections_max)
                .build(connector),
            quarantined: AtomicBool::new(false),
        }
    }

    /// The service that it belongs to.
    pub fn base(&self) -> &BaseUri {
        &self.base
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it may be asked.
    pub fn is_available(&self) -> bool {
        !self.quarantined.load(Ordering::Acquire)
    }

    /// The body of a successful answer. If the service is unavailable it goes to quarantine.
    pub async fn ask(self: &Arc<Node>, ask: &Ask) -> Result<Bytes, ClientError> {
        let answer = self.ask_once(ask).await;
        if answer == Err(ClientError::Unavailable) && !self.quarantined.swap(true, Ordering::AcqRel)
        {
            tracing::warn!(service = %self.base, address = %self.address, "an index service is not available");
            tokio::spawn(wait_until_it_serves(Arc::downgrade(self)));
        }
        answer
    }

    async fn ask_once(&self, ask: &Ask) -> Result<Bytes, ClientError> {
        let left = ask.deadline - tokio::time::Instant::now();
        let request = Request::builder()
            .method(&ask.method)
            .uri(self.base.with_path(&ask.path))
            .header(CONTENT_TYPE, "application/json")
            .header(TIMEOUT_HEADER, left.as_millis().to_string())
            .body(Full::new(ask.body.clone()))
            .expect("a URI and constant headers make a request");
        let response = self.http.request(request).await.map_err(|error| {
            tracing::debug!(%error, service = %self.base, address = %self.address, "index service not reached");
            ClientError::Unavailable
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| match error.downcast_ref::<hyper::Error>() {
                Some(_) => ClientError::Unavailable,
                None => ClientError::InvalidJson,
            })?
            .to_bytes();
        if status == StatusCode::OK {
            Ok(body)
        } else {
            Err(refusal(status, &body))
        }
    }

    async fn serves(&self) -> bool {
        let ask = Ask {
            method: Method::GET,
            path: "/api/v1/status".to_owned(),
            body: Bytes::new(),
            deadline: tokio::time::Instant::now() + self.look_interval_max,
        };
        let status = tokio::time::timeout_at(ask.deadline, self.ask_once(&ask)).await;
        let Ok(Ok(status)) = status else {
            return false;
        };
        matches!(serde_json::from_slice(&status), Ok(NodeStatus::Serving))
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("base", &self.base)
            .field("address", &self.address)
            .field("available", &self.is_available())
            .finish_non_exhaustive()
    }
}

/// Ends the quarantine of a node; ends itself when nobody else knows the node any more.
async fn wait_until_it_serves(node: Weak<Node>) {
    let mut pause = LOOK_INTERVAL_MIN;
    loop {
        tokio::time::sleep(pause).await;
        let Some(node) = node.upgrade() else {
            return;
        };
        if node.serves().await {
            tracing::info!(service = %node.base, address = %node.address, "an index service is available again");
            node.quarantined.store(false, Ordering::Release);
            return;
        }
        pause = (2 * pause).min(node.look_interval_max);
    }
}
