//! The record of an import: which rows are done, and the rows that were rejected. From its file an
//! import that was stopped goes on.
//!
//! Writes are acknowledged in any order. The record has the number of rows from the first on that
//! are all done, so that an import that goes on misses none; those beyond are written again, which
//! changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::rows::RejectedRow;
use crate::ToolError;

/// The time after which the record is written again.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// The statement and files of an import, by which it is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportIdentity {
    /// The statement that writes a row, with the origins of its values.
    pub statement: String,
    /// The files: each path with its bytes and the time of its last change, in milliseconds.
    pub files: Vec<(String, u64, u64)>,
}

impl ImportIdentity {
    /// The identity of an import of these files; `None` if one is no plain file, such as a pipe.
    pub fn new(statement: String, files: &[PathBuf]) -> Option<ImportIdentity> {
        let mut identities = Vec::with_capacity(files.len());
        for path in files {
            let metadata = std::fs::metadata(path)
                .ok()
                .filter(std::fs::Metadata::is_file)?;
            let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            let path = std::path::absolute(path).ok()?;
            let changed = changed.as_millis() as u64;
            identities.push((path.display().to_string(), metadata.len(), changed));
        }
        Some(ImportIdentity {
            statement,
            files: identities,
        })
    }
}

/// The file of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredState {
    identity: ImportIdentity,
    rows: u64,
    rejected: u64,
    /// The bytes of the file of rejected rows that belong to those rows.
    rejected_bytes: u64,
}

/// The record of an import.
pub struct ImportLog {
    /// Where it is stored; `None` if it can't be gone on with.
    state: Option<(PathBuf, ImportIdentity)>,
    rejects_path: PathBuf,
    rejects: Option<File>,
    rejected_bytes: u64,
    /// The rows from the first on that are all done.
    rows: u64,
    /// Rows beyond those that are done.
    done_beyond: BTreeSet<u64>,
    /// The lines of rejected rows that are not in the file yet.
    rejected_beyond: BTreeMap<u64, String>,
    rejected: u64,
    written_at: Instant,
    warned: bool,
}

/// Paths of the two files of an import.
pub struct LogPaths {
    /// The record.
    pub state: PathBuf,
    /// The rejected rows.
    pub rejects: PathBuf,
}

impl ImportLog {
    /// Begins an import, or goes on with the same one that was stopped.
    ///
    /// # Errors
    /// If the file of rejected rows can't be cut.
    pub fn open(
        paths: LogPaths,
        identity: Option<ImportIdentity>,
        is_restarted: bool,
    ) -> Result<ImportLog, ToolError> {
        let stored = stored_state(&paths.state)
            .filter(|stored| !is_restarted && identity.as_ref() == Some(&stored.identity));
        let mut log = ImportLog {
            state: identity.map(|identity| (paths.state, identity)),
            rejects_path: paths.rejects,
            rejects: None,
            rejected_bytes: 0,
            rows: 0,
            done_beyond: BTreeSet::new(),
            rejected_beyond: BTreeMap::new(),
            rejected: 0,
            written_at: Instant::now(),
            warned: false,
        };
        match stored {
            Some(stored) => log.go_on(&stored)?,
            // Of another import, whose rows were mended or are not wanted.
            None => match std::fs::remove_file(&log.rejects_path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(log.unwritable(&error));
                }
                _ => {}
            },
        }
        Ok(log)
    }

    fn go_on(&mut self, stored: &StoredState) -> Result<(), ToolError> {
        self.rows = stored.rows;
        self.rejected = stored.rejected;
        if stored.rejected_bytes == 0 {
            let _ = std::fs::remove_file(&self.rejects_path);
            return Ok(());
        }
        let file = OpenOptions::new().append(true).open(&self.rejects_path);
        let file = file.map_err(|error| self.unwritable(&error))?;
        // Rows beyond the record come again.
        file.set_len(stored.rejected_bytes)
            .map_err(|error| self.unwritable(&error))?;
        self.rejected_bytes = stored.rejected_bytes;
        self.rejects = Some(file);
        Ok(())
    }

    fn unwritable(&self, error: &io::Error) -> ToolError {
        let path = self.rejects_path.display();
        ToolError::File(format!(
            "{path}: {error}: name another file with --rejected"
        ))
    }

    /// The rows from the first on that are all done.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of rejected rows.
    pub fn rejected(&self) -> u64 {
        self.rejected + self.rejected_beyond.len() as u64
    }

    /// The file of rejected rows.
    pub fn rejects_path(&self) -> &Path {
        &self.rejects_path
    }

    /// Whether the import can be gone on with.
    pub fn can_go_on(&self) -> bool {
        self.state.is_some()
    }

    /// Notes that a row is written.
    ///
    /// # Errors
    /// If the file of rejected rows can't be written.
    pub fn written(&mut self, number: u64) -> Result<(), ToolError> {
        self.done_beyond.insert(number);
        self.advance()
    }

    /// Notes that a row is rejected.
    ///
    /// # Errors
    /// If the file of rejected rows can't be written.
    pub fn reject(&mut self, row: RejectedRow) -> Result<(), ToolError> {
        self.rejected_beyond.insert(row.number, row.line);
        self.done_beyond.insert(row.number);
        self.advance()
    }

    fn advance(&mut self) -> Result<(), ToolError> {
        while self.done_beyond.remove(&self.rows) {
            if let Some(line) = self.rejected_beyond.remove(&self.rows) {
                self.store_rejected(&line)?;
            }
            self.rows += 1;
        }
        if self.written_at.elapsed() >= WRITTEN_EVERY {
            self.store();
        }
        Ok(())
    }

    fn store_rejected(&mut self, line: &str) -> Result<(), ToolError> {
        if self.rejects.is_none() {
            let file = File::create(&self.rejects_path);
            self.rejects = Some(file.map_err(|error| self.unwritable(&error))?);
        }
        let line = format!("{line}\n");
        let written = self
            .rejects
            .as_mut()
            .map(|file| file.write_all(line.as_bytes()));
        if let Some(Err(error)) = written {
            return Err(self.unwritable(&error));
        }
        self.rejected_bytes += line.len() as u64;
        self.rejected += 1;
        Ok(())
    }

    /// Writes the record. One that can't be written is no reason to stop.
    pub fn store(&mut self) {
        self.written_at = Instant::now();
        let Some((path, identity)) = &self.state else {
            return;
        };
        let stored = StoredState {
            identity: identity.clone(),
            rows: self.rows,
            rejected: self.rejected,
            rejected_bytes: self.rejected_bytes,
        };
        if let Err(error) = replace(path, &stored)
            && !std::mem::replace(&mut self.warned, true)
        {
            let path = path.display();
            let why = format!("{path}: {error}: if it stops, this import begins again");
            let _ = writeln!(io::stderr(), "{why}");
        }
    }

    /// Ends an import of which all rows are done.
    ///
    /// # Errors
    /// If the file of rejected rows can't be written.
    pub fn finish(&mut self) -> Result<(), ToolError> {
        for (_, line) in std::mem::take(&mut self.rejected_beyond) {
            self.store_rejected(&line)?;
        }
        if let Some((path, _)) = &self.state {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}

fn stored_state(path: &Path) -> Option<StoredState> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Puts the record in the place of the older one, of which a process that ends meanwhile leaves
/// all.
fn replace(path: &Path, stored: &StoredState) -> io::Result<()> {
    let text = serde_json::to_vec(stored).map_err(io::Error::other)?;
    let mut next = path.as_os_str().to_owned();
    next.push(".next");
    std::fs::write(&next, text)?;
    std::fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(number: u64) -> RejectedRow {
        RejectedRow {
            number,
            reason: String::new(),
            line: format!("line {number}"),
        }
    }

    fn opened(directory: &Path, files: &[PathBuf], is_restarted: bool) -> ImportLog {
        let paths = LogPaths {
            state: directory.join("state"),
            rejects: directory.join("rejects"),
        };
        let identity = ImportIdentity::new("INSERT".to_owned(), files);
        ImportLog::open(paths, identity, is_restarted).unwrap()
    }

    #[test]
    fn an_import_goes_on_after_the_rows_that_are_all_done() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let file = directory.join("a.csv");
        std::fs::write(&file, "x").unwrap();
        let files = [file.clone()];
        let rejects = || std::fs::read_to_string(directory.join("rejects")).unwrap();
        let mut log = opened(directory, &files, false);
        assert!(log.can_go_on());
        log.written(1).unwrap();
        log.reject(rejected(3)).unwrap();
        assert_eq!((log.rows(), log.rejected()), (0, 1));
        log.reject(rejected(0)).unwrap();
        assert_eq!((log.rows(), log.rejected()), (2, 2));
        log.store();
        log.written(2).unwrap();
        assert_eq!(log.rows(), 4);
        assert_eq!(rejects(), "line 0\nline 3\n");
        // The process ends here; what the record has not is done again.
        let mut log = opened(directory, &files, false);
        assert_eq!((log.rows(), log.rejected()), (2, 1));
        assert_eq!(rejects(), "line 0\n");
        log.written(2).unwrap();
        log.reject(rejected(3)).unwrap();
        log.finish().unwrap();
        assert_eq!(rejects(), "line 0\nline 3\n");
        assert_eq!(opened(directory, &files, false).rows(), 0);
    }

    #[test]
    fn another_import_begins_at_the_first_row() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let file = directory.join("a.csv");
        std::fs::write(&file, "x").unwrap();
        let files = [file.clone()];
        let begun = |files: &[PathBuf]| {
            let mut log = opened(directory, files, false);
            log.written(0).unwrap();
            log.store();
        };
        begun(&files);
        assert_eq!(opened(directory, &files, true).rows(), 0);
        begun(&files);
        std::fs::write(&file, "longer").unwrap();
        assert_eq!(opened(directory, &files, false).rows(), 0);
        let pipe = [PathBuf::from("-")];
        assert!(!opened(directory, &pipe, false).can_go_on());
    }
}
