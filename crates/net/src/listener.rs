//! Sockets that listen: bound with an error that names the address, and accepting in spite of
//! failures.
//!
//! Every server of this house listens by this module. It owns the steps up to a connection that may
//! be served. What the server does beyond its limit of connections differs: at a CQL server one
//! that has not begun gives way, and if all have, the new one is refused
//! ([`Listener::accept_up_to`]). An HTTP server makes room or waits ([`Listener::accept`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::pending_connections::{ConnectionAdmission, PendingConnections};
use crate::sockets::prepare;

/// The pause after a failed accept. Mostly there are no file descriptors left, and some connection
/// has to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time that a connection has to give way, before another does, too.
const ROOM_WITHIN: Duration = Duration::from_millis(100);

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

/// The numbers of connections that a listener may have at once.
#[derive(Clone, Copy, Debug)]
pub struct AcceptLimits {
    /// The most connections.
    pub connections: usize,
    /// The most of them that have not begun.
    pub unauthenticated: usize,
}

/// The place of a connection among those that a listener may have. It is free again when this value
/// is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    admission: ConnectionAdmission,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    /// The connection that has the place.
    pub fn admission(&self) -> &ConnectionAdmission {
        &self.admission
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.admission.admit();
    }
}

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

    /// The address of the socket. If port 0 was requested, it has the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection. A failed accept is logged and tried again after a pause.
    pub async fn accept(&self) -> TcpStream {
        self.accept_from().await.0
    }

    /// The next connection, and the address of its client.
    async fn accept_from(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(%error, listener = %self.address, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Accepts connections until `stop`, with the options of [`prepare`], and gives each to `serve`
    /// with its place. At a limit a connection that has not begun gives way
    /// ([`PendingConnections`]). So `serve` has to end one that is [sent away], and to tell when
    /// one is [let in]. If all have begun, the new connection is closed, and `refused` is called.
    ///
    /// [sent away]: ConnectionAdmission::eviction
    /// [let in]: ConnectionAdmission::admit
    pub async fn accept_up_to(
        self,
        limits: AcceptLimits,
        stop: CancellationToken,
        refused: impl Fn(),
        serve: impl Fn(TcpStream, ConnectionPermit),
    ) {
        let places = limits.connections.min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(places));
        let strangers = PendingConnections::new(limits.unauthenticated.min(limits.connections));
        let accepting = async {
            loop {
                let (stream, client) = self.accept_from().await;
                let Some(permit) = find_place(&places, &strangers).await else {
                    refused();
                    tracing::warn!(
                        listener = %self.address,
                        "too many connections: one refused"
                    );
                    continue;
                };
                match prepare(&stream) {
                    Ok(()) => {
                        let guest = strangers.enter(client.ip());
                        let place = ConnectionPermit {
                            admission: guest,
                            _permit: permit,
                        };
                        serve(stream, place);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a connection was gone before it was served");
                    }
                }
            }
        };
        stop.run_until_cancelled(accepting).await;
    }
}

/// A place for one more connection, if need be that of a stranger. `None` if all have begun.
async fn find_place(
    places: &Arc<Semaphore>,
    strangers: &PendingConnections,
) -> Option<OwnedSemaphorePermit> {
    loop {
        if let Ok(permit) = places.clone().try_acquire_owned() {
            return Some(permit);
        }
        if !strangers.make_room() {
            return None;
        }
        let freed = timeout(ROOM_WITHIN, places.clone().acquire_owned());
        if let Ok(Ok(permit)) = freed.await {
            return Some(permit);
        }
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

    /// A listener that accepts.
    struct AcceptingServer {
        address: SocketAddr,
        served: mpsc::Receiver<(TcpStream, ConnectionPermit)>,
        refusals: Arc<AtomicUsize>,
        stop: CancellationToken,
        task: tokio::task::JoinHandle<()>,
    }

    /// Accepts up to so many connections.
    async fn accept_up_to(connections: usize) -> AcceptingServer {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap());
        let listener = listener.await.unwrap();
        let address = listener.address();
        let (sender, served) = mpsc::channel(16);
        let refusals = Arc::new(AtomicUsize::new(0));
        let stop = CancellationToken::new();
        let limits = AcceptLimits {
            connections,
            unauthenticated: connections,
        };
        let task = tokio::spawn({
            let (refusals, stop) = (refusals.clone(), stop.clone());
            async move {
                let refused = || {
                    refusals.fetch_add(1, Ordering::Relaxed);
                };
                let serve = |stream, place| sender.try_send((stream, place)).unwrap();
                listener.accept_up_to(limits, stop, refused, serve).await;
            }
        });
        AcceptingServer {
            address,
            served,
            refusals,
            stop,
            task,
        }
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_until_a_place_is_free() {
        let mut accepting = accept_up_to(1).await;
        let _first = TcpStream::connect(accepting.address).await.unwrap();
        let one = accepting.served.recv().await.expect("it is served");
        one.1.admission().admit();
        let mut second = TcpStream::connect(accepting.address).await.unwrap();
        assert_eq!(second.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
        assert_eq!(accepting.refusals.load(Ordering::Relaxed), 1);
        drop(one);
        let _third = TcpStream::connect(accepting.address).await.unwrap();
        let _second = accepting.served.recv().await.expect("it is served");
        accepting.stop.cancel();
        accepting.task.await.unwrap();
        assert!(TcpStream::connect(accepting.address).await.is_err());
    }

    #[tokio::test]
    async fn at_the_limit_the_longest_silent_gives_its_place_to_the_new_one() {
        let mut accepting = accept_up_to(3).await;
        let mut open = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(accepting.address).await.unwrap());
            open.push(accepting.served.recv().await.expect("it is served"));
        }
        open[0].1.admission().admit();
        for _ in 0..10 {
            clients.push(TcpStream::connect(accepting.address).await.unwrap());
            open[1].1.admission().evicted().await;
            drop(open.remove(1));
            open.push(accepting.served.recv().await.expect("it is served"));
        }
        assert_eq!(accepting.refusals.load(Ordering::Relaxed), 0);
        let first = timeout(Duration::ZERO, open[0].1.admission().evicted());
        assert!(first.await.is_err(), "it was let in");
        accepting.stop.cancel();
        accepting.task.await.unwrap();
    }
}
