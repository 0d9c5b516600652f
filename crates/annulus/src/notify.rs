//! Notes to the service manager (systemd's `Type=notify`): a datagram to the socket that
//! NOTIFY_SOCKET names. Without that variable nothing is sent.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that the program serves, and in a word where.
pub fn ready(status: &str) {
    notify(&format!("READY=1\nSTATUS=Serving: {status}"));
}

/// Says that the program has begun to stop.
pub fn stopping() {
    notify("STOPPING=1\nSTATUS=Stopping");
}

fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(
            ?socket,
            %error,
            "the service manager can't be notified, and may take the program for one that does not start"
        );
    }
}

/// Sends a state to a socket: a path, or after `@` a name in the abstract namespace.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => abstract_address(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    // The manager of services must not hold up a server.
    let datagrams = UnixDatagram::unbound()?;
    datagrams.set_nonblocking(true)?;
    datagrams.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;

    SocketAddr::from_abstract_name(name)
}

/// An error: only Linux has such names.
#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(manager: &UnixDatagram) -> String {
        let mut text = [0; 100];
        let bytes = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..bytes].to_vec()).unwrap()
    }

    #[test]
    fn a_state_reaches_a_socket_by_path_and_by_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&manager), "READY=1");

        let name = format!("annulus-notify-{}", std::process::id());
        let address = abstract_address(name.as_bytes()).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&manager), "STOPPING=1");
    }

    #[test]
    fn a_socket_that_is_missing_is_an_error() {
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }
}
