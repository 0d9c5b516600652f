//! Recovery from a damaged journal, for the operator.
//!
//! The writes after the damage are listed, and are cut off only when the operator accepts their
//! loss. The directory is locked meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fjall::LsmError;
use lsm_tree::{AbstractTree, AnyTree, Guard, SeqNo, SequenceNumberCounter};
use schema::TableId;

use crate::StorageError;
use crate::engine::journal::{self, CorruptBatch, RECORD_KEY};
use crate::engine::{LockedDirectory, SpaceId, manifest};
use crate::persist;

/// The folder in the data directory that holds copies of the engine's small tables while a recovery
/// reads them.
const SCRATCH: &str = "recover";
const KEYSPACES: &str = "keyspaces";

/// The most that a recovery loses. Rows that were already written out of the journal are not lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLoss {
    /// The damaged journal.
    pub journal: PathBuf,
    /// The position in the journal at which the damage begins, in bytes.
    pub offset: u64,
    /// Whole batches of writes after the damaged one.
    pub batches_after: u64,
    /// The writes in these batches, by table. Those of the damaged batch can't be read.
    pub tables: Vec<TableLoss>,
    /// The files that hold what was cut off; empty if nothing was.
    pub kept: Vec<PathBuf>,
}

/// Writes to a table that a recovery loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLoss {
    /// `keyspace.table`, or its number where the schema can't be read.
    pub table: String,
    /// The number of rows and other records.
    pub writes: u64,
    /// The time of the first of these writes, in microseconds since the epoch; 0 if it is not
    /// known.
    pub first_micros: i64,
    /// The time of the last of these writes, in microseconds since the epoch; 0 if it is not known.
    pub last_micros: i64,
}

/// Looks for damage in the journals of a data directory that no process has open; returns `None` if
/// there is none. With `accept_loss` it cuts the journals where the damage begins, and keeps what
/// it cuts in files next to them.
pub fn recover(directory: &Path, accept_loss: bool) -> Result<Option<JournalLoss>, StorageError> {
    let directory = LockedDirectory::open_existing(directory)?;
    let database = directory.database();
    let failed = |error: io::Error| {
        StorageError::Io(format!("can't recover {}: {error}", database.display()))
    };
    manifest::verify(&database).map_err(crate::engine::fault_error)?;
    let Some(damage) = journal::survey(&database).map_err(failed)?.damage else {
        return Ok(None);
    };
    let tables = lost(&directory, &damage).map_err(failed)?;
    let kept = if accept_loss {
        journal::cut_at(&database, &damage).map_err(failed)?
    } else {
        Vec::new()
    };
    Ok(Some(JournalLoss {
        journal: damage.path,
        offset: damage.offset,
        batches_after: damage.batches_after,
        tables,
        kept,
    }))
}

#[derive(Default)]
struct LostWrites {
    writes: u64,
    times: Option<(i64, i64)>,
}

fn lost(directory: &LockedDirectory, damage: &CorruptBatch) -> io::Result<Vec<TableLoss>> {
    let mut counted: HashMap<u64, LostWrites> = HashMap::new();
    // Names are taken from lost batches too, as the journal has the newest ones.
    let mut newest = HashMap::new();
    journal::read_all(&directory.database(), damage, &mut |is_lost, time, item| {
        if let Some(value) = item.value {
            persist::note_names(item.key, value, &mut newest);
        }
        if !is_lost || item.key == RECORD_KEY {
            return;
        }
        let space = counted.entry(item.space).or_default();
        space.writes += 1;
        let (first, last) = space.times.get_or_insert((time, time));
        *first = time.min(*first);
        *last = time.max(*last);
    })?;
    let mut names = names(directory).unwrap_or_else(|error| {
        tracing::warn!(%error, "the names of the tables could not be read");
        SpaceNames::default()
    });
    names.tables.extend(newest);
    let mut tables: Vec<TableLoss> = counted
        .into_iter()
        .map(|(space, counted)| {
            let (first_micros, last_micros) = counted.times.unwrap_or_default();
            TableLoss {
                table: name(space, &names),
                writes: counted.writes,
                first_micros,
                last_micros,
            }
        })
        .collect();
    tables.sort_by(|a, b| a.table.cmp(&b.table));
    Ok(tables)
}

fn name(space: u64, names: &SpaceNames) -> String {
    let Some(id) = names.spaces.get(&space) else {
        return format!("space {space}");
    };
    if *id == SpaceId::META {
        return "(schema and internal records)".to_owned();
    }
    let table = id.table();
    let known = names.tables.get(&table).cloned();
    known.unwrap_or_else(|| format!("table {}", table.0))
}

#[derive(Default)]
struct SpaceNames {
    spaces: BTreeMap<u64, SpaceId>,
    tables: HashMap<TableId, String>,
}

/// Reads the engine's table of spaces and the catalog from copies, as opening them may delete
/// files.
fn names(directory: &LockedDirectory) -> Result<SpaceNames, LsmError> {
    let scratch = directory.path().join(SCRATCH);
    remove(&scratch)?;
    let names = read_names(&directory.database().join(KEYSPACES), &scratch);
    remove(&scratch)?;
    names
}

fn read_names(keyspaces: &Path, scratch: &Path) -> Result<SpaceNames, LsmError> {
    let mut names = SpaceNames::default();
    let spaces = open_copy(&keyspaces.join("0"), &scratch.join("0"))?;
    for entry in spaces.prefix(b"n", SeqNo::MAX, None) {
        let (key, value) = entry.into_inner()?;
        let number = key.get(1..).and_then(|key| key.try_into().ok());
        let id = std::str::from_utf8(&value).ok().and_then(SpaceId::parse);
        if let (Some(number), Some(id)) = (number, id) {
            names.spaces.insert(u64::from_be_bytes(number), id);
        }
    }
    let meta = names.spaces.iter().find(|(_, id)| **id == SpaceId::META);
    if let Some((number, _)) = meta {
        let number = number.to_string();
        let meta = open_copy(&keyspaces.join(&number), &scratch.join(&number))?;
        for entry in meta.range(persist::keys(), SeqNo::MAX, None) {
            let (key, value) = entry.into_inner()?;
            persist::note_names(&key, &value, &mut names.tables);
        }
    }
    Ok(names)
}

fn open_copy(from: &Path, to: &Path) -> Result<AnyTree, LsmError> {
    copy(from, to)?;
    lsm_tree::Config::new(
        to,
        SequenceNumberCounter::default(),
        SequenceNumberCounter::default(),
    )
    .open()
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
