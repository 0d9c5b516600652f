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

use super::crowd::Guest;
use super::entry::Caller;
use super::front::Front;

/// The first byte of a TLS connection: a record of the handshake. No HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The longest time that the first byte and the handshake may take together.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that a connection of HTTP/1.1 may wait for a whole request head. A client that
/// keeps connections open may not send a request for long. If it sends one just as its connection
/// is closed, it takes the service for dead. So this time is long, and the number of connections is
/// bounded instead.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

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
#[derive(Clone)]
pub struct Entrance {
    /// The TLS configuration; `None`: HTTP in clear alone.
    pub tls: Option<Arc<ServerConfig>>,
    /// The front for requests in clear; `None`: connections in clear are closed.
    pub in_clear: Option<Arc<Front>>,
    /// The front for requests over TLS.
    pub in_tls: Arc<Front>,
    /// The longest time that a connection may wait for its first request.
    pub mute_max: Duration,
}

/// Serves a connection until the client or `stop` ends it. Requests in flight are answered first.
pub async fn serve(stream: TcpStream, entrance: Entrance, guest: Arc<Guest>) {
    let stop = guest.end.clone();
    let peer = stream.peer_addr().ok();
    let caller = |identity| {
        let address = peer?.ip();
        Some(Caller { address, identity })
    };
    if let Err(error) = prepare(&stream).and_then(|()| drop_if_untaken(&stream, UNTAKEN_MAX)) {
        tracing::debug!(%error, ?peer, "a connection was gone before it was served");
        return;
    }
    let patience = Patience {
        first_request: entrance.mute_max,
        last_answers: LAST_ANSWERS_WITHIN,
    };
    let ended = match entrance.tls {
        None => match entrance.in_clear {
            Some(front) => http(stream, front, guest, (patience, caller(None))).await,
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
                Some(Ok(Ok(Begun::Tls(stream)))) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    let identity = certificates.and_then(|them| tls::identity(them.first()?));
                    let caller = caller(identity.map(Arc::from));
                    http(*stream, entrance.in_tls, guest, (patience, caller)).await
                }
                Some(Ok(Ok(Begun::Clear(stream)))) => match entrance.in_clear {
                    Some(front) => http(stream, front, guest, (patience, caller(None))).await,
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
struct Patience {
    /// The longest wait for the first request. It counts from the start, so an unfinished HTTP/2
    /// preface doesn't extend it.
    first_request: Duration,
    /// The longest wait for the answers to requests in flight when the connection is to end.
    last_answers: Duration,
}

/// A connection after its first byte, and after the handshake if it is in TLS.
enum Begun {
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
    Clear(TcpStream),
}

/// Finds out whether the client speaks TLS, and shakes hands if it does. If `clear` is false,
/// anything but TLS fails.
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

async fn http<S>(
    stream: S,
    front: Arc<Front>,
    guest: Arc<Guest>,
    (patience, caller): (Patience, Option<Caller>),
) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
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
        let guest = guest.clone();
        move |request| {
            asked.store(true, Ordering::Relaxed);
            let asking = guest.asks();
            let answer = front.clone().answer(request, caller.clone());
            async move {
                let answer = answer.await;
                drop(asking);
                answer
            }
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // The library sets no time limit to the bytes that tell the HTTP version.
    let first_request = async {
        tokio::time::sleep(patience.first_request).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = first_request => return Err("no request in time".to_owned()),
        () = guest.end.cancelled() => {
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
    use axum::Router;
    use tokio::io::AsyncWriteExt;
    use tokio_util::sync::CancellationToken;

    use super::super::answer_budget::AnswerBudget;
    use super::super::guard::Guard;
    use super::super::table::Routes;
    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(100);

    fn front() -> Arc<Front> {
        let guard = Guard::new(([127, 0, 0, 1], 6080).into(), &[]);
        let answers = AnswerBudget::new(1 << 20);
        let routes = Routes {
            router: Router::new(),
            direct: None,
        };
        Arc::new(Front::new(routes, answers, Arc::new(guard)))
    }

    /// Serves a client that sends `sent` and then nothing. Returns the error that ends the
    /// connection.
    async fn end_after(sent: &[u8], stop: CancellationToken, patience: Patience) -> String {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        client.write_all(sent).await.unwrap();
        let ended = http(server, front(), Guest::new(stop), (patience, None));
        let ended = tokio::time::timeout(LONG, ended).await.expect("it ends");
        ended.unwrap_err()
    }

    #[tokio::test]
    async fn a_client_that_asks_nothing_is_given_up() {
        let patience = Patience {
            first_request: SHORT,
            last_answers: LONG,
        };
        for sent in ["", "P", "PRI * HTTP/2.0"] {
            let end = end_after(sent.as_bytes(), CancellationToken::new(), patience).await;
            assert_eq!(end, "no request in time", "{sent:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_has_asked_may_be_silent() {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let patience = Patience {
            first_request: SHORT,
            last_answers: LONG,
        };
        let stop = CancellationToken::new();
        let serving = http(server, front(), Guest::new(stop), (patience, None));
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
        let patience = Patience {
            first_request: LONG,
            last_answers: SHORT,
        };
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
}
