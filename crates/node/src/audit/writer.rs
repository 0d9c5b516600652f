//! The thread that writes the audit log's file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use client_memory::Charge;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// The lines of several requests are written together up to this many bytes.
const TOGETHER_BYTES: usize = 256 << 10;

/// The interval of attempts to write where it fails.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// The lines of a request.
pub(super) struct Lines {
    pub bytes: Vec<u8>,
    /// Told when they are in the file.
    pub written: Option<oneshot::Sender<()>>,
    /// The charge for their memory, given back when they are written.
    pub _charge: Option<Charge>,
}

/// The time since which the lines that are being written wait.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Option<Instant>>);

impl Progress {
    /// How long the lines that are being written have waited; zero if there are none.
    pub fn waited(&self) -> Duration {
        self.0
            .lock()
            .map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Opens the file, and starts a thread that writes lines to it until nobody can send any more.
///
/// # Errors
/// If the file can't be opened, or the thread can't be started.
pub(super) fn start(
    path: PathBuf,
    lines: mpsc::Receiver<Lines>,
    progress: Arc<Progress>,
) -> io::Result<()> {
    let writer = Writer {
        file: open(&path)?,
        path,
        lines,
        progress,
    };
    let thread = thread::Builder::new().name("audit-log".to_owned());
    thread.spawn(move || writer.run()).map(drop)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)
}

struct Writer {
    path: PathBuf,
    file: File,
    lines: mpsc::Receiver<Lines>,
    progress: Arc<Progress>,
}

impl Writer {
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
                // Who has asked may be gone.
                let _ = request.written.map(|written| written.send(()));
            }
        }
    }

    /// Writes until it succeeds. Returns false if nobody waits for it any more.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let mut has_failed = false;
        loop {
            match self.try_to_write(bytes) {
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

    fn try_to_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let here = self.file.metadata()?;
        let is_here = match fs::metadata(&self.path) {
            Ok(there) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_here {
            self.file = open(&self.path)?;
        }
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(bytes);
        // A part may have been written before a disk was full. The next attempt writes all again.
        // A file that was cut meanwhile is left as it is.
        if written.is_err() && self.file.metadata()?.len() > length {
            self.file.set_len(length)?;
        }
        written
    }
}
