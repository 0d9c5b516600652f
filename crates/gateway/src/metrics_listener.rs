//! `GET /metrics` over HTTP, and whether the gateway lives and serves clients.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use http_server::{Refusal, Tokens};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use net::listener::Listener;
use tokio::sync::Semaphore;

use crate::shared::Shared;

/// Connections that are served at once; more wait.
const CONNECTIONS_MAX: usize = 16;

/// The time that a connection has to send the head of a request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// The time that a connection may be open in all.
const OPEN_MAX: Duration = Duration::from_secs(600);

/// The content type of Prometheus's text form.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves connections until the gateway stops.
pub(crate) async fn serve(listener: Listener, shared: Arc<Shared>) {
    let address = listener.address();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let accepted = shared.stop.run_until_cancelled(listener.accept()).await;
        let Some(stream) = accepted else {
            return;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let stop = shared.stop.clone();
            let service = service_fn(move |request| {
                let answer = answer(&request, address, &shared);
                async move { Ok::<_, Infallible>(answer) }
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_WITHIN)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                _ = tokio::time::timeout(OPEN_MAX, serving) => {}
                () = stop.cancelled() => {}
            }
            drop(place);
        });
    }
}

fn answer(
    request: &Request<Incoming>,
    address: SocketAddr,
    shared: &Shared,
) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST);
    let host = host.map(|host| host.to_str().unwrap_or_default());
    if host.is_some_and(|host| address.ip().to_canonical().is_loopback() && !is_loopback(host)) {
        return refused(
            StatusCode::FORBIDDEN,
            "this listener is on a loopback address and answers to loopback names alone",
        );
    }
    if let Some(response) = health(request.method(), request.uri().path(), shared) {
        return response;
    }
    if let Err(response) = admit(request.headers(), address.ip(), &shared.options.tokens) {
        return *response;
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            let text = shared.metrics.text(&shared.gauges());
            let mut response = Response::new(Full::from(text));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
            response
        }
        (&Method::GET, _) => refused(StatusCode::NOT_FOUND, "ask for /metrics"),
        _ => refused(StatusCode::METHOD_NOT_ALLOWED, "ask with GET"),
    }
}

/// Answers the routes of health, which need no token; `None` for other requests. The CQL port is
/// open for as long as this one.
fn health(method: &Method, path: &str, shared: &Shared) -> Option<Response<Full<Bytes>>> {
    let is_asked = [Method::GET, Method::HEAD].contains(method);
    let (status, body) = match path {
        "/health/live" if is_asked => (StatusCode::OK, "live"),
        "/health/ready" if is_asked => match shared.catalog.is_ready() {
            true => (StatusCode::OK, "\"SERVING\""),
            false => (StatusCode::SERVICE_UNAVAILABLE, "\"CONNECTING_TO_DB\""),
        },
        _ => return None,
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    Some(response)
}

fn refused(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{why}\n")));
    *response.status_mut() = status;
    response
}

/// Checks the token of a request to the listener at this address.
fn admit(
    headers: &HeaderMap,
    listener: IpAddr,
    tokens: &Tokens,
) -> Result<(), Box<Response<Full<Bytes>>>> {
    let authorization = headers.get(AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    tokens.check(authorization, listener).map_err(|refusal| {
        Box::new(match refusal {
            Refusal::Token(text) | Refusal::Login(text) => {
                let mut response = refused(StatusCode::UNAUTHORIZED, &text);
                let challenge = HeaderValue::from_static("Bearer realm=\"annulus\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                response
            }
            Refusal::Right(text) => refused(StatusCode::FORBIDDEN, &text),
            Refusal::Busy(text) => refused(StatusCode::SERVICE_UNAVAILABLE, &text),
        })
    })
}

/// Whether the value of a Host header, with or without a port, names this machine. It guards
/// against web pages whose own host name resolves to this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse()
            .is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_loopback_a_token_is_asked_for() {
        let [here, elsewhere] = ["127.0.0.1", "10.0.0.1"].map(|text| text.parse().unwrap());
        let bearing = |value: &'static str| {
            HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
        };
        let status = |headers: &HeaderMap, at, tokens: &Tokens| {
            let refused = admit(headers, at, tokens);
            refused.map_or_else(|response| response.status().as_u16(), |()| 200)
        };
        let nothing = HeaderMap::new();
        let none = Tokens::default();
        assert_eq!(status(&nothing, here, &none), 200);
        assert_eq!(status(&nothing, elsewhere, &none), 403);
        let set = http_server::TokenSet::parse("0123456789abcdef").unwrap();
        let some = Tokens::new(Some(set));
        assert_eq!(status(&nothing, here, &some), 401);
        assert_eq!(status(&bearing("Bearer wrong"), elsewhere, &some), 401);
        let right = bearing("Bearer 0123456789abcdef");
        assert_eq!(status(&right, elsewhere, &some), 200);
    }

    #[test]
    fn names_of_this_machine() {
        for host in ["localhost", "localhost:9180", "127.1.2.3:80", "[::1]:80"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9180",
            "10.0.0.1",
            "localhost.evil",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
