//! Records of syslog, in the form of RFC 5424 and in that of a local socket.

use std::fmt::Write as _;

use jiff::Timestamp;

/// The facility of all records: a daemon of the system.
pub const DAEMON: u8 = 3;

/// The name of the program in records.
pub const APP_NAME: &str = "annulus";

/// The most bytes of a message. A longer one is cut, as receivers cut or refuse it otherwise.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// The mark at the end of a message that is cut.
const CUT: &str = "...";

/// The most bytes of a host name, by the RFC.
const HOST_BYTES_MAX: usize = 255;

/// A record before it has a form.
#[derive(Clone, Copy, Debug)]
pub struct SyslogRecord<'a> {
    /// The facility, from 0 to 23.
    pub facility: u8,
    /// The severity: 0 for an emergency, 3 for an error, 4 for a warning, 6 for information, 7 for
    /// debugging.
    pub severity: u8,
    /// The time in microseconds since the epoch.
    pub at_micros: i64,
    /// The host; empty if it is not known.
    pub host: &'a str,
    /// The program.
    pub app: &'a str,
    /// The id of the process, if it is known.
    pub process: Option<u32>,
    /// The kind of message, if it has one.
    pub message_id: Option<&'a str>,
    /// The text. Control characters in it are escaped, so that a record stays one line.
    pub message: &'a str,
}

impl SyslogRecord<'_> {
    /// The record by RFC 5424, without an end of line. There is no mark of UTF-8 before the
    /// message, as receivers would take it for a part of the text.
    #[must_use]
    pub fn rfc5424(&self) -> String {
        let at = Timestamp::from_microsecond(self.at_micros).unwrap_or(Timestamp::UNIX_EPOCH);
        let mut line = format!("<{}>1 {at:.6} ", self.priority());
        put_name(&mut line, self.host, HOST_BYTES_MAX);
        line.push(' ');
        put_name(&mut line, self.app, 48);
        match self.process {
            Some(process) => push(&mut line, format_args!(" {process} ")),
            None => line.push_str(" - "),
        }
        put_name(&mut line, self.message_id.unwrap_or_default(), 32);
        line.push_str(" - ");
        put_message(&mut line, self.message);
        line
    }

    /// The record as programs write it to `/dev/log`. Host and time are the receiver's affair
    /// there: both rsyslog and journald read this form.
    #[must_use]
    pub fn local(&self) -> String {
        let mut line = format!("<{}>{}", self.priority(), self.app);
        if let Some(process) = self.process {
            push(&mut line, format_args!("[{process}]"));
        }
        line.push_str(": ");
        put_message(&mut line, self.message);
        line
    }

    fn priority(&self) -> u16 {
        u16::from(self.facility) * 8 + u16::from(self.severity)
    }
}

/// The severity of a level.
#[must_use]
pub fn severity(level: tracing::Level) -> u8 {
    match level {
        tracing::Level::ERROR => 3,
        tracing::Level::WARN => 4,
        tracing::Level::INFO => 6,
        tracing::Level::DEBUG | tracing::Level::TRACE => 7,
    }
}

/// Appends to a text, which never fails.
fn push(line: &mut String, text: std::fmt::Arguments<'_>) {
    let written = line.write_fmt(text);
    debug_assert!(written.is_ok(), "a String takes any text");
}

/// Appends a name of the head: visible ASCII, and `-` for none.
fn put_name(line: &mut String, name: &str, bytes_max: usize) {
    let before = line.len();
    let visible = name.chars().filter(char::is_ascii_graphic);
    line.extend(visible.take(bytes_max));
    if line.len() == before {
        line.push('-');
    }
}

fn put_message(line: &mut String, message: &str) {
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    for character in message[..end].chars() {
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    if end < message.len() {
        line.push_str(CUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second example of section 6.5 of the RFC.
    const EXAMPLE: SyslogRecord<'_> = SyslogRecord {
        facility: 20,
        severity: 5,
        at_micros: 1_061_727_255_000_003,
        host: "192.0.2.1",
        app: "myproc",
        process: Some(8710),
        message_id: None,
        message: "%% It's time to make the do-nuts.",
    };

    #[test]
    fn records_are_as_in_the_examples_of_the_rfc() {
        assert_eq!(
            EXAMPLE.rfc5424(),
            "<165>1 2003-08-24T12:14:15.000003Z 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts."
        );
        let first = SyslogRecord {
            facility: 4,
            severity: 2,
            at_micros: 1_065_910_455_003_000,
            host: "mymachine.example.com",
            app: "su",
            process: None,
            message_id: Some("ID47"),
            message: "'su root' failed for lonvick on /dev/pts/8",
        };
        assert_eq!(
            first.rfc5424(),
            "<34>1 2003-10-11T22:14:15.003000Z mymachine.example.com su - ID47 - 'su root' failed for lonvick on \
             /dev/pts/8"
        );
    }

    #[test]
    fn a_local_socket_gets_no_host_and_no_time() {
        assert_eq!(
            EXAMPLE.local(),
            "<165>myproc[8710]: %% It's time to make the do-nuts."
        );
    }

    #[test]
    fn names_and_messages_stay_in_their_bounds() {
        let line = SyslogRecord {
            host: "a host\n",
            app: "",
            message: "one\ntwo\t\u{1b}[0m é",
            ..EXAMPLE
        };
        assert_eq!(
            line.rfc5424(),
            "<165>1 2003-08-24T12:14:15.000003Z ahost - 8710 - - one\\ntwo\\t\\u{1b}[0m é"
        );
        let long = "é".repeat(MESSAGE_BYTES_MAX);
        let cut = SyslogRecord {
            message: &long,
            ..EXAMPLE
        };
        let local = cut.local();
        assert!(local.ends_with("é..."));
        assert!(local.len() < MESSAGE_BYTES_MAX + 40);
    }

    #[test]
    fn levels_have_the_severities_of_the_rfc() {
        let levels = [
            tracing::Level::ERROR,
            tracing::Level::WARN,
            tracing::Level::INFO,
            tracing::Level::DEBUG,
            tracing::Level::TRACE,
        ];
        assert_eq!(levels.map(severity), [3, 4, 6, 7, 7]);
    }
}
