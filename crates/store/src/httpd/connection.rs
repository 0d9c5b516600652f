//! One connection: in clear or in TLS, HTTP/1.1 or HTTP/2.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The first byte of a TLS connection: a record of the handshake. No HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// How long the first byte and the handshake may take together.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection of HTTP/1.1 may wait for a whole request head. A client that keeps
/// connections open may not ask for long, and one that asks just as its connection is closed takes
/// the service for dead: so this is long, and the number of connections is bounded instead.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// HTTP/2 connections without traffic are tried so often.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);

/// Requests of one HTTP/2 connection at a time.
const HTTP2_STREAMS_MAX: u32 = 256;

/// What a new connection is served with.
#[derive(Clone)]
pub struct Entrance {
    /// Absent: HTTP in clear alone.
    pub tls: Option<Arc<ServerConfig>>,
    /// What requests in clear find; absent: connections in clear are closed.
    pub in_clear: Option<Router>,
    /// What other requests find.
    pub in_tls: Router,
}

/// Serves a connection until the client or `stop` ends it. Requests in flight are answered first.
pub async fn serve(stream: TcpStream, entrance: Entrance, stop: CancellationToken) {
    let peer = stream.peer_addr().ok();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let ended = match entrance.tls {
        None => match entrance.in_clear {
            Some(router) => http(stream, router, stop).await,
            None => Ok(()),
        },
        Some(config) => {
            let begin = tokio::time::timeout(
                HANDSHAKE_TIMEOUT,
                begin(stream, config, entrance.in_clear.is_some()),
            );
            match stop.run_until_cancelled(begin).await {
                None => return,
                Some(Err(_)) => Err("no handshake in time".to_owned()),
                Some(Ok(Err(error))) => Err(error.to_string()),
                Some(Ok(Ok(Begun::Tls(stream)))) => http(*stream, entrance.in_tls, stop).await,
                Some(Ok(Ok(Begun::Clear(stream)))) => match entrance.in_clear {
                    Some(router) => http(stream, router, stop).await,
                    None => Ok(()),
                },
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?peer, "a connection ended");
    }
}

enum Begun {
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
    Clear(TcpStream),
}

/// Finds out which of the two the client speaks, and shakes hands.
async fn begin(stream: TcpStream, config: Arc<ServerConfig>, clear: bool) -> io::Result<Begun> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first[0] != TLS_HANDSHAKE && clear {
        return Ok(Begun::Clear(stream));
    }
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    Ok(Begun::Tls(Box::new(stream)))
}

async fn http<S>(stream: S, router: Router, stop: CancellationToken) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        // Answers to requests that came together leave together.
        .pipeline_flush(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .max_concurrent_streams(HTTP2_STREAMS_MAX);
    let connection =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(|error| error.to_string())
}
