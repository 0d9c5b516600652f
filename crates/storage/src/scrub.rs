//! Reads every file of a stopped data directory and checks every checksum.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::StorageError;
use crate::engine::journal;
use crate::engine::{Directory, damage_error, fault_error, manifest};

/// What a scrub found.
#[derive(Clone, Debug, Default)]
pub struct Scrubbed {
    /// Manifests, tables, files of large values, and journals that were read.
    pub files: u64,
    /// Bytes of tables and files of large values.
    pub bytes: u64,
    /// What is not as it was written, each with the file's name.
    pub faults: Vec<StorageError>,
}

/// Reads all files of a data directory that nobody has open, at most `bytes_a_second`, and goes on behind
/// each that is damaged. Changes nothing.
pub fn scrub(directory: &Path, bytes_a_second: Option<u64>) -> Result<Scrubbed, StorageError> {
    let directory = Directory::open_existing(directory)?;
    let database = directory.database();
    let mut scrubbed = Scrubbed::default();
    let mut pace = Pace::new(bytes_a_second);
    for folder in manifest::spaces(&database).map_err(fault_error)? {
        scrubbed.files += 1;
        let named = match manifest::named(&folder) {
            Ok(named) => named,
            Err(fault) => {
                scrubbed.faults.push(fault_error(fault));
                continue;
            }
        };
        for file in named {
            scrubbed.files += 1;
            let checked = manifest::check_file(&file, &mut |bytes| pace.keep(bytes));
            match checked {
                Ok(bytes) => scrubbed.bytes += bytes,
                Err(fault) => scrubbed.faults.push(fault_error(fault)),
            }
        }
    }
    let survey = journal::survey(&database)
        .map_err(|error| StorageError::Io(format!("can't read {}: {error}", database.display())))?;
    scrubbed.files += survey.journals;
    if let Some(damage) = &survey.damage {
        scrubbed.faults.push(damage_error(directory.path(), damage));
    }
    Ok(scrubbed)
}

/// Holds back what reads faster than it may.
struct Pace {
    started: Instant,
    bytes: u64,
    bytes_a_second: Option<u64>,
}

impl Pace {
    fn new(bytes_a_second: Option<u64>) -> Pace {
        Pace {
            started: Instant::now(),
            bytes: 0,
            bytes_a_second,
        }
    }

    fn keep(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(rate) = self.bytes_a_second {
            let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
            thread::sleep(due.saturating_sub(self.started.elapsed()));
        }
    }
}
