//! A scrub reads every file of a data directory and checks every checksum. The directory may be in
//! use.
//!
//! Tables and files of large values never change once they are written, so they can be checked at
//! any time. In a directory that is in use they come and go: a missing file is a fault only if the
//! manifest still names it.

use std::collections::HashSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::StorageError;
use crate::engine::journal::{self, CorruptBatch};
use crate::engine::manifest::{self, FileDamage};
use crate::engine::{LockedDirectory, damage_error, fault_error};

/// The number of looks at journals in use before one is called damaged, as a half-written batch is
/// whole soon.
const LOOKS_AT_JOURNALS: usize = 5;
/// The pause between two looks at the journals.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The number of looks at a manifest that is replaced while it is read.
const LOOKS_AT_MANIFESTS: usize = 10;

/// The result of a scrub.
#[derive(Clone, Debug, Default)]
pub struct IntegrityReport {
    /// The number of files that were read: manifests, tables, files of large values, and journals.
    pub files: u64,
    /// Bytes of tables and files of large values.
    pub bytes: u64,
    /// An error for each damaged or missing file, with the file's name.
    pub faults: Vec<StorageError>,
}

/// A callback that gets the number of bytes just read. It may wait, to slow the scrub down, and
/// returns whether the scrub goes on.
pub type BytesReadCallback<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Reads all files of a data directory that no process has open. Goes on after a damaged file, and
/// changes nothing.
pub fn scrub(
    directory: &Path,
    pass: BytesReadCallback<'_>,
) -> Result<IntegrityReport, StorageError> {
    let directory = LockedDirectory::open_existing(directory)?;
    check(&directory, false, pass)
}

/// Scrubs a directory that is open already. `in_use` says that files come and go meanwhile.
pub(crate) fn check(
    directory: &LockedDirectory,
    in_use: bool,
    pass: BytesReadCallback<'_>,
) -> Result<IntegrityReport, StorageError> {
    let database = directory.database();
    let mut scrub = IntegrityCheck {
        in_use,
        found: IntegrityReport::default(),
        wanted: true,
        pass,
    };
    for folder in manifest::spaces(&database).map_err(fault_error)? {
        scrub.space(&folder);
    }
    if scrub.wanted {
        scrub.journals(directory)?;
    }
    Ok(scrub.found)
}

struct IntegrityCheck<'a> {
    in_use: bool,
    found: IntegrityReport,
    wanted: bool,
    pass: BytesReadCallback<'a>,
}

impl IntegrityCheck<'_> {
    fn space(&mut self, folder: &Path) {
        let mut checked = HashSet::new();
        // The manifest is read again as long as files that it named are missing: another has
        // replaced it then.
        for look in 1.. {
            let is_last = !self.in_use || look == LOOKS_AT_MANIFESTS;
            let named = match manifest::named(folder) {
                Ok(named) => named,
                // The table was dropped.
                Err(FileDamage::Missing(_)) if self.in_use && !folder.exists() => return,
                // The manifest may have been replaced between two reads.
                Err(_) if !is_last => {
                    thread::sleep(LOOK_INTERVAL / 10);
                    continue;
                }
                Err(fault) => {
                    self.found.files += 1;
                    self.found.faults.push(fault_error(fault));
                    return;
                }
            };
            let mut is_stale = false;
            for file in named {
                if !self.wanted {
                    return;
                }
                if !checked.insert(file.path.clone()) {
                    continue;
                }
                let pass = &mut self.pass;
                let wanted = &mut self.wanted;
                match manifest::check_file(&file, &mut |bytes| *wanted &= pass(bytes)) {
                    Ok(bytes) => self.found.bytes += bytes,
                    Err(FileDamage::Missing(_)) if !is_last => {
                        checked.remove(&file.path);
                        is_stale = true;
                        continue;
                    }
                    Err(fault) => self.found.faults.push(fault_error(fault)),
                }
                self.found.files += 1;
            }
            if !is_stale {
                self.found.files += 1;
                return;
            }
        }
    }

    fn journals(&mut self, directory: &LockedDirectory) -> Result<(), StorageError> {
        let looks = if self.in_use { LOOKS_AT_JOURNALS } else { 1 };
        let mut last: Option<CorruptBatch> = None;
        for look in 1..=looks {
            let survey = match journal::survey(&directory.database()) {
                Ok(survey) => survey,
                // A journal may have been removed meanwhile.
                Err(_) if look < looks => continue,
                Err(error) => {
                    let path = directory.database();
                    let text = format!("can't read {}: {error}", path.display());
                    return Err(StorageError::Io(text));
                }
            };
            let is_last = look == looks;
            let is_same = |last: &CorruptBatch, now: &CorruptBatch| {
                (&last.path, last.offset) == (&now.path, now.offset)
            };
            match survey.damage {
                None => {
                    self.found.files += survey.journals;
                    return Ok(());
                }
                // If the damage was elsewhere at the last look, it is a batch that is being
                // written.
                Some(damage)
                    if is_last && last.as_ref().is_none_or(|last| is_same(last, &damage)) =>
                {
                    self.found.files += survey.journals;
                    let error = damage_error(directory.path(), &damage);
                    self.found.faults.push(error);
                    return Ok(());
                }
                damage => last = damage,
            }
            thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }
}
