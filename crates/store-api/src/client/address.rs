//! One address of a service, and its quarantine.
//!
//! A service that was unavailable goes to quarantine, where it gets no requests until it says that
//! it serves. Its status is requested in the background, at growing intervals. So at most one
//! request pays for a service that is down.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use net::reactors::PerReactor;

use super::answer::refusal;
use super::outgoing::{MessageFormat, RequestContent, ServiceRequest, ServiceResponse};
use super::transport::AddressConnector;
use super::uri::BaseUri;
use crate::ClientError;
use crate::types::{EXACT_HEADER, NodeStatus, SHORT_HEADER};

/// Bytes of an answer beyond which it is refused. There is room for 100,000 rows, the most that a
/// CQL query can request, with keys of 2 KiB.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// The first pause between two looks at a service in quarantine.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// One address of a service.
pub struct ServiceAddress {
    base: BaseUri,
    address: SocketAddr,
    http: PerReactor<HttpClient<AddressConnector, Full<Bytes>>>,
    /// Whether the service was unavailable and has not yet said that it serves.
    quarantined: AtomicBool,
    /// Whether the service has answered in the binary form, and so understands it.
    binary: AtomicBool,
    /// The longest pause between two looks at a service in quarantine.
    look_interval_max: Duration,
    /// The value of the header `Authorization` of every request.
    authorization: Option<HeaderValue>,
}

impl ServiceAddress {
    /// A node without connections, which are opened when they are needed.
    pub fn new(
        base: BaseUri,
        connector: AddressConnector,
        idle_connections_max: usize,
    ) -> ServiceAddress {
        ServiceAddress {
            base,
            address: connector.address,
            look_interval_max: (2 * connector.timeout).max(LOOK_INTERVAL_MIN),
            http: PerReactor::new(|| {
                HttpClient::builder(TokioExecutor::new())
                    .pool_timer(TokioTimer::new())
                    .pool_max_idle_per_host(idle_connections_max)
                    .build(connector.clone())
            }),
            quarantined: AtomicBool::new(false),
            binary: AtomicBool::new(false),
            authorization: None,
        }
    }

    /// This node with a login in every request.
    pub fn authorized(self, authorization: Option<HeaderValue>) -> ServiceAddress {
        ServiceAddress {
            authorization,
            ..self
        }
    }

    /// The URI of the service that the address belongs to.
    pub fn base(&self) -> &BaseUri {
        &self.base
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the service may get requests, as it is not in quarantine.
    pub fn is_available(&self) -> bool {
        !self.quarantined.load(Ordering::Acquire)
    }

    /// Sends the request to the service and returns a successful answer. If it is unavailable it
    /// goes to quarantine.
    pub async fn send(
        self: &Arc<ServiceAddress>,
        ask: &ServiceRequest<'_>,
    ) -> Result<ServiceResponse, ClientError> {
        let answer = match self.send_in(self.form(), ask).await {
            // Another program has taken the service's place and knows no binary form.
            Err(AttemptFailure::Form) => self.send_in(MessageFormat::Json, ask).await,
            answer => answer,
        };
        let answer = answer.map_err(AttemptFailure::error);
        if answer == Err(ClientError::Unavailable) && !self.quarantined.swap(true, Ordering::AcqRel)
        {
            tracing::warn!(service = %self.base, address = %self.address, "an index service is not available");
            tokio::spawn(wait_until_it_serves(Arc::downgrade(self)));
        }
        answer
    }

    /// Sends the request like [`ServiceAddress::send`], but does not send it to quarantine. A
    /// caller that only checks whether it serves an index does without an unavailable service, and
    /// searches may come as soon as it is there.
    pub async fn probe(&self, ask: &ServiceRequest<'_>) -> Result<ServiceResponse, ClientError> {
        self.send_in(self.form(), ask)
            .await
            .map_err(AttemptFailure::error)
    }

    /// The form of requests to the service.
    fn form(&self) -> MessageFormat {
        match self.binary.load(Ordering::Relaxed) {
            true => MessageFormat::Binary,
            false => MessageFormat::Json,
        }
    }

    async fn send_in(
        &self,
        form: MessageFormat,
        ask: &ServiceRequest<'_>,
    ) -> Result<ServiceResponse, AttemptFailure> {
        let mut request = ask.request(&self.base, form);
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let response = self.http.here().request(request).await.map_err(|error| {
            tracing::debug!(%error, service = %self.base, address = %self.address, "index service not reached");
            ClientError::Unavailable
        })?;
        let status = response.status();
        let answered_in = MessageFormat::of_answer(response.headers());
        let is_exact = response.headers().contains_key(EXACT_HEADER);
        let is_short = response.headers().contains_key(SHORT_HEADER);
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| match error.downcast_ref::<hyper::Error>() {
                Some(_) => ClientError::Unavailable,
                None => ClientError::InvalidJson,
            })?
            .to_bytes();
        let understood = match status {
            StatusCode::OK => answered_in == MessageFormat::Binary,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => false,
            // Refusals have the same form for both, so they don't tell which the service knows.
            _ => return Err(refusal(status, &body).into()),
        };
        if matches!(ask.question, RequestContent::Search(_))
            && understood != self.binary.load(Ordering::Relaxed)
        {
            self.binary.store(understood, Ordering::Relaxed);
        }
        match status {
            StatusCode::OK => Ok(ServiceResponse {
                form: answered_in,
                is_exact,
                is_short,
                body,
            }),
            _ if form == MessageFormat::Binary => Err(AttemptFailure::Form),
            _ => Err(refusal(status, &body).into()),
        }
    }

    async fn serves(&self) -> bool {
        let ask = ServiceRequest {
            path: "/api/v1/status".to_owned(),
            question: RequestContent::Read,
            takes_binary: false,
            deadline: tokio::time::Instant::now() + self.look_interval_max,
        };
        let status =
            tokio::time::timeout_at(ask.deadline, self.send_in(MessageFormat::Json, &ask)).await;
        let Ok(Ok(status)) = status else {
            return false;
        };
        matches!(
            serde_json::from_slice(&status.body),
            Ok(NodeStatus::Serving)
        )
    }
}

/// The reason why a service did not answer as requested.
enum AttemptFailure {
    /// The service does not know the form of the search.
    Form,
    Other(ClientError),
}

impl AttemptFailure {
    fn error(self) -> ClientError {
        match self {
            AttemptFailure::Other(error) => error,
            // Every service knows JSON, which is tried last.
            AttemptFailure::Form => ClientError::Unavailable,
        }
    }
}

impl From<ClientError> for AttemptFailure {
    fn from(error: ClientError) -> AttemptFailure {
        AttemptFailure::Other(error)
    }
}

impl std::fmt::Debug for ServiceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("base", &self.base)
            .field("address", &self.address)
            .field("available", &self.is_available())
            .finish_non_exhaustive()
    }
}

/// Ends the quarantine of a node when its service serves. Stops when the node is no longer used.
async fn wait_until_it_serves(node: Weak<ServiceAddress>) {
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
