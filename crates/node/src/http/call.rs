//! One request: its client's login, its header against pages of other origins, its time, and the
//! end of its reads when the client hangs up.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::{CqlError, ErrorKind};
use http_server::{ReceivedBody, RequestClient, RequestOrigin, check_guard};
use serde::Deserialize;

use super::Shared;
use super::failure::HttpFailure;
use crate::requests::{SessionClient, StatementSession};
use crate::statement::ClientPresence;

/// The header with the longest time that the client waits, in milliseconds.
const TIMEOUT: HeaderName = HeaderName::from_static("x-request-timeout-ms");
/// The header of a request that is traced, and of its answer with the ids of traces.
const TRACE: HeaderName = HeaderName::from_static("x-annulus-trace");
/// The longest time that a client can wait.
const TIME_MAX: Duration = Duration::from_secs(600);

/// The way in which a request is guarded against pages of other origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// It only reads.
    Reads,
    /// It may change something.
    MayChange,
}

/// A request that was let in.
pub(super) struct TableCall {
    pub tables: Shared,
    pub session: StatementSession,
    time: Duration,
    _hang_up: HangUpGuard,
}

/// The body of a request.
pub(super) struct CallBody {
    pub bytes: Bytes,
    _received: ReceivedBody,
    /// The charge for the values that statements copy out of it.
    _copies: MemoryCharge,
}

/// Ends the reads of a client as soon as its request is dropped.
struct HangUpGuard(ClientPresence);

impl Drop for HangUpGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl TableCall {
    /// Lets a request in, and reads its body.
    ///
    /// # Errors
    /// As for one without a body. Also if the body breaks off, is too long or too slow, or there is
    /// no room for it.
    pub async fn with_body(
        tables: Shared,
        request: Request,
        kind: CallKind,
    ) -> Result<(TableCall, CallBody), HttpFailure> {
        let (parts, body) = request.into_parts();
        let call = TableCall::begin(tables, &parts, kind).await?;
        let body = call.body(body).await?;
        Ok((call, body))
    }

    /// Lets a request in, whose body is not read. The string is the query of its URI.
    ///
    /// # Errors
    /// Without the header that its kind needs, and without the login that is needed.
    pub async fn without_body(
        tables: Shared,
        request: Request,
        kind: CallKind,
    ) -> Result<(TableCall, String), HttpFailure> {
        let (parts, _) = request.into_parts();
        let call = TableCall::begin(tables, &parts, kind).await?;
        let query = parts.uri.query().unwrap_or_default();
        Ok((call, query.to_owned()))
    }

    async fn begin(
        tables: Shared,
        parts: &Parts,
        kind: CallKind,
    ) -> Result<TableCall, HttpFailure> {
        let headers = &parts.headers;
        if kind == CallKind::MayChange {
            check_guard(headers)?;
        }
        let Some(client) = parts.extensions.get::<RequestClient>() else {
            return Err(HttpFailure::from(CqlError::server(
                "bug: a request without a client",
            )));
        };
        let authorization = headers.get(AUTHORIZATION);
        let listener = tables.options.listener;
        let origin = RequestOrigin {
            // One that is no text is wrong, not absent: a certificate must not replace it.
            authorization: authorization.map(|value| value.to_str().unwrap_or_default()),
            identity: client.identity.as_deref(),
            client: client.address,
            listener: listener.ip(),
        };
        let role = tables.logins.role_of(origin).await?;
        let memory = account(&tables)?;
        let presence = ClientPresence::of_client();
        let hang_up = HangUpGuard(presence.clone());
        let client = SessionClient {
            // The port is not known any more, and nothing depends on it.
            addresses: (SocketAddr::new(client.address, 0), listener),
            role,
            memory,
            presence,
            is_traced: headers.contains_key(TRACE),
        };
        Ok(TableCall {
            session: tables.sessions.open(client, None)?,
            time: time(headers, tables.options.request_time)?,
            tables,
            _hang_up: hang_up,
        })
    }

    async fn body(&self, body: Body) -> Result<CallBody, HttpFailure> {
        let received = self.tables.bodies.read(body).await?;
        let mut copies = self.session.memory().charge();
        copies
            .resize(received.bytes.len())
            .map_err(|_| no_memory())?;
        Ok(CallBody {
            bytes: received.bytes.clone(),
            _received: received,
            _copies: copies,
        })
    }

    /// Does the work of the request within its time, and answers with the JSON text of it.
    ///
    /// # Errors
    /// Those of the work, and 504 once the time is over.
    pub async fn answer(
        &self,
        work: impl Future<Output = Result<String, HttpFailure>>,
    ) -> Result<Response, HttpFailure> {
        let done = tokio::time::timeout(self.time, work).await;
        let text = done.unwrap_or_else(|_| {
            let ms = self.time.as_millis();
            Err(HttpFailure::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!("the request took longer than {ms} ms"),
                "request less at a time, or send a longer X-Request-Timeout-Ms; a write may have \
                 been carried out",
            ))
        })?;
        let json = HeaderValue::from_static("application/json");
        let mut response = ([(CONTENT_TYPE, json)], text).into_response();
        let traces = self.session.traces();
        if !traces.is_empty() {
            let ids: Vec<String> = traces.iter().map(ToString::to_string).collect();
            if let Ok(ids) = HeaderValue::try_from(ids.join(" ")) {
                response.headers_mut().insert(TRACE, ids);
            }
        }
        Ok(response)
    }
}

/// Reads JSON of a body.
///
/// # Errors
/// If it is no JSON, of another shape, or has a field that is not known.
pub(super) fn json<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, HttpFailure> {
    // An absent body has all fields by default, where a request can do without them.
    let bytes = match bytes.is_empty() {
        true => &b"{}"[..],
        false => bytes,
    };
    serde_json::from_slice(bytes).map_err(|error| HttpFailure::of_body(&error))
}

fn account(tables: &Shared) -> Result<MemoryAccount, HttpFailure> {
    tables.memory.client().map_err(|_| no_memory())
}

fn no_memory() -> HttpFailure {
    let text = "Overloaded: requests under way take all memory for requests over HTTP";
    HttpFailure::from(CqlError::new(ErrorKind::Overloaded, text))
}

fn time(headers: &HeaderMap, default: Duration) -> Result<Duration, HttpFailure> {
    let Some(given) = headers.get(TIMEOUT) else {
        return Ok(default);
    };
    let ms = given
        .to_str()
        .ok()
        .and_then(|ms| ms.trim().parse::<u64>().ok());
    let time = ms.filter(|ms| *ms > 0).map(Duration::from_millis);
    let time = time.ok_or_else(|| {
        HttpFailure::bad_request(
            "X-Request-Timeout-Ms is no positive number",
            "send milliseconds, such as 5000",
        )
    })?;
    Ok(time.min(TIME_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        let header = (name, HeaderValue::from_str(value).unwrap());
        [header].into_iter().collect()
    }

    #[test]
    fn the_time_is_the_clients_up_to_a_bound() {
        let default = Duration::from_secs(30);
        assert_eq!(time(&HeaderMap::new(), default), Ok(default));
        let of = |text| time(&headers(TIMEOUT, text), default);
        assert_eq!(of("250"), Ok(Duration::from_millis(250)));
        assert_eq!(of("99999999"), Ok(TIME_MAX));
        for wrong in ["0", "-1", "soon"] {
            assert_eq!(of(wrong).unwrap_err().status, StatusCode::BAD_REQUEST);
        }
    }
}
