//! The options of sockets.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// The time after which the kernel probes a silent peer.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
/// The time between two probes of a silent peer.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// Sets the options of a socket: small frames are sent at once, and keepalive finds a peer that is
/// gone.
///
/// # Errors
/// If the socket is closed already.
pub fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}
