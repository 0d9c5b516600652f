//! What is kept of schedules, and the file that it is kept in.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::identity::{IndexIdentity, IndexName};

/// An index, as one statement made it: another one of the same name that is made later has nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// What it is called.
    pub name: IndexName,
    /// What each creation gets anew.
    pub(super) id: String,
}

impl Creation {
    /// That of an index. Truncating its table, or building it anew, changes nothing.
    pub fn of(index: &IndexIdentity) -> Creation {
        let id = index.version.unwrap_or(index.table.id);
        Creation {
            name: index.name.clone(),
            id: id.to_string(),
        }
    }
}

/// What is kept, by the names of indexes.
pub(super) type Entries = BTreeMap<String, Kept>;

/// What is kept of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// Of which it is. Absent, as files were written before: of whatever has the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation: Option<String>,
    /// Its own schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
    /// When its last repair by schedule began, seconds since the epoch; before the first, when it was
    /// first seen.
    pub last_s: u64,
}

impl Kept {
    /// Of an index that is seen for the first time.
    pub fn first(index: &Creation, now_s: u64) -> Kept {
        Kept {
            creation: Some(index.id.clone()),
            own: None,
            last_s: now_s,
        }
    }

    /// Whether it is of that index, and not of one that had its name.
    pub fn is_of(&self, index: &Creation) -> bool {
        let creation = self.creation.as_ref();
        creation.is_none_or(|creation| *creation == index.id)
    }
}

/// A schedule of an index's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Own {
    /// Absent: never.
    pub interval_s: Option<u64>,
    pub parallel: usize,
    pub intensity: usize,
}

/// What a file holds; nothing, if there is none.
pub(super) fn read(file: &Path) -> io::Result<Entries> {
    match std::fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Entries::new()),
        Err(error) => Err(error),
    }
}

/// Writes all of it, or nothing.
pub(super) fn write(file: &Path, entries: &Entries) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer_pretty(&mut new, entries)?;
    new.flush()?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}
