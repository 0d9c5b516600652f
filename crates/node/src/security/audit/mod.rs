//! The audit log: who requested what, when, and what came of it, a line of JSON each.
//!
//! **Nothing is left out silently.** An answer leaves once the lines of its request are in the
//! file, so a killed process has lost the line of no answered request. A thread of its own writes
//! the lines of all requests that wait, together. Where it can't, because a disk is full or does
//! not answer, it tries again until it can. Requests wait a few seconds for it. After that
//! [`AuditLog::check`] refuses what would have to be logged, before it is carried out.
//!
//! **Bounds.** Each field of a line is cut. The lines that wait are those of at most
//! [`WAITING_MAX`] requests. Lines of statements are charged to their clients as they are written.
//! Lines of logins and of requests by HTTP have [`ROOM_BYTES`] each: a client that has not logged
//! in can take no more.
//!
//! **Rotation.** The file may be moved away or removed at any time: before each write the thread
//! looks whether the path still leads to the file that it has open.

mod entry;
mod filter;
mod names;
mod subject;
mod terms;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client_memory::MemoryCharge;
use cql::error::{CqlError, ErrorKind};
use net::log_limiter::LogLimiter;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use entry::LoggedEvent;
pub use filter::EventCategory;
pub(crate) use filter::EventFilter;
pub(crate) use subject::{LoggedTarget, StatementSubject, category_of};
pub(crate) use terms::RoleStatementTerms;
use writer::{LineMemory, RequestLines, StallTimer};

/// The most requests whose lines wait to be written.
const WAITING_MAX: usize = 64 << 10;

/// The most bytes of lines of logins that wait to be written, and as many of requests by HTTP.
const ROOM_BYTES: usize = 1 << 20;

/// The most characters of the name in a login that failed. A client may give any.
const FAILED_NAME_CHARACTERS: usize = 128;

/// The longest time that a request waits for its lines to be written.
const PATIENCE: Duration = Duration::from_secs(5);

/// The log counts as stuck while lines have been waiting for this long.
const STUCK_AFTER: Duration = Duration::from_secs(3);

/// The choices of an operator for the audit log.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The file, which is made with the mode 0600 if it is not there.
    pub file: PathBuf,
    /// The categories of what is logged.
    pub categories: Vec<EventCategory>,
    /// The keyspaces whose data requests must be about to be logged. If there are none, all count
    /// but those that drivers read: `system`, `system_schema` and `system_virtual_schema`.
    pub keyspaces: Vec<String>,
    /// The roles whose requests are not logged. Refusals are logged for all roles.
    pub roles_left_out: Vec<String>,
}

/// An audit log that is open.
#[derive(Debug)]
pub struct AuditLog {
    filter: EventFilter,
    queue: mpsc::Sender<RequestLines>,
    progress: Arc<StallTimer>,
    /// The bytes that lines of logins may still take.
    logins: Arc<Semaphore>,
    /// The bytes that lines of requests by HTTP may still take.
    requests: Arc<Semaphore>,
    lost: LogLimiter,
    unchecked: LogLimiter,
    patience: Duration,
    stuck_after: Duration,
    path: PathBuf,
}

impl AuditLog {
    /// Opens the file, and starts the thread that writes it. The thread ends with this value.
    ///
    /// # Errors
    /// If the file can't be opened to be written at its end, or the thread can't be started.
    pub fn open(options: AuditOptions) -> io::Result<AuditLog> {
        let (queue, lines) = mpsc::channel(WAITING_MAX);
        let progress = Arc::<StallTimer>::default();
        let file = options.file.clone();
        writer::start(file, lines, Arc::clone(&progress))?;
        Ok(AuditLog {
            path: options.file.clone(),
            filter: EventFilter::new(options),
            queue,
            progress,
            logins: Arc::new(Semaphore::new(ROOM_BYTES)),
            requests: Arc::new(Semaphore::new(ROOM_BYTES)),
            lost: LogLimiter::default(),
            unchecked: LogLimiter::default(),
            patience: PATIENCE,
            stuck_after: STUCK_AFTER,
        })
    }

    /// The choice of what is logged.
    pub(crate) fn filter(&self) -> &EventFilter {
        &self.filter
    }

    /// Refuses what would have to be logged while the file can't be written.
    ///
    /// # Errors
    /// ServerError, with the file.
    pub(crate) fn check(&self) -> Result<(), CqlError> {
        match self.progress.waited() > self.stuck_after {
            true => Err(refused(&self.path)),
            false => Ok(()),
        }
    }

    /// Refuses to check a login while its line can't be written: no one guesses unseen.
    ///
    /// # Errors
    /// As [`AuditLog::check`], if logins are logged.
    pub(crate) fn check_login(&self) -> Result<(), CqlError> {
        match self.filter.has(EventCategory::Auth) {
            true => self.check(),
            false => Ok(()),
        }
    }

    /// Writes the lines of a request by CQL, and returns when they are in the file. `charge` is the
    /// charge for their memory.
    ///
    /// # Errors
    /// ServerError if they are not in the file within [`PATIENCE`]. They are written once they can
    /// be. The server's log reports lines that find no place among those that wait.
    pub(crate) async fn write(&self, bytes: Vec<u8>, charge: MemoryCharge) -> Result<(), CqlError> {
        self.write_holding(bytes, LineMemory::Charge(charge)).await
    }

    /// Writes the line of a login, as [`AuditLog::write`].
    ///
    /// # Errors
    /// As [`AuditLog::write`], and if [`ROOM_BYTES`] of such lines wait.
    pub(crate) async fn write_login(&self, line: Vec<u8>) -> Result<(), CqlError> {
        self.write_within(&self.logins, line).await
    }

    /// Writes the line of a request by HTTP, as [`AuditLog::write`].
    ///
    /// # Errors
    /// As [`AuditLog::write`], and if [`ROOM_BYTES`] of such lines wait.
    pub(crate) async fn write_http(&self, line: Vec<u8>) -> Result<(), CqlError> {
        self.write_within(&self.requests, line).await
    }

    /// Counts a login that failed without a check of its own, and writes its line if one is due,
    /// with one of those before it that have none.
    ///
    /// # Errors
    /// As [`AuditLog::write_login`].
    pub(crate) async fn write_unchecked(&self, mut line: Vec<u8>) -> Result<(), CqlError> {
        let Some(attempts) = self.unchecked.is_due() else {
            return Ok(());
        };
        if attempts > 1 {
            line.extend(unchecked_line(attempts - 1));
        }
        self.write_login(line).await
    }

    /// Returns when all lines that were handed over are in the file, or do not get there.
    pub(crate) async fn flush(&self) {
        let line = match self.unchecked.take_untold() {
            0 => Vec::new(),
            attempts => unchecked_line(attempts),
        };
        // The server's log reports lines that can't be written.
        let _ = self.write_holding(line, LineMemory::Nothing).await;
    }

    async fn write_within(&self, room: &Arc<Semaphore>, line: Vec<u8>) -> Result<(), CqlError> {
        let bytes = u32::try_from(line.len()).unwrap_or(u32::MAX);
        match Arc::clone(room).try_acquire_many_owned(bytes) {
            Ok(part) => self.write_holding(line, LineMemory::Room(part)).await,
            Err(_) => Err(self.report_lost_lines()),
        }
    }

    async fn write_holding(&self, bytes: Vec<u8>, held: LineMemory) -> Result<(), CqlError> {
        let (written, done) = oneshot::channel();
        let lines = RequestLines {
            bytes,
            written,
            _held: held,
        };
        if self.queue.try_send(lines).is_err() {
            return Err(self.report_lost_lines());
        }
        match tokio::time::timeout(self.patience, done).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(unwritten(&self.path)),
        }
    }

    /// Writes to the server's log, once in a while, that a request's lines find no place.
    fn report_lost_lines(&self) -> CqlError {
        if let Some(requests) = self.lost.is_due() {
            tracing::error!(
                file = %self.path.display(),
                requests,
                "too many lines wait for the audit log, so it lacks those of these requests"
            );
        }
        unwritten(&self.path)
    }
}

/// The line of an attempt to log in as a role, if such are logged. Attempts that fail are logged
/// whatever role they name, as no one has proved to be it.
pub(crate) fn login_line(
    log: &AuditLog,
    source: &str,
    role: Option<&str>,
    error: Option<&ErrorKind>,
) -> Option<Vec<u8>> {
    let filter = &log.filter;
    let (kind, is_kept) = match error {
        None => (
            "LOGIN_SUCCESS",
            filter.keeps(EventCategory::Auth, role, None),
        ),
        Some(_) => ("LOGIN_ERROR", filter.has(EventCategory::Auth)),
    };
    let role = role.map(
        |role| match (error, role.char_indices().nth(FAILED_NAME_CHARACTERS)) {
            (Some(_), Some((end, _))) => &role[..end],
            _ => role,
        },
    );
    is_kept.then(|| {
        let mut line = Vec::new();
        let entry = LoggedEvent {
            role,
            source,
            error: error.map(ErrorKind::name),
            ..LoggedEvent::new(EventCategory::Auth, kind)
        };
        entry.put(&mut line);
        line
    })
}

/// The line of so many attempts to log in that failed without a check of their own, from wherever
/// they came.
fn unchecked_line(times: u64) -> Vec<u8> {
    let mut line = Vec::new();
    let entry = LoggedEvent {
        times: Some(u32::try_from(times).unwrap_or(u32::MAX)),
        ..LoggedEvent::new(EventCategory::Auth, "LOGIN_ERROR")
    };
    entry.put(&mut line);
    line
}

fn refused(path: &Path) -> CqlError {
    CqlError::server(format!(
        "not carried out, as it has to be logged and the audit log {} can't be written: see the log of the server",
        path.display()
    ))
}

fn unwritten(path: &Path) -> CqlError {
    CqlError::server(format!(
        "the line of this request is not in the audit log {} yet, and it may have been carried out: see the log of the server",
        path.display()
    ))
}

#[cfg(test)]
impl AuditLog {
    /// A log of everything that can't be written, and knows it.
    pub(crate) async fn stuck() -> AuditLog {
        let options = AuditOptions {
            file: "/dev/full".into(),
            categories: EventCategory::EVERY.to_vec(),
            keyspaces: Vec::new(),
            roles_left_out: Vec::new(),
        };
        let mut log = AuditLog::open(options).unwrap();
        log.get_stuck().await;
        log
    }

    /// Has lines written where they can't be, and waits until the log knows it.
    async fn get_stuck(&mut self) {
        (self.patience, self.stuck_after) = (Duration::ZERO, Duration::ZERO);
        let error = self.write_http(b"one\n".to_vec()).await.unwrap_err();
        assert!(
            error.message.contains("may have been carried out"),
            "{error}"
        );
        test_support::eventually("the log is stuck", async || {
            let Err(error) = self.check() else {
                return false;
            };
            assert!(error.message.contains("not carried out"), "{error}");
            true
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn open(path: &Path) -> AuditLog {
        AuditLog::open(AuditOptions {
            file: path.to_owned(),
            categories: EventCategory::EVERY.to_vec(),
            keyspaces: Vec::new(),
            roles_left_out: Vec::new(),
        })
        .unwrap()
    }

    #[tokio::test]
    async fn lines_are_in_the_file_when_their_request_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        fs::write(&path, "before\n").unwrap();
        let log = open(&path);
        let write = |line: &'static [u8]| log.write_http(line.to_vec());
        write(b"one\n").await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\none\n");
        // It is moved away, and then removed.
        let moved = directory.path().join("audit.log.1");
        fs::rename(&path, &moved).unwrap();
        write(b"two\n").await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        assert_eq!(fs::read_to_string(&moved).unwrap(), "before\none\n");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::remove_file(&path).unwrap();
        write(b"three\n").await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn a_file_that_can_not_be_opened_is_an_error_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let options = AuditOptions {
            file: directory.path().to_owned(),
            categories: Vec::new(),
            keyspaces: Vec::new(),
            roles_left_out: Vec::new(),
        };
        assert!(AuditLog::open(options).is_err());
    }

    #[tokio::test]
    async fn requests_are_refused_while_the_log_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("audit.log");
        let mut log = open(&path);
        assert_eq!(log.check(), Ok(()));
        let away = directory.path().join("away");
        fs::rename(&folder, &away).unwrap();
        log.get_stuck().await;
        fs::rename(&away, &folder).unwrap();
        log.patience = Duration::from_secs(60);
        log.write_http(b"two\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(log.check(), Ok(()));
    }

    #[tokio::test]
    async fn a_full_disk_is_seen() {
        AuditLog::stuck().await;
    }

    #[tokio::test]
    async fn a_torn_last_line_stays_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        fs::write(&path, "whole\nto").unwrap();
        let log = open(&path);
        log.write_http(b"one\n".to_vec()).await.unwrap();
        log.write_http(b"two\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nto\none\ntwo\n");
        // It is moved away, and a torn file takes its place.
        fs::rename(&path, directory.path().join("audit.log.1")).unwrap();
        fs::write(&path, "to").unwrap();
        log.write_http(b"three\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "to\nthree\n");
    }

    #[tokio::test]
    async fn lines_that_are_handed_over_are_in_the_file_after_a_flush() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut log = open(&path);
        log.patience = Duration::ZERO;
        let expected = "line\n".repeat(100);
        for _ in 0..100 {
            // No one waits for it.
            let _ = log.write_login(b"line\n".to_vec()).await;
        }
        log.patience = Duration::from_secs(60);
        log.flush().await;
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[tokio::test]
    async fn lines_of_logins_take_bounded_memory_while_the_log_is_stuck() {
        let mut log = open(Path::new("/dev/full"));
        log.patience = Duration::ZERO;
        let line = vec![b'x'; 1 << 10];
        for _ in 0..2 * ROOM_BYTES / line.len() {
            assert!(log.write_login(line.clone()).await.is_err());
        }
        assert_eq!(log.logins.available_permits(), 0);
        // Others have room of their own.
        assert_eq!(log.requests.available_permits(), ROOM_BYTES);
        assert!(log.lost.is_due().is_none(), "lost lines were not told of");
    }

    #[tokio::test]
    async fn the_name_of_a_failed_login_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        let log = open(&directory.path().join("audit.log"));
        let name = "é".repeat(1_000);
        let line = |error| {
            let line = login_line(&log, "10.0.0.1:1", Some(&name), error).unwrap();
            let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
            read["role"].as_str().unwrap().chars().count()
        };
        assert_eq!(
            line(Some(&ErrorKind::BadCredentials)),
            FAILED_NAME_CHARACTERS
        );
        assert_eq!(line(None), 512, "1 KiB");
    }
}
