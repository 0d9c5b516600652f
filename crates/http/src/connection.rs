//! Serves one connection: in clear or in TLS, HTTP/1.1 or HTTP/2.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use net::sockets::{drop_if_untaken, prepare};
use net::tls;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::access_check::RequestClient;
use crate::connections::HttpConnection;
use crate::front::RequestFront;
use crate::options::ConnectionLimits;
use crate::routes::DirectRoute;

/// The first byte of a TLS connection: a record of the handshake. No HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The longest time that the first byte and the handshake may take together.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes that are buffered of a request head, and of a body before it is taken. Heads are
/// not charged, so they must be short.
const HTTP1_BUFFER_BYTES: usize = 64 << 10;

/// The longest time that the last answers of a connection may take when it is to end. A client of
/// HTTP/2 need not confirm the end.
const LAST_ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// A connection is closed, and its answers dropped, if the client takes nothing of what was sent to
/// it for this long.
const UNTAKEN_MAX: Duration = Duration::from_secs(60);

/// The interval at which HTTP/2 connections without traffic are probed.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);

/// The most requests of one HTTP/2 connection at a time.
const HTTP2_STREAMS_MAX: u32 = 256;

/// The settings with which a new connection is served.
pub(crate) struct AcceptConfig<D> {
    /// The TLS configuration; `None`: only HTTP in clear.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// The front for requests in clear; `None`: connections in clear are closed.
    pub(crate) in_clear: Option<Arc<RequestFront<D>>>,
    /// The front for requests over TLS.
    pub(crate) in_tls: Arc<RequestFront<D>>,
    /// The bounds of a connection.
    pub(crate) limits: ConnectionLimits,
}

impl<D> Clone for AcceptConfig<D> {
    fn clone(&self) -> AcceptConfig<D> {
        AcceptConfig {
            tls: self.tls.clone(),
            in_clear: self.in_clear.clone(),
            in_tls: self.in_tls.clone(),
            limits: self.limits,
        }
    }
}

/// Serves a connection until the client or `stop` ends it. Requests in flight are answered first.
pub(crate) async fn serve<D: DirectRoute>(
    stream: TcpStream,
    entrance: AcceptConfig<D>,
    connection: Arc<HttpConnection>,
) {
    let stop = connection.end.clone();
    let peer = stream.peer_addr().ok();
    let client = |identity| {
        let address = peer?.ip();
        Some(RequestClient { address, identity })
    };
    if let Err(error) = prepare(&stream).and_then(|()| drop_if_untaken(&stream, UNTAKEN_MAX)) {
        tracing::debug!(%error, ?peer, "a connection was gone before it was served");
        return;
    }
    let patience = ClientTimeouts {
        limits: entrance.limits,
        last_answers: LAST_ANSWERS_WITHIN,
    };
    let ended = match entrance.tls {
        None => match entrance.in_clear {
            Some(front) => http(stream, front, connection, (patience, client(None))).await,
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
                Some(Ok(Ok(MaybeTlsStream::Tls(stream)))) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    let identity = certificates.and_then(|them| tls::identity(them.first()?));
                    let client = client(identity.map(Arc::from));
                    http(*stream, entrance.in_tls, connection, (patience, client)).await
                }
                Some(Ok(Ok(MaybeTlsStream::Clear(stream)))) => match entrance.in_clear {
                    Some(front) => http(stream, front, connection, (patience, client(None))).await,
                    None => Ok(()),
                },
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?peer, "a connection ended");
    }
}

/// The time limits of a connection.
#[derive(Clone, Copy)]
struct ClientTimeouts {
    /// The bounds of the listener. The wait for the first request counts from the start, so an
    /// unfinished HTTP/2 preface doesn't extend it.
    limits: ConnectionLimits,
    /// The longest wait for the answers to requests in flight when the connection is to end.
    last_answers: Duration,
}

/// A connection after its first byte, and after the handshake if it is in TLS.
enum MaybeTlsStream {
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
    Clear(TcpStream),
}

/// Finds out whether the client speaks TLS, and shakes hands if it does. If `clear` is false,
/// anything but TLS fails.
async fn begin(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    clear: bool,
) -> io::Result<MaybeTlsStream> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first[0] != TLS_HANDSHAKE && clear {
        return Ok(MaybeTlsStream::Clear(stream));
    }
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    Ok(MaybeTlsStream::Tls(Box::new(stream)))
}

async fn http<S, D>(
    stream: S,
    front: Arc<RequestFront<D>>,
    http: Arc<HttpConnection>,
    (patience, client): (ClientTimeouts, Option<RequestClient>),
) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    D: DirectRoute,
{
    let limits = patience.limits;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if !limits.has_http2 {
        builder = builder.http1_only();
    }
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_max)
        .max_buf_size(HTTP1_BUFFER_BYTES)
        // Answers to requests that came together leave together.
        .pipeline_flush(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .max_concurrent_streams(HTTP2_STREAMS_MAX);
    let asked = Arc::new(AtomicBool::new(false));
    let service = service_fn({
        let asked = asked.clone();
        let http = http.clone();
        move |request| {
            asked.store(true, Ordering::Relaxed);
            let guard = http.begin_request();
            let answer = front.clone().answer(request, client.clone());
            async move {
                let answer = answer.await;
                drop(guard);
                answer
            }
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // The library sets no time limit to the bytes that tell the HTTP version.
    let first_request = async {
        tokio::time::sleep(limits.mute_max).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let open_for_long = async {
        match limits.open_max {
            Some(open_max) => tokio::time::sleep(open_max).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = first_request => return Err("no request in time".to_owned()),
        () = open_for_long => return Err("open for as long as it may be".to_owned()),
        () = http.end.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(patience.last_answers, connection)
                .await
                .map_err(|_| "cut off, as it did not end in time".to_owned())?
        }
    };
    ended.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::AsyncWriteExt;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::access_check::AccessCheck;
    use crate::answer_budget::AnswerBudget;
    use crate::browser_sessions::BrowserSessions;
    use crate::host_rules::HostRules;
    use crate::routes::{NoDirectRoute, RequestChannel, RouteTable};

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(100);

    fn front() -> Arc<RequestFront<NoDirectRoute>> {
        let address: SocketAddr = ([127, 0, 0, 1], 6080).into();
        let rules = HostRules::new(address, &[]);
        let answers = AnswerBudget::new(1 << 20);
        let check = AccessCheck {
            authorizer: None,
            listener: address.ip(),
            sessions: Arc::new(BrowserSessions::new(address.port())),
        };
        let routes = RouteTable::default().routes(RequestChannel::AsConfigured, &check);
        Arc::new(RequestFront::new(routes, answers, Arc::new(rules)))
    }

    /// So long a wait for the first request, and so long for the last answers.
    fn patience(first_request: Duration, last_answers: Duration) -> ClientTimeouts {
        ClientTimeouts {
            limits: ConnectionLimits {
                mute_max: first_request,
                ..ConnectionLimits::default()
            },
            last_answers,
        }
    }

    /// Serves a client that sends `sent` and then nothing. Returns the error that ends the
    /// connection.
    async fn end_after(sent: &[u8], stop: CancellationToken, patience: ClientTimeouts) -> String {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        client.write_all(sent).await.unwrap();
        let ended = http(server, front(), HttpConnection::new(stop), (patience, None));
        let ended = tokio::time::timeout(LONG, ended).await.expect("it ends");
        ended.unwrap_err()
    }

    #[tokio::test]
    async fn a_silent_new_client_is_disconnected() {
        let patience = patience(SHORT, LONG);
        for sent in ["", "P", "PRI * HTTP/2.0"] {
            let end = end_after(sent.as_bytes(), CancellationToken::new(), patience).await;
            assert_eq!(end, "no request in time", "{sent:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_has_asked_may_be_silent() {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let patience = patience(SHORT, LONG);
        let stop = CancellationToken::new();
        let serving = http(server, front(), HttpConnection::new(stop), (patience, None));
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            .await
            .unwrap();
        let silence = tokio::time::timeout(4 * SHORT, serving);
        assert!(silence.await.is_err(), "it goes on");
    }

    /// Time is simulated: it goes on when all that was sent has been read.
    #[tokio::test(start_paused = true)]
    async fn a_client_of_http2_that_does_not_answer_is_cut_off_at_the_end() {
        let stop = CancellationToken::new();
        let patience = patience(LONG, SHORT);
        // The preface and empty settings. The client never answers the server's notice of the end.
        let sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let ended = end_after(sent, stop.clone(), patience);
        let stopped = async {
            tokio::time::sleep(SHORT).await;
            stop.cancel();
        };
        let (end, ()) = tokio::join!(ended, stopped);
        assert_eq!(end, "cut off, as it did not end in time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_may_not_be_open_for_long_ends() {
        let mut patience = patience(LONG, LONG);
        patience.limits.open_max = Some(SHORT);
        patience.limits.has_http2 = false;
        let stop = CancellationToken::new();
        let end = end_after(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", stop, patience);
        assert_eq!(end.await, "open for as long as it may be");
    }
}
