//! The options of sockets, and the end of a connection.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The time after which the kernel probes a silent peer.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
/// The time between two probes of a silent peer.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// The longest time for which unwanted input is still read, so that its sender gets the answer.
pub const LINGER: Duration = Duration::from_secs(1);
/// The most bytes of it.
pub const LINGER_BYTES: u64 = 64 << 20;

/// Sets the options of a socket: small frames are sent at once, and keepalive finds a peer that has
/// disconnected.
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

/// Has a connection dropped, with its answers, if the peer takes nothing of what was sent to it for
/// this long. Systems other than Linux have no such option.
///
/// # Errors
/// If the socket is closed already.
pub fn drop_if_untaken(socket: &TcpStream, untaken_max: Duration) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    SockRef::from(socket).set_tcp_user_timeout(Some(untaken_max))?;
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, untaken_max);
    Ok(())
}

/// Reads on for a while after the last answer, so that the client gets it before the socket is
/// closed. A socket that is closed with unread bytes in it drops what it has sent.
pub async fn linger(reader: &mut (impl AsyncRead + Unpin)) {
    let mut rest = reader.take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
