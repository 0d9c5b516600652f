//! Sockets that listen: bound with an error that names the address, and accepting in spite of
//! failures.
//!
//! Every server of this house listens by this module. It owns the steps up to a connection that may
//! be served. What the server does beyond its limit of connections differs: a CQL server refuses
//! ([`Listener::accept_up_to`]), and an HTTP server makes room or waits ([`Listener::accept`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::sockets::prepare;

/// The pause after a failed accept. Mostly there are no file descriptors left, and some connection
/// has to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The error of an address that could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address that was to be listened on.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub source: io::Error,
}

/// A socket that listens.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// The place of a connection among those that a listener may have. It is free again when this value
/// is dropped.
pub type Place = OwnedSemaphorePermit;

impl Listener {
    /// Begins to listen. Clients can connect from now on, and are served once they are accepted.
    ///
    /// # Errors
    /// If the address is in use or is not this machine's.
    pub async fn bind(address: SocketAddr) -> Result<Listener, BindError> {
        let bound = async {
            let socket = TcpListener::bind(address).await?;
            Ok(Listener {
                address: socket.local_addr()?,
                socket,
            })
        };
        bound.await.map_err(|source| BindError { address, source })
    }

    /// The address of the socket. If port 0 was asked for, it has the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection. A failed accept is logged and tried again after a pause.
    pub async fn accept(&self) -> TcpStream {
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) => return stream,
                Err(error) => {
                    tracing::warn!(%error, listener = %self.address, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Accepts connections until `stop`, with the options of [`prepare`], and gives each to `serve`
    /// with its place. A connection beyond `connections_max` is closed, and `refused` is told.
    pub async fn accept_up_to(
        self,
        connections_max: usize,
        stop: CancellationToken,
        refused: impl Fn(),
        serve: impl Fn(TcpStream, Place),
    ) {
        let places = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
        let accepting = async {
            loop {
                let stream = self.accept().await;
                let Ok(place) = places.clone().try_acquire_owned() else {
                    refused();
                    tracing::warn!(
                        listener = %self.address,
                        "too many connections: one refused"
                    );
                    continue;
                };
                match prepare(&stream) {
                    Ok(()) => serve(stream, place),
                    Err(error) => {
                        tracing::debug!(%error, "a connection was gone before it was served");
                    }
                }
            }
        };
        stop.run_until_cancelled(accepting).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let address = "127.0.0.1:0".parse().unwrap();
        let first = Listener::bind(address).await.unwrap();
        let error = Listener::bind(first.address()).await.unwrap_err();
        let expected = format!("cannot listen on {}: ", first.address());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_until_a_place_is_free() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap());
        let listener = listener.await.unwrap();
        let address = listener.address();
        let (sender, mut served) = mpsc::unbounded_channel();
        let refusals = Arc::new(AtomicUsize::new(0));
        let stop = CancellationToken::new();
        let accepting = tokio::spawn({
            let (refusals, stop) = (refusals.clone(), stop.clone());
            async move {
                let refused = || {
                    refusals.fetch_add(1, Ordering::Relaxed);
                };
                let serve = |stream, place| sender.send((stream, place)).unwrap();
                listener.accept_up_to(1, stop, refused, serve).await;
            }
        });
        let _first = TcpStream::connect(address).await.unwrap();
        let one = served.recv().await.expect("it is served");
        let mut second = TcpStream::connect(address).await.unwrap();
        assert_eq!(second.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
        assert_eq!(refusals.load(Ordering::Relaxed), 1);
        drop(one);
        let _third = TcpStream::connect(address).await.unwrap();
        let _second = served.recv().await.expect("it is served");
        stop.cancel();
        accepting.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
