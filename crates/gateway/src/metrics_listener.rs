//! `GET /metrics` over HTTP.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
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
    let refused = |status: StatusCode, why: &str| {
        let mut response = Response::new(Full::from(format!("{why}\n")));
        *response.status_mut() = status;
        response
    };
    if host.is_some_and(|host| address.ip().is_loopback() && !is_loopback(host)) {
        return refused(
            StatusCode::FORBIDDEN,
            "this listener is on a loopback address and answers to loopback names alone",
        );
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            let text = shared.metrics.text(&shared.gauges());
            let mut response = Response::new(Full::from(text));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(TEXT));
            response
        }
        (&Method::GET, _) => refused(StatusCode::NOT_FOUND, "ask for /metrics"),
        _ => refused(StatusCode::METHOD_NOT_ALLOWED, "ask with GET"),
    }
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
