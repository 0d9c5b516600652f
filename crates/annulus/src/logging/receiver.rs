//! The receiver of records: rsyslog or another, over TCP, UDP or a socket of this machine.
//!
//! One thread has the connection. While the receiver is away it tries again each second, and the
//! queue drops what finds no room. Records that the system had taken just before a receiver went
//! away are lost uncounted, as syslog has no acknowledgement.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use super::line_queue::LineQueue;

/// The pause between two attempts to reach the receiver.
const RETRY: Duration = Duration::from_secs(1);

/// The longest time that a connection may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// The longest time that the receiver may take to take a record.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// The longest wait for a record; then the thread looks again.
const IDLE: Duration = Duration::from_secs(60);

/// The address of a receiver of syslog.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub enum SyslogReceiver {
    /// TCP: each record ends with a line end, as rsyslog's `imtcp` reads it.
    Tcp(String),
    /// UDP: each record is a datagram.
    Udp(String),
    /// A datagram socket of this machine, such as `/dev/log`.
    Unix(PathBuf),
}

impl FromStr for SyslogReceiver {
    type Err = String;

    fn from_str(text: &str) -> Result<SyslogReceiver, String> {
        let wrong = || {
            format!(
                "'{text}' is no receiver of syslog: write HOST:PORT for TCP, udp:HOST:PORT, or unix:/dev/log"
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(SyslogReceiver::Unix(path.into())),
                false => Err(wrong()),
            };
        }
        let (address, receiver): (&str, fn(String) -> SyslogReceiver) =
            match text.strip_prefix("udp:") {
                Some(address) => (address, SyslogReceiver::Udp),
                None => (
                    text.strip_prefix("tcp:").unwrap_or(text),
                    SyslogReceiver::Tcp,
                ),
            };
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        match !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) {
            true => Ok(receiver(address.to_owned())),
            false => Err(wrong()),
        }
    }
}

impl TryFrom<String> for SyslogReceiver {
    type Error = String;

    fn try_from(text: String) -> Result<SyslogReceiver, String> {
        text.parse()
    }
}

impl fmt::Display for SyslogReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyslogReceiver::Tcp(address) => write!(f, "tcp:{address}"),
            SyslogReceiver::Udp(address) => write!(f, "udp:{address}"),
            SyslogReceiver::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Starts the thread that delivers the records of a queue.
///
/// # Errors
/// If the thread can't be started.
pub fn deliver(lines: Arc<LineQueue>, receiver: SyslogReceiver) -> io::Result<()> {
    let delivery = SyslogDelivery {
        lines,
        receiver,
        connection: None,
        is_away: false,
        dropped_before: 0,
    };
    let thread = thread::Builder::new().name("syslog".to_owned());
    thread.spawn(move || delivery.run()).map(drop)
}

/// The way to the receiver.
struct SyslogDelivery {
    lines: Arc<LineQueue>,
    receiver: SyslogReceiver,
    connection: Option<ReceiverConnection>,
    /// Whether the log says that the receiver is away.
    is_away: bool,
    /// The number of dropped records before the receiver went away.
    dropped_before: u64,
}

impl SyslogDelivery {
    /// Delivers records as long as the process lives.
    fn run(mut self) {
        loop {
            if let Some(line) = self.lines.pop(IDLE) {
                while let Err(error) = self.send(&line) {
                    self.lost(&error);
                    thread::sleep(RETRY);
                }
            }
        }
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let opened = ReceiverConnection::open(&self.receiver)?;
                self.connection.insert(opened)
            }
        };
        connection.send(line)?;
        self.found();
        Ok(())
    }

    /// Notes that the receiver did not take a record.
    fn lost(&mut self, error: &io::Error) {
        self.connection = None;
        self.lines.set_connected(false);
        if !self.is_away {
            self.is_away = true;
            self.dropped_before = self.lines.dropped();
            tracing::warn!(
                receiver = %self.receiver,
                %error,
                "the receiver of syslog is away; lines wait, and are dropped once 1 MiB waits"
            );
        }
    }

    /// Notes that the receiver took a record.
    fn found(&mut self) {
        self.lines.set_connected(true);
        if self.is_away {
            self.is_away = false;
            let dropped = self.lines.dropped() - self.dropped_before;
            tracing::info!(receiver = %self.receiver, dropped, "the receiver of syslog is there again");
        }
    }
}

/// A connection to the receiver.
enum ReceiverConnection {
    Tcp(TcpStream),
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl ReceiverConnection {
    fn open(receiver: &SyslogReceiver) -> io::Result<ReceiverConnection> {
        match receiver {
            SyslogReceiver::Tcp(address) => {
                let stream = first_of(address, |address| {
                    TcpStream::connect_timeout(&address, CONNECT_WITHIN)
                })?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_WITHIN))?;
                Ok(ReceiverConnection::Tcp(stream))
            }
            SyslogReceiver::Udp(address) => {
                let socket = first_of(address, |address| {
                    let any = match address {
                        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                    };
                    let socket = UdpSocket::bind(any)?;
                    socket.connect(address)?;
                    Ok(socket)
                })?;
                Ok(ReceiverConnection::Udp(socket))
            }
            SyslogReceiver::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(WRITE_WITHIN))?;
                Ok(ReceiverConnection::Unix(socket))
            }
        }
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        match self {
            ReceiverConnection::Tcp(stream) => {
                check_open(stream)?;
                let mut framed = Vec::with_capacity(line.len() + 1);
                framed.extend_from_slice(line.as_bytes());
                framed.push(b'\n');
                stream.write_all(&framed)
            }
            ReceiverConnection::Udp(socket) => socket.send(line.as_bytes()).map(drop),
            ReceiverConnection::Unix(socket) => socket.send(line.as_bytes()).map(drop),
        }
    }
}

/// Opens a connection to the first of the addresses of a name that answers.
fn first_of<T>(address: &str, open: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match open(address) {
            Ok(opened) => return Ok(opened),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Checks that the receiver has not closed a connection. A write would succeed once more, and the
/// record would be lost. What the receiver sends is ignored.
fn check_open(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let read = stream.read(&mut [0; 512]);
    stream.set_nonblocking(false)?;
    match read {
        Ok(0) => Err(ErrorKind::ConnectionReset.into()),
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// The longest wait for a record in a test.
    const WITHIN: Duration = Duration::from_secs(30);

    fn started(receiver: &str) -> Arc<LineQueue> {
        let lines = Arc::new(LineQueue::default());
        deliver(Arc::clone(&lines), receiver.parse().unwrap()).unwrap();
        lines
    }

    /// The next records that a receiver gets by a new connection.
    fn accepted(listener: &TcpListener) -> impl FnMut() -> String {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let mut stream = BufReader::new(stream);
        move || {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            line
        }
    }

    #[test]
    fn receivers_are_written_in_three_forms() {
        for (text, shown) in [
            ("127.0.0.1:514", "tcp:127.0.0.1:514"),
            ("tcp:[::1]:6514", "tcp:[::1]:6514"),
            ("udp:logs:514", "udp:logs:514"),
            ("unix:/dev/log", "unix:/dev/log"),
        ] {
            let receiver: SyslogReceiver = text.parse().unwrap();
            assert_eq!(receiver.to_string(), shown);
        }
        for wrong in ["", "logs", "logs:0", ":514", "unix:dev/log", "udp:logs:x"] {
            assert!(wrong.parse::<SyslogReceiver>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_receiver_that_comes_back_gets_what_waited() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lines = started(&address.to_string());
        lines.push("one".to_owned());
        let mut next = accepted(&listener);
        assert_eq!(next(), "one\n");
        // The receiver goes away: nothing waits for it.
        drop(next);
        drop(listener);
        lines.push("two".to_owned());
        lines.push("three".to_owned());
        let listener = TcpListener::bind(address).unwrap();
        let mut next = accepted(&listener);
        assert_eq!(next(), "two\n");
        assert_eq!(next(), "three\n");
        assert_eq!(lines.dropped(), 0);
    }

    #[test]
    fn records_that_an_absent_receiver_has_no_room_for_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let lines = started(&format!("unix:{}", path.display()));
        let pushed = 3_000;
        for number in 0..pushed {
            lines.push(format!("{number} {}", "x".repeat(1 << 10)));
        }
        let dropped = lines.dropped();
        assert!(dropped > 1_000, "{dropped} of {pushed} are dropped");
        let receiver = UnixDatagram::bind(&path).unwrap();
        receiver.set_read_timeout(Some(WITHIN)).unwrap();
        let mut record = [0; 4 << 10];
        let mut last = None;
        for _ in 0..pushed - dropped {
            let bytes = receiver.recv(&mut record).unwrap();
            let text = std::str::from_utf8(&record[..bytes]).unwrap();
            let number = text.split(' ').next().unwrap().parse::<u64>().ok();
            assert!(number > last, "{number:?} after {last:?}");
            last = number;
        }
    }
}
