//! The audit log: who asked for what, when, and what came of it, a line of JSON each.
//!
//! **Nothing is left out silently.** An answer leaves once the lines of its request are in the
//! file, so a killed process has lost the line of no answered request. A thread of its own writes
//! the lines of all requests that wait, together. Where it can't, because a disk is full or does
//! not answer, it tries again until it can. Requests wait a few seconds for it. After that
//! [`AuditLog::check`] refuses what would have to be told, before it is carried out.
//!
//! **Bounds.** The lines that wait are those of requests in flight, whose memory is charged to
//! their clients, and at most [`WAITING_MAX`].
//!
//! **Rotation.** The file may be moved away or removed at any time: before each write the thread
//! looks whether the path still leads to the file that it has open.

mod entry;
mod filter;
mod subject;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client_memory::Charge;
use cql::error::{CqlError, ErrorKind};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use writer::{Lines, Progress};

pub(crate) use entry::Entry;
pub use filter::Category;
pub(crate) use filter::Filter;
pub(crate) use subject::{Place, Subject};

/// The most requests whose lines wait to be written.
const WAITING_MAX: usize = 64 << 10;

/// The most bytes of the name of a role. Who fails to log in may give any.
const ROLE_BYTES_MAX: usize = 1 << 10;

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
    pub categories: Vec<Category>,
    /// The keyspaces whose data requests must be about to be logged. If there are none, all count
    /// but those that drivers read: `system`, `system_schema` and `system_virtual_schema`.
    pub keyspaces: Vec<String>,
    /// The roles whose requests are not logged. Refusals are logged whoever is refused.
    pub roles_left_out: Vec<String>,
}

/// An audit log that is open.
#[derive(Debug)]
pub struct AuditLog {
    filter: Filter,
    queue: mpsc::Sender<Lines>,
    progress: Arc<Progress>,
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
        let progress = Arc::<Progress>::default();
        let file = options.file.clone();
        writer::start(file, lines, Arc::clone(&progress))?;
        Ok(AuditLog {
            path: options.file.clone(),
            filter: Filter::new(options),
            queue,
            progress,
            patience: PATIENCE,
            stuck_after: STUCK_AFTER,
        })
    }

    /// The choice of what is logged.
    pub(crate) fn filter(&self) -> &Filter {
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

    /// Writes whole lines, and returns when they are in the file. `charge` is the charge for their
    /// memory.
    ///
    /// # Errors
    /// ServerError if they are not in the file within [`PATIENCE`]. They are written once they can
    /// be; lines that find no place among those that wait are told to the server's log.
    pub(crate) async fn write(
        &self,
        bytes: Vec<u8>,
        charge: Option<Charge>,
    ) -> Result<(), CqlError> {
        let (written, done) = oneshot::channel();
        self.hand_over(Lines {
            bytes,
            written: Some(written),
            _charge: charge,
        })?;
        match tokio::time::timeout(self.patience, done).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(unwritten(&self.path)),
        }
    }

    /// Has whole lines written, without waiting for it.
    ///
    /// # Errors
    /// ServerError if the file can't be written now.
    pub(crate) fn post(&self, bytes: Vec<u8>) -> Result<(), CqlError> {
        self.check()?;
        self.hand_over(Lines {
            bytes,
            written: None,
            _charge: None,
        })
    }

    fn hand_over(&self, lines: Lines) -> Result<(), CqlError> {
        self.queue.try_send(lines).map_err(|unsent| {
            let (TrySendError::Full(lines) | TrySendError::Closed(lines)) = unsent;
            let lines = String::from_utf8_lossy(&lines.bytes);
            tracing::error!(%lines, "{WAITING_MAX} requests wait for the audit log, so it lacks these lines");
            unwritten(&self.path)
        })
    }
}

/// The line of an attempt to log in as a role, if such are logged. Attempts that fail are logged
/// whatever role they name, as nobody has proved to be it.
pub(crate) fn login_line(
    log: &AuditLog,
    source: &str,
    role: Option<&str>,
    error: Option<&ErrorKind>,
) -> Option<Vec<u8>> {
    let filter = &log.filter;
    let (kind, is_kept) = match error {
        None => ("LOGIN_SUCCESS", filter.keeps(Category::Auth, role, None)),
        Some(_) => ("LOGIN_ERROR", filter.has(Category::Auth)),
    };
    let role = role.map(|role| &role[..role.floor_char_boundary(ROLE_BYTES_MAX)]);
    is_kept.then(|| {
        let mut line = Vec::new();
        let entry = Entry {
            role,
            source,
            error: error.map(ErrorKind::name),
            ..Entry::new(Category::Auth, kind)
        };
        entry.put(&mut line);
        line
    })
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
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn open(path: &Path) -> AuditLog {
        AuditLog::open(AuditOptions {
            file: path.to_owned(),
            categories: Category::EVERY.to_vec(),
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
        let write = |line: &'static [u8]| log.write(line.to_vec(), None);
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
        log.post(b"three\n".to_vec()).unwrap();
        write(b"four\n").await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\nfour\n");
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

    /// Has lines written where they can't be, and waits until the log knows it.
    async fn get_stuck(log: &mut AuditLog) {
        (log.patience, log.stuck_after) = (Duration::ZERO, Duration::ZERO);
        let error = log.write(b"one\n".to_vec(), None).await.unwrap_err();
        assert!(
            error.message.contains("may have been carried out"),
            "{error}"
        );
        for _ in 0..10_000 {
            if let Err(error) = log.check() {
                assert!(error.message.contains("not carried out"), "{error}");
                assert!(log.post(b"refused\n".to_vec()).is_err());
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the log is not stuck");
    }

    #[tokio::test]
    async fn where_nothing_can_be_written_requests_are_refused_until_it_can() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("audit.log");
        let mut log = open(&path);
        assert_eq!(log.check(), Ok(()));
        let away = directory.path().join("away");
        fs::rename(&folder, &away).unwrap();
        get_stuck(&mut log).await;
        fs::rename(&away, &folder).unwrap();
        log.patience = Duration::from_secs(60);
        log.write(b"two\n".to_vec(), None).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(log.check(), Ok(()));
    }

    #[tokio::test]
    async fn a_full_disk_is_seen() {
        get_stuck(&mut open(Path::new("/dev/full"))).await;
    }
}
