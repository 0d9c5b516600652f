//! The thread that writes the audit log's file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use client_memory::MemoryCharge;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// The lines of several requests are written together up to this many bytes.
const TOGETHER_BYTES: usize = 256 << 10;

/// The interval of attempts to write where it fails.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// The lines of a request.
pub(super) struct RequestLines {
    pub bytes: Vec<u8>,
    /// Notified when they are in the file.
    pub written: oneshot::Sender<()>,
    /// Given back when they are in the file.
    pub _held: LineMemory,
}

/// The right to the memory of lines.
#[expect(dead_code, reason = "it is held, and looked at by nobody")]
pub(super) enum LineMemory {
    Charge(MemoryCharge),
    Room(OwnedSemaphorePermit),
    Nothing,
}

/// The time since which the lines that are being written wait.
#[derive(Debug, Default)]
pub(super) struct StallTimer(Mutex<Option<Instant>>);

impl StallTimer {
    /// How long the lines that are being written have waited; zero if there are none.
    pub fn waited(&self) -> Duration {
        self.0
            .lock()
            .map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Opens the file, and starts a thread that writes lines to it until no one can send any more.
///
/// # Errors
/// If the file can't be opened, or the thread can't be started.
pub(super) fn start(
    path: PathBuf,
    lines: mpsc::Receiver<RequestLines>,
    progress: Arc<StallTimer>,
) -> io::Result<()> {
    let writer = LogFileWriter {
        file: open(&path)?,
        path,
        lines,
        progress,
    };
    let thread = thread::Builder::new().name("audit-log".to_owned());
    thread.spawn(move || writer.run()).map(drop)
}

/// Opens the file, which is made with the mode 0600. A file that is there already loses the rights
/// of all users but its owner and its group: lines name roles, addresses and statements.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true).mode(0o600);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    let mode = metadata.permissions().mode();
    if metadata.is_file() && mode & OF_OTHERS != 0 {
        let private = Permissions::from_mode(mode & !OF_OTHERS & 0o7777);
        file.set_permissions(private).map_err(|error| {
            let why = format!(
                "every user of this machine may read or write it, and its mode can't be changed ({error}): \
                 chmod 600 as its owner"
            );
            io::Error::new(error.kind(), why)
        })?;
        tracing::warn!(
            file = %path.display(),
            "every user of this machine could read or write the audit log; now its owner and group can"
        );
    }
    Ok(file)
}

/// The bits of a mode that are the rights of users other than the owner and the group.
const OF_OTHERS: u32 = 0o007;

/// Whether the next line begins at the end of the file. It does not if the end of a line is missing
/// there, as a server was killed or a disk was full.
fn is_whole(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == [b'\n'])
}

struct LogFileWriter {
    path: PathBuf,
    file: File,
    lines: mpsc::Receiver<RequestLines>,
    progress: Arc<StallTimer>,
}

impl LogFileWriter {
    fn run(mut self) {
        while let Some(first) = self.lines.blocking_recv() {
            *self.progress.0.lock() = Some(Instant::now());
            let mut requests = vec![first];
            let mut together = std::mem::take(&mut requests[0].bytes);
            while together.len() < TOGETHER_BYTES
                && let Ok(mut next) = self.lines.try_recv()
            {
                together.append(&mut next.bytes);
                requests.push(next);
            }
            if !self.write(&together) {
                return;
            }
            *self.progress.0.lock() = None;
            for request in requests {
                // The request may have been dropped meanwhile.
                let _ = request.written.send(());
            }
        }
    }

    /// Writes until it succeeds. Returns false if no one waits for it any more.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let mut has_failed = false;
        let mut left = bytes;
        loop {
            match self.try_to_write(&mut left) {
                Ok(()) => {
                    if has_failed {
                        tracing::info!(file = %self.path.display(), "the audit log is written again");
                    }
                    return true;
                }
                Err(_) if self.lines.is_closed() => return false,
                Err(error) if !has_failed => {
                    has_failed = true;
                    tracing::error!(
                        file = %self.path.display(),
                        %error,
                        "the audit log can't be written; requests that must be in it are refused until it can"
                    );
                }
                Err(_) => {}
            }
            thread::sleep(TRY_EVERY);
        }
    }

    /// Writes lines. Where it fails, `left` begins with the first line that is not whole in the
    /// file.
    fn try_to_write(&mut self, left: &mut &[u8]) -> io::Result<()> {
        let here = self.file.metadata()?;
        let is_here = match fs::metadata(&self.path) {
            Ok(there) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_here {
            self.file = open(&self.path)?;
        }
        // A torn line stays as it is: the file may be one to which only can be added.
        if !is_whole(&self.file)? {
            self.file.write_all(b"\n")?;
        }
        let lines = *left;
        let mut written = 0;
        while written < lines.len() {
            match self.file.write(&lines[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    written += bytes;
                    let end = lines[..written].iter().rposition(|byte| *byte == b'\n');
                    *left = &lines[end.map_or(0, |end| end + 1)..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_others_may_read_is_taken_from_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        open(&path).unwrap();
        assert_eq!(mode(), 0o600);
        for (before, after) in [
            (0o644, 0o640),
            (0o666, 0o660),
            (0o604, 0o600),
            (0o640, 0o640),
            (0o600, 0o600),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            let mut file = open(&path).unwrap();
            assert_eq!(mode(), after, "{before:o}");
            file.write_all(b"a line\n").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap().len(), 5 * 7);
        // What is no file has no mode of its own to change.
        open(Path::new("/dev/null")).unwrap();
    }
}
