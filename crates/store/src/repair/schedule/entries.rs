//! The entries of schedules and repairs, and the file that keeps them.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::identity::{IndexIdentity, IndexName};

/// An index as one CREATE INDEX statement made it. A later index of the same name is another
/// creation and inherits nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexCreation {
    /// The name of the index.
    pub name: IndexName,
    /// The id of the creation.
    pub(super) id: String,
}

impl IndexCreation {
    /// The creation of an index. It stays the same if the table is truncated or the index is built
    /// again.
    pub(crate) fn of(index: &IndexIdentity) -> IndexCreation {
        let id = index.version.unwrap_or(index.table.id);
        IndexCreation {
            name: index.name.clone(),
            id: id.to_string(),
        }
    }
}

/// The entries, by the full names of indexes.
pub(super) type Entries = BTreeMap<String, IndexScheduleEntry>;

/// The entry of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct IndexScheduleEntry {
    /// The creation that the entry belongs to. `None` in files of former versions: the entry
    /// belongs to any index of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation: Option<String>,
    /// The index's own schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<CustomSchedule>,
    /// When its last repair by schedule began, seconds since the epoch. Before the first repair:
    /// when the index was first seen.
    pub last_s: u64,
}

impl IndexScheduleEntry {
    /// The entry of an index that is seen for the first time.
    pub(super) fn first(index: &IndexCreation, now_s: u64) -> IndexScheduleEntry {
        IndexScheduleEntry {
            creation: Some(index.id.clone()),
            own: None,
            last_s: now_s,
        }
    }

    /// Whether the entry belongs to this index, and not to an earlier one of the same name.
    pub(super) fn is_of(&self, index: &IndexCreation) -> bool {
        let creation = self.creation.as_ref();
        creation.is_none_or(|creation| *creation == index.id)
    }
}

/// A schedule of an index's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CustomSchedule {
    /// The time from the beginning of one repair to that of the next, seconds; `None`: never.
    pub interval_s: Option<u64>,
    /// See [`RepairSchedule::parallel`](crate::options::PeriodicRepair::parallel).
    pub parallel: usize,
    /// See [`RepairSchedule::intensity`](crate::options::PeriodicRepair::intensity).
    pub intensity: usize,
}

/// Reads the entries of a file; empty if there is no file.
pub(super) fn read(file: &Path) -> io::Result<Entries> {
    match std::fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Entries::new()),
        Err(error) => Err(error),
    }
}

/// Replaces the file with these entries. After an error the file is unchanged.
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
